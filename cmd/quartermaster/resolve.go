package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"quartermaster"
	"quartermaster/client"
)

// situationFlags adds the flags by which a person describes a caller. The
// function it returns reads them.
func situationFlags(a *app, c *cobra.Command) func() client.Situation {
	var (
		s        client.Situation
		groups   []string
		noGroups bool
	)
	f := c.Flags()
	f.StringVar(&s.Agent, "agent", "", "the `AGENT` that asks")
	f.StringArrayVar(&groups, "group", nil, "a requested `GROUP`; may be repeated; * is every group (default: the group default)")
	f.BoolVar(&noGroups, "no-groups", false, "request no group at all")
	f.StringVar(&s.State, "state", "", "the session's workflow `STATE` (default undefined)")
	f.IntVar(&s.Depth, "depth", 0, "how many agents led to this one")
	_ = c.MarkFlagRequired("agent")
	c.MarkFlagsMutuallyExclusive("group", "no-groups")
	_ = c.RegisterFlagCompletionFunc("agent", a.completeAgents)
	return func() client.Situation {
		s.User = a.flags.user
		if s.User == "" {
			s.User = a.getenv("QUARTERMASTER_USER")
		}
		if s.Groups = groups; noGroups {
			s.Groups = []string{}
		}
		return s
	}
}

func resolveCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use: "resolve --agent AGENT", Short: "List the tools that an agent has in a situation", Args: cobra.NoArgs,
		Long: "Resolve lists the tools that an agent would be given: the same decision that answers\n" +
			"the agent itself. \"quartermaster explain\" says why a tool is missing.",
		Example: "  quartermaster resolve --agent responder\n  quartermaster resolve --agent responder --user alice --group write --state triage",
	}
	situation := situationFlags(a, c)
	c.RunE = a.inProject(func(ctx context.Context, p *client.Project, _ []string) error {
		s := situation()
		resolved, err := p.Resolve(ctx, s)
		if err != nil {
			return err
		}
		a.warn(resolved.Warnings)
		if a.flags.output != formatTable {
			return a.print(resolved, nil)
		}
		return printList(a, resolved.Tools, "no tools; ask why with: "+a.explaining(s),
			[]string{"NAME", "TARGET", "DESCRIPTION"}, func(t quartermaster.Tool) []string {
				return []string{t.Name, t.Target, firstLine(t.Description)}
			})
	})
	return c
}

// explaining is the command that explains a situation, ready for a shell.
func (a *app) explaining(s client.Situation) string {
	words := []string{"quartermaster", "explain", "--agent", s.Agent}
	add := func(flag, value string) {
		if value != "" {
			words = append(words, flag, value)
		}
	}
	add("--user", s.User)
	for _, group := range s.Groups {
		words = append(words, "--group", group)
	}
	if s.Groups != nil && len(s.Groups) == 0 {
		words = append(words, "--no-groups")
	}
	add("--state", s.State)
	if s.Depth != 0 {
		add("--depth", strconv.Itoa(s.Depth))
	}
	if project := a.projectID(); a.flags.project != "" || project != quartermaster.DefaultProject {
		add("--project", project)
	}
	return quartermaster.ShellWords(words...)
}

// warn tells a person what has no effect.
func (a *app) warn(warnings []string) {
	for _, w := range warnings {
		a.note("%s %s", "warning:", w)
	}
}

func explainCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use: "explain --agent AGENT [TOOL]", Short: "Say why an agent has a tool or has not", Args: cobra.MaximumNArgs(1),
		Long: "Explain asks every gate about a tool, or about all tools: what each one says, which is\n" +
			"the first to refuse it, what would help, and what else would still refuse it.",
		Example:           "  quartermaster explain --agent responder reply_send\n  quartermaster explain --agent responder --user alice --group write --state triage",
		ValidArgsFunction: a.completeTools(1),
	}
	situation := situationFlags(a, c)
	c.RunE = a.inProject(func(ctx context.Context, p *client.Project, args []string) error {
		tool := ""
		if len(args) > 0 {
			tool = args[0]
		}
		explained, err := p.Explain(ctx, situation(), tool)
		if err != nil {
			return err
		}
		a.warn(explained.Warnings)
		return a.print(explained, func() error {
			if tool != "" && len(explained.Tools) == 1 {
				return a.printExplanation(explained.Tools[0])
			}
			return a.printExplanations(explained.Tools)
		})
	})
	return c
}

func (a *app) printExplanations(tools []quartermaster.Explanation) error {
	t := table{header: []string{"TOOL", "ALLOWED", "REFUSED BY", "REASON"}}
	for _, e := range tools {
		t.rows = append(t.rows, []string{named(e), yesNo(e.Allowed), string(e.Gate), e.Reason})
	}
	return t.write(a.out, a.width())
}

func named(e quartermaster.Explanation) string {
	if e.Target != "" {
		return e.Name + " (" + e.Target + ")"
	}
	return e.Name
}

// printExplanation writes the whole story of one tool.
func (a *app) printExplanation(e quartermaster.Explanation) error {
	verdict := a.color(green, "allowed")
	if !e.Allowed {
		verdict = a.color(red, "refused") + " by the " + string(e.Gate) + " gate"
	}
	lines := []string{fmt.Sprintf("%s is %s", plainText(named(e)), verdict), ""}
	var further []string
	for _, g := range e.Gates {
		mark := a.color(green, "✓")
		if g.Verdict != quartermaster.VerdictPass {
			mark = a.color(red, "✗")
			if g.Gate != e.Gate {
				further = append(further, string(g.Gate))
			}
		}
		lines = append(lines, fmt.Sprintf("  %s %-10s  %s", mark, g.Gate, plainText(g.Reason)))
	}
	if !e.Allowed && e.Remedy != "" {
		lines = append(lines, "", "  to pass the "+string(e.Gate)+" gate: "+plainText(e.Remedy))
	}
	if gates := " gate"; len(further) > 0 {
		if len(further) > 1 {
			gates = " gates"
		}
		lines = append(lines, "  then the "+strings.Join(further, " and ")+gates+" would still refuse it")
	}
	for _, line := range lines {
		if _, err := fmt.Fprintln(a.out, line); err != nil {
			return err
		}
	}
	return nil
}
