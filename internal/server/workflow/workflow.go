// Package workflow shows a project's workflow: the graph whose nodes are states
// and whose edges are the tools that move a session from one to the next. It
// finds what is wrong with the graph and draws it.
package workflow

import (
	"cmp"
	"slices"

	"quartermaster"
)

// AnyState stands where an edge begins that is open in every state. It is kept
// as one edge: a thousand states would make a thousand of each such tool.
//
// A state may bear this name, too, but no edge can begin in that one alone:
// `*` in a tool's list of states means all of them.
const AnyState = "*"

// Workflow is the graph of a project's active tools (WF-2). Everything in it is
// sorted, so that the same catalog always gives the same workflow.
type Workflow struct {
	Start      string    `json:"start" doc:"The state that sessions start in"`
	States     []Node    `json:"states" nullable:"false" doc:"By name: every state that an active tool names, and the start"`
	EveryState []string  `json:"everyState" nullable:"false" doc:"Names of the tools available in every state; those of a state do not repeat them"`
	Edges      []Edge    `json:"edges" nullable:"false" doc:"What moves a session, by from and to"`
	Warnings   []Finding `json:"warnings" nullable:"false" doc:"What is most likely a mistake"`
	Notes      []Finding `json:"notes" nullable:"false" doc:"What is good to know"`
}

// Node is a state of the workflow.
type Node struct {
	Name      string   `json:"name"`
	Tools     []string `json:"tools" nullable:"false" doc:"Names of the tools available in it, besides those of everyState"`
	ToolCount int      `json:"toolCount" doc:"How many tools are available in it, with those of everyState"`
	Reachable bool     `json:"reachable" doc:"Whether a session that starts at the start can get there"`
	DeadEnd   bool     `json:"deadEnd" doc:"Whether no tool leads on to another state, though there is one"`
}

// Edge is all tools that move a session from one state to another. One that
// leads back to where it begins is an edge, but no way out.
type Edge struct {
	From  string   `json:"from" doc:"A state, or * for any"`
	To    string   `json:"to"`
	Tools []string `json:"tools" nullable:"false"`
}

// Of makes the workflow of a catalog.
func Of(catalog *quartermaster.Catalog) Workflow {
	b := builder{state: map[string]int{}, edge: map[arc]int{}}
	b.node(quartermaster.StateUndefined)
	for _, t := range catalog.Tools() {
		if t.Active() && catalog.ServerEnabled(t) {
			b.add(t)
		}
	}
	w := b.workflow()
	g := newGraph(w)
	route := g.route()
	for i := range w.States {
		n := &w.States[i]
		n.ToolCount = len(n.Tools) + len(w.EveryState)
		n.Reachable = route.level[i] >= 0
		n.DeadEnd = len(w.States) > 1 && !g.leaves(i)
	}
	w.Warnings = warnings(catalog, w)
	w.Notes = g.cycleNotes(route.order)
	return w
}

// arc is an edge by the numbers of its states; anyFrom begins in all of them.
type arc struct{ from, to int }

const anyFrom = -1

type builder struct {
	state map[string]int
	nodes []Node
	every []string
	edge  map[arc]int
	arcs  []arc
	tools [][]string // of each arc
}

func (b *builder) node(name string) int {
	i, ok := b.state[name]
	if !ok {
		i = len(b.nodes)
		b.state[name] = i
		b.nodes = append(b.nodes, Node{Name: name, Tools: []string{}})
	}
	return i
}

func (b *builder) add(t *quartermaster.Tool) {
	to := anyFrom
	if t.State != "" {
		to = b.node(t.State)
	}
	if everywhere(t) {
		// The states in a list that also holds `*` still exist.
		for _, s := range t.AvailableInStates {
			if s != AnyState {
				b.node(s)
			}
		}
		b.every = append(b.every, t.Name)
		b.connect(anyFrom, to, t.Name)
		return
	}
	for _, s := range t.AvailableInStates {
		from := b.node(s)
		n := &b.nodes[from]
		if len(n.Tools) > 0 && n.Tools[len(n.Tools)-1] == t.Name {
			continue // a state named twice
		}
		n.Tools = append(n.Tools, t.Name)
		b.connect(from, to, t.Name)
	}
}

func (b *builder) connect(from, to int, tool string) {
	if to == anyFrom {
		return // it stays where it is
	}
	key := arc{from, to}
	i, ok := b.edge[key]
	if !ok {
		i = len(b.arcs)
		b.edge[key] = i
		b.arcs = append(b.arcs, key)
		b.tools = append(b.tools, nil)
	}
	b.tools[i] = append(b.tools[i], tool)
}

func (b *builder) workflow() Workflow {
	w := Workflow{
		Start: quartermaster.StateUndefined, States: slices.Clone(b.nodes), EveryState: b.every,
		Edges: make([]Edge, len(b.arcs)), Warnings: []Finding{}, Notes: []Finding{},
	}
	if w.EveryState == nil {
		w.EveryState = []string{}
	}
	for i, a := range b.arcs {
		from := AnyState
		if a.from != anyFrom {
			from = b.nodes[a.from].Name
		}
		w.Edges[i] = Edge{From: from, To: b.nodes[a.to].Name, Tools: b.tools[i]}
	}
	slices.SortFunc(w.States, func(x, y Node) int { return cmp.Compare(x.Name, y.Name) })
	slices.SortFunc(w.Edges, func(x, y Edge) int {
		return cmp.Or(cmp.Compare(x.From, y.From), cmp.Compare(x.To, y.To))
	})
	return w
}

// everywhere reports whether a tool is available in every state (GATE-5).
func everywhere(t *quartermaster.Tool) bool {
	return t.AvailableInStates == nil || slices.Contains(t.AvailableInStates, AnyState)
}
