package resolve

import (
	"fmt"
	"slices"

	"quartermaster"
)

// state passes tools that are available in the session's state (GATE-5).
func state(q *request, _ candidates) (set, error) {
	return set{one: q.index.anyState, two: q.index.states[q.caller.State]}, nil
}

const anyState = "*"

func inEveryState(tool *quartermaster.Tool) bool {
	return tool.AvailableInStates == nil || slices.Contains(tool.AvailableInStates, anyState)
}

func stateReason(q *request, tool *quartermaster.Tool, passed bool) string {
	switch {
	case inEveryState(tool):
		return "it is available in every state"
	case passed:
		return "it is available in state " + q.caller.State
	case len(tool.AvailableInStates) == 0:
		return "it is available in no state"
	}
	return fmt.Sprintf("it is available in %s; the state is %s", words("state", tool.AvailableInStates), q.caller.State)
}

func stateRemedy(q *request, tool *quartermaster.Tool) string {
	if len(tool.AvailableInStates) == 0 {
		return "name states in its availableInStates"
	}
	remedy := "reach " + either("state", tool.AvailableInStates)
	ways := q.waysTo(tool.AvailableInStates)
	if slices.Contains(tool.AvailableInStates, quartermaster.StateUndefined) {
		remedy += " with a new session"
		if len(ways) > 0 {
			remedy += ", or"
		}
	}
	switch {
	case len(ways) > 3:
		return remedy + " by calling " + list(append(ways[:3:3], "..."))
	case len(ways) > 0:
		return remedy + " by calling " + list(ways)
	case slices.Contains(tool.AvailableInStates, quartermaster.StateUndefined):
		return remedy
	}
	return remedy + "; no tool leads there"
}

// waysTo names the tools that lead to one of states.
func (q *request) waysTo(states []string) []string {
	if q.leading == nil {
		q.leading = map[string][]string{}
		for position, t := range q.index.catalog.Tools() {
			if t.State != "" && q.index.live.Contains(q.index.slots[position]) {
				q.leading[t.State] = append(q.leading[t.State], t.Name)
			}
		}
	}
	var ways []string
	for _, s := range states {
		ways = append(ways, q.leading[s]...)
	}
	slices.Sort(ways)
	return ways
}
