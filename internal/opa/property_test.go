package opa

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"
	"pgregory.net/rapid"

	"quartermaster"
)

// Conditions that a rule can have, in words that both versions of Rego know.
// TOOL stands for the tool's name, SOON for a moment in the near future.
var conditions = []string{
	`input.user_id == "u1"`,
	`input.user_id != "u2"`,
	`input.agent_id == "a1"`,
	`input["state"] == "open"`,
	`input.depth < 1`,
	`input.groups[_] == "ops"`,
	`input.phase == "list"`,
	`input.action == "execute"`,
	`input.context.tenant_id == "acme"`,
	`startswith(TOOL, "t1")`,
	`TOOL != "t2"`,
	`not input.arguments.x`,
	`object.get(input, ["arguments", "x"], 0) < 2`,
	`data.tools[TOOL].enabled`,
	`data.roles[input.user_id][_] == "dev"`,
	`user_has_role[input.user_id]["dev"]`,
	`data.project.plan == "team"`,
	`data.groups["default"][_] == TOOL`,
	`time.now_ns() > SOON`,
	`helper`,
	`not helper`,
	`named(TOOL)`,
	`count({g | g := input.groups[_]; g != input.state}) > 0`,
	`k := ["user_id", "state"][_]; input[k] == "u1"`,
	`x := input; x.user_id == "u1"`,
	`count(object.get(input, "tools", [])) < 3`,
}

const rulesBeside = `
helper { input.user_id == "u0" }
helper { input.state == "open"; data.project.plan == "free" }
named(x) { x == "t1" } else = true { input.depth == 1; x == "t3" }
`

// drawPolicy makes a policy of rules over drawn conditions.
func drawPolicy(t *rapid.T, soon int64) string {
	v0 := rapid.Bool().Draw(t, "v0")
	var b strings.Builder
	b.WriteString("package quartermaster.tools\n")
	beside := rulesBeside
	if !v0 {
		beside = strings.ReplaceAll(strings.ReplaceAll(beside, " {", " if {"), "else = true if", "else := true if")
	}
	b.WriteString(beside)
	shape := rapid.SampledFrom([]string{"allow", "allow", "allowed", "both", "neither"}).Draw(t, "shape")
	add := func(head, tool, first string) {
		for range rapid.IntRange(1, 3).Draw(t, "rules") {
			body := []string{}
			if first != "" {
				body = append(body, first)
			}
			for _, c := range rapid.SliceOfN(rapid.SampledFrom(conditions), 1, 3).Draw(t, "conditions") {
				body = append(body, strings.ReplaceAll(strings.ReplaceAll(c, "TOOL", tool), "SOON", fmt.Sprint(soon)))
			}
			fmt.Fprintf(&b, "%s { %s }\n", head, strings.Join(unique(body), "; "))
		}
	}
	if shape == "allow" || shape == "both" {
		add(pick(v0, "allow", "allow if"), "input.tool_name", "")
	}
	if shape == "allowed" || shape == "both" {
		add(pick(v0, "allowed[t]", "allowed contains t if"), "t", "t := input.tools[_]")
	}
	return b.String()
}

func pick(first bool, a, b string) string {
	if first {
		return a
	}
	return b
}

// unique drops repetitions: a variable can be declared once in a body.
func unique(all []string) []string {
	var rest []string
	seen := map[string]bool{}
	for _, s := range all {
		if !seen[s] {
			rest = append(rest, s)
		}
		seen[s] = true
	}
	return rest
}

// direct is a policy as OPA itself evaluates it, without anything of ours but
// the documents: no memory, no analysis, the whole input every time.
type direct struct{ allow, allowed *rego.PreparedEvalQuery }

