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

func stateWords(q *request, tool *quartermaster.Tool, passed bool) (reason, remedy string) {
	switch {
	case inEveryState(tool):
		return "it is available in every state", ""
	case passed:
		return fmt.Sprintf("it is available in state %s", q.caller.State), ""
	case len(tool.AvailableInStates) == 0:
		return "it is available in no state", "name states in its availableInStates"
	}
	reason = fmt.Sprintf("it is available in %s; the state is %s", words("state", tool.AvailableInStates), q.caller.State)
	return reason, fmt.Sprintf("reach %s%s", either("state", tool.AvailableInStates), q.waysTo(tool.AvailableInStates))
}

// waysTo names the tools that lead to one of states.
func (q *request) waysTo(states []string) string {
	var ways []string
	for _, t := range q.index.catalog.Tools() {
		if t.Active() && slices.Contains(states, t.State) {
			ways = append(ways, t.Name)
		}
	}
	switch {
	case len(ways) == 0:
		return "; no tool leads there"
	case len(ways) > 3:
		ways = append(ways[:3], "...")
	}
	return " by calling " + list(ways)
}
