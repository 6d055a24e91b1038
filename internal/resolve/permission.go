package resolve

import (
	"fmt"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"quartermaster"
)

// permission asks whether the user may execute the tools (GATE-6). What a call
// says in its arguments is no part of the question.
func permission(q *request, c candidates) (set, error) {
	return q.judge(quartermaster.GatePermission, q.resolver.permission, c, q.listing())
}

// listing is the question as a list asks it. Asked in the same words, an engine
// cannot give a call what it does not give the list.
func (q *request) listing() quartermaster.Question {
	return quartermaster.Question{Explain: q.question.Explain}
}

// judged is what an engine said of each tool that it was asked about.
type judged struct {
	slots     []uint32 // ascending
	judgments []quartermaster.Judgment
}

// judge asks an engine about all candidates at once: each question in turn, and
// a tool must pass them all.
func (q *request) judge(name quartermaster.Gate, judge quartermaster.Judge, c candidates, questions ...quartermaster.Question) (set, error) {
	slots, tools := c.each()
	if len(tools) == 0 {
		return set{}, nil
	}
	judgments := make([]quartermaster.Judgment, len(tools))
	for n, question := range questions {
		said, err := q.ask(judge, question, tools)
		if err != nil {
			return set{}, err
		}
		for i, j := range said {
			if n == 0 || judgments[i].Verdict == quartermaster.VerdictPass {
				judgments[i] = j
			}
		}
	}
	if q.judged == nil {
		q.judged = map[quartermaster.Gate]judged{}
	}
	q.judged[name] = judged{slots, judgments}
	passed := roaring.New()
	for i, j := range judgments {
		if j.Verdict == quartermaster.VerdictPass {
			passed.Add(slots[i])
		}
	}
	return set{one: passed}, nil
}

func (q *request) ask(judge quartermaster.Judge, question quartermaster.Question, tools []*quartermaster.Tool) ([]quartermaster.Judgment, error) {
	said, err := judge.Judge(q.ctx, q.caller, question, tools)
	if err == nil {
		err = q.ctx.Err() // what comes too late may no longer be true
	}
	if err == nil && len(said) != len(tools) {
		err = fmt.Errorf("asked about %d tools, answered for %d", len(tools), len(said))
	}
	return said, err
}

// judgedReason repeats what the engine said.
func judgedReason(name quartermaster.Gate) func(*request, *quartermaster.Tool, bool) string {
	return func(q *request, tool *quartermaster.Tool, passed bool) string {
		said := q.judgment(name, tool).Reason
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
	return func(q *request, tool *quartermaster.Tool) string { return q.judgment(name, tool).Remedy }
}

// judgment is what an engine said of a tool; the zero one if it was not asked.
func (q *request) judgment(name quartermaster.Gate, tool *quartermaster.Tool) quartermaster.Judgment {
	said := q.judged[name]
	if at, ok := slices.BinarySearch(said.slots, q.index.slotOf(tool)); ok {
		return said.judgments[at]
	}
	return quartermaster.Judgment{}
}
