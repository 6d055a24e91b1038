package main

import (
	"strings"
	"testing"

	"quartermaster"
)

const sample = `quartermaster: v1
tools:
  web_search:
    groups:
      - web
      - ""
  a.b: {groups: [x], inputSchema: {type: object}}
agents:
  team/a b: &team
    tools: ["*"]
  other: *team
`

// CAT-5: the error names file, entry and field.
func TestLocate(t *testing.T) {
	d, err := parseDocument("f.yaml", []byte(sample))
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]string{
		"body":                            "f.yaml:1",
		"body.quartermaster":              "f.yaml:1: quartermaster",
		"body.tools.web_search":           "f.yaml:3: tools.web_search",
		"body.tools.web_search.groups":    "f.yaml:4: tools.web_search.groups",
		"body.tools.web_search.groups[1]": "f.yaml:6: tools.web_search.groups[1]",
		"body.tools.web_search.server":    "f.yaml:3: tools.web_search.server",
		"body.tools.a.b.groups[0]":        "f.yaml:7: tools.a.b.groups[0]",
		"body.agents.team/a b.tools[0]":   "f.yaml:10: agents.team/a b.tools[0]",
		"body.agents.other.tools[0]":      "f.yaml:10: agents.other.tools[0]",
		"body.nothing.like[3].it":         "f.yaml:1: nothing.like[3].it",
		"query.dryRun":                    "query.dryRun",
		"bodyguard":                       "bodyguard",
	}
	for location, want := range tests {
		if got := d.locate(location); got != want {
			t.Errorf("%s: got %q, want %q", location, got, want)
		}
	}
}

func TestMergeDocuments(t *testing.T) {
	merge := func(files ...string) (document, error) {
		var docs []document
		for i, text := range files {
			d, err := parseDocument(string(rune('a'+i))+".yaml", []byte(text))
			if err != nil {
				t.Fatal(err)
			}
			docs = append(docs, d)
		}
		return mergeDocuments(docs)
	}
	d, err := merge("quartermaster: v1\ntools:\n  a: {}\nservers:\n", "quartermaster: v1\ntools:\n  b: {}\nagents: {x: {}}\n")
	if err != nil {
		t.Fatal(err)
	}
	body, _ := d.json()
	if want := `{"quartermaster":"v1","tools":{"a":{},"b":{}},"agents":{"x":{}}}`; string(body) != want {
		t.Errorf("got %s, want %s", body, want)
	}
	if got := d.locate("body.tools.b"); got != "b.yaml:3: tools.b" {
		t.Errorf("got %s", got)
	}

	// PERM-2: grants are a list, which goes on in the next file.
	d, err = merge("quartermaster: v1\ngrants:\n  - {subject: a}\n  - {subject: b}\n", "grants:\npolicies: {x: {rego: p}}\n", "grants: [{subject: c}]\npolicies:\n  y: {rego: p}\n")
	if err != nil {
		t.Fatal(err)
	}
	body, _ = d.json()
	if want := `{"quartermaster":"v1","grants":[{"subject":"a"},{"subject":"b"},{"subject":"c"}],"policies":{"x":{"rego":"p"},"y":{"rego":"p"}}}`; string(body) != want {
		t.Errorf("got %s, want %s", body, want)
	}
	for location, want := range map[string]string{
		"body.grants[1].subject": "a.yaml:4: grants[1].subject", "body.grants[2].subject": "c.yaml:1: grants[2].subject", "body.policies.y:7": "c.yaml:3: policies.y:7",
	} {
		if got := d.locate(location); got != want {
			t.Errorf("%s: got %s, want %s", location, got, want)
		}
	}

	refused := map[string]struct{ a, b, want string }{
		"policy twice":    {"policies:\n  x: {}\n", "policies:\n  x: {}\n", "b.yaml:2: policies.x: stands in a.yaml:2 already"},
		"no list":         {"grants: []\n", "grants: {}\n", "b.yaml:1: grants: must be a list"},
		"entry twice":     {"tools:\n  x: {}\n", "tools:\n  y: {}\n  x: {}\n", "b.yaml:3: tools.x: stands in a.yaml:2 already"},
		"binding twice":   {"bindings:\n  x: [a]\n", "bindings:\n  x: [a]\n", "b.yaml:2: bindings.x: stands in a.yaml:2 already"},
		"project twice":   {"project: {}\n", "project: {}\n", "b.yaml:1: project: stands in a.yaml:1 already"},
		"other version":   {"quartermaster: v1\n", "\nquartermaster: v2\n", "b.yaml:2: quartermaster: another version than in a.yaml:1"},
		"no mapping":      {"tools: {}\n", "tools: [x]\n", "b.yaml:1: tools: must be a mapping"},
		"unknown section": {"tolls: {}\n", "tolls: {}\n", "b.yaml:1: tolls: stands in a.yaml:1 already"},
	}
	for name, tt := range refused {
		t.Run(name, func(t *testing.T) {
			_, err := merge(tt.a, tt.b)
			if quartermaster.CodeOf(err) != quartermaster.CodeInvalidRequest || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %s", err, tt.want)
			}
		})
	}
}
