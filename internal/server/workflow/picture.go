package workflow

import (
	"fmt"
	"slices"
	"strings"
)

// What a picture shows at most: more than this nobody reads, and a program
// that shows it gives up.
const (
	maxDrawnStates = 100
	maxDrawnEdges  = 500
	maxLabelTools  = 3
	maxTipTools    = 200
)

// picture is what a drawing shows of a workflow: states and edges in the order
// in which a session meets them.
type picture struct {
	start  int // place in nodes; -1: there is none
	nodes  []Node
	level  []int // of each node, see route
	edges  []drawn
	leftOf []string // what is not shown, in words
}

// drawn is an edge by the places of its states in nodes.
type drawn struct {
	from, to int // from is anyFrom for every state
	tools    []string
}

// drawAll shows everything.
func drawAll(w Workflow) picture { return draw(w, len(w.States), len(w.Edges)) }

// drawSome shows what fits.
func drawSome(w Workflow) picture { return draw(w, maxDrawnStates, maxDrawnEdges) }

// draw shows at most so many states and edges: those near the start, and what
// cannot be reached only where there is room for all of it.
func draw(w Workflow, states, edges int) picture {
	g := newGraph(w)
	r := g.route()
	reached := len(r.order)
	for reached > 0 && r.level[r.order[reached-1]] < 0 {
		reached--
	}
	p := picture{start: -1}
	shown := r.order
	if len(shown) > states {
		shown = shown[:max(1, min(reached, states))]
		p.omit(max(0, reached-len(shown)), "state further from the start", "states further from the start")
		p.omit(len(r.order)-max(reached, len(shown)), "state that cannot be reached", "states that cannot be reached")
	}
	place := make([]int, len(g.names))
	for i := range place {
		place[i] = -1
	}
	for i, s := range shown {
		place[s] = i
		if s == g.start {
			p.start = i
		}
		p.nodes = append(p.nodes, w.States[s])
		p.level = append(p.level, r.level[s])
	}
	for _, e := range w.Edges {
		d := drawn{from: anyFrom, tools: e.Tools}
		if e.From != AnyState {
			d.from = at(place, g.index, e.From)
		}
		d.to = at(place, g.index, e.To)
		if d.to >= 0 && (d.from >= 0 || e.From == AnyState) {
			p.edges = append(p.edges, d)
		}
	}
	p.cutEdges(edges)
	return p
}

func at(place []int, index map[string]int, name string) int {
	if i, ok := index[name]; ok {
		return place[i]
	}
	return -1
}

// cutEdges sorts the edges and keeps the first: before all others one that
// leads to each state, so that none stands there alone.
func (p *picture) cutEdges(most int) {
	slices.SortStableFunc(p.edges, func(a, b drawn) int {
		// Those from any state are the last of all.
		if (a.from < 0) != (b.from < 0) {
			return b.from - a.from
		}
		if a.from != b.from {
			return a.from - b.from
		}
		return a.to - b.to
	})
	if len(p.edges) <= most {
		return
	}
	p.omit(len(p.edges)-most, "arrow", "arrows")
	met := make([]bool, len(p.nodes))
	var first, rest []drawn
	for _, e := range p.edges {
		if e.from == e.to || met[e.to] || e.from >= 0 && p.level[e.from] >= p.level[e.to] {
			rest = append(rest, e)
			continue
		}
		met[e.to] = true
		first = append(first, e)
	}
	p.edges = append(first, rest...)[:most]
	p.cutEdges(most)
}

func (p *picture) omit(n int, one, many string) {
	if n > 0 {
		p.leftOf = append(p.leftOf, plural(n, one, many))
	}
}

// leftOut says what the picture does not show, "" if it shows everything.
func (p *picture) leftOut() string {
	if len(p.leftOf) == 0 {
		return ""
	}
	return "Not in this picture: " + strings.Join(p.leftOf, ", ")
}

// labels are the lines that name some tools.
func labels(tools []string) []string {
	lines := make([]string, 0, maxLabelTools+1)
	for _, t := range tools[:min(len(tools), maxLabelTools)] {
		lines = append(lines, show(t))
	}
	if more := len(tools) - maxLabelTools; more > 0 {
		lines = append(lines, fmt.Sprintf("+%s more", thousands(more)))
	}
	return lines
}
