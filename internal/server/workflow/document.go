package workflow

import (
	"bytes"
	"fmt"
	"strings"
)

// The picture brings its own background: where it is shown as an image, the
// page around it may be light while the reader's system is dark.
const svgStyle = `
.qm-workflow text{font-family:ui-sans-serif,system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,"DejaVu Sans",sans-serif;text-anchor:middle;fill:#1f2328}
.qm-workflow .paper{fill:#fff;stroke:#d1d9e0}
.qm-workflow .name{font-size:14px;font-weight:600}
.qm-workflow .count,.qm-workflow .hint,.qm-workflow .warn{font-size:11px;fill:#59636e}
.qm-workflow .hint{font-style:italic}
.qm-workflow .first{text-anchor:start}
.qm-workflow .warn{fill:#9a4a00;font-weight:600}
.qm-workflow .tool{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,"Liberation Mono","DejaVu Sans Mono",monospace;font-size:11px}
.qm-workflow .box{fill:#f6f8fa;stroke:#818b98;stroke-width:1.4}
.qm-workflow .start .box{fill:#ddf4ff;stroke:#0969da;stroke-width:2}
.qm-workflow .stuck .box{fill:#fff4e5;stroke:#bc6c00;stroke-width:2}
.qm-workflow .lost .box{fill:#fff;stroke:#818b98;stroke-dasharray:5 4}
.qm-workflow .stuck.lost .box{stroke:#bc6c00}
.qm-workflow .frame{fill:#f6f8fa;fill-opacity:.6;stroke:#b7bfc8;stroke-dasharray:2 4}
.qm-workflow .chip{fill:#e8edf3}
.qm-workflow .backchip{fill:#f1e8fd}
.qm-workflow .anychip{fill:#e3f5ea;stroke:#4aa36c;stroke-dasharray:3 3}
.qm-workflow .line{fill:none;stroke:#59636e;stroke-width:1.5}
.qm-workflow .line.back{stroke:#8250df}
.qm-workflow .line.any{stroke:#2f8f57}
.qm-workflow .head,.qm-workflow .dot{fill:#59636e}
.qm-workflow .head.back{fill:#8250df}
.qm-workflow .head.any{fill:#2f8f57}
@media (prefers-color-scheme:dark){
.qm-workflow text{fill:#e6edf3}
.qm-workflow .paper{fill:#0d1117;stroke:#3d444d}
.qm-workflow .count,.qm-workflow .hint{fill:#9198a1}
.qm-workflow .warn{fill:#f0a04b}
.qm-workflow .box{fill:#171d26;stroke:#6e7781}
.qm-workflow .start .box{fill:#0c2d4d;stroke:#4493f8}
.qm-workflow .stuck .box{fill:#33230e;stroke:#d98f2b}
.qm-workflow .lost .box{fill:#0d1117;stroke:#6e7781}
.qm-workflow .stuck.lost .box{stroke:#d98f2b}
.qm-workflow .frame{fill:#171d26;stroke:#4a525c}
.qm-workflow .chip{fill:#262d38}
.qm-workflow .backchip{fill:#2f2345}
.qm-workflow .anychip{fill:#12301f;stroke:#3fa564}
.qm-workflow .line{stroke:#9198a1}
.qm-workflow .line.back{stroke:#ab7df8}
.qm-workflow .line.any{stroke:#3fb950}
.qm-workflow .head,.qm-workflow .dot{fill:#9198a1}
.qm-workflow .head.back{fill:#ab7df8}
.qm-workflow .head.any{fill:#3fb950}
}
`

// document puts the shapes on paper.
func (d *drawing) document(w Workflow) []byte {
	width, height := d.right+margin, d.bottom+margin
	if left := d.picture.leftOut(); left != "" {
		d.text("hint first", margin, height, left)
		width, height = max(width, float64(columns(left))*6.2+2*margin), height+margin-8
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" class="qm-workflow" role="img" aria-labelledby="qm-workflow-title qm-workflow-desc" width="%[1]s" height="%[2]s" viewBox="0 0 %[1]s %[2]s">`+"\n",
		num(width), num(height))
	fmt.Fprintf(&b, "<title id=\"qm-workflow-title\">Workflow</title>\n<desc id=\"qm-workflow-desc\">%s</desc>\n", xmlText(d.picture.describe(w)))
	fmt.Fprintf(&b, "<style>%s</style>\n", svgStyle)
	fmt.Fprintf(&b, `<rect class="paper" x="0.5" y="0.5" width="%s" height="%s" rx="12"/>`+"\n", num(width-1), num(height-1))
	b.Write(d.body.Bytes())
	b.WriteString("</svg>\n")
	return b.Bytes()
}

// describe says in words what the picture shows, to those who cannot see it.
func (p *picture) describe(w Workflow) string {
	const most = 30
	var b strings.Builder
	fmt.Fprintf(&b, "%s. Sessions start in %s.", plural(len(w.States), "state", "states"), show(w.Start))
	for i, e := range p.edges {
		if i == most {
			fmt.Fprintf(&b, " And %s more.", plural(len(p.edges)-i, "move", "moves"))
			break
		}
		from := "Any state"
		if e.from >= 0 {
			from = show(p.nodes[e.from].Name)
		}
		fmt.Fprintf(&b, " %s leads to %s by %s.", from, show(p.nodes[e.to].Name), strings.Join(labels(e.tools), ", "))
	}
	if left := p.leftOut(); left != "" {
		b.WriteString(" " + left + ".")
	}
	return b.String()
}
