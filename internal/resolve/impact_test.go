package resolve

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"quartermaster"
)

// unnamed is a state that no tool names.
const unnamed = "unnamed"

// GATE-9: what would change is exactly what differs when everything is asked
// before and after: every agent, in every group, in every state.
func TestImpactEqualsBruteForce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		before := randomCatalog(t)
		after := laterCatalog(t, before)
		r := New(nil, nil, nil)
		impact, err := r.ImpactOf(t.Context(), before, after)
		must(t, err)
		if again, _ := r.ImpactOf(t.Context(), before, after); fmt.Sprint(again) != fmt.Sprint(impact) {
			t.Errorf("%+v, then %+v", impact, again)
		}
		states := []string{"undefined", "p", "q", unnamed}
		var claimed []string
		for _, a := range impact.Agents {
			claimed = append(claimed, claims(a.Agent, "gains", a.Gained, states, before, after)...)
			claimed = append(claimed, claims(a.Agent, "loses", a.Lost, states, before, after)...)
		}
		var found []string
		for _, agent := range agentWords {
			for _, group := range []string{"default", "g", "h"} {
				for _, state := range states {
					caller := quartermaster.Caller{Project: "default", Agent: agent, Groups: []string{group}, State: state, Granted: []string{"*"}}
					was, is := realNames(t, before, caller), realNames(t, after, caller)
					for _, name := range without(is, was) {
						found = append(found, fmt.Sprintln(agent, "gains", name, group, state))
					}
					for _, name := range without(was, is) {
						found = append(found, fmt.Sprintln(agent, "loses", name, group, state))
					}
				}
			}
			claimed, found = everyGroup(t, claimed, found, before, after, agent, states, impact)
		}
		slices.Sort(claimed)
		slices.Sort(found)
		if !slices.Equal(claimed, found) {
			t.Errorf("the impact is\n%s\nbut asking finds\n%s", claimed, found)
		}
		checkUsers(t, before, after, impact.Users)
	})
}

// claims expands what an impact says of groups that can be asked for by name.
func claims(agent, verb string, all []quartermaster.Availability, states []string, before, after *quartermaster.Catalog) []string {
	var out []string
	for _, a := range all {
		for _, group := range a.Groups {
			if group == "*" {
				continue
			}
			for _, state := range expand(a.States, states, before, after) {
				out = append(out, fmt.Sprintln(agent, verb, a.Tool, group, state))
			}
		}
	}
	return out
}

// expand writes out which of states an Availability speaks of.
func expand(said, states []string, catalogs ...*quartermaster.Catalog) []string {
	if slices.Equal(said, []string{"*"}) {
		return states
	}
	named := map[string]bool{"undefined": true}
	for _, c := range catalogs {
		for _, t := range c.Tools() {
			for _, s := range t.AvailableInStates {
				if !slices.Contains(t.AvailableInStates, "*") {
					named[s] = true
				}
			}
		}
	}
	return slices.DeleteFunc(slices.Clone(states), func(s string) bool {
		return !slices.Contains(said, s) && (named[s] || !slices.Contains(said, quartermaster.OtherStates))
	})
}

// everyGroup looks at requests for "*": a tool without groups must be claimed
// for them, and any that they gain or lose must be spoken of.
func everyGroup(t *rapid.T, claimed, found []string, before, after *quartermaster.Catalog, agent string, states []string, impact quartermaster.Impact) (_, _ []string) {
	spoken := map[string]bool{}
	for _, a := range impact.Agents {
		if a.Agent != agent {
			continue
		}
		for verb, all := range map[string][]quartermaster.Availability{"gains": a.Gained, "loses": a.Lost} {
			for _, v := range all {
				for _, state := range expand(v.States, states, before, after) {
					line := fmt.Sprintln(agent, verb, v.Tool, "*", state)
					spoken[line] = true
					if slices.Contains(v.Groups, "*") {
						claimed = append(claimed, line)
					}
				}
			}
		}
	}
	differ := func(verb string, had, has *quartermaster.Catalog, state string) {
		caller := quartermaster.Caller{Project: "default", Agent: agent, Groups: []string{"*"}, State: state, Granted: []string{"*"}}
		for _, name := range without(realNames(t, has, caller), realNames(t, had, caller)) {
			line := fmt.Sprintln(agent, verb, name, "*", state)
			if !spoken[line] {
				t.Errorf("nothing is said of: %s", line)
			}
			if len(askable(has.GroupsOf(has.ToolByName(name)))) == 0 {
				found = append(found, line)
			}
		}
	}
	for _, state := range states {
		differ("gains", before, after, state)
		differ("loses", after, before, state)
	}
	return claimed, found
}

