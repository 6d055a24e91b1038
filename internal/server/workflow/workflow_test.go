package workflow_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"quartermaster"
	"quartermaster/internal/server/workflow"
)

// WF-2: 003's own example, in numbers and in pictures.
func TestResearchExample(t *testing.T) {
	w := workflow.Of(catalog(research()...))
	want := workflow.Workflow{
		Start: "undefined",
		States: []workflow.Node{
			{Name: "analysis", Tools: []string{"complex-analysis", "graph-update", "reset-workflow"}, ToolCount: 4, Reachable: true},
			{Name: "modification", Tools: []string{"graph-update"}, ToolCount: 2},
			{Name: "research", Tools: []string{"knowledge-query"}, ToolCount: 2},
			{Name: "results", Tools: []string{"reset-workflow"}, ToolCount: 2, Reachable: true},
			{Name: "undefined", Tools: []string{"knowledge-query"}, ToolCount: 2, Reachable: true},
		},
		EveryState: []string{"text-completion"},
		Edges: []workflow.Edge{
			{From: "*", To: "undefined", Tools: []string{"text-completion"}},
			{From: "analysis", To: "results", Tools: []string{"complex-analysis"}},
			{From: "analysis", To: "undefined", Tools: []string{"reset-workflow"}},
			{From: "research", To: "analysis", Tools: []string{"knowledge-query"}},
			{From: "results", To: "undefined", Tools: []string{"reset-workflow"}},
			{From: "undefined", To: "analysis", Tools: []string{"knowledge-query"}},
		},
		Warnings: []workflow.Finding{
			{Kind: workflow.KindUnreachable, State: "modification", Message: "no tool leads to state modification; a session is in it only if it was started there"},
			{Kind: workflow.KindUnreachable, State: "research", Message: "no tool leads to state research; a session is in it only if it was started there"},
		},
		Notes: []workflow.Finding{
			{Kind: workflow.KindCycle, States: []string{"undefined", "analysis"}, Message: "a session can go in a circle: undefined → analysis → undefined"},
			{Kind: workflow.KindCycle, States: []string{"undefined", "analysis", "results"}, Message: "a session can go in a circle: undefined → analysis → results → undefined"},
		},
	}
	if !reflect.DeepEqual(w, want) {
		t.Errorf("got  %s\nwant %s", asJSON(t, w), asJSON(t, want))
	}
	golden(t, "003.mmd", []byte(workflow.Mermaid(w)))
	golden(t, "003.dot", []byte(workflow.DOT(w)))
	golden(t, "003.svg", workflow.SVG(w))
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Errorf("%s differs; with -update it is written anew:\n%s", file, got)
	}
}

