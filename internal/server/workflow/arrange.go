package workflow

import (
	"math"
	"slices"
)

// Distances in a picture.
const (
	margin    = 28.0
	startRoom = 44.0 // for the dot left of the start
	rankGap   = 26.0 // that lines bend in
	portGap   = 9.0  // between lines at one side of a state
	rounds    = 60

	frameTitle = 30.0 // above states that cannot be reached
)

// arrange gives every box its coordinates.
func (l *layout) arrange() {
	l.arrangeRows()
	l.arrangeColumns()
}

// arrangeRows moves boxes, rank by rank, to the weighted average of what they
// are tied to, as near as the order and the room between them allow.
func (l *layout) arrangeRows() {
	settle := func(boxes []*box) {
		want, weight, room := make([]float64, len(boxes)), make([]float64, len(boxes)), make([]float64, len(boxes))
		for i, b := range boxes {
			sum, total := b.y*0.01, 0.01
			for _, ties := range [][]tie{b.left, b.right} {
				for _, t := range ties {
					sum += (t.to.y + aside(b, t.to)) * t.weight
					total += t.weight
				}
			}
			want[i], weight[i] = sum/total, total
			if i > 0 {
				room[i] = clearance(boxes[i-1], b)
			}
		}
		for i, y := range spread(want, weight, room) {
			boxes[i].y = y
		}
	}
	for round := range l.patience(rounds) {
		for r := range l.ranks {
			if round%2 == 1 {
				r = len(l.ranks) - 1 - r
			}
			settle(l.ranks[r])
		}
	}
	for _, t := range l.tracks {
		l.straighten(t)
	}
	l.moveDown()
}

// straighten takes out the small steps that are left in a track: each box tries
// the height of the one before it, from the label outward and back again.
func (l *layout) straighten(t *track) {
	const small = 8
	if t.dir == 0 {
		return
	}
	var boxes []*box
	for b := t.label; b != nil; b = t.at[b.rank-t.dir] {
		boxes = append(boxes, b)
	}
	for range 2 {
		for i, b := range boxes[1:] {
			if y := boxes[i].y; math.Abs(b.y-y) <= small && l.fits(b, y) {
				b.y = y
			}
		}
		slices.Reverse(boxes)
	}
}

// fits reports whether a box would have its room at this height.
func (l *layout) fits(b *box, y float64) bool {
	rank := l.ranks[b.rank]
	return (b.place == 0 || y-rank[b.place-1].y >= clearance(rank[b.place-1], b)) &&
		(b.place == len(rank)-1 || rank[b.place+1].y-y >= clearance(b, rank[b.place+1]))
}

// moveDown puts the topmost box below the margin.
func (l *layout) moveDown() {
	top := math.Inf(1)
	for _, boxes := range l.ranks {
		for _, b := range boxes {
			y := b.y - b.up
			if l.lost > 0 && b.rank >= l.lost && b.kind != boxBend {
				y -= frameTitle
			}
			top = math.Min(top, y)
		}
	}
	for _, boxes := range l.ranks {
		for _, b := range boxes {
			b.y = grid(b.y - top + margin)
		}
	}
}

// grid rounds to a whole pixel. Processors differ in the last digit of a sum;
// halves are therefore not left to it.
func grid(y float64) float64 { return math.Floor(y + 0.5 + 1e-6) }

// aside is how far from each other two tied boxes want to be: a way back wants
// to pass below or above the states that it connects.
func aside(b, tied *box) float64 {
	state := b
	if tied.kind == boxState {
		state = tied
	}
	if state.kind != boxState || !b.back() && !tied.back() {
		return 0
	}
	way := state.h/2 + turnRoom + 2
	if b.y < tied.y {
		return -way
	}
	return way
}

// clearance is the least distance between the middles of two boxes, the upper
// one first.
func clearance(a, b *box) float64 {
	gap := 10.0
	switch {
	case a.kind == boxState && b.kind == boxState:
		gap = 30
	case a.back() != b.back():
		gap = 24 // room for the curve that leads there
	case a.kind == boxState || b.kind == boxState:
		gap = 16
	}
	return a.down + gap + b.up
}

func (b *box) back() bool { return b.track != nil && b.track.dir < 0 }

// spread finds the places nearest to the wanted ones, by weighted squares, that
// have the room they need: room[i] is the distance that i keeps from i-1.
// Neighbors that would overlap form a block, which moves as one.
func spread(want, weight, room []float64) []float64 {
	type block struct {
		first, last    int
		weight, target float64 // of its first member
	}
	var blocks []block
	offset := make([]float64, len(want)) // from the first of all, packed densely
	for i := range want {
		if i > 0 {
			offset[i] = offset[i-1] + room[i]
		}
		b := block{i, i, weight[i], want[i] - offset[i]}
		for len(blocks) > 0 && blocks[len(blocks)-1].target > b.target {
			a := blocks[len(blocks)-1]
			blocks = blocks[:len(blocks)-1]
			b.target = (a.target*a.weight + b.target*b.weight) / (a.weight + b.weight)
			b.weight += a.weight
			b.first = a.first
		}
		blocks = append(blocks, b)
	}
	places := make([]float64, len(want))
	for _, b := range blocks {
		for i := b.first; i <= b.last; i++ {
			places[i] = b.target + offset[i]
		}
	}
	return places
}

// arrangeColumns makes each rank as wide as its widest box.
func (l *layout) arrangeColumns() {
	x := margin + startRoom
	l.columns = make([]column, len(l.ranks))
	for r, boxes := range l.ranks {
		w, lines := 0.0, 0
		for _, b := range boxes {
			w = math.Max(w, b.width())
			lines += len(b.right)
		}
		if r == l.lost {
			x += 34 // for the frame around what cannot be reached
		}
		l.columns[r] = column{x, x + w}
		for _, b := range boxes {
			b.x = x + w/2
		}
		if w > 0 || lines > 0 {
			x += w + rankGap + math.Min(3*float64(lines), 60)
		}
	}
}

// width is the room a box takes, with what stands on top of it.
func (b *box) width() float64 {
	w := b.w
	for _, t := range b.toppers {
		w = math.Max(w, 2*(math.Abs(t.dx)+t.w/2))
	}
	return w
}