// realNames lists what a caller has, by real names.
func realNames(t rapid.TB, c *quartermaster.Catalog, caller quartermaster.Caller) []string {
	t.Helper()
	res, err := New(fixed{c}, nil, nil).Resolve(context.Background(), caller, quartermaster.Question{})
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, tool := range res.Tools {
		all = append(all, cmpOr(tool.Target, tool.Name))
	}
	return all
}

// checkUsers asks for all that a user is granted, in every state.
func checkUsers(t *rapid.T, before, after *quartermaster.Catalog, users []quartermaster.UserImpact) {
	said := map[string]quartermaster.UserImpact{}
	for _, u := range users {
		said[u.User] = u
	}
	for _, user := range userWords {
		was, is := grantedTo(before, user), grantedTo(after, user)
		u, changed := said[user]
		if !slices.Equal(without(is, was), u.Gained) && len(u.Gained) > 0 || changed != (len(without(is, was))+len(without(was, is)) > 0) {
			t.Errorf("%s was granted %v, is granted %v: %+v", user, was, is, u)
		}
		if !changed {
			continue
		}
		agents := map[string]quartermaster.AgentChange{}
		for _, a := range u.Agents {
			agents[a.Agent] = a
		}
		for _, agent := range agentWords {
			had, has := grantedTools(t, before, agent, user, was), grantedTools(t, after, agent, user, is)
			if !slices.Equal(agents[agent].Gained, without(has, had)) && len(agents[agent].Gained)+len(without(has, had)) > 0 ||
				!slices.Equal(agents[agent].Lost, without(had, has)) && len(agents[agent].Lost)+len(without(had, has)) > 0 {
				t.Errorf("%s for %s: %+v, had %v, has %v", agent, user, agents[agent], had, has)
			}
		}
	}
}

