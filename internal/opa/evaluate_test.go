package opa

import (
	"context"
	"strings"
	"testing"
	"time"

	"quartermaster"
)

// GATE-7: where a set rule is offered it answers the list; a call must be in the
// set and pass allow with its arguments, where that is defined.
func TestSetRule(t *testing.T) {
	e := open(t, Options{})
	const set = "package quartermaster.tools\n\nallowed contains t if { some t in input.tools; t != \"c\" }\n\nallowed contains \"stranger\"\n"
	for name, tt := range map[string]struct{ policy, list, call, other string }{
		"alone":       {set, "a b", "a b", "a b"},
		"with allow":  {set + "allow if { input.arguments.x == 1; input.tool_name != \"a\" }", "a b", "b", ""},
		"no set":      {"package quartermaster.tools\n\nallowed := \"a\"", "", "", ""},
		"no names":    {"package quartermaster.tools\n\nallowed := {1, {\"a\"}, \"b\"}", "b", "b", "b"},
		"undefined":   {"package quartermaster.tools\n\nallowed := {\"a\"} if input.user_id == \"bob\"\n\nallow := true", "", "", ""},
		"an object":   {"package quartermaster.tools\n\nallowed[t] if some t in input.tools", "", "", ""},
		"in v0":       {"package quartermaster.tools\n\nallowed[t] { t = input.tools[_]; t != \"b\" }", "a c", "a c", "a c"},
		"of the call": {"package quartermaster.tools\n\nallowed contains t if { some t in input.tools; not input.arguments.x }", "a b c", "", "a b c"},
	} {
		t.Run(name, func(t *testing.T) {
			c := catalogOf(t, []string{"a", "b", "c"}, map[string]string{"p": tt.policy})
			for range 2 { // the second time from memory
				for want, q := range map[string]quartermaster.Question{"list " + tt.list: {}, "call " + tt.call: call(`{"x":1}`), "other " + tt.other: call(`{"y":1}`)} {
					word, names, _ := strings.Cut(want, " ")
					if got := judged(t, e, c, caller("alice"), q); got != names {
						t.Errorf("%s: %q passes, want %q", word, got, names)
					}
				}
			}
		})
	}
}

// GATE-1: what is not a clear yes refuses; what cannot be evaluated fails the
// request, and asked about no tool it fails as well.
func TestFailsClosed(t *testing.T) {
	e := open(t, Options{Timeout: time.Minute})
	const head = "package quartermaster.tools\n\n"
	for name, policy := range map[string]string{
		"undefined":      head + "allow if input.user_id == \"nobody\"",
		"false":          head + "allow := false",
		"not boolean":    head + "allow := \"true\"",
		"number":         head + "allow := 1",
		"set":            head + "allow := {\"a\"}",
		"another rule":   head + "permit := true",
		"another module": "package elsewhere\n\nallow := true",
	} {
		c := catalogOf(t, []string{"a"}, map[string]string{"p": policy})
		for _, q := range []quartermaster.Question{{}, call(`{}`), {Explain: true}} {
			if got := judged(t, e, c, caller("alice"), q); got != "" {
				t.Errorf("%s: %q passes", name, got)
			}
		}
	}
	for name, tt := range map[string]struct{ policy, says string }{
		"does not parse":     {head + "allow if {", "does not compile"},
		"does not compile":   {head + "allow if missing(input)", "does not compile"},
		"a function fails":   {head + "allow if not bad\n\nbad if to_number(input.user_id) > 1", "failed"},
		"rules contradict":   {head + "allow := true if input.action\n\nallow := false if input.phase", "failed"},
		"supplied data":      {"package tools\n\nallow := true", "does not compile"},
		"http.send":          {head + "allow if http.send({\"method\": \"get\", \"url\": \"http://localhost\"})", "does not compile"},
		"its own runtime":    {head + "allow if opa.runtime().env", "does not compile"},
		"in the set rule":    {head + "allowed contains t if { some t in input.tools; to_number(t) == 1 }", "failed"},
		"names in a schema":  {head + "allow if json.match_schema({}, {\"$ref\": \"http://127.0.0.1:1/x.json\"})[0]", "failed"},
		"needs the resolver": {head + "allow if net.lookup_ip_addr(\"localhost\")", "does not compile"},
	} {
		mustFail(t, e, name, tt.policy, tt.says)
	}
	short := open(t, Options{Timeout: 50 * time.Millisecond})
	mustFail(t, short, "runs away", runaway, "was cut after")
}

// mustFail asks in every way whether a policy makes requests fail.
func mustFail(t *testing.T, e *Engine, name, policy, says string) {
	t.Helper()
	c := catalogOf(t, []string{"a"}, map[string]string{"p": policy})
	for _, q := range []quartermaster.Question{{}, call(`{}`), {Explain: true}} {
		for _, tools := range [][]*quartermaster.Tool{c.Tools(), nil} {
			said, err := e.Judge(t.Context(), c, caller("alice"), q, tools)
			if said != nil || quartermaster.CodeOf(err) != quartermaster.CodeUnavailable || !strings.Contains(err.Error(), says) {
				t.Errorf("%s, %d tools: %v, %v; want %q", name, len(tools), said, err, says)
			}
		}
	}
}

// GATE-1: a question that is given up fails; so does one whose arguments are no
// JSON, where the policy looks at them.
func TestGivenUp(t *testing.T) {
	e := open(t, Options{})
	c := catalogOf(t, []string{"a"}, map[string]string{"p": "package quartermaster.tools\n\nallow if not input.arguments.x"})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := e.Judge(ctx, c, caller("alice"), quartermaster.Question{}, c.Tools()); quartermaster.CodeOf(err) != quartermaster.CodeUnavailable {
		t.Error(err)
	}
	if _, err := e.Judge(t.Context(), c, caller("alice"), call(`{"x":`), c.Tools()); quartermaster.CodeOf(err) != quartermaster.CodeUnavailable {
		t.Error(err)
	}
}
