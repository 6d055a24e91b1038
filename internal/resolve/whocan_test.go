package resolve

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"quartermaster"
)

// GATE-9 from the other side: who can get at a tool is who has it when everyone
// is asked.
func TestWhoCanEqualsBruteForce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		catalog := randomCatalog(t)
		r := New(fixed{catalog}, nil, nil)
		for _, tool := range catalog.Tools() {
			who, err := r.WhoCan(t.Context(), catalog, oneOf(t, "ref", tool.Name, tool.ID))
			if err != nil {
				t.Fatal(err)
			}
			checkAgents(t, r, tool, who)
			checkGranted(t, r, tool, who)
		}
	})
}

func checkAgents(t *rapid.T, r *Resolver, tool *quartermaster.Tool, who quartermaster.Reachers) {
	var want []string
	for _, agent := range agentWords {
		for _, state := range []string{"undefined", "p", "q", unnamed} {
			caller := quartermaster.Caller{Project: "default", Agent: agent, Groups: []string{"*"}, State: state, Granted: []string{"*"}}
			res, err := r.Resolve(t.Context(), caller, quartermaster.Question{})
			must(t, err)
			for _, listed := range res.Tools {
				if listed.ID == tool.ID {
					want = append(want, agent+" as "+listed.Name)
				}
			}
		}
	}
	want = slices.Compact(want)
	var got []string
	for _, a := range who.Agents {
		got = append(got, a.Agent+" as "+a.Name)
		if a.Via == "" {
			t.Errorf("%s reaches %s, but by what?", a.Agent, tool.Name)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s: %v, want %v", tool.Name, got, want)
	}
	if who.Nobody != "" && len(want) > 0 {
		t.Errorf("nobody can, because %s, but %v", who.Nobody, want)
	}
}

// checkGranted lets each user with a row ask for each group by itself.
func checkGranted(t *rapid.T, r *Resolver, tool *quartermaster.Tool, who quartermaster.Reachers) {
	if who.Nobody != "" {
		return
	}
	for _, u := range r.catalogs.(fixed).catalog.Users() {
		var want []string
		for _, group := range append([]string{"*"}, who.Groups...) {
			caller := quartermaster.Caller{Project: "default", Agent: "m", User: u.ID, Groups: []string{group}}
			if _, err := r.Resolve(t.Context(), caller, quartermaster.Question{}); err == nil && !slices.Contains(want, group) {
				want = append(want, group)
			}
		}
		var got []string
		for _, x := range who.Users {
			if x.User == u.ID {
				got = x.Groups
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s may ask for %s by %v, want %v", u.ID, tool.Name, got, want)
		}
	}
}

func TestWhoCan(t *testing.T) {
	catalog := catalogOf(t, []byte(`
quartermaster: v1
servers: {down: {transport: stdio, command: x, enabled: false}, up: {transport: stdio, command: x}}
tools:
  a: {}
  off: {enabled: false}
  never: {availableInStates: []}
  some: {availableInStates: [p, q], groups: [x, y]}
  none: {groups: []}
  down__r: {server: down}
  up__r: {server: up}
agents:
  m: {tools: ["*"]}
  n: {tools: [read], aliases: {read: "@up/r"}}
bindings: {bound: [a, "@up/r"]}
users: {u: {groups: [x]}, all: {groups: ["*"]}, v: {groups: []}}
`))
	r := New(nil, nil, nil)
	for ref, want := range map[string]string{
		"a":       `[default] [*] bound as a: it is bound to the agent; m as a: the pattern "*" of the definition matches it; all by [* default]`,
		"@up/r":   `[default] [*] bound as up__r: it is bound to the agent; m as up__r: the pattern "*" of the definition matches it; n as read: the definition's tools name it by the alias "read"; all by [* default]`,
		"some":    `[x y] [p q] m as some: the pattern "*" of the definition matches it; all by [* x y]; u by [x]`,
		"none":    `[] [*] m as none: the pattern "*" of the definition matches it; all by [*]`,
		"off":     `[default] [*] nobody: it is disabled`,
		"never":   `[default] [] nobody: it is available in no state`,
		"down__r": `[default] [*] nobody: its server down is disabled`,
	} {
		who, err := r.WhoCan(t.Context(), catalog, ref)
		if err != nil {
			t.Fatal(err)
		}
		var parts []string
		if who.Nobody != "" {
			parts = append(parts, "nobody: "+who.Nobody)
		}
		for _, a := range who.Agents {
			parts = append(parts, a.Agent+" as "+a.Name+": "+a.Via)
		}
		for _, u := range who.Users {
			parts = append(parts, fmt.Sprint(u.User, " by ", u.Groups))
		}
		if got := fmt.Sprint(who.Groups, " ", who.States, " ", strings.Join(parts, "; ")); got != want {
			t.Errorf("%s:\n%s\nwant\n%s", ref, got, want)
		}
	}
	if _, err := r.WhoCan(t.Context(), catalog, "@up/none"); quartermaster.CodeOf(err) != quartermaster.CodeToolNotFound {
		t.Error(err)
	}
}
