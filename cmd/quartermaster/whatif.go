package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"quartermaster"
	"quartermaster/client"
)

func whatIfCommand(a *app) *cobra.Command {
	var (
		files []string
		prune bool
	)
	c := &cobra.Command{
		Use: "whatif -f FILE...", Short: "Say who would gain and lose which tools by a change", Args: cobra.NoArgs,
		Long: "Whatif reads project files as apply does, changes nothing, and says which agents and\n" +
			"users would gain and lose which tools if they were applied.",
		Example: "  quartermaster whatif -f change.yaml",
		RunE: a.inProject(func(ctx context.Context, p *client.Project, _ []string) error {
			doc, err := a.readProject(files)
			if err != nil {
				return err
			}
			body, err := doc.json()
			if err != nil {
				return err
			}
			impact, err := p.WhatIfFrom(ctx, body, prune)
			if err != nil {
				return doc.located(err)
			}
			return a.print(impact, func() error { return a.printImpact(impact) })
		}),
	}
	f := c.Flags()
	f.StringArrayVarP(&files, "file", "f", nil, "`FILE` or directory with the change; - is standard input; may be repeated")
	f.BoolVar(&prune, "prune", false, "as if what the files do not hold were removed")
	_ = c.MarkFlagRequired("file")
	_ = c.MarkFlagFilename("file", "yaml", "yml", "json")
	return c
}

func (a *app) printImpact(w client.WhatIf) error {
	var lines []string
	line := func(indent, code, mark, text string) {
		lines = append(lines, indent+a.color(code, mark+" "+plainText(text)))
	}
	for _, agent := range w.Agents {
		lines = append(lines, "agent "+plainText(agent.Agent))
		for _, g := range agent.Gained {
			line("  ", green, "+", available(g))
		}
		for _, l := range agent.Lost {
			line("  ", red, "-", available(l))
		}
	}
	for _, user := range w.Users {
		lines = append(lines, "user "+plainText(user.User))
		for _, g := range user.Gained {
			line("  ", green, "+", "group "+g)
		}
		for _, l := range user.Lost {
			line("  ", red, "-", "group "+l)
		}
		for _, agent := range user.Agents {
			for _, tool := range agent.Gained {
				line("    ", green, "+", tool+" by agent "+agent.Agent)
			}
			for _, tool := range agent.Lost {
				line("    ", red, "-", tool+" by agent "+agent.Agent)
			}
		}
	}
	for _, agent := range sorted(maps.Keys(w.Warnings)) {
		for _, warning := range w.Warnings[agent] {
			line("", yellow, "!", "agent "+agent+": "+warning)
		}
	}
	for _, l := range lines {
		if _, err := fmt.Fprintln(a.out, l); err != nil {
			return err
		}
	}
	if len(w.Agents)+len(w.Users) == 0 {
		a.note("%s would be made; nobody would gain or lose a tool", count(len(w.Changes), "change"))
	}
	return nil
}

// available is a tool, with its groups and states where that says something.
func available(v quartermaster.Availability) string {
	text := v.Tool + " in " + joined("group", v.Groups)
	if !slices.Equal(v.States, []string{"*"}) {
		text += ", " + joined("state", v.States)
	}
	return text
}

func joined(noun string, names []string) string {
	if len(names) > 1 {
		noun += "s"
	}
	return noun + " " + strings.Join(names, ", ")
}

func whoCanCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "who-can TOOL", Short: "List who gets at a tool", Args: cobra.ExactArgs(1), ValidArgsFunction: a.completeTools(1),
		Long: "Who-can answers the question from the other side: which agents reach a tool and by\n" +
			"what, which groups must be asked for and who was granted them, and in which states.",
		Example: "  quartermaster who-can reply_send",
		RunE: a.inProject(func(ctx context.Context, p *client.Project, args []string) error {
			who, err := p.WhoCan(ctx, args[0])
			if err != nil {
				return err
			}
			return a.print(who, func() error { return a.printReachers(who) })
		}),
	}
}

func (a *app) printReachers(who quartermaster.Reachers) error {
	if who.Nobody != "" {
		return a.done(who, "nobody can call %s: %s", who.Tool, who.Nobody)
	}
	states := joined("state", who.States)
	if slices.Equal(who.States, []string{"*"}) {
		states = "every state"
	}
	head := fmt.Sprintf("%s is in %s and available in %s", who.Tool, joined("group", who.Groups), states)
	if len(who.Groups) == 0 {
		head = fmt.Sprintf("%s is in no group: only a request for * reaches it; available in %s", who.Tool, states)
	}
	if _, err := fmt.Fprintf(a.out, "%s\n\n", plainText(head)); err != nil {
		return err
	}
	t := table{header: []string{"AGENT", "SEES IT AS", "BECAUSE"}}
	for _, r := range who.Agents {
		t.rows = append(t.rows, []string{r.Agent, r.Name, r.Via})
	}
	if len(who.Agents) == 0 {
		a.note("no agent reaches it; bind it with: quartermaster bind AGENT --add %s", who.Tool)
	} else if err := t.write(a.out, a.width()); err != nil {
		return err
	}
	if slices.Contains(who.Groups, quartermaster.DefaultGroup) {
		if _, err := fmt.Fprintf(a.out, "\nevery user without a row may ask for it, by group %s\n", quartermaster.DefaultGroup); err != nil {
			return err
		}
	}
	users := table{header: []string{"USER", "MAY ASK FOR"}}
	for _, u := range who.Users {
		users.rows = append(users.rows, []string{u.User, strings.Join(u.Groups, ", ")})
	}
	if len(who.Users) == 0 {
		return nil
	}
	if _, err := fmt.Fprintln(a.out); err != nil {
		return err
	}
	return users.write(a.out, a.width())
}