func newDirect(t *rapid.T, e *Engine, s source, c *quartermaster.Catalog) direct {
	trees, found := parse(s.modules)
	if len(found) > 0 {
		t.Fatal(found)
	}
	if err := withRoles(trees); err != nil {
		t.Fatal(err)
	}
	compiler := e.compiler()
	if compiler.Compile(trees); compiler.Failed() {
		t.Fatal(compiler.Errors)
	}
	data := store(c, docEvery, ast.NewObject())
	prepare := func(ref ast.Ref) *rego.PreparedEvalQuery {
		if len(compiler.GetRulesExact(ref)) == 0 {
			return nil
		}
		p, err := rego.New(rego.Query(ref.String()), rego.Compiler(compiler), rego.Store(data), rego.StrictBuiltinErrors(true)).PrepareForEval(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		return &p
	}
	return direct{prepare(s.query), prepare(setRule(s.query))}
}

func (d direct) passes(a *asked, tool string) bool {
	input := a.document()
	if a.call() {
		var arguments any
		if err := json.Unmarshal(a.question.Arguments, &arguments); err != nil {
			panic(err)
		}
		input["arguments"] = arguments
	}
	evaluate := func(p *rego.PreparedEvalQuery, key string, value any) any {
		input[key] = value
		defer delete(input, key)
		rs, err := p.Eval(context.Background(), rego.EvalInput(input))
		if err != nil {
			panic(err)
		}
		if len(rs) == 0 {
			return nil
		}
		return rs[0].Expressions[0].Value
	}
	in := d.allowed == nil
	if d.allowed != nil {
		names := make([]any, len(a.tools))
		for i, t := range a.tools {
			names[i] = t.Name
		}
		for _, name := range evaluate(d.allowed, "tools", names).([]any) {
			in = in || name == tool
		}
		if !a.call() || d.allow == nil {
			return in
		}
	}
	return in && d.allow != nil && evaluate(d.allow, "tool_name", tool) == true
}

// moment is a state of the world: a catalog and a house policy.
type moment struct {
	catalog *quartermaster.Catalog
	house   *policy
	direct  []direct
}

// POL-1, GATE-1: for random policies what is answered from memory is what OPA
// answers when it is asked anew, whoever asks in whichever order, while the
// policies of house and project, the tools and the users change.
func TestMemoryIsTrue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e, err := Open(context.Background(), Options{Timeout: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		soon := time.Now().Add(20 * time.Millisecond).UnixNano()
		f := &files{engine: e}
		moments := drawMoments(t, e, soon)
		houses := moments[0].house != nil
		if houses {
			e.house = f
		}
		var asking sync.WaitGroup
		defer asking.Wait()
		for _, m := range moments {
			if houses {
				asking.Wait() // a house policy has no revisions: the newest holds for all
				f.policy.Store(m.house)
			}
			for range rapid.IntRange(1, 3).Draw(t, "askers") {
				questions := drawQuestions(t, m)
				asking.Go(func() {
					for _, a := range questions {
						m.check(t, e, a)
					}
				})
			}
		}
	})
}

func drawMoments(t *rapid.T, e *Engine, soon int64) []moment {
	c := quartermaster.NewCatalog(quartermaster.Project{ID: "acme", PolicyQuery: quartermaster.DefaultPolicyQuery, Plan: quartermaster.PlanFree})
	change := func(edit func(d *quartermaster.Draft) error) {
		d := c.Draft(day)
		if err := edit(d); err != nil {
			t.Fatal(err)
		}
		c = d.Catalog()
	}
	change(func(d *quartermaster.Draft) error {
		for i := range 5 {
			if _, err := d.CreateTool(quartermaster.Tool{Name: fmt.Sprintf("t%d", i), Enabled: true}); err != nil {
				return err
			}
		}
		return nil
	})
	houses := rapid.Bool().Draw(t, "house")
	put := func(d *quartermaster.Draft) error {
		_, _, err := d.PutPolicy(quartermaster.Policy{Name: "p", Rego: drawPolicy(t, soon)})
		return err
	}
	var house *policy
	var moments []moment
	for range rapid.IntRange(1, 5).Draw(t, "moments") {
		switch rapid.IntRange(0, 4).Draw(t, "change") {
		case 0:
			change(put)
		case 1:
			change(func(d *quartermaster.Draft) error {
				_, _, err := d.PutUser(quartermaster.User{ID: rapid.SampledFrom([]string{"u0", "u1"}).Draw(t, "user"), Groups: []string{}, Roles: rapid.SampledFrom([][]string{nil, {"dev"}, {"dev", "x"}}).Draw(t, "roles")})
				return err
			})
		case 2:
			change(func(d *quartermaster.Draft) error {
				_, err := d.UpdateTool(rapid.SampledFrom([]string{"t1", "t3"}).Draw(t, "tool"), func(tool *quartermaster.Tool) error { tool.Enabled = !tool.Enabled; return nil })
				return err
			})
		case 3:
			change(func(d *quartermaster.Draft) error {
				p := d.Project()
				p.Plan = rapid.SampledFrom([]quartermaster.Plan{quartermaster.PlanFree, quartermaster.PlanTeam}).Draw(t, "plan")
				return d.SetProject(p)
			})
		case 4:
			if houses {
				house = nil
			}
		}
		if len(c.Policies()) == 0 {
			change(put)
		}
		if houses && house == nil {
			s := e.houseSource()
			s.modules = []module{{file: "house.rego", text: drawPolicy(t, soon)}}
			if house = e.compile(s); house.err != nil {
				t.Fatal(house.err)
			}
		}
		m := moment{catalog: c, house: house}
		own, err := projectSource(c)
		if err != nil {
			t.Fatal(err)
		}
		m.direct = []direct{newDirect(t, e, own, c)}
		if house != nil {
			m.direct = append(m.direct, newDirect(t, e, house.source, c))
		}
		moments = append(moments, m)
	}
	return moments
}

