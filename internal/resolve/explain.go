package resolve

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/RoaringBitmap/roaring/v2"

	"quartermaster"
)

// explain asks every gate about every tool in question, also after one has
// refused: what else stands in the way is part of the answer (GATE-9).
func (q *request) explain() (*quartermaster.Resolution, error) {
	asked, ok := q.asked()
	if !ok {
		a := q.answer()
		a.Explanations = []quartermaster.Explanation{q.unknown(q.question.Tool)}
		return &a.Resolution, nil
	}
	passes := make([]set, len(q.resolver.chain))
	for i, g := range q.resolver.chain {
		passed, err := g.pass(q, candidates{q: q, many: asked})
		if err != nil {
			return nil, failedBecause(g.name, err)
		}
		passes[i] = passed
	}
	a := q.answer()
	a.Refusals = q.refusals(asked, passes)
	for it := asked.Iterator(); it.HasNext(); {
		slot := it.Next()
		e := q.explainOne(slot, passes)
		if e.Allowed {
			a.Tools = append(a.Tools, q.reach.view(q.index.tool(slot), slot))
		}
		a.Explanations = append(a.Explanations, e)
	}
	slices.SortFunc(a.Tools, byName)
	slices.SortFunc(a.Explanations, func(x, y quartermaster.Explanation) int {
		return strings.Compare(x.Name+"\x00"+x.Target, y.Name+"\x00"+y.Target)
	})
	return &a.Resolution, nil
}

// failedBecause tells an operator what it is that an engine cannot do.
func failedBecause(name quartermaster.Gate, err error) error {
	e := failed(name, err)
	if said, ok := errors.AsType[*quartermaster.Error](err); ok && said.Code == quartermaster.CodeUnavailable {
		e.Message = fmt.Sprintf("the %s gate cannot answer now: %s", name, said.Message)
	}
	return e
}

// asked is the one tool of the question, or all. An alias is asked about even
// where it has no effect, as when its target is out of reach.
func (q *request) asked() (*roaring.Bitmap, bool) {
	name := q.question.Tool
	if name == "" {
		return q.index.every, true
	}
	slot, ok := q.find(name)
	if target := q.reach.targetOf(name); !ok && target != "" {
		slot, ok = q.index.slot(target)
	}
	return roaring.BitmapOf(slot), ok
}

func (q *request) explainOne(slot uint32, passes []set) quartermaster.Explanation {
	tool := q.index.tool(slot)
	seen := q.reach.view(tool, slot)
	e := quartermaster.Explanation{Name: seen.Name, Target: seen.Target, Allowed: true}
	for i, g := range q.resolver.chain {
		passed := passes[i].has(slot)
		reason := g.reason(q, tool, passed)
		v := quartermaster.GateVerdict{Gate: g.name, Verdict: quartermaster.VerdictPass, Reason: reason}
		if !passed {
			v.Verdict = quartermaster.VerdictRefuse
		}
		if !passed && e.Allowed {
			e.Allowed, e.Gate, e.Reason, e.Remedy = false, g.name, reason, g.remedy(q, tool)
		}
		e.Gates = append(e.Gates, v)
	}
	return e
}

// unknown explains a name that is no tool's.
func (q *request) unknown(name string) quartermaster.Explanation {
	reason, remedy := "no tool of the project has this name, and the agent has no such alias", "look for its name: "+q.command("tools", "list")
	if target := q.reach.targetOf(name); target != "" {
		reason, remedy = fmt.Sprintf("it is an alias of %q, which does not exist", target), "let the alias name a tool that exists"
	}
	return quartermaster.Explanation{
		Name: name, Gate: quartermaster.GateRegistry, Reason: reason, Remedy: remedy,
		Gates: []quartermaster.GateVerdict{{Gate: quartermaster.GateRegistry, Verdict: quartermaster.VerdictRefuse, Reason: reason}},
	}
}
