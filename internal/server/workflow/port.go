package workflow

import (
	"cmp"
	"math"
	"slices"
)

// port is where a line touches a state.
type port struct {
	state, other *box
	track        *track
	side         side
	x, y         float64
	drop         float64 // at the top or bottom: how far down the line turns
	leaves       bool
}

type side int

const (
	sideLeft side = iota
	sideRight
	sideTop
	sideBottom
)

// Room that a line needs to turn under or over a state.
const (
	turn     = 12.0
	arrow    = 8.0
	turnRoom = turn + arrow + 2
)

// ports finds where every line leaves and enters its states.
func (l *layout) ports() []*port {
	var all []*port
	at := map[*box][]*port{}
	add := func(p *port) {
		p.choose(l)
		all = append(all, p)
		at[p.state] = append(at[p.state], p)
	}
	for _, t := range l.tracks {
		for _, s := range t.sources {
			add(&port{state: s, other: t.join(s), track: t, leaves: true})
		}
		add(&port{state: t.to, other: t.label, track: t})
	}
	for _, s := range l.states {
		for _, side := range []side{sideTop, sideBottom} {
			s.portsAcross(at[s], side)
		}
		for _, side := range []side{sideLeft, sideRight} {
			s.portsAlong(at[s], side)
		}
	}
	return all
}

// choose takes the side that faces the other end. A way back goes around the
// state, below or above it, where nothing else stands there.
func (p *port) choose(l *layout) {
	dir := p.track.dir
	p.side = sideRight
	if dir > 0 && !p.leaves || dir < 0 && p.leaves {
		p.side = sideLeft
	}
	if dir >= 0 {
		return
	}
	p.drop = p.other.y
	if own := p.track.at[p.state.rank]; p.leaves && own != nil {
		p.drop = own.y // the track passes here anyway
	}
	s, rank := p.state, l.ranks[p.state.rank]
	free := func(place int, clear func(*box) bool) bool {
		if place < 0 || place >= len(rank) {
			return true
		}
		next := rank[place]
		return next.track == p.track || clear(next)
	}
	switch {
	case p.drop >= s.y+s.h/2+turnRoom && free(s.place+1, func(b *box) bool { return b.y-b.up > p.drop+4 }):
		p.side = sideBottom
	case len(s.toppers) == 0 && p.drop <= s.y-s.h/2-turnRoom && free(s.place-1, func(b *box) bool { return b.y+b.down < p.drop-4 }):
		p.side = sideTop
	}
}

// portsAcross spreads lines over the top or bottom of a state. Those that leave
// turn left and stand left, those that enter come from the right; the farther
// down a line turns, the nearer to the middle it stands, so that none cross.
func (b *box) portsAcross(all []*port, side side) {
	var leave, enter []*port
	for _, p := range all {
		if p.side == side && p.leaves {
			leave = append(leave, p)
		} else if p.side == side {
			enter = append(enter, p)
		}
	}
	near := func(x, y *port) int { return cmp.Compare(math.Abs(x.drop-b.y), math.Abs(y.drop-b.y)) }
	slices.SortStableFunc(leave, near)
	slices.SortStableFunc(enter, near)
	room := math.Min(14, (b.w-28)/float64(max(1, len(leave)+len(enter)-1)))
	x := b.x - room*float64(len(leave)+len(enter)-1)/2
	slices.Reverse(enter)
	for _, p := range slices.Concat(leave, enter) {
		p.x, p.y = x, b.y+b.h/2
		if side == sideTop {
			p.y = b.y - b.h/2
		}
		x += room
	}
}

// portsAlong spreads lines over the left or right side of a state, each as near
// as may be to the height of its other end.
func (b *box) portsAlong(all []*port, side side) {
	all = slices.DeleteFunc(slices.Clone(all), func(p *port) bool { return p.side != side })
	if len(all) == 0 {
		return
	}
	slices.SortStableFunc(all, func(x, y *port) int { return cmp.Compare(x.other.y, y.other.y) })
	low, high := b.y-b.h/2+10, b.y+b.h/2-10
	gap := math.Min(portGap, (high-low)/float64(max(1, len(all)-1)))
	want, weight, room := make([]float64, len(all)), make([]float64, len(all)), make([]float64, len(all))
	for i, p := range all {
		want[i] = math.Min(math.Max(p.other.y, low), high)
		weight[i], room[i] = 1, gap
	}
	for i, y := range spread(want, weight, room) {
		p := all[i]
		p.y = math.Max(y, low+gap*float64(i))
		p.y = math.Min(p.y, high-gap*float64(len(all)-1-i))
		p.x = b.x - b.w/2
		if side == sideRight {
			p.x = b.x + b.w/2
		}
	}
}