func grantedTools(t rapid.TB, c *quartermaster.Catalog, agent, user string, groups []string) []string {
	t.Helper()
	all := map[string]bool{}
	for _, state := range []string{"undefined", "p", "q", unnamed} {
		caller := quartermaster.Caller{Project: "default", Agent: agent, User: user, Groups: append([]string{}, groups...), State: state}
		for _, name := range realNames(t, c, caller) {
			all[name] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// GATE-9, in words.
func TestImpact(t *testing.T) {
	const project = `
quartermaster: v1
servers: {files: {transport: stdio, command: x}}
tools:
  a: {}
  b: {groups: [x, y]}
  c: {availableInStates: [p]}
  d: {groups: []}
  files__r: {server: files}
agents:
  m: {tools: [a, b]}
  all: {tools: ["*"], allowed: [a, b, c, d, files__r, e]}
users:
  u: {groups: [x]}
bindings:
  n: [a]
`
	for _, tt := range []struct {
		name string
		edit func(d *quartermaster.Draft) error
		want string
	}{
		{"nothing", func(*quartermaster.Draft) error { return nil }, ""},
		{"unseen", func(d *quartermaster.Draft) error {
			_, err := d.UpdateTool("a", func(t *quartermaster.Tool) error { t.Description = "x"; return nil })
			return err
		}, ""},
		{"disabled", func(d *quartermaster.Draft) error {
			_, err := d.UpdateTool("a", func(t *quartermaster.Tool) error { t.Enabled = false; return nil })
			return err
		}, "all -{a [default] [*]}; m -{a [default] [*]}; n -{a [default] [*]}"},
		{"other group", func(d *quartermaster.Draft) error {
			_, err := d.UpdateTool("b", func(t *quartermaster.Tool) error { t.Groups = []string{"y", "z"}; return nil })
			return err
		}, "all +{b [z] [*]} -{b [x] [*]}; m +{b [z] [*]} -{b [x] [*]}"},
		{"other states", func(d *quartermaster.Draft) error {
			_, err := d.UpdateTool("c", func(t *quartermaster.Tool) error { t.AvailableInStates = []string{"q"}; return nil })
			return err
		}, "all +{c [default] [q]} -{c [default] [p]}"},
		{"every state", func(d *quartermaster.Draft) error {
			_, err := d.UpdateTool("c", func(t *quartermaster.Tool) error { t.AvailableInStates = nil; return nil })
			return err
		}, "all +{c [default] [undefined (any other)]}"},
		{"no group", func(d *quartermaster.Draft) error {
			_, err := d.UpdateTool("d", func(t *quartermaster.Tool) error { t.AvailableInStates = []string{"p"}; return nil })
			return err
		}, "all -{d [*] [undefined (any other)]}"},
		{"a server off", func(d *quartermaster.Draft) error {
			_, _, err := d.PutServer(quartermaster.Server{Name: "files", Transport: quartermaster.TransportStdio, Command: "x", Prefix: true})
			return err
		}, "all -{files__r [default] [*]}"},
		{"a server's groups", func(d *quartermaster.Draft) error {
			_, _, err := d.PutServer(quartermaster.Server{Name: "files", Transport: quartermaster.TransportStdio, Command: "x", Prefix: true, Enabled: true, Groups: []string{"f"}})
			return err
		}, "all +{files__r [f] [*]} -{files__r [default] [*]}"},
		// One goes, another comes: no one is taken for the other.
		{"replaced", func(d *quartermaster.Draft) error {
			if err := d.DeleteTool("a"); err != nil {
				return err
			}
			_, err := d.CreateTool(quartermaster.Tool{Name: "e", Enabled: true})
			return err
		}, "all +{e [default] [*]} -{a [default] [*]}; m -{a [default] [*]}; n -{a [default] [*]}"},
		{"renamed", func(d *quartermaster.Draft) error {
			_, err := d.UpdateTool("a", func(t *quartermaster.Tool) error { t.Name = "e"; return nil })
			return err
		}, "all +{e [default] [*]} -{a [default] [*]}; m -{a [default] [*]}; n +{e [default] [*]} -{a [default] [*]}"},
		{"unbound", func(d *quartermaster.Draft) error {
			_, err := d.ReplaceBindings("n", []string{})
			return err
		}, "n -{a [default] [*]}"},
		{"defined", func(d *quartermaster.Draft) error {
			_, _, err := d.PutAgent(quartermaster.Agent{ID: "new", Tools: []string{"c"}})
			return err
		}, "new +{c [default] [p]}"},
		{"granted", func(d *quartermaster.Draft) error {
			_, _, err := d.PutUser(quartermaster.User{ID: "u", Groups: []string{"y", "default"}})
			return err
		}, "user u +[y default] -[x] {all [a c files__r] []} {m [a] []} {n [a] []}"},
		{"a first row", func(d *quartermaster.Draft) error {
			_, _, err := d.PutUser(quartermaster.User{ID: "v", Groups: []string{"*"}})
			return err
		}, "user v +[*] -[default] {all [b d] []} {m [b] []}"},
		{"a row gone", func(d *quartermaster.Draft) error { return d.DeleteUser("u") }, "user u +[default] -[x] {all [a c files__r] [b]} {m [a] [b]} {n [a] []}"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			before := catalogOf(t, []byte(project))
			d := before.Draft(time.Unix(2, 0))
			if err := tt.edit(d); err != nil {
				t.Fatal(err)
			}
			impact, err := New(nil, nil, nil).ImpactOf(t.Context(), before, d.Catalog())
			if err != nil {
				t.Fatal(err)
			}
			if got := impactText(impact); got != tt.want {
				t.Errorf("%s\nwant\n%s", got, tt.want)
			}
		})
	}
}

func impactText(impact quartermaster.Impact) string {
	var lines []string
	for _, a := range impact.Agents {
		line := a.Agent
		for _, v := range a.Gained {
			line += fmt.Sprint(" +", v)
		}
		for _, v := range a.Lost {
			line += fmt.Sprint(" -", v)
		}
		lines = append(lines, line)
	}
	for _, u := range impact.Users {
		line := fmt.Sprint("user ", u.User, " +", u.Gained, " -", u.Lost)
		for _, a := range u.Agents {
			line += fmt.Sprint(" ", a)
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "; ")
}
