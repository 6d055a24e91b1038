package resolve

import (
	"fmt"
	"slices"
	"strings"

	"quartermaster"
)

// depth takes the tools with which agents start agents from those that were
// started themselves, unless their definition asks for them and there is depth
// left (GATE-3).
func depth(q *request, _ candidates) (set, error) {
	if q.caller.Depth <= 0 {
		return set{all: true}, nil
	}
	s := set{all: true}
	for _, name := range coordination {
		slot, ok := q.index.slot(name)
		if !ok || q.keeps(name) {
			continue
		}
		s.except = append(s.except, slot)
		if q.question.Tool == "" && q.caller.Depth >= q.maxDepth() && q.reach.set.Contains(slot) {
			q.warnings = append(q.warnings, fmt.Sprintf("%s was removed: depth %d has reached the maximum of %d", name, q.caller.Depth, q.maxDepth()))
		}
	}
	return s, nil
}

var coordination = []string{quartermaster.ToolSpawnAgents, quartermaster.ToolListAvailableAgents}

// keeps reports whether an agent below the top keeps a coordination tool.
func (q *request) keeps(name string) bool {
	return q.caller.Depth < q.maxDepth() && q.reach.namesExactly(name)
}

// maxDepth is the smallest along the chain of definitions.
func (q *request) maxDepth() int {
	most := quartermaster.DefaultMaxDepth
	if d := q.reach.definition; d != nil {
		most = d.MaxDepth
	}
	if q.caller.MaxDepth > 0 {
		most = min(most, q.caller.MaxDepth)
	}
	return most
}

// namesExactly reports whether the definition's tools hold this very name. A
// glob that matches it, or a binding, is no wish to have it.
func (r *reach) namesExactly(name string) bool {
	return slices.ContainsFunc(r.patterns, func(p pattern) bool { return p.names(name) })
}

func depthReason(q *request, tool *quartermaster.Tool, passed bool) string {
	if !slices.Contains(coordination, tool.Name) {
		return "it does not start other agents"
	}
	if q.caller.Depth <= 0 {
		return "no other agent has started this one"
	}
	at := fmt.Sprintf("the agent runs at depth %d of at most %d", q.caller.Depth, q.maxDepth())
	switch {
	case passed:
		return at + " and its definition names the tool"
	case q.caller.Depth >= q.maxDepth():
		return at + ", where no agent starts others"
	}
	return at + " and its definition's tools do not name it exactly; a glob or a binding does not count"
}

func depthRemedy(q *request, tool *quartermaster.Tool) string {
	var steps []string
	if q.caller.Depth >= q.maxDepth() {
		steps = append(steps, fmt.Sprintf("raise maxDepth above %d in the definitions that lead here", q.caller.Depth))
	}
	if !q.reach.namesExactly(tool.Name) {
		steps = append(steps, fmt.Sprintf("add %q to the definition's tools", tool.Name))
	}
	return strings.Join(steps, ", and ")
}
