package opa

import (
	"bytes"
	"context"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"
	"github.com/open-policy-agent/opa/v1/topdown"

	"quartermaster"
)

// judge asks the rules that decide: of a list the set rule if there is one, of
// a call both.
func (r *ruling) judge(ctx context.Context, a *asked) error {
	if r.allow == nil && r.allowed == nil {
		for _, position := range a.positions() {
			a.answer[position] = quartermaster.Judgment{}
		}
		return nil
	}
	if r.allowed != nil {
		if err := r.ask(ctx, a, r.allowed); err != nil {
			return err
		}
	}
	if r.allow != nil && (r.allowed == nil || a.call()) {
		return r.ask(ctx, a, r.allow)
	}
	return nil
}

func (r *ruling) name() string { return r.policy.layer }

// kept reports whether the answer holds for every question with the same key.
func (r *ruling) kept(one *rule, a *asked) bool {
	reads := &one.reads
	return !reads.volatile && (!a.call() || reads.fields&fieldArguments == 0) && (one != r.allowed || reads.apart)
}

// ask takes from the answer what a rule refuses: what is known of it first, the
// rest by evaluation.
func (r *ruling) ask(ctx context.Context, a *asked, one *rule) error {
	var room [192]byte
	var key []byte
	var unknown []int
	kept := r.kept(one, a)
	if kept {
		key = a.key(room[:0], one.reads.fields)
		r.desk.mu.RLock()
		if kept = a.era == r.desk.era; kept {
			unknown = one.decisions.recall(key, a)
		}
		r.desk.mu.RUnlock()
	}
	if !kept {
		key, unknown = nil, a.positions()
	}
	if len(unknown) == 0 {
		return nil
	}
	// What is evaluated may outlive the request, and with it the room for the key.
	allowed, err := r.evaluate(ctx, a, one, bytes.Clone(key), unknown)
	if err != nil {
		return err
	}
	numbers := make([]uint32, len(unknown))
	for k, position := range unknown {
		numbers[k] = a.numbers[position]
		if !allowed[k] {
			a.answer[position] = quartermaster.Judgment{}
		}
	}
	if kept {
		r.keep(a, one, key, numbers, allowed)
	}
	return nil
}

func (r *ruling) keep(a *asked, one *rule, key []byte, numbers []uint32, allowed []bool) {
	r.desk.mu.Lock()
	if a.era == r.desk.era {
		one.decisions.keep(key, numbers, allowed)
	}
	r.desk.mu.Unlock()
	r.desk.judge.shrink()
}

// positions are those of the tools that no layer has refused yet.
func (a *asked) positions() []int {
	left := make([]int, 0, len(a.tools))
	for i := range a.tools {
		if a.answer[i].Allowed {
			left = append(left, i)
		}
	}
	return left
}

// evaluate asks a rule about the tools at some positions. key is nil where the
// answer is not kept.
func (r *ruling) evaluate(ctx context.Context, a *asked, one *rule, key []byte, positions []int) ([]bool, error) {
	pairs, err := a.input(one.reads.fields&fieldArguments != 0)
	if err != nil {
		return nil, err
	}
	a.lent = true
	v := &evaluation{r.desk, a, one, key, positions, pairs, time.Now(), make([]bool, len(positions))}
	limit := r.desk.judge.engine.limit(len(positions))
	if one == r.allowed {
		return v.verdicts, r.desk.run(ctx, limit, 1, v.set)
	}
	return v.verdicts, r.desk.run(ctx, limit, len(positions), v.each)
}

// evaluation is a rule asked about some tools, all at the same moment.
type evaluation struct {
	desk      *desk
	asked     *asked
	rule      *rule
	key       []byte
	positions []int
	input     [][2]*ast.Term
	now       time.Time
	verdicts  []bool // one for each position
}

// each asks about one tool.
func (v *evaluation) each(ctx context.Context, cancel topdown.Cancel, k int) error {
	if v.known(k) {
		return nil
	}
	value, err := v.value(ctx, cancel, aboutTool(v.input, v.asked.tools[v.positions[k]].Name))
	v.verdicts[k] = value == true
	return err
}

// set asks about all of them.
func (v *evaluation) set(ctx context.Context, cancel topdown.Cancel, _ int) error {
	var names []string
	var unknown []int
	for k, position := range v.positions {
		if !v.known(k) {
			names, unknown = append(names, v.asked.tools[position].Name), append(unknown, k)
		}
	}
	if len(names) == 0 {
		return nil
	}
	value, err := v.value(ctx, cancel, aboutTools(v.input, names))
	in := namesIn(value)
	for i, k := range unknown {
		v.verdicts[k] = in[names[i]]
	}
	return err
}

// known looks once more whether somebody has found out the same while this one
// waited for a core.
func (v *evaluation) known(k int) (known bool) {
	if v.key == nil {
		return false
	}
	v.desk.mu.RLock()
	defer v.desk.mu.RUnlock()
	if v.asked.era != v.desk.era {
		return false
	}
	v.verdicts[k], known = v.rule.decisions.one(v.key, v.asked.numbers[v.positions[k]])
	return known
}

func (v *evaluation) value(ctx context.Context, cancel topdown.Cancel, input ast.Value) (any, error) {
	return v.rule.value(ctx, rego.EvalParsedInput(input), rego.EvalExternalCancel(cancel), rego.EvalTime(v.now))
}

// value evaluates the rule: nil where it is undefined.
func (r *rule) value(ctx context.Context, options ...rego.EvalOption) (any, error) {
	results, err := r.prepared.Eval(ctx, options...)
	if err != nil || len(results) == 0 {
		return nil, err
	}
	return results[0].Expressions[0].Value, nil
}

// namesIn are those in a set. What is no set has none.
func namesIn(value any) map[string]bool {
	elements, _ := value.([]any)
	in := make(map[string]bool, len(elements))
	for _, e := range elements {
		if name, ok := e.(string); ok {
			in[name] = true
		}
	}
	return in
}
