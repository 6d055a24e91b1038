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

const whatIfLong = `Whatif changes nothing, and says which agents and users would gain and lose which
tools: if project files were applied, as apply does it, if something were granted or
revoked, and if policies were put. All of it counts as one change.`

const whatIfExample = `  quartermaster whatif -f change.yaml
  quartermaster whatif --grant "user:alice executor files__read_file"
  quartermaster whatif --revoke "user:bob member group:ops" --policy office-hours.rego`

// whatIfOptions are the changes that are asked about.
type whatIfOptions struct {
	files, grants, revokes, policies []string
	prune                            bool
}

func whatIfCommand(a *app) *cobra.Command {
	var o whatIfOptions
	c := &cobra.Command{
		Use: "whatif", Short: "Say who would gain and lose which tools by a change", Args: cobra.NoArgs,
		Long: whatIfLong, Example: whatIfExample,
		RunE: a.inProject(func(ctx context.Context, p *client.Project, _ []string) error {
			doc, err := a.supposed(o)
			if err != nil {
				return err
			}
			body, err := doc.json()
			if err != nil {
				return err
			}
			impact, err := p.WhatIfFrom(ctx, body, o.prune)
			if err != nil {
				return doc.located(err)
			}
			return a.print(impact, func() error { return a.printImpact(impact) })
		}),
	}
	f := c.Flags()
	f.StringArrayVarP(&o.files, "file", "f", nil, "`FILE` or directory with the change; - is standard input; may be repeated")
	f.StringArrayVar(&o.grants, "grant", nil, "as if this were granted: `\"SUBJECT RELATION TOOL\"`; may be repeated")
	f.StringArrayVar(&o.revokes, "revoke", nil, "as if this were revoked: `\"SUBJECT RELATION TOOL\"`; may be repeated")
	f.StringArrayVar(&o.policies, "policy", nil, "as if the policy in this `FILE` were put; may be repeated")
	f.BoolVar(&o.prune, "prune", false, "as if what the files do not hold were removed")
	c.MarkFlagsOneRequired("file", "grant", "revoke", "policy")
	_ = c.MarkFlagFilename("file", "yaml", "yml", "json")
	_ = c.MarkFlagFilename("policy", "rego")
	return c
}

// supposed is one document of all that is asked about.
func (a *app) supposed(o whatIfOptions) (document, error) {
	beside, err := a.readPolicies(o.policies)
	if err != nil {
		return document{}, err
	}
	for _, list := range []struct {
		name, flag string
		given      []string
	}{{"grants", "--grant", o.grants}, {"revoke", "--revoke", o.revokes}} {
		var entries []any
		for i, words := range list.given {
			entry, err := grantEntry(list.flag, words)
			if err != nil {
				return document{}, err
			}
			entries = append(entries, entry)
			beside.places[fmt.Sprintf("%s[%d]", list.name, i)] = place{file: list.flag + " " + quartermaster.ShellWords(words)}
		}
		if len(entries) > 0 {
			beside.value = append(beside.value, member{list.name, entries})
		}
	}
	return a.readProject(o.files, beside)
}

// grantEntry reads the words of a grant. A user's id may be several words.
func grantEntry(flag, text string) (object, error) {
	words := strings.Fields(text)
	n := len(words)
	if n < 3 {
		return nil, usagef("%s %s: must be SUBJECT RELATION TOOL, such as \"user:alice executor echo\"", flag, quartermaster.ShellWords(text))
	}
	g := grantsOf([]string{strings.Join(words[:n-2], " "), words[n-2], words[n-1]})[0]
	entry := object{{"subject", g.Subject}, {"relation", g.Relation}}
	if g.Tool != "" {
		return append(entry, member{"tool", g.Tool}), nil
	}
	return append(entry, member{"resource", g.Resource}), nil
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
