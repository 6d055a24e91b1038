package quartermaster

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
)

// answers is a Resolver by hand: what it says with and without arguments.
type answers struct{ list, call Gate } // "": admitted; "unknown": no such tool

func (a answers) Resolve(_ context.Context, _ Caller, q Question) (*Resolution, error) {
	gate := a.list
	if q.Arguments != nil && gate == "" {
		gate = a.call
	}
	switch gate {
	case "broken":
		return nil, errors.New("broken")
	case "unknown":
		return &Resolution{}, nil
	case "":
		return &Resolution{Tools: []*Tool{{Name: q.Tool}}}, nil
	}
	return &Resolution{Refusals: func(yield func(*Tool, Refusal) bool) { yield(&Tool{Name: q.Tool}, Refusal{Gate: gate, Reason: "why"}) }}, nil
}

// GATE-8: unknown and hidden tools cannot be told apart; permission_denied is
// said only of a tool that the caller can know.
func TestAdmit(t *testing.T) {
	for _, tt := range []struct {
		name  string
		r     answers
		given bool
		code  Code // "": admitted
	}{
		{"admitted", answers{}, false, ""},
		{"unknown", answers{list: "unknown"}, false, CodeToolNotFound},
		{"disabled", answers{list: GateRegistry}, true, CodeToolNotFound},
		{"out of reach", answers{list: GateCapsule}, true, CodeToolNotFound},
		{"too deep", answers{list: GateDepth}, true, CodeToolNotFound},
		{"other group", answers{list: GateGroup}, true, CodeToolNotFound},
		{"other state", answers{list: GateState}, true, CodeToolNotFound},
		{"never permitted", answers{list: GatePermission}, false, CodeToolNotFound},
		{"permitted once", answers{list: GatePermission}, true, CodePermissionDenied},
		{"against policy", answers{list: GatePolicy}, false, CodeToolNotFound},
		{"against policy with these arguments", answers{call: GatePolicy}, false, CodePermissionDenied},
		{"broken", answers{list: "broken"}, false, CodeInternal},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tool, _, err := Admit(t.Context(), tt.r, Caller{}, Call{Tool: "x", Arguments: json.RawMessage(`{}`)}, tt.given)
			if tt.code == "" {
				if err != nil || tool.Name != "x" {
					t.Errorf("%v, %v", tool, err)
				}
				return
			}
			if tool != nil || CodeOf(err) != tt.code {
				t.Errorf("%v, %v; want %s", tool, err, tt.code)
			}
			if tt.code == CodeToolNotFound && err.Error() != "tool not found: x" {
				t.Errorf("said %q", err)
			}
		})
	}
}

// GATE-8: no name is no tool's name, and never the first of a list.
func TestAdmitNoName(t *testing.T) {
	tool, _, err := Admit(t.Context(), answers{}, Caller{}, Call{}, true)
	if tool != nil || CodeOf(err) != CodeToolNotFound {
		t.Errorf("%v, %v", tool, err)
	}
}
