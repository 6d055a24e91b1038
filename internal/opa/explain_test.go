package opa

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"quartermaster"
)

func write(t testing.TB, dir, name, text string) {
	t.Helper()
	file := filepath.Join(dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	// Written beside and moved, as careful editors do: nobody reads one half.
	if err := os.WriteFile(file+".new", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(file+".new", file); err != nil {
		t.Fatal(err)
	}
}

func whyOf(t testing.TB, e *Engine, c *quartermaster.Catalog, q quartermaster.Question, tool string) (bool, quartermaster.Why) {
	t.Helper()
	q.Explain = true
	said, err := e.Judge(t.Context(), c, caller("alice"), q, []*quartermaster.Tool{c.Tool(tool)})
	if err != nil {
		t.Fatal(err)
	}
	return said[0].Allowed, *said[0].Why
}

// GATE-9: explain names the rule that decides, with file and line, and the line
// that it misses.
func TestExplain(t *testing.T) {
	e := open(t, Options{})
	for name, tt := range map[string]struct {
		policy, tool   string
		question       quartermaster.Question
		reason, remedy string // no remedy: allowed
	}{
		"passes": {
			policy: "default allow := false\n\nallow if {\n\tinput.user_id == \"bob\"\n}\n\nallow if {\n\tinput.user_id == \"alice\"\n}",
			reason: "project policy: allowed by access.rego:9",
		},
		"misses a line": {
			policy: "default allow := false\n\nallow if {\n\tinput.action == \"execute\"\n\tinput.user_id ==   \"bob\"\n\tfalse\n}",
			reason: `project policy: access.rego:5 does not allow it: line 7, input.user_id == "bob", is not true`,
			remedy: "make line 7 of access.rego true for this caller, or change the project's policies",
		},
		"misses a line of a loop": {
			policy: "allow if {\n\tsome g in [\"x\", \"default\"]\n\tg in input.groups\n\tg == \"ops\"\n}",
			reason: `project policy: access.rego:3 does not allow it: line 6, g == "ops", is not true`,
			remedy: "make line 6 of access.rego true for this caller, or change the project's policies",
		},
		"a negation": {
			policy: "allow if not banned[input.user_id]\n\nbanned := {\"alice\"}",
			reason: `project policy: access.rego:3 does not allow it: line 3, not banned[input.user_id], is not true`,
			remedy: "make line 3 of access.rego true for this caller, or change the project's policies",
		},
		"several rules": {
			policy: "allow if input.user_id == \"b\"\nallow if input.user_id == \"c\"\nallow if input.user_id == \"d\"\nallow if input.user_id == \"e\"\nallow if input.user_id == \"f\"",
			reason: `project policy: access.rego:3 does not allow it: line 3, input.user_id == "b", is not true; ` +
				`access.rego:4 does not allow it: line 4, input.user_id == "c", is not true; ` +
				`access.rego:5 does not allow it: line 5, input.user_id == "d", is not true; neither do 2 more rules`,
			remedy: "make line 3 of access.rego true for this caller, or change the project's policies",
		},
		"only a default": {
			policy: "default allow := false",
			reason: "project policy: no rule allows it; default allow := false at access.rego:3",
			remedy: "add a rule to the project's policies",
		},
		"allowed by default": {
			policy: "default allow := true\n\nallow := false if input.user_id == \"bob\"",
			reason: "project policy: allowed by default at access.rego:3",
		},
		"says no": {
			policy: "default allow := true\n\nallow := false if input.user_id == \"alice\"",
			reason: "project policy: access.rego:5 does not allow it: its value is not true",
			remedy: "change the project's policies",
		},
		"says maybe": {
			policy: "allow := \"maybe\"",
			reason: "project policy: access.rego:3 does not allow it: its value is not true",
			remedy: "change the project's policies",
		},
		"else": {
			policy: "allow if {\n\tinput.user_id == \"bob\"\n} else := true if {\n\tinput.user_id == \"alice\"\n}",
			reason: "project policy: allowed by access.rego:5",
		},
		"arguments": {
			policy:   "allow if {\n\tnot input.arguments.force\n}",
			question: call(`{"force": true}`),
			reason:   "project policy: access.rego:3 does not allow it: line 4, not input.arguments.force, is not true",
			remedy:   "make line 4 of access.rego true for this caller, or change the project's policies",
		},
		"in the set": {
			policy: "allowed contains t if {\n\tsome t in input.tools\n\tt == \"zebra\"\n}\n\nallowed contains \"read\" if input.user_id == \"alice\"",
			reason: "project policy: allowed by access.rego:8",
		},
		"not in the set": {
			policy: "allowed contains t if {\n\tsome t in input.tools\n\tt == \"zebra\"\n}\n\nallowed contains \"write\"",
			reason: `project policy: access.rego:3 does not allow it: line 5, t == "zebra", is not true; access.rego:8 does not name it`,
			remedy: "make line 5 of access.rego true for this caller, or change the project's policies",
		},
		"in the set, but not so": {
			policy:   "allowed := {\"read\"}\n\nallow if input.arguments.x == 1",
			question: call(`{"x": 2}`),
			reason:   "project policy: access.rego:5 does not allow it: line 5, input.arguments.x == 1, is not true",
			remedy:   "make line 5 of access.rego true for this caller, or change the project's policies",
		},
		"another query": {
			policy: "permit := true",
			reason: "project policy: nothing defines data.quartermaster.tools.allow: every tool is refused",
			remedy: "define data.quartermaster.tools.allow",
		},
		"of the others": {
			policy: "allowed contains t if {\n\tcount(input.tools) > 1\n\tsome t in input.tools\n}",
			reason: "project policy: access.rego:3 does not allow it: line 4, count(input.tools) > 1, is not true",
			remedy: "make line 4 of access.rego true for this caller, or change the project's policies",
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := catalogOf(t, []string{"read", "write"}, map[string]string{"access": "package quartermaster.tools\n\n" + tt.policy})
			allowed, why := whyOf(t, e, c, tt.question, "read")
			if allowed != (tt.remedy == "") || why.Reason != tt.reason || why.Remedy != tt.remedy {
				t.Errorf("%t\n%s\n%s\nwant\n%s\n%s", allowed, why.Reason, why.Remedy, tt.reason, tt.remedy)
			}
		})
	}
}

// GATE-9: where a query is likely mistaken, the words say what it should be.
func TestExplainQuery(t *testing.T) {
	e := open(t, Options{})
	c := catalogOf(t, []string{"read"}, map[string]string{"sample": mustRead(t, "testdata/soma.rego")})
	_, why := whyOf(t, e, c, quartermaster.Question{}, "read")
	const want = "project policy: nothing defines data.quartermaster.tools.allow: every tool is refused; the policies define data.soma.tools.allow: set policyQuery to it"
	if why.Reason != want {
		t.Error(why.Reason)
	}
}

// POL-1: a tool must pass the house and the project; neither can widen the
// other, and explain names the one that refuses.
func TestLayers(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "base.rego", "package quartermaster.tools\n\ndefault allow := false\n\nallow if input.tool_name != data.limits.never\n")
	write(t, dir, "limits/data.yaml", "never: shell\n")
	e := open(t, Options{Path: dir})
	bare := catalogOf(t, []string{"read", "shell", "write"}, nil)
	if got := judged(t, e, bare, caller("alice"), quartermaster.Question{}); got != "read write" {
		t.Errorf("house alone: %q", got)
	}
	// The same package and rule as the house has, and its data: no way in.
	c := withPolicy(t, bare, "wide", "package quartermaster.tools\n\nallow if input.tool_name in [\"read\", \"shell\"]\n")
	c = withPolicy(t, c, "data", "package limits\n\nnever := \"nothing\"\n")
	for _, q := range []quartermaster.Question{{}, call(`{}`), {Explain: true}} {
		if got := judged(t, e, c, caller("alice"), q); got != "read" {
			t.Errorf("both: %q", got)
		}
	}
	for tool, want := range map[string]string{
		"read":  "house policy: allowed by base.rego:5; project policy: allowed by wide.rego:3",
		"shell": "house policy: base.rego:5 does not allow it: line 5, input.tool_name != data.limits.never, is not true",
		"write": `project policy: wide.rego:3 does not allow it: line 3, input.tool_name in ["read", "shell"], is not true`,
	} {
		if _, why := whyOf(t, e, c, quartermaster.Question{}, tool); why.Reason != want {
			t.Errorf("%s: %s", tool, why.Reason)
		} else if tool == "shell" && !strings.HasSuffix(why.Remedy, "or change the house policy") {
			t.Error(why.Remedy)
		}
	}
	if s := e.Status(); s.Detail != "OPA v1.22.0 embedded; house policy: 1 file in "+dir || s.Trouble != "" || !s.Ready() {
		t.Errorf("%+v", s)
	}
}
