package workflow_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"

	"quartermaster"
	"quartermaster/internal/server/workflow"
)

// wellFormed reads a picture as XML and returns its elements.
func wellFormed(t testing.TB, svg []byte) []xml.StartElement {
	t.Helper()
	var all []xml.StartElement
	d := xml.NewDecoder(bytes.NewReader(svg))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatalf("not well-formed: %v\n%s", err, svg)
		}
		if e, ok := token.(xml.StartElement); ok {
			all = append(all, e.Copy())
		}
	}
}

// The only elements and attributes that a picture consists of.
var allowed = map[string][]string{
	"svg":  {"xmlns", "class", "role", "aria-labelledby", "width", "height", "viewBox"},
	"desc": {"id"}, "title": {"id"}, "style": nil, "g": {"class"},
	"rect":   {"class", "x", "y", "width", "height", "rx"},
	"text":   {"class", "x", "y"},
	"path":   {"class", "d"},
	"circle": {"class", "cx", "cy", "r"},
}

// onlyShapes fails for everything that a name could have smuggled in.
func onlyShapes(t testing.TB, svg []byte) {
	t.Helper()
	if bytes.Contains(svg, []byte("NaN")) || bytes.Contains(svg, []byte("Inf")) {
		t.Fatalf("a coordinate that is no number:\n%s", svg)
	}
	for _, e := range wellFormed(t, svg) {
		attributes, ok := allowed[e.Name.Local]
		if !ok {
			t.Fatalf("element %s in\n%s", e.Name.Local, svg)
		}
		for _, a := range e.Attr {
			if !slices.Contains(attributes, a.Name.Local) {
				t.Fatalf("attribute %s of %s in\n%s", a.Name.Local, e.Name.Local, svg)
			}
		}
	}
}

var hostile = []string{
	`<script>alert(1)</script>`, `"><svg onload="alert(1)">`, `' onclick='x`, `]]><x>`, `<!-- `, `-->`, `&amp;`, `&#x3c;x`, `</title></g></svg>`,
	"a\x00b\x1b[31mc", "line\nbreak\r\n    s0 --> s1", "\u202egnissecorp", "%% comment", `%%{init: {"theme":"x"}}%%`, `\" ]; x -> y; //`, `back\slash\`, `\N \G`,
	"direction TB", "x: y; z", "style s0 fill:#f00;", "#quot;", "<<fork>>", "[[fork]]", "[*]", "state", "end", "note left of s0", "", "   ", "\u00a0", "\xff\xfe", "\ufffe",
	strings.Repeat("e\u0301\u0302", 300), strings.Repeat("長", 255), "🚀", "*", "s1", "any", "start", "undefined",
}

// WF-2: whatever a state or a tool is called, a picture shows it as text.
func TestHostileNames(t *testing.T) {
	var tools []quartermaster.Tool
	for i, name := range hostile {
		next := hostile[(i+1)%len(hostile)]
		tools = append(tools, tool(name, next, name, "undefined"), tool(name+"/any", name), tool(name+"/loop", name, name))
	}
	w := workflow.Of(catalog(tools...))
	onlyShapes(t, workflow.SVG(w))
	balanced(t, w)
	writeSample(t, "hostile", w)
	svg := string(workflow.SVG(w))
	for _, bad := range []string{"\x00", "\x1b", "\u202e", "<script", "onload=\"", "onclick='"} {
		if strings.Contains(svg, bad) {
			t.Errorf("%q is in the picture", bad)
		}
	}
	for _, f := range w.Notes {
		if strings.ContainsAny(f.Message, "\x00\x1b\n\u202e") {
			t.Errorf("a message goes on after its end: %q", f.Message)
		}
	}
}

// balanced checks that names have not broken out of their lines and quotes.
func balanced(t testing.TB, w workflow.Workflow) {
	t.Helper()
	mermaid := workflow.Mermaid(w)
	for i, line := range strings.Split(strings.TrimSuffix(mermaid, "\n"), "\n") {
		switch {
		case i == 0 && line == "stateDiagram-v2", i == 1 && line == "    direction LR":
			continue
		case i < 2 || strings.Contains(strings.ToLower(line), "direction lr") || strings.Contains(strings.ToLower(line), "direction tb"):
			t.Fatalf("Mermaid line %q", line)
		}
		first, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		quotes, arrows := strings.Count(line, `"`), strings.Count(line, "-->")
		switch {
		case first == "state" && quotes == 2 && arrows == 0 && !strings.ContainsAny(line, ":<>%{}[]"):
		case strings.HasPrefix(rest, "--> s") && quotes == 0 && arrows == 1 && strings.Count(line, ":") <= 1 && !strings.ContainsAny(rest[3:], "<>%{}[]"):
		case first == "classDef" || first == "class" || first == "%%":
		default:
			t.Fatalf("Mermaid line %q", line)
		}
	}
	for _, line := range strings.Split(strings.TrimSuffix(workflow.DOT(w), "\n"), "\n") {
		quotes, escaped := 0, false
		for _, r := range line {
			if r == '"' && !escaped {
				quotes++
			}
			escaped = r == '\\' && !escaped
		}
		if quotes%2 != 0 || strings.ContainsAny(line, "\r\x00") {
			t.Fatalf("DOT line %q", line)
		}
	}
}

