package workflow

import (
	"math"
	"slices"
	"strings"
)

// layout is where everything in a picture goes. It has ranks from left to
// right: the even ones hold states, the odd ones between them what their edges
// are labeled with. An edge over several ranks has a bend in each of them. So
// every state, label and passing edge has a place of its own in its rank, and
// between two ranks there is nothing but lines.
type layout struct {
	ranks   [][]*box
	states  []*box // as in the picture
	tracks  []*track
	boxes   int
	columns []column
	lost    int // the first rank of states that cannot be reached; -1: there are none
}

// box is what takes room in a rank: a state, a label or a bend.
type box struct {
	rank     int
	place    int // in its rank
	w, h     float64
	up, down float64 // from the middle to where the next box may begin
	x, y     float64 // of the middle
	kind     boxKind
	node     int // of a state: its place in the picture
	toppers  []topper
	track    *track // of a label or a bend

	left, right []tie   // to boxes in the ranks next to it
	want        float64 // place in the rank
}

// tie is a line from one box to another, and how much it wants to be straight.
type tie struct {
	to     *box
	weight float64
}

type boxKind int

const (
	boxState boxKind = iota
	boxLabel
	boxBend
)

// topper is what stands on top of a state: an edge from any state, or one that
// leads back to the state itself.
type topper struct {
	loop  bool
	tools []string
	lines []string
	w, h  float64
	dx    float64 // of its middle, from the state's
}

// track is the common way of all edges with the same tools to the same state
// from the same side. They have one label, which stands next to the target.
type track struct {
	to      *box
	dir     int // of the edges: 1 right, -1 left, 0 within a rank
	tools   []string
	lines   []string
	sources []*box
	at      map[int]*box // label and bends, by rank
	label   *box
}

type column struct{ left, right float64 }

// How strongly a line wants to be straight. Long ways back bend first, then
// they are out of the way.
const (
	pullForward = 4
	pullPassing = 8
	pullBack    = 0.05
	pullFlat    = 0.5
)

func newLayout(p picture) *layout {
	l := &layout{lost: -1}
	layer := l.layers(p)
	ranks := 1
	for _, n := range layer {
		ranks = max(ranks, 2*n+2)
	}
	l.ranks = make([][]*box, ranks)
	for i := range p.nodes {
		l.states = append(l.states, stateBox(i, p))
		l.put(l.states[i], 2*layer[i])
	}
	l.trackEdges(p, layer)
	l.order()
	l.size()
	l.arrange()
	return l
}

// layers gives the states their layers: the distance from the start, and for
// what cannot be reached further ones at the end.
func (l *layout) layers(p picture) []int {
	layer := make([]int, len(p.nodes))
	last := -1
	var lost []int
	for i, level := range p.level {
		layer[i] = level
		last = max(last, level)
		if level < 0 {
			lost = append(lost, i)
		}
	}
	if len(lost) == 0 {
		return layer
	}
	l.lost = 2 * (last + 1)
	out, in, tied := map[int][]int{}, map[int]int{}, map[int]bool{}
	for _, e := range p.edges {
		if e.from >= 0 && e.from != e.to {
			tied[e.from] = true
			if layer[e.from] < 0 && layer[e.to] < 0 {
				out[e.from] = append(out[e.from], e.to)
				in[e.to]++
				tied[e.to] = true
			}
		}
	}
	// Breadth first from those that nothing leads to, then from any that are
	// left over; those without edges fill up the rest, a few in each layer.
	var queue, alone []int
	enter := func(v, n int) {
		if layer[v] < 0 {
			layer[v] = n
			queue = append(queue, v)
		}
	}
	walk := func() {
		for ; len(queue) > 0; queue = queue[1:] {
			for _, to := range out[queue[0]] {
				enter(to, layer[queue[0]]+1)
			}
		}
	}
	for _, v := range lost {
		if !tied[v] {
			alone = append(alone, v)
		} else if in[v] == 0 {
			enter(v, last+1)
		}
	}
	walk()
	for _, v := range lost {
		if tied[v] {
			enter(v, last+1)
			walk()
		}
	}
	fill(layer, alone, last+1)
	return layer
}

