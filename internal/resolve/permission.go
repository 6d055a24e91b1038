package resolve

import (
	"context"
	"fmt"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"quartermaster"
)

// permission asks whether the user may execute the tools (GATE-6). What a call
// says in its arguments is no part of the question.
func permission(q *request, c candidates) (set, error) {
	return q.judge(quartermaster.GatePermission, c, q.listing())
}

// listing is the question as a list asks it. Asked in the same words, an engine
// cannot give a call what it does not give the list.
func (q *request) listing() quartermaster.Question {
	return quartermaster.Question{Explain: q.question.Explain}
}

// judged is what an engine said of each tool that it was asked about.
type judged struct {
	gate      quartermaster.Gate
	slots     []uint32 // ascending
	judgments []quartermaster.Judgment
}

// judges are the engines behind the gates that have one.
func (r *Resolver) judges(yield func(quartermaster.Gate, quartermaster.Judge) bool) {
	if r.permission != nil && !yield(quartermaster.GatePermission, r.permission) {
		return
	}
	if r.policy != nil {
		yield(quartermaster.GatePolicy, r.policy)
	}
}

func (r *Resolver) judgeOf(name quartermaster.Gate) quartermaster.Judge {
	for gate, judge := range r.judges {
		if gate == name {
			return judge
		}
	}
	return nil
}

// judge asks a gate's engine about all candidates at once: each question in
// turn, and a tool must pass them all.
func (q *request) judge(name quartermaster.Gate, c candidates, questions ...quartermaster.Question) (set, error) {
	slots, tools := c.each()
	if len(tools) == 0 {
		return set{}, nil
	}
	var judgments []quartermaster.Judgment
	for _, question := range questions {
		said, err := consult(q.ctx, q.resolver.judgeOf(name), q.index.catalog, q.caller, question, tools)
		if err != nil {
			return set{}, err
		}
		if judgments == nil {
			judgments = said
			continue
		}
		for i := range said {
			if judgments[i].Allowed {
				judgments[i] = said[i]
			}
		}
	}
	q.judged = append(q.judged, judged{name, slots, judgments})
	return allowed(slots, judgments), nil
}

// consult lets no answer count that is late, short or long.
func consult(ctx context.Context, judge quartermaster.Judge, catalog *quartermaster.Catalog, caller quartermaster.Caller, question quartermaster.Question, tools []*quartermaster.Tool) ([]quartermaster.Judgment, error) {
	said, err := judge.Judge(ctx, catalog, caller, question, tools)
	if err == nil {
		err = ctx.Err() // what comes too late may no longer be true
	}
	if err == nil && len(said) != len(tools) {
		err = fmt.Errorf("asked about %d tools, answered for %d", len(tools), len(said))
	}
	return said, err
}

// allowed are those of slots, which ascend, that a judgment lets through. All of
// them is a set that costs nothing: nobody asks it about others.
func allowed(slots []uint32, judgments []quartermaster.Judgment) set {
	n := 0
	for i := range judgments {
		if judgments[i].Allowed {
			n++
		}
	}
	if n == len(slots) {
		return set{all: true}
	}
	passed := make([]uint32, 0, n)
	for i := range judgments {
		if judgments[i].Allowed {
			passed = append(passed, slots[i])
		}
	}
	m := roaring.New()
	m.AddMany(passed)
	return set{one: m}
}

// answerable fails where an engine that was not asked could not have answered.
// A tool that is hidden by an earlier gate, or unknown, would otherwise be told
// from the others by being missing while they are unavailable (GATE-8).
func (q *request) answerable() error {
	for name, judge := range q.resolver.judges {
		if slices.ContainsFunc(q.judged, func(j judged) bool { return j.gate == name }) {
			continue
		}
		if _, err := consult(q.ctx, judge, q.index.catalog, q.caller, q.listing(), nil); err != nil {
			return failed(name, err)
		}
	}
	return nil
}

// judgedReason repeats what the engine said.
func judgedReason(name quartermaster.Gate) func(*request, *quartermaster.Tool, bool) string {
	return func(q *request, tool *quartermaster.Tool, passed bool) string {
		said := q.why(name, tool).Reason
		switch {
		case said != "":
			return said
		case passed:
			return fmt.Sprintf("the %s engine allows it", name)
		}
		return fmt.Sprintf("the %s engine refuses it", name)
	}
}

func judgedRemedy(name quartermaster.Gate) func(*request, *quartermaster.Tool) string {
	return func(q *request, tool *quartermaster.Tool) string { return q.why(name, tool).Remedy }
}

// why is what an engine said of a tool; nothing if it was not asked.
func (q *request) why(name quartermaster.Gate, tool *quartermaster.Tool) quartermaster.Why {
	for _, said := range q.judged {
		if at, ok := slices.BinarySearch(said.slots, q.index.slotOf(tool)); ok && said.gate == name && said.judgments[at].Why != nil {
			return *said.judgments[at].Why
		}
	}
	return quartermaster.Why{}
}
