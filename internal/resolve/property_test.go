package resolve

import (
	"context"
	"encoding/json"
	"flag"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"quartermaster"
)

func init() {
	_ = flag.Set("rapid.checks", "300") // the command line may say otherwise
}

// judge is an engine that looks at one tool at a time.
func judge(allow func(question quartermaster.Question, tool *quartermaster.Tool) bool) engine {
	return engine{answer: func(_ context.Context, _ *quartermaster.Catalog, _ quartermaster.Caller, question quartermaster.Question, tools []*quartermaster.Tool) ([]quartermaster.Judgment, error) {
		all := make([]quartermaster.Judgment, len(tools))
		for i, tool := range tools {
			if allow(question, tool) {
				all[i] = quartermaster.Judgment{Allowed: true, Why: &quartermaster.Why{Reason: "rule " + tool.Name}}
			}
		}
		return all, nil
	}}
}

// randomJudge decides by the tool and, where it pleases, by the arguments: also
// the wrong way, allowing with arguments what it refuses without.
func randomJudge(t *rapid.T, label string) engine {
	listed := rapid.SliceOf(rapid.SampledFrom(toolWords)).Draw(t, label+" refuses")
	called := rapid.SliceOf(rapid.SampledFrom(toolWords)).Draw(t, label+" refuses with arguments")
	return judge(func(q quartermaster.Question, tool *quartermaster.Tool) bool {
		if q.Arguments != nil || q.Tool != "" {
			return !slices.Contains(called, tool.Name)
		}
		return !slices.Contains(listed, tool.Name)
	})
}

func listFor(t rapid.TB, r *Resolver, caller quartermaster.Caller) []string {
	t.Helper()
	res, err := r.Resolve(context.Background(), caller, quartermaster.Question{})
	if err != nil {
		return nil
	}
	return seenNames(res.Tools)
}

// Invariant 1: what is admitted with arguments is listed, whatever the engines
// say to arguments; without arguments it is the same set.
func TestAdmittedIsListed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		catalog := randomCatalog(t)
		r := New(fixed{catalog}, randomJudge(t, "permission"), randomJudge(t, "policy"))
		caller := randomCaller(t)
		res, err := r.Resolve(t.Context(), caller, quartermaster.Question{})
		if err != nil {
			return
		}
		agree(t, r, caller, catalog, res)
		listed := seenNames(res.Tools)
		for _, name := range everyName(catalog) {
			res, err := r.Resolve(t.Context(), caller, quartermaster.Question{Tool: name, Arguments: json.RawMessage(`{}`)})
			if err != nil {
				t.Fatal(err)
			}
			if name != "" && len(res.Tools) > 0 && !slices.Contains(listed, res.Tools[0].Name) {
				t.Errorf("%s is admitted as %s, which is not listed: %v", name, res.Tools[0].Name, listed)
			}
		}
	})
}

// Invariant 2, GATE-1: one more gate never adds a tool.
func TestGatesOnlyTakeAway(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		catalog, caller := randomCatalog(t), randomCaller(t)
		permission, policy := randomJudge(t, "permission"), randomJudge(t, "policy")
		none := listFor(t, New(fixed{catalog}, nil, nil), caller)
		one := listFor(t, New(fixed{catalog}, permission, nil), caller)
		other := listFor(t, New(fixed{catalog}, nil, policy), caller)
		both := listFor(t, New(fixed{catalog}, permission, policy), caller)
		subset(t, one, none)
		subset(t, other, none)
		subset(t, both, one)
		subset(t, both, other)
	})
}

func subset(t rapid.TB, a, b []string) {
	t.Helper()
	for _, name := range a {
		if !slices.Contains(b, name) {
			t.Errorf("%s is in %v but not in %v", name, a, b)
		}
	}
}

// GATE-3: a child has no coordination tool that its parent has not.
func TestDepthOnlyTakesAway(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := New(fixed{randomCatalog(t)}, nil, nil)
		caller := randomCaller(t)
		parent := listFor(t, r, caller)
		caller.Depth++
		subset(t, listFor(t, r, caller), parent)
	})
}

// GATE-4: to ask for no groups yields no tools; to ask for more groups, or to
// be granted more, takes none away.
func TestGroupsOnlyAdd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := New(fixed{randomCatalog(t)}, nil, nil)
		caller := randomCaller(t)
		caller.Granted = []string{"*"}
		few := listFor(t, r, caller)
		if caller.Groups != nil {
			caller.Groups = append(slices.Clone(caller.Groups), oneOf(t, "group", groupNames...))
			subset(t, few, listFor(t, r, caller))
		}
		caller.Groups = []string{"*"}
		subset(t, few, listFor(t, r, caller))
		caller.Groups = []string{}
		if got := listFor(t, r, caller); len(got) > 0 {
			t.Errorf("no groups yield %v", got)
		}
	})
}

