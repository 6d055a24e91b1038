package main

import (
	"strings"
	"testing"

	"quartermaster"
)

func TestTable(t *testing.T) {
	tb := table{header: []string{"NAME", "DESCRIPTION"}, rows: [][]string{
		{"ü", "a long text\nof two lines, which goes on"}, {"longer", ""},
	}}
	tests := map[int]string{
		0:  "NAME    DESCRIPTION\nü       a long text of two lines, which goes on\nlonger  -\n",
		24: "NAME    DESCRIPTION\nü       a long text of …\nlonger  -\n",
		1:  "NAME    DESCRIPTI…\nü       a long te…\nlonger  -\n",
	}
	for width, want := range tests {
		var b strings.Builder
		if err := tb.write(&b, width); err != nil {
			t.Fatal(err)
		}
		if b.String() != want {
			t.Errorf("width %d:\n%s\nwant\n%s", width, &b, want)
		}
	}
}

// CAT-5: only what is absent is shown as none.
func TestDifferenceLines(t *testing.T) {
	diffs := []quartermaster.Difference{
		{Action: "create", Noun: quartermaster.NounTool, Name: "web_search"},
		{Action: "delete", Noun: quartermaster.NounAgent, Name: "old"},
		{Action: "update", Noun: quartermaster.NounTool, Name: "echo", Fields: map[string]quartermaster.FieldChange{
			"state": {To: "done"}, "enabled": {From: true, To: false}, "groups": {From: []any{"a"}, To: []any{}},
		}},
		{Action: "update", Noun: quartermaster.NounAgent, Name: "a", Fields: map[string]quartermaster.FieldChange{"maxDepth": {From: 3.0, To: 0.0}}},
		{Action: "update", Noun: quartermaster.NounBindings, Name: "writer", Fields: map[string]quartermaster.FieldChange{
			"tools": {From: []any{"a", "b"}, To: []any{"b", "c"}},
		}},
		{Action: "create", Noun: quartermaster.NounGrant, Name: "tool:echo#executor@group:ops#member"},
		{Action: "delete", Noun: quartermaster.NounGrant, Name: "project#admin@user:a@b#c"},
		{Action: "update", Noun: quartermaster.NounPolicy, Name: "access", Fields: map[string]quartermaster.FieldChange{
			"rego": {From: "package a\n", To: "package a\n\nallow := true\n"},
		}},
	}
	var lines []string
	for _, d := range diffs {
		lines = append(lines, differenceLines(d)...)
	}
	want := `+ tool web_search
- agent old
~ tool echo: enabled true → false
~ tool echo: groups ["a"] → []
~ tool echo: state (none) → "done"
~ agent a: maxDepth 3 → 0
~ bindings writer: +c -a
+ grant group:ops#member executor echo
- grant user:a@b#c admin project
~ policy access: 1 line → 3 lines`
	if got := strings.Join(lines, "\n"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