func drawQuestions(t *rapid.T, m moment) []*asked {
	var all []*asked
	for range rapid.IntRange(1, 12).Draw(t, "questions") {
		a := &asked{catalog: m.catalog, caller: quartermaster.Caller{
			Project: "acme",
			User:    rapid.SampledFrom([]string{"", "u0", "u1", "u2"}).Draw(t, "user"),
			Agent:   rapid.SampledFrom([]string{"a0", "a1"}).Draw(t, "agent"),
			State:   rapid.SampledFrom([]string{"", "open", "u1"}).Draw(t, "state"),
			Depth:   rapid.IntRange(0, 1).Draw(t, "depth"),
			Groups:  rapid.SampledFrom([][]string{nil, {}, {"ops"}, {"default", "ops"}, {"open"}}).Draw(t, "groups"),
		}}
		if text := rapid.SampledFrom([]string{"", "", "{}", `{"x":1}`, `{"x":2}`}).Draw(t, "arguments"); text != "" {
			a.question.Arguments = json.RawMessage(text)
		}
		a.question.Explain = rapid.IntRange(0, 9).Draw(t, "explain") == 0
		tools := m.catalog.Tools()
		from := rapid.IntRange(0, len(tools)-1).Draw(t, "from")
		a.tools = tools[from:rapid.IntRange(from+1, len(tools)).Draw(t, "to")]
		all = append(all, a)
	}
	return all
}

// check asks, and OPA itself before and after: a policy may look at the clock.
func (m moment) check(t *rapid.T, e *Engine, a *asked) {
	before := m.expect(a)
	said, err := e.Judge(context.Background(), a.catalog, a.caller, a.question, a.tools)
	if err != nil {
		t.Error(err)
		return
	}
	after := m.expect(a)
	for i, tool := range a.tools {
		if said[i].Allowed != before[i] && said[i].Allowed != after[i] {
			t.Errorf("%s for %+v %s: %t, want %t\n%s", tool.Name, a.caller, a.question.Arguments, said[i].Allowed, after[i], m.catalog.Policies()[0].Rego)
		}
		if a.question.Explain && (said[i].Why == nil || said[i].Why.Reason == "" || said[i].Allowed != (said[i].Why.Remedy == "")) {
			t.Errorf("%s: %t, explained as %+v", tool.Name, said[i].Allowed, said[i].Why)
		}
	}
}

// expect asks the layers in the order in which the engine does: a set rule of
// the project sees what the house has left.
func (m moment) expect(a *asked) []bool {
	passes := make([]bool, len(a.tools))
	for i := range passes {
		passes[i] = true
	}
	for k := range m.direct {
		d := m.direct[len(m.direct)-1-k]
		asked := *a
		asked.tools = nil
		for i, t := range a.tools {
			if passes[i] {
				asked.tools = append(asked.tools, t)
			}
		}
		for i, t := range a.tools {
			passes[i] = passes[i] && d.passes(&asked, t.Name)
		}
	}
	return passes
}