// SPEC 6: names mean nothing by themselves. With every tool, group and state
// renamed, the answer is the old one in new names.
func TestRenaming(t *testing.T) {
	var (
		tools  = []string{"a", "b", "ab", "c", "abc"}
		groups = []string{"default", "g", "h"}
		states = []string{"undefined", "p", "q"}
	)
	const mark = "new-"
	rename := func(names []string, except string) []string {
		out := slices.Clone(names)
		for i, n := range out {
			if n != except && n != "*" {
				out[i] = mark + n
			}
		}
		return out
	}
	rapid.Check(t, func(t *rapid.T) {
		was, is := empty().Draft(time.Unix(1, 0)), empty().Draft(time.Unix(1, 0))
		for _, name := range rapid.SliceOfDistinct(rapid.SampledFrom(tools), rapid.ID).Draw(t, "tools") {
			tool := quartermaster.Tool{
				Name: name, Enabled: mostly(t, "enabled"),
				Groups: someOf(t, "groups", groups), AvailableInStates: someOf(t, "states", states),
			}
			_, err := was.CreateTool(tool)
			must(t, err)
			tool.Name = mark + tool.Name
			tool.Groups, tool.AvailableInStates = rename(tool.Groups, "default"), rename(tool.AvailableInStates, "undefined")
			_, err = is.CreateTool(tool)
			must(t, err)
		}
		agent := quartermaster.Agent{
			ID: "m", Tools: someOf(t, "patterns", append([]string{"*", "a*", "[ab]", "?"}, tools...)), Allowed: someOf(t, "allowed", append([]string{"*"}, tools...)),
			Aliases: rapid.MapOfN(rapid.SampledFrom(tools), rapid.SampledFrom(tools), 0, 2).Draw(t, "aliases"),
		}
		_, _, err := was.PutAgent(agent)
		must(t, err)
		agent.Tools, agent.Allowed = rename(agent.Tools, ""), rename(agent.Allowed, "")
		aliases := map[string]string{}
		for alias, target := range agent.Aliases {
			aliases[mark+alias] = mark + target
		}
		agent.Aliases = aliases
		_, _, err = is.PutAgent(agent)
		must(t, err)

		caller := randomCaller(t)
		caller.Agent, caller.Granted = "m", []string{"*"}
		caller.Groups = someOf(t, "asked", groups)
		want := rename(listFor(t, New(fixed{was.Catalog()}, nil, nil), caller), "")
		caller.Groups, caller.State = rename(caller.Groups, "default"), rename([]string{caller.State}, "undefined")[0]
		if caller.State == mark {
			caller.State = ""
		}
		if got := listFor(t, New(fixed{is.Catalog()}, nil, nil), caller); !slices.Equal(got, want) {
			t.Errorf("listed %v, want %v", got, want)
		}
	})
}

func must(t rapid.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// GATE-1: every tool of the project is accounted for exactly once, also with
// engines, and an engine is asked only about what the gates before it left.
func TestAccounting(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		catalog, caller := randomCatalog(t), randomCaller(t)
		asked := map[string]int{}
		watched := judge(func(_ quartermaster.Question, tool *quartermaster.Tool) bool {
			asked[tool.Name]++
			return tool.Name != "a"
		})
		r := New(fixed{catalog}, watched, randomJudge(t, "policy"))
		res, err := r.Resolve(t.Context(), caller, quartermaster.Question{})
		if err != nil {
			return
		}
		count := map[string]int{}
		passed := map[string]int{} // gates 1 to 5
		for _, tool := range res.Tools {
			name := cmpOr(tool.Target, tool.Name)
			count[name]++
			passed[name]++
		}
		for tool, refusal := range res.Refusals {
			count[tool.Name]++
			if refusal.Gate == quartermaster.GatePermission || refusal.Gate == quartermaster.GatePolicy {
				passed[tool.Name]++
			}
		}
		for _, tool := range catalog.Tools() {
			if count[tool.Name] != 1 {
				t.Errorf("%s is accounted for %d times", tool.Name, count[tool.Name])
			}
		}
		if !maps.Equal(asked, passed) {
			t.Errorf("the engine was asked about %v, the gates before it left %v", asked, passed)
		}
	})
}

func cmpOr(a, b string) string {
	if a != "" {
		return a
	}
	return b
}
