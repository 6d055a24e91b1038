package opa

import (
	"testing"

	"quartermaster"
)

// GATE-7: the sample of the product's own documents runs as it is written, with
// its own package as the query and user_has_role from the shipped companion.
func TestSample(t *testing.T) {
	e := open(t, Options{})
	c := catalogOf(t, []string{"read", "write"}, map[string]string{"sample": mustRead(t, "testdata/soma.rego")})
	if got := judged(t, e, c, caller("alice"), quartermaster.Question{}); got != "" {
		t.Errorf("nothing defines the default query, yet %q passes", got)
	}
	c = withQuery(t, c, "data.soma.tools.allow")
	if got := judged(t, e, c, caller("alice"), quartermaster.Question{}); got != "" {
		t.Errorf("alice has no role, yet %q passes", got)
	}
	c = withRolesOf(t, c, "alice", "reader", "tool_user")
	for _, q := range []quartermaster.Question{{}, call(`{}`), {Explain: true}} {
		if got := judged(t, e, c, caller("alice"), q); got != "read write" {
			t.Errorf("%+v: %q passes", q, got)
		}
		if got := judged(t, e, c, caller("bob"), q); got != "" {
			t.Errorf("%+v: %q passes for bob", q, got)
		}
	}
	c = edit(t, c, func(d *quartermaster.Draft) error {
		_, err := d.UpdateTool("write", func(tool *quartermaster.Tool) error { tool.Enabled = false; return nil })
		return err
	})
	if got := judged(t, e, c, caller("alice"), quartermaster.Question{}); got != "read" {
		t.Errorf("write is disabled: %q passes", got)
	}
}

// GATE-7: the companion stands aside where policies have a user_has_role of
// their own.
func TestSampleWithItsOwnRoles(t *testing.T) {
	e := open(t, Options{})
	c := catalogOf(t, []string{"read"}, map[string]string{
		"sample": mustRead(t, "testdata/soma.rego"),
		"roles":  "package soma.tools\n\nuser_has_role := {\"bob\": {\"tool_user\": true}}\n",
	})
	c = withRolesOf(t, withQuery(t, c, "data.soma.tools.allow"), "alice", "tool_user")
	if judged(t, e, c, caller("alice"), quartermaster.Question{}) != "" || judged(t, e, c, caller("bob"), quartermaster.Question{}) != "read" {
		t.Error("the companion was asked")
	}
}

// GATE-7: modules compile together, each in its own version of Rego.
func TestVersions(t *testing.T) {
	e := open(t, Options{})
	c := catalogOf(t, []string{"a", "b", "c"}, map[string]string{
		"new": "package quartermaster.tools\n\nallow if data.lib.old[input.tool_name]\n\nallow if input.tool_name in data.lib.words\n",
		"old": "package lib\n\nold[name] { name = \"a\"; any([true, false]) }\n",
		"mid": "package lib\n\nimport rego.v1\n\nwords contains \"c\"\n",
	})
	if got := judged(t, e, c, caller("alice"), quartermaster.Question{}); got != "a c" {
		t.Errorf("%q passes", got)
	}
}
