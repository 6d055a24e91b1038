package workflow

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
)

// Mermaid writes a workflow as a state diagram for Mermaid, which GitHub and
// others draw in place. Of a large one it holds what SVG shows: Mermaid refuses
// long texts.
func Mermaid(w Workflow) string {
	p := drawSome(w)
	var b strings.Builder
	b.WriteString("stateDiagram-v2\n    direction LR\n")
	var unreachable, deadEnd []string
	for i, n := range p.nodes {
		fmt.Fprintf(&b, "    state \"%s\" as s%d\n", mermaidText(show(n.Name)), i)
		if p.level[i] < 0 {
			unreachable = append(unreachable, fmt.Sprintf("s%d", i))
		}
		if n.DeadEnd {
			deadEnd = append(deadEnd, fmt.Sprintf("s%d", i))
		}
	}
	if p.hasAny() {
		b.WriteString("    state \"any state\" as any\n")
	}
	if p.start >= 0 {
		fmt.Fprintf(&b, "    [*] --> s%d\n", p.start)
	}
	for _, e := range p.edges {
		fmt.Fprintf(&b, "    %s --> s%d", e.source(), e.to)
		if len(e.tools) > 0 {
			fmt.Fprintf(&b, " : %s", mermaidText(strings.Join(labels(e.tools), ", ")))
		}
		b.WriteByte('\n')
	}
	mermaidClass(&b, "unreachable", "stroke-dasharray: 5 5", unreachable)
	mermaidClass(&b, "deadEnd", "stroke-width: 3px", deadEnd)
	if left := p.leftOut(); left != "" {
		fmt.Fprintf(&b, "    %%%% %s\n", left)
	}
	return b.String()
}

func mermaidClass(b *strings.Builder, class, style string, ids []string) {
	if len(ids) > 0 {
		fmt.Fprintf(b, "    classDef %s %s\n    class %s %s\n", class, style, strings.Join(ids, ","), class)
	}
}

// hasAny reports whether some edge begins in every state.
func (p *picture) hasAny() bool {
	return len(p.edges) > 0 && p.edges[len(p.edges)-1].from == anyFrom
}

// source is the name of a node in Mermaid and DOT: a number, because no name
// that somebody has chosen is safe there.
func (e drawn) source() string {
	if e.from == anyFrom {
		return "any"
	}
	return fmt.Sprintf("s%d", e.from)
}

// mermaidText writes everything that could mean something to Mermaid as an
// entity by number, in its own notation.
func mermaidText(s string) string {
	var b strings.Builder
	// Its grammar takes every line that holds "direction LR" for that command,
	// wherever it stands in it.
	command := mermaidDirection.MatchString(s)
	for _, r := range s {
		switch {
		case r == ' ' && !command, r < unicode.MaxASCII && strings.ContainsRune("_-.,+/()", r),
			unicode.IsLetter(r), unicode.IsDigit(r), unicode.IsMark(r):
			b.WriteRune(r)
		default:
			fmt.Fprintf(&b, "#%d;", r)
		}
	}
	return b.String()
}

var mermaidDirection = regexp.MustCompile(`(?i)direction\s`)
