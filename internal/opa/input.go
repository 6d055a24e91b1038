package opa

import (
	"encoding/binary"
	"sync"

	"github.com/open-policy-agent/opa/v1/ast"

	"quartermaster"
)

// asked is one question with everything that the layers need to answer it.
type asked struct {
	catalog  *quartermaster.Catalog
	caller   quartermaster.Caller
	question quartermaster.Question
	tools    []*quartermaster.Tool
	answer   []quartermaster.Judgment // one for each tool; a layer only takes away
	numbers  []uint32                 // of the tools, at the desk
	era      uint64                   // in which the numbers hold
	room     [4]uint32
	lent     bool // to an evaluation, which may outlive the request
}

// used has questions whose memory can be used again: most are answered in less
// time than it takes to make one.
var used = sync.Pool{New: func() any { return new(asked) }}

// done gives the memory back, unless somebody may still read it.
func (a *asked) done() {
	if !a.lent {
		*a = asked{}
		used.Put(a)
	}
}

// call reports whether a call is meant, not a list.
func (a *asked) call() bool { return a.question.Arguments != nil }

func (a *asked) phase() string {
	if a.call() {
		return "call"
	}
	return "list"
}

// groups are those that count (GATE-4).
func (a *asked) groups() []string {
	if a.caller.Groups == nil {
		return []string{quartermaster.DefaultGroup}
	}
	return a.caller.Groups
}

func (a *asked) state() string {
	if a.caller.State == "" {
		return quartermaster.StateUndefined
	}
	return a.caller.State
}

// input is what policies see of the question (GATE-7), but for the tools. The
// arguments are read only for a rule that looks at them.
func (a *asked) input(arguments bool) ([][2]*ast.Term, error) {
	pairs := make([][2]*ast.Term, 0, 10)
	pairs = append(
		pairs,
		text("user_id", a.caller.User),
		text("agent_id", a.caller.Agent),
		text("action", "execute"),
		text("phase", a.phase()),
		[2]*ast.Term{ast.InternedTerm("groups"), list(a.groups())},
		text("state", a.state()),
		[2]*ast.Term{ast.InternedTerm("depth"), ast.InternedTerm(a.caller.Depth)},
		[2]*ast.Term{ast.InternedTerm("context"), object(text("tenant_id", a.catalog.Project().ID))},
	)
	if arguments && a.call() {
		value, err := valueOf(a.question.Arguments)
		if err != nil {
			return nil, quartermaster.Errorf(quartermaster.CodeInvalidArguments, "the arguments are not JSON")
		}
		pairs = append(pairs, [2]*ast.Term{ast.InternedTerm("arguments"), ast.NewTerm(value)})
	}
	return pairs, nil
}

// aboutTool is the input of a rule that decides on one tool.
func aboutTool(pairs [][2]*ast.Term, name string) ast.Value {
	return ast.NewObject(append(pairs[:len(pairs):len(pairs)], text("tool_name", name))...)
}

// aboutTools is the input of a set rule.
func aboutTools(pairs [][2]*ast.Term, names []string) ast.Value {
	return ast.NewObject(append(pairs[:len(pairs):len(pairs)], [2]*ast.Term{ast.InternedTerm("tools"), list(names)})...)
}

// key is the part of the input that a rule reads, tools apart: questions with
// the same key have the same answer.
func (a *asked) key(b []byte, read fields) []byte {
	if read&fieldUser != 0 {
		b = appendText(b, a.caller.User)
	}
	if read&fieldAgent != 0 {
		b = appendText(b, a.caller.Agent)
	}
	if read&fieldState != 0 {
		b = appendText(b, a.state())
	}
	if read&fieldDepth != 0 {
		b = binary.AppendVarint(b, int64(a.caller.Depth))
	}
	if read&fieldPhase != 0 {
		b = appendText(b, a.phase())
	}
	if read&fieldGroups != 0 {
		if a.caller.Groups == nil {
			return appendText(binary.AppendUvarint(b, 1), quartermaster.DefaultGroup)
		}
		b = binary.AppendUvarint(b, uint64(len(a.caller.Groups)))
		for _, g := range a.caller.Groups {
			b = appendText(b, g)
		}
	}
	return b
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}
