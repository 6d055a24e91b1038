package resolve

import (
	"path"
	"slices"
	"strings"
	"testing"

	"quartermaster"
)

const patternProject = `
quartermaster: v1
servers: {s: {transport: stdio, command: x}, st: {transport: stdio, command: x}, t: {transport: stdio, command: x, prefix: false}}
tools:
  a: {}
  ab: {}
  A.b-c_d: {}
  "1": {}
  s__a: {server: s}
  s__ab: {server: s}
  s__s__a: {server: s}
  st__a: {server: st}
  x: {server: t}
  t__y: {server: t}
  s__fake: {}
agents:
  m: {tools: ["*"], aliases: {r: "@s/a", ab: a}}
`

// AGT-2: whatever is written as a pattern, it is read or refused, and visiting
// what it matches finds exactly the tools that it matches, once.
func FuzzPattern(f *testing.F) {
	for _, p := range slices.Concat(patternWords, []string{"@s/[", "@[s]/a", "@st*/?", `@s\/a`, "@s/*/a", "[a-", "é*", "\xff*", "**", "?*[^/]", "@t/t__y", "@t/y", "@t/x"}) {
		f.Add(p)
	}
	catalog := catalogOf(f, []byte(patternProject))
	ix := newIndex(catalog)
	f.Fuzz(func(t *testing.T, text string) {
		p, err := parse(text, nil)
		if _, bad := path.Match(text, "x"); (err != nil) != (bad != nil) {
			t.Fatalf("read with %v, path.Match says %v", err, bad)
		}
		if err != nil {
			return
		}
		visited := map[uint32]int{}
		p.each(ix, func(slot uint32) { visited[slot]++ })
		for _, tool := range catalog.Tools() {
			want := 0
			if p.matches(tool) {
				want = 1
			}
			if got := visited[ix.slotOf(tool)]; got != want {
				t.Errorf("%q visits %s %d times, want %d", text, tool.Name, got, want)
			}
			name := tool.Name
			if strings.HasPrefix(text, "@") {
				name = refOf(tool)
			}
			if ok, _ := path.Match(text, name); ok != p.matches(tool) {
				t.Errorf("%q matches %s: %v, path.Match says %v", text, name, p.matches(tool), ok)
			}
		}
		if n := int(ix.matching([]pattern{p}).GetCardinality()); n != len(visited) {
			t.Errorf("%q matches %d tools, visits %d", text, n, len(visited))
		}
		// As an alias's target it is a name and no pattern.
		alias, err := parse("r", map[string]string{"r": text})
		if err != nil {
			t.Fatal(err)
		}
		tool := catalog.ToolByName(text)
		alias.each(ix, func(slot uint32) {
			if ix.tool(slot) != tool {
				t.Errorf("the target %q means %v, visits %s", text, tool, ix.tool(slot).Name)
			}
		})
		if tool != nil && !alias.matches(tool) {
			t.Errorf("the target %q does not match %s", text, tool.Name)
		}
	})
}

// Invariant 1, CAT-2: whatever name is called, it gets what the list holds under
// one of its names, or nothing.
func FuzzResolveName(f *testing.F) {
	for _, name := range slices.Concat(toolWords, aliasWords, patternWords, []string{"@", "@/", "@s", "@/a", "@s//a", "@t/t__y", "@t/y", "\x00", strings.Repeat("a", 300)}) {
		f.Add(name)
	}
	catalog := catalogOf(f, []byte(patternProject))
	r := New(fixed{catalog}, nil, nil)
	caller := quartermaster.Caller{Project: "default", Agent: "m"}
	res, err := r.Resolve(f.Context(), caller, quartermaster.Question{})
	if err != nil {
		f.Fatal(err)
	}
	meant := map[string]*quartermaster.Tool{}
	for _, tool := range res.Tools {
		real := catalog.ToolByName(cmpOr(tool.Target, tool.Name))
		for _, name := range []string{real.Name, refOf(real)} {
			if name != "" && meant[name] == nil {
				meant[name] = tool
			}
		}
	}
	for _, tool := range res.Tools { // an alias comes before a real name
		meant[tool.Name] = tool
	}
	f.Fuzz(func(t *testing.T, name string) {
		if name == "" {
			return // that is the list
		}
		if got := admit(t, r, caller, name); got != meant[name] {
			t.Errorf("%q gets %+v, want %+v", name, got, meant[name])
		}
		if e := explanation(t, r, caller, name); e.Allowed != (meant[name] != nil) {
			t.Errorf("%q is explained as %+v", name, e)
		}
	})
}
