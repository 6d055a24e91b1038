package resolve

import (
	"fmt"
	"strings"
	"testing"

	"quartermaster"
)

// GATE-9: each gate's verdict in words, also of the gates after the first that
// refuses, and what would help.
func TestExplain(t *testing.T) {
	catalog := catalogOf(t, []byte(`
quartermaster: v1
servers: {files: {transport: stdio, command: x, enabled: false}}
tools:
  a: {}
  b: {groups: [x, y], availableInStates: [p, q]}
  to-p: {state: p}
  to-q: {state: q}
  also-q: {state: q}
  more-q: {state: q}
  files__r: {server: files, groups: []}
agents:
  m: {tools: [a, b, read, spawn_agents], aliases: {read: "@files/r"}}
users: {u: {groups: [x]}}
`))
	all := []string{"*"}
	for _, tt := range []struct {
		name   string
		caller quartermaster.Caller
		tool   string
		want   string
		remedy string
	}{
		{
			"allowed",
			quartermaster.Caller{Agent: "m"},
			"a",
			`a: + it is enabled | + the pattern "a" of the definition matches it | + it does not start other agents | + it is in group default, as requested | + it is available in every state`, "",
		},
		{
			"several refuse",
			quartermaster.Caller{Agent: "m"},
			"b",
			`b: + it is enabled | + the pattern "b" of the definition matches it | + it does not start other agents | ` +
				`- it is in groups x, y; the request asks for no group, which means default | - it is available in states p, q; the state is undefined`,
			`grant user "" one of the groups x, y and request it, or put the tool into a group that the user has`,
		},
		{
			"state",
			quartermaster.Caller{Agent: "m", Groups: []string{"y", "z"}, Granted: all},
			"b",
			`b: + it is enabled | + the pattern "b" of the definition matches it | + it does not start other agents | + it is in group y, as requested | - it is available in states p, q; the state is undefined`,
			"reach one of the states p, q by calling also-q, more-q, to-p, ...",
		},
		{
			"in a state",
			quartermaster.Caller{Agent: "m", Groups: []string{"x", "y"}, Granted: all, State: "p"},
			"b",
			`b: + it is enabled | + the pattern "b" of the definition matches it | + it does not start other agents | + it is in groups x, y, as requested | + it is available in state p`, "",
		},
		{
			"every group",
			quartermaster.Caller{Agent: "m", Groups: all, Granted: all, State: "q"},
			"b",
			`b: + it is enabled | + the pattern "b" of the definition matches it | + it does not start other agents | + every group was requested | + it is available in state q`, "",
		},
		{
			"alias",
			quartermaster.Caller{Agent: "m", Groups: all, Granted: all},
			"files__r",
			`read (files__r): - its server files is disabled | + the definition's tools name it by the alias "read" | + it does not start other agents | + every group was requested | + it is available in every state`,
			"quartermaster servers enable files",
		},
		{
			"by alias",
			quartermaster.Caller{Agent: "m", Groups: []string{"z"}, Granted: all},
			"read",
			`read (files__r): - its server files is disabled | + the definition's tools name it by the alias "read" | + it does not start other agents | - it is in no group: only a request for every group (*) reaches it | + it is available in every state`,
			"quartermaster servers enable files",
		},
		{
			"not granted",
			quartermaster.Caller{Agent: "m", User: "u", Groups: []string{"x", "y", "z", "y"}},
			"b",
			`b: + it is enabled | + the pattern "b" of the definition matches it | + it does not start other agents | ` +
				`- user "u" asked for groups y, z and is granted x: the whole request is refused | - it is available in states p, q; the state is undefined`,
			"do not ask for groups y, z; request group x",
		},
		{
			"at the top",
			quartermaster.Caller{Agent: "m"},
			"spawn_agents",
			`spawn_agents: + it is enabled | + the pattern "spawn_agents" of the definition matches it | + no other agent has started this one | + it is in group default, as requested | + it is available in every state`, "",
		},
		{
			"below",
			quartermaster.Caller{Agent: "m", Depth: 1},
			"spawn_agents",
			`spawn_agents: + it is enabled | + the pattern "spawn_agents" of the definition matches it | + the agent runs at depth 1 of at most 2 and its definition names the tool | + it is in group default, as requested | + it is available in every state`, "",
		},
		{
			"unknown",
			quartermaster.Caller{Agent: "m"},
			"nothing",
			`nothing: - no tool of the project has this name, and the agent has no such alias`, "look for its name: quartermaster tools list",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := New(fixed{catalog}, nil, nil)
			res, err := r.Resolve(t.Context(), tt.caller, quartermaster.Question{Tool: tt.tool, Explain: true})
			if err != nil || len(res.Explanations) != 1 {
				t.Fatal(res, err)
			}
			e := res.Explanations[0]
			if got := explainText(e); got != tt.want {
				t.Errorf("%s\nwant\n%s", got, tt.want)
			}
			if e.Remedy != tt.remedy || e.Allowed != (tt.remedy == "") {
				t.Errorf("allowed %v, remedy %q; want %q", e.Allowed, e.Remedy, tt.remedy)
			}
			n := len(res.Tools)
			for tool, refusal := range res.Refusals {
				if n++; tool.Name != cmpOr(e.Target, e.Name) || refusal.Gate != e.Gate || refusal.Reason != e.Reason {
					t.Errorf("refused %s: %+v", tool.Name, refusal)
				}
			}
			if known := e.Name != "nothing"; n != 1 && known || n != 0 && !known {
				t.Errorf("%d tools are accounted for", n)
			}
		})
	}
}

