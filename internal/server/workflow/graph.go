package workflow

import "slices"

// graph is a workflow by numbers. Edges that are open in every state are kept
// apart and never multiplied by the number of states.
type graph struct {
	names []string
	index map[string]int
	start int
	out   [][]int // targets of each state's own edges, ascending, without itself
	any   []int   // targets of the edges that are open in every state, ascending
}

// newGraph reads a workflow, which need not come from Of: edges of states that
// it does not list are left out.
func newGraph(w Workflow) *graph {
	g := &graph{index: make(map[string]int, len(w.States)), out: make([][]int, len(w.States)), start: -1}
	for i, n := range w.States {
		g.names = append(g.names, n.Name)
		g.index[n.Name] = i
	}
	if i, ok := g.index[w.Start]; ok {
		g.start = i
	}
	for _, e := range w.Edges {
		to, ok := g.index[e.To]
		if !ok {
			continue
		}
		if e.From == AnyState {
			g.any = append(g.any, to)
		} else if from, ok := g.index[e.From]; ok && from != to {
			g.out[from] = append(g.out[from], to)
		}
	}
	for i := range g.out {
		g.out[i] = sorted(g.out[i])
	}
	g.any = sorted(g.any)
	return g
}

func sorted(list []int) []int {
	slices.Sort(list)
	return slices.Compact(list)
}

// leaves reports whether some tool leads from a state to another one.
func (g *graph) leaves(state int) bool {
	return len(g.out[state]) > 0 || slices.ContainsFunc(g.any, func(to int) bool { return to != state })
}

// route is how far every state is from the start.
type route struct {
	level []int // -1: a session never gets there
	order []int // by level; what cannot be reached comes last
}

// route follows the states' own edges first: a state that also has an edge from
// everywhere, such as one for help, stays where the flow has it.
func (g *graph) route() route {
	r := route{level: make([]int, len(g.names))}
	for i := range r.level {
		r.level[i] = -1
	}
	if g.start >= 0 {
		r.level[g.start] = 0
		r.order = append(r.order, g.start)
		g.follow(&r, 0)
		seeds := len(r.order)
		for _, to := range g.any {
			if r.level[to] < 0 {
				r.level[to] = 1
				r.order = append(r.order, to)
			}
		}
		g.follow(&r, seeds)
	}
	slices.SortStableFunc(r.order, func(a, b int) int { return r.level[a] - r.level[b] })
	for i, level := range r.level {
		if level < 0 {
			r.order = append(r.order, i)
		}
	}
	return r
}

// follow walks on, breadth first, from everything in order from this place on.
func (g *graph) follow(r *route, from int) {
	for i := from; i < len(r.order); i++ {
		for _, to := range g.out[r.order[i]] {
			if r.level[to] < 0 {
				r.level[to] = r.level[r.order[i]] + 1
				r.order = append(r.order, to)
			}
		}
	}
}