// fill spreads states without edges over the layers from first on.
func fill(layer, alone []int, first int) {
	const most = 6
	count := map[int]int{}
	for _, n := range layer {
		count[n]++
	}
	n := first
	for _, v := range alone {
		for count[n] >= most {
			n++
		}
		layer[v] = n
		count[n]++
	}
}

func (l *layout) put(b *box, rank int) {
	b.rank, b.place = rank, len(l.ranks[rank])
	l.ranks[rank] = append(l.ranks[rank], b)
	l.boxes++
}

// patience is how often a step is repeated to make the picture better: less
// often where there is much in it.
func (l *layout) patience(most int) int {
	const much = 4000
	return min(most, max(4, most*much/(l.boxes+1)))
}

// trackEdges puts edges on tracks. Ways back come last, below the others.
func (l *layout) trackEdges(p picture, layer []int) {
	type key struct {
		to, dir int
		tools   string
	}
	known := map[key]*track{}
	var forward, back []*track
	for _, e := range p.edges {
		if e.from < 0 || e.from == e.to {
			continue // on top of the state
		}
		dir := sign(layer[e.to] - layer[e.from])
		k := key{e.to, dir, strings.Join(e.tools, "\x00")}
		t := known[k]
		if t == nil {
			t = &track{to: l.states[e.to], dir: dir, tools: e.tools, lines: chipLines(e.tools), at: map[int]*box{}}
			known[k] = t
			if dir < 0 {
				back = append(back, t)
			} else {
				forward = append(forward, t)
			}
		}
		t.sources = append(t.sources, l.states[e.from])
	}
	l.tracks = slices.Concat(forward, back)
	for _, t := range l.tracks {
		l.lay(t)
	}
}

// lay makes the boxes of a track, from its label to the farthest source.
func (l *layout) lay(t *track) {
	step := t.dir
	if step == 0 {
		step = -1 // within a rank it goes by the labels to the right
	}
	t.label = &box{kind: boxLabel, track: t}
	t.label.w, t.label.h = chipSize(t.lines)
	t.label.up, t.label.down = t.label.h/2, t.label.h/2
	rank := t.to.rank - step
	l.put(t.label, rank)
	t.at[rank] = t.label
	l.tie(t.label, t.to, t.pull())
	last := t.label
	for _, s := range t.sources {
		for join := s.rank + step; t.dir != 0 && (join-last.rank)*step < 0; {
			bend := &box{kind: boxBend, up: 3, down: 3, track: t}
			l.put(bend, last.rank-step)
			t.at[bend.rank] = bend
			l.tie(last, bend, pullPassing)
			last = bend
		}
	}
	for _, s := range t.sources {
		l.tie(s, t.join(s), t.pull())
	}
}

// join is where the edge from a source gets on the track.
func (t *track) join(source *box) *box {
	if t.dir == 0 {
		return t.label
	}
	return t.at[source.rank+t.dir]
}

func (t *track) pull() float64 {
	switch t.dir {
	case 1:
		return pullForward
	case -1:
		return pullBack
	}
	return pullFlat
}

func (l *layout) tie(a, b *box, weight float64) {
	if a.rank > b.rank {
		a, b = b, a
	}
	a.right = append(a.right, tie{b, weight})
	b.left = append(b.left, tie{a, weight})
}

func sign(n int) int {
	switch {
	case n < 0:
		return -1
	case n > 0:
		return 1
	}
	return 0
}

// size makes states as high as the lines at their sides need.
func (l *layout) size() {
	for _, s := range l.states {
		grown := float64(max(len(s.left), len(s.right))-3) * portGap
		s.h += math.Max(0, grown)
		s.up += math.Max(0, grown) / 2
		s.down = s.h / 2
	}
}