// WF-2: states and labels have room of their own, whatever the graph.
func TestNothingOverlaps(t *testing.T) {
	all := samples()
	for i := range 40 {
		all[fmt.Sprintf("dense-%d", i)] = dense(2+i, 3+2*i)
	}
	for name, tools := range all {
		svg := workflow.SVG(workflow.Of(catalog(tools...)))
		var boxes [][4]float64
		var width, height float64
		for _, e := range wellFormed(t, svg) {
			attr := map[string]string{}
			for _, a := range e.Attr {
				attr[a.Name.Local] = a.Value
			}
			number := func(key string) float64 {
				n, err := strconv.ParseFloat(attr[key], 64)
				if err != nil {
					t.Fatal(err)
				}
				return n
			}
			if e.Name.Local == "svg" {
				width, height = number("width"), number("height")
			}
			if e.Name.Local != "rect" {
				continue
			}
			b := [4]float64{number("x"), number("y"), number("x") + number("width"), number("y") + number("height")}
			if b[0] < 0 || b[1] < 0 || b[2] > width || b[3] > height {
				t.Errorf("%s: %s %v is not on the paper", name, attr["class"], b)
			}
			if attr["class"] == "paper" || attr["class"] == "frame" {
				continue
			}
			for _, o := range boxes {
				if b[0] < o[2] && o[0] < b[2] && b[1] < o[3] && o[1] < b[3] {
					t.Errorf("%s: %v overlaps %v", name, b, o)
				}
			}
			boxes = append(boxes, b)
		}
	}
}

// WF-2: a picture of a large workflow shows its beginning and says so.
func TestLargePicture(t *testing.T) {
	var tools []quartermaster.Tool
	from := "undefined"
	for i := range 1000 {
		to := fmt.Sprintf("state-%d", i)
		tools = append(tools, tool("to-"+to, to, from), tool("lost-"+to, "", "lost-"+to))
		from = to
	}
	w := workflow.Of(catalog(tools...))
	svg := string(workflow.SVG(w))
	const note = "Not in this picture: 901 states further from the start, 1,000 states that cannot be reached"
	if n := strings.Count(svg, `class="name"`); n != 100 || !strings.Contains(svg, note) {
		t.Errorf("%d states are shown, the note is there: %v", n, strings.Contains(svg, note))
	}
	if !strings.Contains(workflow.Mermaid(w), "%% "+note) {
		t.Error("Mermaid does not say what is left out")
	}

	tools = nil
	for i := range 90 {
		for j := range 20 {
			tools = append(tools, tool(fmt.Sprintf("t-%d-%d", i, j), fmt.Sprintf("s%d", (i+j+1)%90), fmt.Sprintf("s%d", i), "undefined"))
		}
	}
	w = workflow.Of(catalog(tools...))
	svg = string(workflow.SVG(w))
	onlyShapes(t, []byte(svg))
	if n := strings.Count(svg, `class="name"`); n != 91 || !strings.Contains(svg, "Not in this picture: 1,390 arrows") {
		t.Errorf("%d states are shown", n)
	}
	for i := range 90 {
		if !strings.Contains(workflow.Mermaid(w), fmt.Sprintf("--> s%d :", i+1)) {
			t.Errorf("nothing leads to state %d any more", i+1)
		}
	}
}

// WF-2: a workflow need not come from Of.
func TestForeignWorkflow(t *testing.T) {
	for _, w := range []workflow.Workflow{
		{},
		{States: []workflow.Node{{Name: "a"}, {Name: "b"}}, Edges: []workflow.Edge{{From: "a", To: "b"}, {From: "x", To: "a"}, {From: "*", To: "y"}}},
		{Start: "z", States: []workflow.Node{{Name: "a"}, {Name: "a"}}, Edges: []workflow.Edge{{From: "a", To: "a"}, {From: "*", To: "a"}, {From: "*", To: "a"}}},
	} {
		onlyShapes(t, workflow.SVG(w))
		balanced(t, w)
	}
}

// WF-2
func FuzzPictures(f *testing.F) {
	for i, name := range hostile {
		f.Add(name, hostile[(i+3)%len(hostile)], hostile[(i+7)%len(hostile)], uint8(i))
	}
	f.Fuzz(func(t *testing.T, a, b, c string, shape uint8) {
		tools := []quartermaster.Tool{tool(a, b, "undefined"), tool(b, c, b, a), tool(c, a, c), tool(a+b, "undefined", c)}
		if shape&1 != 0 {
			tools = append(tools, tool(b+c, a))
		}
		if shape&2 != 0 {
			tools = append(tools, tool(c+a, a, a), tool("lost", c, "lost"))
		}
		w := workflow.Of(catalog(tools[shape>>2&1:]...))
		onlyShapes(t, workflow.SVG(w))
		balanced(t, w)
	})
}
