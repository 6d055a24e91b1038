package quartermaster

import (
	"context"
	"encoding/json"
	"iter"
	"slices"
)

// Gate names one check of the decision. The name is also its file, its metric
// label and its word in audit and explain.
type Gate string

// The gates, in the order in which they are asked.
const (
	GateRegistry   Gate = "registry"
	GateCapsule    Gate = "capsule"
	GateDepth      Gate = "depth"
	GateGroup      Gate = "group"
	GateState      Gate = "state"
	GatePermission Gate = "permission"
	GatePolicy     Gate = "policy"
)

// Question is what a Resolver is asked. The zero Question asks for the list.
type Question struct {
	// Tool asks for one tool by the name that the caller used for it.
	Tool string
	// Arguments are those of the call, {} where it has none; a policy may be
	// narrower with them than without, never wider. nil: no call is meant, the
	// answer is the list's.
	Arguments json.RawMessage
	// Explain asks for every gate's verdict, of one tool or of all. It is a
	// question of operators: agents must not see the answer.
	Explain bool
}

// Resolution answers a Question.
type Resolution struct {
	// Tools passed every gate, ordered by the name under which the caller sees
	// them. Asked for one tool: that one, or none.
	Tools []*Tool
	// Refusals yields every other tool of the project with the first gate that
	// refused it. Asked for one tool: that one, if it exists and was refused.
	Refusals iter.Seq2[*Tool, Refusal]
	// Filtered gives at most so many of the tools that passed every gate before
	// this one and were refused by it, by name, and how many there are in all.
	// Only a list knows; it costs as much as the agent reaches.
	Filtered func(gate Gate, most int) (tools []*Tool, total int)
	// Explanations are there if the question asked for them, by name.
	Explanations []Explanation
	// Groups are those that counted: the requested ones, or the implied default.
	Groups   []string
	State    string
	Revision int64
	Warnings []string
}

// Refusal is why a tool is not available.
type Refusal struct {
	Gate   Gate
	Reason string
}

// Admit asks for one tool by name, for a call, and returns it or the error that
// the caller may hear (GATE-8). An agent hears the same of a tool that does not
// exist and of one that is hidden from it; only of a tool that it can know does
// it hear that it may not use it so. given says that its session was given the
// tool before.
func Admit(ctx context.Context, r Resolver, caller Caller, call Call, given bool) (*Tool, *Resolution, error) {
	notFound := Errorf(CodeToolNotFound, "tool not found: %s", call.Tool)
	if call.Tool == "" {
		return nil, &Resolution{}, notFound // no name would ask for the list
	}
	arguments := call.Arguments
	if arguments == nil {
		arguments = json.RawMessage(`{}`) // a call without any is a call all the same
	}
	res, err := r.Resolve(ctx, caller, Question{Tool: call.Tool, Arguments: arguments})
	if err != nil {
		return nil, nil, err
	}
	if len(res.Tools) > 0 {
		return res.Tools[0], res, nil
	}
	if !res.refusedBy(GatePermission, GatePolicy) {
		return nil, res, notFound
	}
	if !given {
		listed, err := r.Resolve(ctx, caller, Question{Tool: call.Tool})
		if err != nil {
			return nil, nil, err
		}
		if len(listed.Tools) == 0 {
			return nil, res, notFound
		}
	}
	return nil, res, Errorf(CodePermissionDenied, "permission denied: %s", call.Tool)
}

func (r *Resolution) refusedBy(gates ...Gate) bool {
	if r.Refusals == nil {
		return false
	}
	for _, refusal := range r.Refusals {
		return slices.Contains(gates, refusal.Gate)
	}
	return false
}

// Explanation is what the gates say of one tool, in words (GATE-9).
type Explanation struct {
	Name    string        `json:"name" doc:"As the caller sees it"`
	Target  string        `json:"target,omitempty" doc:"Real name, where Name is an alias"`
	Allowed bool          `json:"allowed"`
	Gate    Gate          `json:"gate,omitempty" doc:"The first gate that refuses it"`
	Reason  string        `json:"reason,omitempty" doc:"Why that gate refuses it"`
	Remedy  string        `json:"remedy,omitempty" doc:"What would let it through that gate"`
	Gates   []GateVerdict `json:"gates"`
}

// GateVerdict is one gate's verdict on one tool.
type GateVerdict struct {
	Gate    Gate    `json:"gate"`
	Verdict Verdict `json:"verdict" enum:"pass,refuse"`
	Reason  string  `json:"reason"`
}

// Verdict is what a gate says. Only VerdictPass lets a tool through: the zero
// Verdict refuses.
type Verdict string

// The verdicts.
const (
	VerdictPass   Verdict = "pass"
	VerdictRefuse Verdict = "refuse"
)

// Judge is a gate whose answer comes from an engine of its own.
type Judge interface {
	// Judge is asked in bulk and answers with one verdict per tool, in their
	// order. An error, or an answer of another length, fails the whole request.
	// The tools are catalog's. Asked about none, it fails where it could not
	// answer for the caller now: whether an engine is down must not tell an
	// agent which tools there are.
	Judge(ctx context.Context, catalog *Catalog, caller Caller, question Question, tools []*Tool) ([]Judgment, error)

	// Suppose returns a judge of a catalog that may never come to be. What is
	// served is not touched by it. It is closed by whoever asked for it.
	Suppose(ctx context.Context, catalog *Catalog) (judge Judge, close func(), err error)
}

// Judgment is a Judge's verdict on one tool. The zero one refuses.
type Judgment struct {
	Allowed bool
	Why     *Why // if the question asked for an explanation
}

// Why is the reason for a verdict, and what would change it.
type Why struct{ Reason, Remedy string }
