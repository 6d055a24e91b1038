package workflow

import (
	"fmt"

	"quartermaster"
)

// Finding is something about a workflow that its owner should know.
type Finding struct {
	Kind    Kind     `json:"kind"`
	State   string   `json:"state,omitempty" doc:"The state that it is about"`
	Tool    string   `json:"tool,omitempty" doc:"The tool that it is about"`
	States  []string `json:"states,omitempty" doc:"The states of a cycle, in order"`
	Message string   `json:"message"`
}

// Kind tells findings apart.
type Kind string

// The kinds of findings (WF-2). The first three are warnings.
const (
	KindUnreachable    Kind = "unreachable_state"
	KindNoWayOut       Kind = "no_way_out"
	KindNeverAvailable Kind = "never_available"
	KindCycle          Kind = "cycle"
)

// maxFindings of one kind are told one by one: whoever has more of them has
// one mistake, many times.
const maxFindings = 100

// report collects findings of one kind.
type report struct {
	kind  Kind
	found []Finding
	more  int
}

func (r *report) add(f Finding) {
	if len(r.found) == maxFindings {
		r.more++
		return
	}
	f.Kind = r.kind
	r.found = append(r.found, f)
}

// close says how many were left out; format has a place for the number.
func (r *report) close(format string) []Finding {
	if r.more > 0 {
		r.found = append(r.found, Finding{Kind: r.kind, Message: fmt.Sprintf(format, r.more)})
	}
	return r.found
}

// warnings finds what is most likely a mistake. A session can be started in any
// state by name; what counts here is what it reaches from where all others start.
func warnings(catalog *quartermaster.Catalog, w Workflow) []Finding {
	s := survey{state: make(map[string]*Node, len(w.States)), enter: map[string]*names{}, lost: map[string]*names{}}
	for i := range w.States {
		s.state[w.States[i].Name] = &w.States[i]
	}
	s.never.kind = KindNeverAvailable
	for _, t := range catalog.Tools() {
		if t.Active() && catalog.ServerEnabled(t) {
			s.look(t)
		}
	}
	unreachable, stuck := report{kind: KindUnreachable}, report{kind: KindNoWayOut}
	for _, n := range w.States {
		if !n.Reachable {
			unreachable.add(Finding{State: n.Name, Message: s.unreachable(n.Name)})
		}
		if n.DeadEnd {
			stuck.add(Finding{State: n.Name, Message: noWayOut(n)})
		}
	}
	all := make([]Finding, 0, len(unreachable.found)+len(stuck.found)+len(s.never.found)+3)
	all = append(all, unreachable.close("%d more states cannot be reached")...)
	all = append(all, stuck.close("%d more states have no way out")...)
	return append(all, s.never.close("%d more tools can never be called")...)
}

// survey is one walk over the tools, and what was seen on it.
type survey struct {
	state map[string]*Node
	enter map[string]*names // of an unreachable state: the tools that would lead there
	lost  map[string]*names // of an unreachable state: its tools that are nowhere else
	never report
}

func (s *survey) look(t *quartermaster.Tool) {
	if t.State != "" && !s.state[t.State].Reachable {
		note(s.enter, t.State, t.Name)
	}
	if everywhere(t) {
		return
	}
	for _, state := range t.AvailableInStates {
		if s.state[state].Reachable {
			return
		}
	}
	var where names
	for _, state := range t.AvailableInStates {
		where.add(state)
		note(s.lost, state, t.Name)
	}
	message := fmt.Sprintf("tool %s can never be called: its list of states (availableInStates) is empty", word(t.Name))
	if where.count > 0 {
		message = fmt.Sprintf("tool %s can never be called: it is available only in %s, where a session that starts in %s never gets",
			word(t.Name), where.list(), quartermaster.StateUndefined)
	}
	s.never.add(Finding{Tool: t.Name, Message: message})
}

func (s *survey) unreachable(state string) string {
	message := fmt.Sprintf("no tool leads to state %s", word(state))
	if enter := s.enter[state]; enter != nil {
		message = fmt.Sprintf("only tools that can never be called lead to state %s (%s)", word(state), enter.list())
	}
	if lost := s.lost[state]; lost != nil {
		return fmt.Sprintf("%s; unless a session is started there, these tools can never be called: %s", message, lost.list())
	}
	return message + "; a session is in it only if it was started there"
}

func noWayOut(n Node) string {
	why := "no tool is available in it"
	if n.ToolCount == 1 {
		why = "its only tool does not lead to another state"
	} else if n.ToolCount > 1 {
		why = fmt.Sprintf("none of its %d tools leads to another state", n.ToolCount)
	}
	return fmt.Sprintf("state %s has no way out: %s", word(n.Name), why)
}

func note(lists map[string]*names, key, name string) {
	if lists[key] == nil {
		lists[key] = &names{}
	}
	lists[key].add(name)
}
