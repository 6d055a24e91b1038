package workflow

import (
	"fmt"
	"strings"
)

// DOT writes a workflow for Graphviz: all of it, since laying out large graphs
// is what Graphviz is for.
func DOT(w Workflow) string {
	p := drawAll(w)
	var b strings.Builder
	b.WriteString(`digraph workflow {
    rankdir=LR
    node [shape=box style=rounded fontname="Helvetica"]
    edge [fontname="Helvetica" fontsize=10]
`)
	for i, n := range p.nodes {
		style := "rounded"
		if p.level[i] < 0 {
			style += ",dashed"
		}
		if n.DeadEnd {
			style += ",bold"
		}
		fmt.Fprintf(&b, "    s%d [label=\"%s\"", i, dotText(show(n.Name)))
		if style != "rounded" {
			fmt.Fprintf(&b, " style=%q", style)
		}
		b.WriteString("]\n")
	}
	if p.hasAny() {
		b.WriteString("    any [label=\"any state\" shape=plaintext]\n")
	}
	if p.start >= 0 {
		fmt.Fprintf(&b, "    start [shape=point width=0.15]\n    start -> s%d\n", p.start)
	}
	for _, e := range p.edges {
		fmt.Fprintf(&b, "    %s -> s%d [label=\"%s\"]\n", e.source(), e.to, dotText(strings.Join(labels(e.tools), "\n")))
	}
	b.WriteString("}\n")
	return b.String()
}

// dotText escapes a text for a quoted label, in which Graphviz reads
// backslashes and the entities of HTML.
var dotText = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "&", "&amp;", "\n", `\n`).Replace
