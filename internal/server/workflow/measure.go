package workflow

import (
	"math"
	"strings"
	"unicode"
)

// Sizes of text. A picture cannot measure the fonts it will be shown in; these
// numbers are a little wide for all of the fonts it asks for.
const (
	maxNameColumns = 30
	maxToolColumns = 32
	monoWidth      = 6.7 // of a column at 11px
	lineHeight     = 15.0
	stateHeight    = 48.0
	topperLift     = 22.0 // room for the arrow below what stands on a state
)

// sansWidth is how wide a text in the state's font (14px, semi-bold) may get.
func sansWidth(s string) float64 {
	w := 0.0
	for _, r := range s {
		switch {
		case runeColumns(r) != 1:
			w += 8 * float64(runeColumns(r))
		case strings.ContainsRune("mwMW@%…", r):
			w += 13
		case unicode.IsUpper(r):
			w += 10
		case strings.ContainsRune("iljtfrI.,:;'|!()[] ", r):
			w += 5.6
		default:
			w += 8.6
		}
	}
	return w
}

// chipLines are the lines of an edge's label.
func chipLines(tools []string) []string {
	lines := labels(tools)
	for i, line := range lines {
		lines[i] = clip(line, maxToolColumns)
	}
	return lines
}

func chipSize(lines []string) (w, h float64) {
	for _, line := range lines {
		w = math.Max(w, float64(columns(line))*monoWidth+16)
	}
	return w, lineHeight*float64(len(lines)) + 7
}

// stateLabel is what a state's box says.
func stateLabel(n Node) string { return clip(show(n.Name), maxNameColumns) }

// stateBox measures a state, with what stands on top of it.
func stateBox(i int, p picture) *box {
	n := p.nodes[i]
	b := &box{kind: boxState, node: i, w: math.Max(104, sansWidth(stateLabel(n))+34), h: stateHeight}
	if n.DeadEnd {
		b.h += lineHeight
	}
	b.up, b.down = b.h/2, b.h/2
	for _, e := range p.edges {
		if e.to != i || e.from != i && e.from != anyFrom {
			continue
		}
		t := topper{loop: e.from == i, tools: e.tools, lines: chipLines(e.tools)}
		t.w, t.h = chipSize(t.lines)
		if !t.loop {
			t.w, t.h = math.Max(t.w, 76), t.h+lineHeight
		}
		b.toppers = append(b.toppers, t)
	}
	if len(b.toppers) == 0 {
		return b
	}
	const gap = 14
	total, high := -float64(gap), 0.0
	for _, t := range b.toppers {
		total += t.w + gap
		high = math.Max(high, t.h)
	}
	if len(b.toppers) > 1 {
		b.w = math.Max(b.w, total) // or their arrows would miss it
	}
	x := -total / 2
	for i := range b.toppers {
		t := &b.toppers[i]
		t.dx = x + t.w/2
		x += t.w + gap
	}
	b.up += topperLift + high
	return b
}
