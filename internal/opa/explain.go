package opa

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"
	"github.com/open-policy-agent/opa/v1/topdown"

	"quartermaster"
)

// explained lets a layer judge and puts into words what it did (GATE-9).
func explained(ctx context.Context, l layer, a *asked) error {
	asked := a.positions()
	before := make([]*quartermaster.Why, len(a.tools))
	for _, i := range asked {
		before[i] = a.answer[i].Why
	}
	if err := l.judge(ctx, a); err != nil {
		return err
	}
	for _, i := range asked {
		why := l.explain(ctx, a, i)
		if a.answer[i].Allowed && before[i] != nil {
			why.Reason = before[i].Reason + "; " + why.Reason
		}
		a.answer[i].Why = &why
	}
	return context.Cause(ctx)
}

// explain asks the deciding rules once more, about one tool, and watches them.
func (r *ruling) explain(ctx context.Context, a *asked, position int) quartermaster.Why {
	allowed := a.answer[position].Allowed
	if r.policy.shipped() {
		return quartermaster.Why{Reason: "no policy is set: the shipped default allows everything"}
	}
	if words := r.policy.undefined(); words != "" {
		return r.why(words, "define "+r.policy.query.String())
	}
	rules := []*rule{r.allowed, r.allow}
	if r.allowed != nil && !a.call() {
		rules = rules[:1]
	}
	why, verdict := quartermaster.Why{}, true
	for _, one := range rules {
		if one == nil || !verdict {
			continue
		}
		seen := watcher{}
		if err := r.watch(ctx, a, one, a.tools[position].Name, &seen); err != nil {
			return r.unseen(allowed)
		}
		verdict = seen.allowed
		why = r.words(&seen)
	}
	if verdict != allowed {
		return r.unseen(allowed)
	}
	return why
}

// why names the layer, and who can change it.
func (r *ruling) why(reason, remedy string) quartermaster.Why {
	return quartermaster.Why{Reason: r.name() + ": " + reason, Remedy: remedy}
}

// unseen is a verdict that the rules did not repeat while they were watched:
// they depend on the time, on another server or on the other tools.
func (r *ruling) unseen(allowed bool) quartermaster.Why {
	if allowed {
		return r.why("allowed it; asked again it does not", "")
	}
	return r.why("refused it; asked again it does not say why", "ask again, or change "+r.policy.keeper)
}

// watch evaluates a rule about one name with every step looked at.
func (r *ruling) watch(ctx context.Context, a *asked, one *rule, name string, seen *watcher) error {
	pairs, err := a.input(one.reads.fields&fieldArguments != 0)
	if err != nil {
		return err
	}
	prepared, input := one.prepared, aboutTool(pairs, name)
	if one == r.allowed {
		// Asked for one element, OPA enters only the rules that can yield it.
		input = aboutTools(pairs, []string{name})
		prepared, err = r.prepared(ctx, one.ref.Append(ast.StringTerm(name)))
		if err != nil {
			return err
		}
	}
	seen.expect(one.rules)
	return r.desk.run(ctx, r.desk.judge.engine.limit(1), 1, func(ctx context.Context, cancel topdown.Cancel, _ int) error {
		value, err := (&rule{prepared: prepared}).value(
			ctx, rego.EvalParsedInput(input), rego.EvalExternalCancel(cancel), rego.EvalTime(time.Now()),
			rego.EvalQueryTracer(seen), rego.EvalRuleIndexing(false), rego.EvalEarlyExit(false))
		seen.allowed = value == true || one == r.allowed && value == name
		return err
	})
}

// watcher is a tracer that remembers what became of the deciding rules.
type watcher struct {
	allowed bool
	rules   map[*ast.Rule]bool
	tries   []*try
	tryOf   map[uint64]*try // by the number of OPA's query
}

// try is one attempt to satisfy a deciding rule.
type try struct {
	rule      *ast.Rule
	failed    *ast.Expr // the one that it came furthest to
	succeeded bool
}

func (w *watcher) expect(rules []*ast.Rule) {
	w.rules, w.tryOf = map[*ast.Rule]bool{}, map[uint64]*try{}
	for _, r := range rules {
		for ; r != nil; r = r.Else {
			w.rules[r] = true
		}
	}
}

// Enabled implements topdown.QueryTracer.
func (w *watcher) Enabled() bool { return true }

// Config implements topdown.QueryTracer.
func (w *watcher) Config() topdown.TraceConfig { return topdown.TraceConfig{} }

// TraceEvent implements topdown.QueryTracer.
func (w *watcher) TraceEvent(e topdown.Event) {
	now := w.tryOf[e.QueryID]
	switch node := e.Node.(type) {
	case *ast.Rule:
		switch {
		case e.Op == topdown.EnterOp && w.rules[node]:
			now = &try{rule: node}
			w.tryOf[e.QueryID] = now
			w.tries = append(w.tries, now)
		case e.Op == topdown.ExitOp && now != nil && now.rule == node:
			now.succeeded = true
		}
	case *ast.Expr:
		if e.Op == topdown.FailOp && now != nil && (now.failed == nil || node.Index >= now.failed.Index) {
			now.failed = node
		}
	}
}

// words says which rule decided, and what it missed.
func (r *ruling) words(seen *watcher) quartermaster.Why {
	if seen.allowed {
		return r.why("allowed by "+r.successful(seen), "")
	}
	var missed []*try
	for _, t := range seen.tries {
		switch {
		case t.succeeded && !t.rule.Default:
			return r.why(at(t.rule)+" does not allow it: its value is not true", "change "+r.policy.keeper)
		case !t.succeeded:
			missed = append(missed, t)
		}
	}
	if len(missed) == 0 {
		return r.why("no rule allows it"+byDefault(seen), "add a rule to "+r.policy.keeper)
	}
	const most = 3
	reasons := make([]string, 0, most+1)
	for _, t := range missed[:min(most, len(missed))] {
		reasons = append(reasons, t.String())
	}
	if rest := len(missed) - most; rest > 0 {
		reasons = append(reasons, fmt.Sprintf("neither do %d more rules", rest))
	}
	return r.why(strings.Join(reasons, "; "), missed[0].remedy()+"change "+r.policy.keeper)
}

func (r *ruling) successful(seen *watcher) string {
	where := "its rules"
	for _, t := range seen.tries {
		switch {
		case t.succeeded && !t.rule.Default:
			return at(t.rule)
		case t.succeeded:
			where = "default at " + at(t.rule)
		}
	}
	return where
}

func byDefault(seen *watcher) string {
	for _, t := range seen.tries {
		if t.rule.Default {
			return fmt.Sprintf("; default %s := %s at %s", t.rule.Head.Name, t.rule.Head.Value, at(t.rule))
		}
	}
	return ""
}

// String says what a rule missed.
func (t *try) String() string {
	if t.failed == nil || t.failed.Location == nil {
		return at(t.rule) + " does not name it"
	}
	return fmt.Sprintf("%s does not allow it: line %d, %s, is not true", at(t.rule), t.failed.Location.Row, quote(t.failed))
}

func (t *try) remedy() string {
	if t.failed == nil || t.failed.Location == nil {
		return ""
	}
	return fmt.Sprintf("make line %d of %s true for this caller, or ", t.failed.Location.Row, t.rule.Location.File)
}

// quote is an expression as its author wrote it, in one line.
func quote(e *ast.Expr) string {
	text := strings.Join(strings.Fields(string(e.Location.Text)), " ")
	const most = 120
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + "..."
	}
	return text
}

func at(r *ast.Rule) string { return place(r.Location) }
