package main

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"quartermaster"
	"quartermaster/client"
)

const grantLong = `Grant relates a subject to tools, or to something else: all of them, or none if one
is wrong. What is granted already stays as it is.

SUBJECT is user:ID, or group:NAME#member for all members of a group of users.
RELATION is owner or executor of a tool, member of a group, admin or member of the
project, or what else the schema has ("quartermaster schema" prints it). TOOL is a
tool's name or @server/tool; project, group:NAME and tool:NAME name other things.`

const grantExample = `  quartermaster grant user:alice executor files__read_file
  quartermaster grant group:ops#member executor @files/read_file @files/write_file
  quartermaster grant user:bob member group:ops
  quartermaster grant user:eve admin project`

func grantCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "grant SUBJECT RELATION TOOL...", Short: "Let a user or a group execute tools, or relate them otherwise",
		Long: grantLong, Example: grantExample, Args: cobra.MinimumNArgs(3), ValidArgsFunction: a.completeGrant,
		RunE: a.inProject(func(ctx context.Context, p *client.Project, args []string) error {
			changed, err := p.ChangeGrants(ctx, grantsOf(args), nil)
			if err != nil {
				return inArguments(err, args)
			}
			if changed.Added < len(args)-2 {
				a.note("%d of %d granted already", len(args)-2-changed.Added, len(args)-2)
			}
			return a.done(changed, "%s is %s of %s", args[0], args[1], strings.Join(args[2:], ", "))
		}),
	}
}

func revokeCommand(a *app) *cobra.Command {
	var all bool
	c := &cobra.Command{
		Use: "revoke SUBJECT RELATION TOOL...", Short: "Take back what was granted",
		Long: "Revoke takes back what was granted, in the words by which it was granted; with --all\n" +
			"everything that was granted to the subject itself.",
		Example: "  quartermaster revoke user:alice executor files__read_file\n" +
			"  quartermaster revoke user:bob member group:ops\n" +
			"  quartermaster revoke --all user:alice",
		ValidArgsFunction: a.completeGrant,
		Args: func(c *cobra.Command, args []string) error {
			if all {
				return cobra.ExactArgs(1)(c, args)
			}
			return cobra.MinimumNArgs(3)(c, args)
		},
		RunE: a.inProject(func(ctx context.Context, p *client.Project, args []string) error {
			if all {
				return a.revokeAll(ctx, p, args[0])
			}
			return a.revoke(ctx, p, args)
		}),
	}
	c.Flags().BoolVar(&all, "all", false, "revoke everything that was granted to SUBJECT")
	return c
}

func (a *app) revokeAll(ctx context.Context, p *client.Project, subject string) error {
	if err := p.Revoke(ctx, client.GrantFilter{Subject: subject}); err != nil {
		return err
	}
	return a.done(object{{"revoked", subject}}, "revoked all that was granted to %s", subject)
}

func (a *app) revoke(ctx context.Context, p *client.Project, args []string) error {
	changed, err := p.ChangeGrants(ctx, nil, grantsOf(args))
	if err != nil {
		return inArguments(err, args)
	}
	what := strings.Join(args[2:], ", ")
	switch {
	case changed.Removed == 0:
		return quartermaster.Errorf(quartermaster.CodeNotFound, "%s is not granted %s of %s; nothing was revoked", args[0], args[1], what)
	case changed.Removed < len(args)-2:
		a.note("%d of %d not granted before", len(args)-2-changed.Removed, len(args)-2)
	}
	return a.done(changed, "%s is no longer %s of %s", args[0], args[1], what)
}

// grantsOf are those that SUBJECT RELATION TOOL... stand for.
func grantsOf(args []string) []quartermaster.Grant {
	var grants []quartermaster.Grant
	for _, on := range args[2:] {
		g := quartermaster.Grant{Subject: args[0], Relation: args[1]}
		if on == quartermaster.TypeProject || strings.Contains(on, ":") {
			g.Resource = on
		} else {
			g.Tool = on
		}
		grants = append(grants, g)
	}
	return grants
}

var entryPlace = regexp.MustCompile(`^body\.(?:add|remove)\[([0-9]+)\](?:\.([a-z]+))?$`)

// inArguments says which arguments the faults of err are about, once.
func inArguments(err error, args []string) error {
	e, ok := errors.AsType[*quartermaster.Error](err)
	if !ok {
		return err
	}
	named := *e
	named.Faults = nil
	for _, f := range e.Faults {
		if m := entryPlace.FindStringSubmatch(f.Location); m != nil {
			f.Location = argument(m[2], m[1], args)
		}
		if !slices.Contains(named.Faults, f) {
			named.Faults = append(named.Faults, f)
		}
	}
	return &named
}

func argument(field, entry string, args []string) string {
	switch field {
	case "subject":
		return "SUBJECT"
	case "relation":
		return "RELATION"
	}
	i, err := strconv.Atoi(entry)
	if err != nil || i+2 >= len(args) {
		return field
	}
	return args[i+2]
}

func grantsCommand(a *app) *cobra.Command {
	var filter client.GrantFilter
	c := &cobra.Command{
		Use: "grants", Short: "List who is granted what", Args: cobra.NoArgs,
		Example: "  quartermaster grants --subject user:alice\n  quartermaster grants --tool files__read_file\n  quartermaster grants --resource group:ops",
		RunE: a.inProject(func(ctx context.Context, p *client.Project, _ []string) error {
			grants, err := p.Grants(filter).Collect(ctx)
			if err != nil {
				return err
			}
			return printList(a, grants, "no grants; grant something with: quartermaster grant user:ID executor TOOL",
				[]string{"SUBJECT", "RELATION", "ON", "SINCE"}, func(g quartermaster.Grant) []string {
					return []string{g.Subject, g.Relation, grantedOn(g), when(g.CreatedAt)}
				})
		}),
	}
	f := c.Flags()
	f.StringVar(&filter.Subject, "subject", "", "only what is granted to this `SUBJECT`")
	f.StringVar(&filter.Relation, "relation", "", "only this `RELATION`")
	f.StringVar(&filter.Tool, "tool", "", "only what is granted on this `TOOL`")
	f.StringVar(&filter.Resource, "resource", "", "only what is granted on this: project, group:NAME, tool:NAME")
	c.MarkFlagsMutuallyExclusive("tool", "resource")
	_ = c.RegisterFlagCompletionFunc("tool", a.completeTools(0))
	_ = c.RegisterFlagCompletionFunc("subject", a.completeSubjects)
	_ = c.RegisterFlagCompletionFunc("relation", cobra.FixedCompletions(relations, cobra.ShellCompDirectiveNoFileComp))
	return c
}

// grantedOn is what grant and revoke take for it.
func grantedOn(g quartermaster.Grant) string {
	if g.Tool != "" && g.Tool != quartermaster.TypeProject {
		return g.Tool
	}
	return g.Resource
}

// relations are those of the schema that every server has.
var relations = []string{"executor", "owner", "member", "admin"}

func schemaCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "schema", Short: "Print which relations can be granted, and what they permit", Args: cobra.NoArgs,
		Long: "Schema prints the permission engine's schema: the types, the relations that a subject\n" +
			"can have to each, and what these permit.",
		RunE: func(c *cobra.Command, _ []string) error {
			cl, err := a.client()
			if err != nil {
				return err
			}
			schema, err := cl.Schema(c.Context())
			if err != nil {
				return err
			}
			return a.print(object{{"schema", schema}}, func() error { return a.printText(schema) })
		},
	}
}