func explainText(e quartermaster.Explanation) string {
	name := e.Name
	if e.Target != "" {
		name += " (" + e.Target + ")"
	}
	var gates []string
	for _, g := range e.Gates {
		sign := "-"
		if g.Verdict == quartermaster.VerdictPass {
			sign = "+"
		}
		gates = append(gates, fmt.Sprint(sign, " ", g.Reason))
	}
	return name + ": " + strings.Join(gates, " | ")
}

// The order of all explanations is that of the names.
func TestExplainAll(t *testing.T) {
	catalog := catalogOf(t, []byte(`
quartermaster: v1
tools: {a: {}, b: {}, c: {}}
agents: {m: {tools: ["*"], aliases: {z: a, aa: c}}}
`))
	res, err := New(fixed{catalog}, nil, nil).Resolve(t.Context(), quartermaster.Caller{Agent: "m"}, quartermaster.Question{Explain: true})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range res.Explanations {
		names = append(names, e.Name)
	}
	if got := strings.Join(names, " "); got != "aa b echo list_available_agents spawn_agents time_now z" {
		t.Error(got)
	}
	if got := strings.Join(seenNames(res.Tools), " "); got != strings.Join(names, " ") {
		t.Error(got)
	}
}

// GATE-9: an alias is explained also where it has no effect, and what is printed
// can be pasted into a shell.
func TestExplainIdleAlias(t *testing.T) {
	catalog := catalogOf(t, []byte(`
quartermaster: v1
agents:
  "a'; rm -rf": {tools: [echo], allowed: [echo], aliases: {out: time_now, miss: nowhere}}
  -p: {tools: [echo]}
`))
	r := New(fixed{catalog}, nil, nil)
	for _, tt := range []struct{ agent, tool, gate, reason, remedy string }{
		{"a'; rm -rf", "out", "capsule", "no pattern", `quartermaster bind --add time_now 'a'\''; rm -rf'`},
		{"a'; rm -rf", "out", "capsule", "no pattern", `, and add "time_now" to the definition's allowed`},
		{"a'; rm -rf", "miss", "registry", `an alias of "nowhere", which does not exist`, "let the alias name a tool"},
		{"a'; rm -rf", "gone", "registry", "no such alias", "quartermaster tools list"},
		{"-p", "time_now", "capsule", "no pattern", "quartermaster bind --add time_now -- -p"},
	} {
		res, err := r.Resolve(t.Context(), quartermaster.Caller{Agent: tt.agent, Granted: []string{"*"}}, quartermaster.Question{Tool: tt.tool, Explain: true})
		if err != nil {
			t.Fatal(err)
		}
		e := res.Explanations[0]
		if e.Allowed || string(e.Gate) != tt.gate || !strings.Contains(e.Reason, tt.reason) || !strings.Contains(e.Remedy, tt.remedy) {
			t.Errorf("%s, %s: %+v", tt.agent, tt.tool, e)
		}
	}
}

// What one gate has taken from the list is known without a walk through the
// catalog (seed 003's record of a request).
func TestFiltered(t *testing.T) {
	s := readScenario(t, "testdata/groups-and-states.txtar")
	res, err := New(fixed{s.catalog}, nil, nil).Resolve(t.Context(), quartermaster.Caller{Agent: "a", Groups: []string{"read-only", "knowledge"}, Granted: []string{"*"}}, quartermaster.Question{})
	if err != nil {
		t.Fatal(err)
	}
	group, groups := res.Filtered(quartermaster.GateGroup, 2)
	state, states := res.Filtered(quartermaster.GateState, 10)
	if got := seenNames(group); groups != 3 || strings.Join(got, " ") != "complex-analysis echo" {
		t.Errorf("by group: %v of %d", got, groups)
	}
	if got := seenNames(state); states != 1 || strings.Join(got, " ") != "graph-update" {
		t.Errorf("by state: %v of %d", got, states)
	}
}
