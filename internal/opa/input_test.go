package opa

import (
	"testing"

	"quartermaster"
)

// GATE-7: this is the input, and there is nothing else in it.
func TestInput(t *testing.T) {
	e := open(t, Options{})
	rest := `"user_id": "alice", "agent_id": "coder", "action": "execute", "context": {"tenant_id": "acme"}`
	plain := quartermaster.Caller{Project: "acme", Agent: "coder", User: "alice"}
	full := plain
	full.Groups, full.State, full.Depth = []string{"ops", "*"}, "analysis", 2
	none := plain
	none.Groups = []string{}
	for name, tt := range map[string]struct {
		who   quartermaster.Caller
		ask   quartermaster.Question
		input string
	}{
		"list":      {plain, quartermaster.Question{}, `"phase": "list", "groups": ["default"], "state": "undefined", "depth": 0`},
		"call":      {plain, call(`{"n": 12345678901234567890, "deep": {"a": [null]}}`), `"phase": "call", "groups": ["default"], "state": "undefined", "depth": 0, "arguments": {"n": 12345678901234567890, "deep": {"a": [null]}}`},
		"situation": {full, quartermaster.Question{}, `"phase": "list", "groups": ["ops", "*"], "state": "analysis", "depth": 2`},
		"no groups": {none, call(`{}`), `"phase": "call", "groups": [], "state": "undefined", "depth": 0, "arguments": {}`},
	} {
		t.Run(name, func(t *testing.T) {
			c := catalogOf(t, []string{"a"}, map[string]string{"p": "package quartermaster.tools\n\nallow if input == {" + rest + ", " + tt.input + `, "tool_name": "a"}`})
			if got := judged(t, e, c, tt.who, tt.ask); got != "a" {
				t.Errorf("one tool: the input is another: %q", got)
			}
			c = catalogOf(t, []string{"a", "b"}, map[string]string{"p": "package quartermaster.tools\n\nallowed := {\"a\"} if input == {" + rest + ", " + tt.input + `, "tools": ["a", "b"]}`})
			if got := judged(t, e, c, tt.who, tt.ask); got != "a" {
				t.Errorf("set rule: the input is another: %q", got)
			}
		})
	}
}
