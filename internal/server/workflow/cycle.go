package workflow

import (
	"fmt"
	"slices"
	"strings"
)

const (
	// maxCycles are listed one by one.
	maxCycles = 20
	// maxCycleWork bounds the search: in a graph with more states and edges
	// than this, every edge from any state counted once for each, we only say
	// which states are in cycles with each other.
	maxCycleWork = 100_000
)

// cycleNotes tells the cycles. A tool that leads back to the very state it is
// called in makes none. The order of states is the one to tell them in.
func (g *graph) cycleNotes(order []int) []Finding {
	work := len(g.names) * (1 + len(g.any))
	for _, out := range g.out {
		work += len(out)
	}
	if work > maxCycleWork {
		return g.tangleNotes(order)
	}
	found, more := g.cycles(order)
	notes := []Finding{}
	for _, cycle := range found {
		states := g.namesOf(cycle)
		notes = append(notes, Finding{Kind: KindCycle, States: states, Message: "a session can go in a circle: " + circle(states)})
	}
	if more {
		notes = append(notes, Finding{Kind: KindCycle, Message: fmt.Sprintf("there are more cycles than the %d listed", maxCycles)})
	}
	return notes
}

// tangleNotes tells the sets of states that all lead to each other.
func (g *graph) tangleNotes(order []int) []Finding {
	// One more node stands for "any state": everything leads to it, and it to
	// the targets of those edges.
	anyNode := len(g.names)
	place := places(order)
	parts := components(anyNode+1, func(v int) []int {
		if v == anyNode {
			return g.any
		}
		return g.out[v]
	}, func(v int) int {
		if v != anyNode && len(g.any) > 0 {
			return anyNode
		}
		return -1
	})
	notes, more := []Finding{}, 0
	for i := range parts {
		parts[i] = slices.DeleteFunc(parts[i], func(v int) bool { return v == anyNode })
		slices.SortFunc(parts[i], func(a, b int) int { return place[a] - place[b] })
	}
	parts = slices.DeleteFunc(parts, func(part []int) bool { return len(part) < 2 })
	slices.SortFunc(parts, func(a, b []int) int { return place[a[0]] - place[b[0]] })
	for _, part := range parts {
		if len(notes) == maxCycles {
			more++
			continue
		}
		var told names
		for _, v := range part {
			told.add(g.names[v])
		}
		notes = append(notes, Finding{
			Kind: KindCycle, States: g.namesOf(part),
			Message: fmt.Sprintf("a session can go in circles among %d states: %s", len(part), told.list()),
		})
	}
	if more > 0 {
		notes = append(notes, Finding{Kind: KindCycle, Message: fmt.Sprintf("sessions can go in circles among %d more sets of states", more)})
	}
	return notes
}

// circle writes a cycle with its first state again at the end. Of a long one
// the middle is left out.
func circle(states []string) string {
	const most, tail = 10, 2
	var b strings.Builder
	for i, s := range states {
		if skipped := len(states) - most; skipped > 0 && i >= most-tail && i < len(states)-tail {
			if i == most-tail {
				fmt.Fprintf(&b, "(%d more) → ", skipped)
			}
			continue
		}
		b.WriteString(word(s) + " → ")
	}
	return b.String() + word(states[0])
}

func (g *graph) namesOf(states []int) []string {
	list := make([]string, len(states))
	for i, s := range states {
		list[i] = g.names[s]
	}
	return list
}
