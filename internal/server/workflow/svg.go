package workflow

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// SVG draws a workflow, from left to right as a session goes. The picture needs
// nothing else: no fonts, no scripts, no style of the page around it.
func SVG(w Workflow) []byte {
	p := drawSome(w)
	l := newLayout(p)
	d := drawing{picture: p, layout: l}
	d.frame()
	for _, port := range l.ports() {
		d.port(port)
	}
	for _, t := range l.tracks {
		d.track(t)
	}
	for _, s := range l.states {
		d.state(s)
	}
	return d.document(w)
}

// drawing collects the shapes and how far they go.
type drawing struct {
	picture       picture
	layout        *layout
	body          bytes.Buffer
	right, bottom float64
}

func (d *drawing) printf(format string, args ...any) { fmt.Fprintf(&d.body, format, args...) }

// reach says that the picture goes at least that far.
func (d *drawing) reach(x, y float64) {
	d.right, d.bottom = math.Max(d.right, x), math.Max(d.bottom, y)
}

func (d *drawing) rect(class string, x, y, w, h, radius float64) {
	d.printf(`<rect class="%s" x="%s" y="%s" width="%s" height="%s" rx="%s"/>`, class, num(x), num(y), num(w), num(h), num(radius))
	d.reach(x+w, y+h)
}

func (d *drawing) text(class string, x, y float64, s string) {
	d.printf(`<text class="%s" x="%s" y="%s">%s</text>`, class, num(x), num(y), xmlText(s))
}

func (d *drawing) line(class, path string) { d.printf(`<path class="%s" d="%s"/>`+"\n", class, path) }

// open begins a group with a tooltip.
func (d *drawing) open(class, tip string) {
	d.printf(`<g class="%s"><title>%s</title>`, class, xmlText(tip))
}

func (d *drawing) close() { d.body.WriteString("</g>\n") }

// head draws the point of an arrow at x, y, looking along dx, dy.
func (d *drawing) head(class string, x, y, dx, dy float64) {
	const half = 4
	bx, by := x-dx*arrow, y-dy*arrow
	d.line("head "+class, fmt.Sprintf("M%s %sL%s %sL%s %sZ", num(x), num(y),
		num(bx-dy*half), num(by+dx*half), num(bx+dy*half), num(by-dx*half)))
}

// chip draws lines of text on a label.
func (d *drawing) chip(class string, x, y, w, h float64, lines []string) {
	d.rect(class, x-w/2, y-h/2, w, h, 7)
	for i, line := range lines {
		kind := "tool"
		if strings.HasPrefix(class, "any") && i == 0 {
			kind = "hint"
		}
		d.text(kind, x, y-lineHeight*float64(len(lines))/2+lineHeight*float64(i)+11, line)
	}
}

// state draws a state, and what stands on top of it.
func (d *drawing) state(b *box) {
	n := d.picture.nodes[b.node]
	for _, t := range b.toppers {
		d.topper(b, t)
	}
	class := "state"
	if b.node == d.picture.start {
		class += " start"
		d.startMark(b)
	}
	if d.picture.level[b.node] < 0 {
		class += " lost"
	}
	if n.DeadEnd {
		class += " stuck"
	}
	d.open(class, stateTip(n))
	d.rect("box", b.x-b.w/2, b.y-b.h/2, b.w, b.h, 11)
	y := b.y - 4
	if n.DeadEnd {
		y -= lineHeight / 2
	}
	d.text("name", b.x, y+1, stateLabel(n))
	d.text("count", b.x, y+17, plural(n.ToolCount, "tool", "tools"))
	if n.DeadEnd {
		d.text("warn", b.x, y+17+lineHeight, "no way out")
	}
	d.close()
}

func (d *drawing) startMark(b *box) {
	left := b.x - b.w/2
	d.printf(`<circle class="dot" cx="%s" cy="%s" r="6"/>`, num(left-34), num(b.y))
	d.line("line go", fmt.Sprintf("M%s %sH%s", num(left-28), num(b.y), num(left-arrow)))
	d.head("go", left-1, b.y, 1, 0)
}

// topper draws an edge that ends where it begins, or one from any state.
func (d *drawing) topper(b *box, t topper) {
	top := b.y - b.h/2
	x, y := b.x+t.dx, top-topperLift-t.h/2
	down := top - topperLift
	foot := math.Min(math.Max(x, b.x-b.w/2+22), b.x+b.w/2-22)
	if t.loop {
		d.open("edge", fmt.Sprintf("%s stays where it is:\n%s", show(d.picture.nodes[b.node].Name), tipTools(t.tools)))
		d.line("line go", fmt.Sprintf("M%s %sV%s", num(foot-9), num(top), num(down)))
		d.line("line go", fmt.Sprintf("M%s %sV%s", num(foot+9), num(down), num(top-arrow)))
		d.head("go", foot+9, top-1, 0, 1)
		d.chip("chip", x, y, t.w, t.h, t.lines)
		d.close()
		return
	}
	d.open("edge", fmt.Sprintf("any state → %s:\n%s", show(d.picture.nodes[b.node].Name), tipTools(t.tools)))
	d.line("line any", fmt.Sprintf("M%s %sL%s %s", num(x), num(down), num(foot), num(top-arrow)))
	d.head("any", foot, top-1, 0, 1)
	d.chip("anychip", x, y, t.w, t.h, append([]string{"any state"}, t.lines...))
	d.close()
}

// frame draws what holds the states that cannot be reached.
func (d *drawing) frame() {
	l := d.layout
	if l.lost <= 0 {
		return // there are none, or nothing else
	}
	left, right := l.columns[l.lost].left, 0.0
	top, bottom := math.Inf(1), 0.0
	for r := l.lost; r < len(l.ranks); r++ {
		for _, b := range l.ranks[r] {
			if b.kind != boxBend {
				right = math.Max(right, l.columns[r].right)
				top, bottom = math.Min(top, b.y-b.up), math.Max(bottom, b.y+b.down)
			}
		}
	}
	title := "cannot be reached"
	right = math.Max(right, left+float64(columns(title))*6.5)
	d.rect("frame", left-16, top-frameTitle, right-left+32, bottom-top+frameTitle+16, 14)
	d.text("hint first", left-4, top-12, title)
}

func stateTip(n Node) string {
	tip := show(n.Name) + ": " + plural(n.ToolCount, "tool", "tools")
	if len(n.Tools) > 0 && len(n.Tools) < n.ToolCount {
		tip += ", these besides the ones available everywhere:"
	}
	if len(n.Tools) > 0 {
		tip += "\n" + tipTools(n.Tools)
	}
	return tip
}

// tipTools lists tools one by one.
func tipTools(tools []string) string {
	var b strings.Builder
	for i, t := range tools {
		if i == maxTipTools {
			fmt.Fprintf(&b, "\n+%s more", thousands(len(tools)-i))
			break
		}
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(show(t))
	}
	return b.String()
}

// num writes a coordinate: a tenth of a pixel is as fine as one can see.
func num(x float64) string {
	return strconv.FormatFloat(grid(x*10)/10, 'f', -1, 64)
}

// xmlText escapes a text for XML; show has taken out what XML does not allow.
var xmlText = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;", "'", "&#39;").Replace
