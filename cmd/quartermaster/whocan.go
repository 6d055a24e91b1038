package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"quartermaster"
	"quartermaster/client"
)

func whoCanCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "who-can TOOL", Short: "List who gets at a tool", Args: cobra.ExactArgs(1), ValidArgsFunction: a.completeTools(1),
		Long: "Who-can answers the question from the other side: which agents reach a tool and by\n" +
			"what, which groups must be asked for and who was granted them, in which states, which\n" +
			"users may execute it and by what, and for which agents the policy refuses them.",
		Example: "  quartermaster who-can reply_send",
		RunE: func(c *cobra.Command, args []string) error {
			cl, err := a.client()
			if err != nil {
				return err
			}
			who, err := cl.Project(a.projectID()).WhoCan(c.Context(), args[0])
			if err != nil {
				return err
			}
			st, err := cl.Status(c.Context())
			if err != nil {
				return err
			}
			asked := func(g client.Gate) bool { return g.On && g.Name == string(quartermaster.GatePermission) }
			return a.print(who, func() error { return a.printReachers(who, slices.ContainsFunc(st.Gates, asked)) })
		},
	}
}

// printReachers writes who gets at a tool. Whether users need a permission decides
// what can be said of those that nothing is known of.
func (a *app) printReachers(who quartermaster.Reachers, permission bool) error {
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
	if permission {
		return a.printHolders(who)
	}
	if slices.Contains(who.Groups, quartermaster.DefaultGroup) {
		if _, err := fmt.Fprintf(a.out, "\nevery user without a row may ask for it, by group %s\n", quartermaster.DefaultGroup); err != nil {
			return err
		}
	}
	return a.printUsers(who.Users, []string{"USER", "MAY ASK FOR", "NOT BY AGENTS"})
}

// printHolders writes the users that may execute a tool.
func (a *app) printHolders(who quartermaster.Reachers) error {
	if len(who.Users) == 0 {
		a.note("no user may execute it; grant it with: quartermaster grant user:ID executor %s", who.Tool)
	}
	return a.printUsers(who.Users, []string{"USER", "MAY ASK FOR", "NOT BY AGENTS", "BECAUSE"})
}

// printUsers writes as many columns as there are headers.
func (a *app) printUsers(users []quartermaster.UserReach, header []string) error {
	if len(users) == 0 {
		return nil
	}
	if _, err := fmt.Fprintln(a.out); err != nil {
		return err
	}
	t := table{header: header}
	for _, u := range users {
		row := []string{u.User, orNone(u.Groups), strings.Join(u.Refused, ", "), u.Via}
		t.rows = append(t.rows, row[:len(header)])
	}
	return t.write(a.out, a.width())
}
