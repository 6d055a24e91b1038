package quartermaster

import "slices"

// Group is a word that tools and requests share, with the active tools in it.
type Group struct {
	Name  string   `json:"name"`
	Tools []string `json:"tools" nullable:"false" doc:"Names of the active tools in it"`
}

// Groups lists every group that an active tool is in, by name (WF-4).
func (c *Catalog) Groups() []Group {
	tools := map[string][]string{}
	for _, t := range c.tools {
		if t.Active() {
			for _, g := range c.GroupsOf(t) {
				tools[g] = append(tools[g], t.Name)
			}
		}
	}
	groups := make([]Group, 0, len(tools))
	for _, name := range sortedKeys(tools) {
		groups = append(groups, Group{Name: name, Tools: tools[name]})
	}
	return groups
}

// State is a step of the project's workflow.
type State struct {
	Name      string   `json:"name"`
	Tools     []string `json:"tools" nullable:"false" doc:"Names of the active tools available in it"`
	EnteredBy []string `json:"enteredBy" nullable:"false" doc:"Names of the active tools that lead to it"`
}

// States lists every state that an active tool names, and the one that every
// session starts in, by name (WF-4).
func (c *Catalog) States() []State {
	entered := map[string][]string{StateUndefined: {}}
	for _, t := range c.tools {
		if !t.Active() {
			continue
		}
		if t.State != "" {
			entered[t.State] = append(entered[t.State], t.Name)
		}
		for _, s := range t.AvailableInStates {
			if s != "*" && entered[s] == nil {
				entered[s] = []string{}
			}
		}
	}
	states := make([]State, 0, len(entered))
	for _, name := range sortedKeys(entered) {
		state := State{Name: name, Tools: []string{}, EnteredBy: entered[name]}
		for _, t := range c.tools {
			if t.Active() && t.AvailableIn(name) {
				state.Tools = append(state.Tools, t.Name)
			}
		}
		states = append(states, state)
	}
	return states
}

// AvailableIn reports whether the tool can be used in a state (GATE-5).
func (t *Tool) AvailableIn(state string) bool {
	return t.AvailableInStates == nil ||
		slices.Contains(t.AvailableInStates, state) || slices.Contains(t.AvailableInStates, "*")
}