func asJSON(t testing.TB, v any) string {
	t.Helper()
	data, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// WF-2: what is found, in the words that a person reads.
func TestFindings(t *testing.T) {
	disabled := tool("off", "research", "undefined")
	disabled.Enabled = false
	never := quartermaster.Tool{Name: "never", State: "hidden", AvailableInStates: []string{}, Enabled: true}
	tests := map[string]struct {
		tools    []quartermaster.Tool
		warnings []string
		notes    []string
	}{
		"no workflow at all": {tools: []quartermaster.Tool{tool("echo", ""), tool("time_now", "")}},
		"no tools":           {},
		"only a self loop":   {tools: []quartermaster.Tool{tool("again", "undefined", "undefined")}},
		"unreachable": {
			tools: []quartermaster.Tool{tool("look", "", "research"), tool("move", "done", "undefined"), tool("back", "undefined", "done"), tool("out", "undefined", "research")},
			warnings: []string{
				"unreachable_state research: no tool leads to state research; unless a session is started there, these tools can never be called: look, out",
				"never_available look: tool look can never be called: it is available only in research, where a session that starts in undefined never gets",
				"never_available out: tool out can never be called: it is available only in research, where a session that starts in undefined never gets",
			},
			notes: []string{"undefined done"},
		},
		"a disabled tool leads nowhere": {
			tools: []quartermaster.Tool{disabled, tool("look", "undefined", "research", "undefined")},
			warnings: []string{
				"unreachable_state research: no tool leads to state research; a session is in it only if it was started there",
				"no_way_out undefined: state undefined has no way out: its only tool does not lead to another state",
			},
		},
		"unreachable behind unreachable": {
			tools: []quartermaster.Tool{tool("a", "second", "first"), tool("b", "undefined", "second"), tool("stay", "second", "second"), tool("go", "x", "undefined"), tool("home", "undefined")},
			warnings: []string{
				"unreachable_state first: no tool leads to state first; unless a session is started there, these tools can never be called: a",
				"unreachable_state second: only tools that can never be called lead to state second (a, stay); unless a session is started there, these tools can never be called: b, stay",
				"never_available a: tool a can never be called: it is available only in first, where a session that starts in undefined never gets",
				"never_available b: tool b can never be called: it is available only in second, where a session that starts in undefined never gets",
				"never_available stay: tool stay can never be called: it is available only in second, where a session that starts in undefined never gets",
			},
			notes: []string{"undefined x"},
		},
		"dead end": {
			tools: []quartermaster.Tool{tool("finish", "done", "undefined"), tool("look", "", "done"), tool("read", "done", "done")},
			warnings: []string{
				"no_way_out done: state done has no way out: none of its 2 tools leads to another state",
			},
		},
		"dead end without tools": {
			tools:    []quartermaster.Tool{tool("finish", "all done", "undefined")},
			warnings: []string{`no_way_out all done: state "all done" has no way out: no tool is available in it`},
		},
		"never available": {
			tools: []quartermaster.Tool{never},
			warnings: []string{
				"unreachable_state hidden: only tools that can never be called lead to state hidden (never); a session is in it only if it was started there",
				"no_way_out hidden: state hidden has no way out: no tool is available in it",
				"no_way_out undefined: state undefined has no way out: no tool is available in it",
				"never_available never: tool never can never be called: its list of states (availableInStates) is empty",
			},
		},
		"an edge from everywhere is a way in and a way out": {
			tools: []quartermaster.Tool{tool("help", "help"), tool("back", "undefined", "*", "other")},
			warnings: []string{
				"unreachable_state other: no tool leads to state other; a session is in it only if it was started there",
			},
			notes: []string{"undefined help"},
		},
		"an edge from everywhere to itself is no way out": {
			tools:    []quartermaster.Tool{tool("help", "help")},
			warnings: []string{"no_way_out help: state help has no way out: its only tool does not lead to another state"},
		},
		"a state called *": {
			tools: []quartermaster.Tool{tool("odd", "*", "undefined"), tool("back", "undefined")},
			notes: []string{"undefined *"},
		},
		"an eight": {
			tools: []quartermaster.Tool{tool("l", "left", "undefined"), tool("r", "right", "undefined"), tool("home", "undefined", "left", "right")},
			notes: []string{"undefined left", "undefined right"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := workflow.Of(catalog(tt.tools...))
			var warnings, notes []string
			for _, f := range w.Warnings {
				warnings = append(warnings, string(f.Kind)+" "+f.State+f.Tool+": "+f.Message)
			}
			for _, f := range w.Notes {
				notes = append(notes, strings.Join(f.States, " "))
			}
			if !slices.Equal(warnings, tt.warnings) {
				t.Errorf("warnings: got\n%s\nwant\n%s", strings.Join(warnings, "\n"), strings.Join(tt.warnings, "\n"))
			}
			if !slices.Equal(notes, tt.notes) {
				t.Errorf("notes: got %q, want %q", notes, tt.notes)
			}
			if strings.Contains(asJSON(t, w), "null") {
				t.Errorf("null for an empty list: %s", asJSON(t, w))
			}
		})
	}
}

// WF-2, WF-4: the same catalog gives the same bytes, always.
func TestDeterminism(t *testing.T) {
	for name, tools := range samples() {
		runs := 20
		if len(tools) > 100 {
			runs = 3 // the large ones go the same way
		}
		all := func() string {
			w := workflow.Of(catalog(slices.Clone(tools)...))
			return asJSON(t, w) + workflow.Mermaid(w) + workflow.DOT(w) + string(workflow.SVG(w))
		}
		first := all()
		for range runs {
			if all() != first {
				t.Fatalf("%s: two runs differ", name)
			}
		}
	}
}

// WF-4: tools and states agree with what the catalog itself lists.
func TestAgreesWithCatalog(t *testing.T) {
	for name, tools := range samples() {
		c := catalog(tools...)
		w := workflow.Of(c)
		states := c.States()
		if len(states) != len(w.States) {
			t.Fatalf("%s: %d states, want %d", name, len(w.States), len(states))
		}
		for i, s := range states {
			n := w.States[i]
			got := slices.Concat(n.Tools, w.EveryState)
			slices.Sort(got)
			if n.Name != s.Name || !slices.Equal(got, s.Tools) || n.ToolCount != len(s.Tools) {
				t.Errorf("%s: got %+v, want %+v", name, n, s)
			}
		}
	}
}
