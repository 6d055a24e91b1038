package opa

import (
	"slices"
	"strings"
	"testing"

	"quartermaster"
)

// A judge of what might be has the policies of its own catalog and leaves what
// is served alone.
func TestSuppose(t *testing.T) {
	e := open(t, Options{})
	c := catalogOf(t, []string{"a", "b"}, map[string]string{"p": "package quartermaster.tools\n\nallow if input.tool_name == \"a\""})
	judged(t, e, c, caller("alice"), quartermaster.Question{})
	served, used := *e.desk("acme").rulings.Load(), e.memory.used.Load()

	after := withPolicy(t, c, "q", "package quartermaster.tools\n\nallow if input.tool_name == \"b\"")
	supposed, done, err := e.Suppose(t.Context(), after)
	if err != nil {
		t.Fatal(err)
	}
	defer done()
	if got := judged(t, supposed, after, caller("alice"), quartermaster.Question{}); got != "a b" {
		t.Errorf("supposed: %q", got)
	}
	if got := judged(t, e, c, caller("alice"), quartermaster.Question{}); got != "a" {
		t.Errorf("served: %q", got)
	}
	if now := *e.desk("acme").rulings.Load(); !slices.Equal(now, served) || e.memory.used.Load() != used {
		t.Error("what is served was touched")
	}
	_, _, err = e.Suppose(t.Context(), withPolicy(t, c, "q", "package quartermaster.tools\n\nallow if {"))
	if quartermaster.CodeOf(err) != quartermaster.CodeInvalidRequest || !strings.Contains(err.Error(), "policies.q:3") {
		t.Error(err)
	}
}
