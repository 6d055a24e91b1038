package resolve

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"quartermaster"
)

// granting is a permission engine by hand: a grant on a tool is all it knows.
func granting() engine {
	return engine{
		answer: func(_ context.Context, catalog *quartermaster.Catalog, caller quartermaster.Caller, _ quartermaster.Question, tools []*quartermaster.Tool) ([]quartermaster.Judgment, error) {
			all := make([]quartermaster.Judgment, len(tools))
			for i, tool := range tools {
				all[i].Allowed = caller.User == quartermaster.LocalUser ||
					len(catalog.Grants(quartermaster.GrantFilter{Resource: "tool:" + tool.Name, Subject: "user:" + caller.User})) > 0
			}
			return all, nil
		},
		users: func(catalog *quartermaster.Catalog) []string {
			var all []string
			for _, g := range catalog.AllGrants() {
				user, _ := g.User()
				all = append(all, user)
			}
			return all
		},
		holders: func(catalog *quartermaster.Catalog, tool *quartermaster.Tool) []quartermaster.Holder {
			var all []quartermaster.Holder
			for _, g := range catalog.Grants(quartermaster.GrantFilter{Resource: "tool:" + tool.Name}) {
				user, _ := g.User()
				all = append(all, quartermaster.Holder{User: user, Via: g.Relation})
			}
			return all
		},
	}
}

// forbidding is a policy engine by hand: a policy's text names what it forbids,
// as agent/tool.
func forbidding() engine {
	return engine{answer: func(_ context.Context, catalog *quartermaster.Catalog, caller quartermaster.Caller, _ quartermaster.Question, tools []*quartermaster.Tool) ([]quartermaster.Judgment, error) {
		all := make([]quartermaster.Judgment, len(tools))
		for i, tool := range tools {
			all[i].Allowed = true
			if p := catalog.Policy("p"); p != nil {
				all[i].Allowed = !slices.Contains(strings.Fields(p.Rego), caller.Agent+"/"+tool.Name)
			}
		}
		return all, nil
	}}
}

// GATE-9: for grants and policies too, what would change for a user is what
// differs when the user's agents are asked before and after.
func TestUserImpactEqualsBruteForce(t *testing.T) {
	users := []string{"u", "v", quartermaster.LocalUser}
	rapid.Check(t, func(t *rapid.T) {
		start := randomCatalog(t)
		draft := func(c *quartermaster.Catalog) *quartermaster.Catalog {
			d := c.Draft(time.Unix(3, 0))
			for _, tool := range c.Tools() {
				user := rapid.SampledFrom(users[:2]).Draw(t, "user")
				switch rapid.IntRange(0, 3).Draw(t, "edit") {
				case 0:
					_, _, err := d.Grant(quartermaster.Grant{Subject: "user:" + user, Relation: "executor", Tool: tool.Name})
					must(t, err)
				case 1:
					d.Revoke(quartermaster.GrantFilter{Subject: "user:" + user, Resource: "tool:" + tool.Name})
				}
			}
			forbidden := rapid.SliceOf(rapid.SampledFrom(c.Tools())).Draw(t, "forbidden")
			rego := "none"
			for _, tool := range forbidden {
				rego += " m/" + tool.Name
			}
			_, _, err := d.PutPolicy(quartermaster.Policy{Name: "p", Rego: rego})
			must(t, err)
			return d.Catalog()
		}
		before := draft(start)
		after := draft(before)
		impact, err := New(nil, granting(), forbidding()).ImpactOf(t.Context(), before, after)
		must(t, err)
		var claimed, found []string
		for _, u := range impact.Users {
			for _, a := range u.Agents {
				for _, name := range a.Gained {
					claimed = append(claimed, fmt.Sprintln(u.User, a.Agent, "gains", name))
				}
				for _, name := range a.Lost {
					claimed = append(claimed, fmt.Sprintln(u.User, a.Agent, "loses", name))
				}
			}
		}
		for _, user := range users {
			for _, agent := range agentsOf(before, after) {
				was, is := everHad(t, before, agent, user), everHad(t, after, agent, user)
				for _, name := range without(is, was) {
					found = append(found, fmt.Sprintln(user, agent, "gains", name))
				}
				for _, name := range without(was, is) {
					found = append(found, fmt.Sprintln(user, agent, "loses", name))
				}
			}
		}
		slices.Sort(claimed)
		slices.Sort(found)
		if !slices.Equal(claimed, found) {
			t.Errorf("the impact is\n%s\nbut asking finds\n%s", claimed, found)
		}
	})
}

// everHad are the tools that an agent has for a user in some state, by their
// real names.
func everHad(t *rapid.T, catalog *quartermaster.Catalog, agent, user string) []string {
	var all []string
	for _, state := range []string{"undefined", "p", "q", unnamed} {
		caller := quartermaster.Caller{Project: "default", Agent: agent, User: user, Groups: grantedTo(catalog, user), Granted: []string{"*"}, State: state}
		res, err := New(fixed{catalog}, granting(), forbidding()).Resolve(t.Context(), caller, quartermaster.Question{})
		must(t, err)
		for _, tool := range res.Tools {
			all = append(all, catalog.ToolByID(tool.ID).Name)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// GATE-9: who can call a tool is who the engines let, and by what; the agents
// that a policy keeps from it are named.
func TestWhoMay(t *testing.T) {
	catalog := catalogOf(t, []byte(`
quartermaster: v1
tools: {a: {}}
agents: {m: {tools: [a]}, n: {tools: [a]}}
users: {v: {groups: [other]}}
grants:
  - {subject: "user:u", relation: executor, tool: a}
  - {subject: "user:v", relation: owner, tool: a}
policies: {p: {rego: "m/a"}}
`))
	who, err := New(fixed{catalog}, granting(), forbidding()).WhoCan(t.Context(), catalog, "a")
	if err != nil {
		t.Fatal(err)
	}
	want := "[{u executor [default] [m]} {v owner [] [m]}]"
	if got := fmt.Sprint(who.Users); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// GATE-8: while an engine cannot answer, an agent learns nothing from which
// tools are missing and which are unavailable.
func TestNothingShowsWhileDown(t *testing.T) {
	catalog := catalogOf(t, []byte(threeTools))
	down := engine{answer: func(context.Context, *quartermaster.Catalog, quartermaster.Caller, quartermaster.Question, []*quartermaster.Tool) ([]quartermaster.Judgment, error) {
		return nil, quartermaster.Errorf(quartermaster.CodeUnavailable, "the engine is gone")
	}}
	fine := judge(func(quartermaster.Question, *quartermaster.Tool) bool { return true })
	for _, r := range []*Resolver{New(fixed{catalog}, down, nil), New(fixed{catalog}, fine, down), New(fixed{catalog}, down, fine)} {
		for _, name := range []string{"a", "echo", "unknown"} {
			_, _, err := quartermaster.Admit(t.Context(), r, quartermaster.Caller{Project: "default", Agent: "m"}, quartermaster.Call{Tool: name}, false)
			if quartermaster.CodeOf(err) != quartermaster.CodeUnavailable || strings.Contains(err.Error(), "gone") {
				t.Errorf("%s: %v", name, err)
			}
		}
		_, err := r.Resolve(t.Context(), quartermaster.Caller{Project: "default", Agent: "m"}, quartermaster.Question{Tool: "a", Explain: true})
		if err == nil || !strings.Contains(err.Error(), "the engine is gone") {
			t.Errorf("an operator hears %v", err)
		}
	}
}
