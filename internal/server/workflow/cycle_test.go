package workflow_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"quartermaster"
	"quartermaster/internal/server/workflow"
)

// WF-2: every elementary cycle once, as a plain search over all paths finds
// them.
func TestCyclesAgainstSearch(t *testing.T) {
	for seed := range 200 {
		tools := dense(2+seed%5, 2+seed%9)
		for i := range tools {
			if (seed+i)%7 == 0 {
				tools[i].AvailableInStates = nil
			}
		}
		w := workflow.Of(catalog(tools[seed%2:]...))
		want := search(w)
		var got []string
		for _, f := range w.Notes {
			if f.States == nil {
				got = append(got, "more")
				continue
			}
			got = append(got, rotate(f.States))
		}
		slices.Sort(got)
		if len(want) > 20 {
			if len(got) != 21 || !slices.Contains(got, "more") {
				t.Fatalf("%d cycles of %d, last %q", len(got), len(want), got[len(got)-1])
			}
			continue
		}
		if !slices.Equal(got, want) {
			t.Fatalf("got %q, want %q of %s", got, want, asJSON(t, w.Edges))
		}
	}
}

func search(w workflow.Workflow) []string {
	next := map[string][]string{}
	for _, e := range w.Edges {
		for _, s := range w.States {
			if (e.From == s.Name || e.From == "*") && e.To != s.Name && !slices.Contains(next[s.Name], e.To) {
				next[s.Name] = append(next[s.Name], e.To)
			}
		}
	}
	var found []string
	var walk func(path []string)
	walk = func(path []string) {
		for _, to := range next[path[len(path)-1]] {
			if to == path[0] {
				found = append(found, rotate(path))
			} else if !slices.Contains(path, to) {
				walk(append(slices.Clone(path), to))
			}
		}
	}
	for _, s := range w.States {
		walk([]string{s.Name})
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// rotate writes a cycle from its least state on.
func rotate(cycle []string) string {
	i := slices.Index(cycle, slices.Min(cycle))
	return strings.Join(slices.Concat(cycle[i:], cycle[:i]), " ")
}

// WF-2: a large graph costs no more than a look at all of it.
func TestManyCycles(t *testing.T) {
	// Everything leads everywhere: no one could list these cycles.
	var tools []quartermaster.Tool
	for i := range 400 {
		tools = append(tools, tool(fmt.Sprintf("to-%d", i), fmt.Sprintf("state-%d", i)))
	}
	w := workflow.Of(catalog(append(tools, tool("home", "undefined"))...))
	if len(w.Notes) != 1 || len(w.Notes[0].States) != 401 ||
		w.Notes[0].Message != "a session can go in circles among 401 states: undefined, state-0, state-1, state-10, state-100 and 396 more" {
		t.Errorf("got %s", asJSON(t, w.Notes))
	}
	w = workflow.Of(catalog(tools[:100]...))
	if last := w.Notes[len(w.Notes)-1]; len(w.Notes) != 21 || last.Message != "there are more cycles than the 20 listed" {
		t.Errorf("%d notes, the last is %q", len(w.Notes), last.Message)
	}
	for _, f := range w.Notes {
		if len(f.Message) > 300 {
			t.Errorf("nobody reads %q", f.Message)
		}
	}
}

// WF-2: many findings of one kind are one mistake.
func TestManyWarnings(t *testing.T) {
	var tools []quartermaster.Tool
	for i := range 1000 {
		tools = append(tools, tool(fmt.Sprintf("tool-%d", i), "", fmt.Sprintf("state-%d", i), "nowhere"))
	}
	w := workflow.Of(catalog(tools...))
	if n := len(w.Warnings); n != 3*101 {
		t.Errorf("%d warnings", n)
	}
	if got := w.Warnings[100].Message; got != "901 more states cannot be reached" {
		t.Errorf("got %q", got)
	}
}
