package workflow

import (
	"fmt"
	"slices"
)

// A line runs straight through the ranks and bends only between them.

// way names the look of a track's lines.
func (t *track) way() string {
	if t.dir < 0 {
		return "back"
	}
	return "go"
}

// edge is the x of a box's side that faces right or left.
func (l *layout) edge(b *box, right bool) float64 {
	c := l.columns[b.rank]
	w := b.w / 2
	switch {
	case b.kind == boxBend && right:
		return c.right
	case b.kind == boxBend:
		return c.left
	case right:
		return b.x + w
	}
	return b.x - w
}

// curve is a path from one rank to the next: straight to the side of its own
// column, then over the gap, then straight to the end.
func (l *layout) curve(fromRank int, x1, y1 float64, toRank int, x2, y2 float64) string {
	path := fmt.Sprintf("M%s %s", num(x1), num(y1))
	if y1 != y2 {
		path += l.bend(fromRank, y1, toRank, x2, y2)
	}
	return path + "H" + num(x2)
}

// bend goes on from one rank to the next, where it will end at x.
func (l *layout) bend(fromRank int, y1 float64, toRank int, x, y2 float64) string {
	const straight = 4 // or an arrow's point would stand on the curve itself
	c1, c2 := l.columns[fromRank].right, min(l.columns[toRank].left, x-straight)
	if toRank < fromRank {
		c1, c2 = l.columns[fromRank].left, max(l.columns[toRank].right, x+straight)
	}
	mid := num((c1 + c2) / 2)
	return fmt.Sprintf("H%sC%s %s %s %s %s %s", num(c1), mid, num(y1), mid, num(y2), num(c2), num(y2))
}

// path is the way from the farthest bend of a track to its label, "" if there
// is no bend.
func (l *layout) path(t *track) string {
	var boxes []*box
	for b := t.label; t.dir != 0 && b != nil; b = t.at[b.rank-t.dir] {
		boxes = append(boxes, b)
	}
	if len(boxes) < 2 {
		return ""
	}
	slices.Reverse(boxes)
	right := t.dir > 0
	path := fmt.Sprintf("M%s %s", num(l.edge(boxes[0], !right)), num(boxes[0].y))
	for i, b := range boxes[1:] {
		if before := boxes[i]; before.y != b.y {
			path += l.bend(before.rank, before.y, b.rank, l.edge(b, !right), b.y)
		}
	}
	return path + "H" + num(l.edge(t.label, !right))
}

// port draws the line between a state and the next box of the track.
func (d *drawing) port(p *port) {
	d.reach(d.layout.columns[p.state.rank].right, p.other.y+p.other.h/2)
	if p.side == sideTop || p.side == sideBottom {
		d.around(p)
		return
	}
	l, class := d.layout, p.track.way()
	right := p.side == sideRight // the side of the state; the other box shows its opposite
	ox, oy := l.edge(p.other, !right), p.other.y
	if p.track.dir == 0 {
		// Both ends are on the left of the label: the upper line above the lower.
		shift := 5.0
		if p.upper() {
			shift = -5
		}
		oy += shift
	}
	if p.leaves {
		d.line("line "+class, l.curve(p.state.rank, p.x, p.y, p.other.rank, ox, oy))
		return
	}
	look := 1.0
	if right {
		look = -1
	}
	d.line("line "+class, l.curve(p.other.rank, ox, oy, p.state.rank, p.x-look*arrow, p.y))
	d.head(class, p.x-look, p.y, look, 0)
}

// upper reports whether the port's end of an edge within a rank is the upper one.
func (p *port) upper() bool {
	if !p.leaves {
		for _, s := range p.track.sources {
			if s.y < p.state.y {
				return false
			}
		}
		return true
	}
	return p.state.y < p.track.to.y
}

// around draws a line that leaves or enters a state at its top or bottom.
func (d *drawing) around(p *port) {
	l, class := d.layout, p.track.way()
	away := 1.0 // down
	if p.side == sideTop {
		away = -1
	}
	d.reach(p.x, p.drop)
	if p.leaves {
		end := l.edge(p.other, true)
		if p.track.at[p.state.rank] != nil {
			end = p.x - turn // it meets the track, which goes on from there
		}
		d.line("line "+class, fmt.Sprintf("M%s %sV%sQ%s %s %s %sH%s", num(p.x), num(p.y), num(p.drop-away*turn),
			num(p.x), num(p.drop), num(p.x-turn), num(p.drop), num(end)))
		return
	}
	d.line("line "+class, fmt.Sprintf("M%s %sH%sQ%s %s %s %sV%s", num(l.edge(p.other, false)), num(p.drop), num(p.x+turn),
		num(p.x), num(p.drop), num(p.x), num(p.drop-away*turn), num(p.y+away*arrow)))
	d.head(class, p.x, p.y+away, 0, -away)
}

// track draws the label of a track and the lines between its boxes.
func (d *drawing) track(t *track) {
	if path := d.layout.path(t); path != "" {
		d.line("line "+t.way(), path)
	}
	for _, b := range t.at {
		d.reach(d.layout.columns[b.rank].right, b.y)
	}
	from := ""
	for i, s := range t.sources {
		if i > 0 {
			from += ", "
		}
		from += show(d.picture.nodes[s.node].Name)
	}
	d.open("edge", fmt.Sprintf("%s → %s:\n%s", from, show(d.picture.nodes[t.to.node].Name), tipTools(t.tools)))
	chip := "chip"
	if t.dir < 0 {
		chip = "chip backchip"
	}
	d.chip(chip, t.label.x, t.label.y, t.label.w, t.label.h, t.lines)
	d.close()
}
