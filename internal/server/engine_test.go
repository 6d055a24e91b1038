package server

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"quartermaster"
	"quartermaster/internal/resolve"
)

// permission stands in for an engine of which only this is asked.
type permission struct {
	quartermaster.Permission
	kept   []*quartermaster.Grant // by a cluster; nil: by the catalog
	status quartermaster.EngineStatus
	down   error
}

// CheckGrants knows the relations of the base schema.
func (p *permission) CheckGrants(_ context.Context, grants []*quartermaster.Grant) error {
	var faults []quartermaster.Fault
	for i, g := range grants {
		if !slices.Contains([]string{"executor", "owner", "member", "admin"}, g.Relation) {
			faults = append(faults, quartermaster.Fault{
				Location: fmt.Sprintf("grants[%d].relation", i), Message: g.On().Type + " has no relation " + g.Relation,
			})
		}
	}
	return errors.Join(p.down, invalid(faults, "the schema has no place for it"))
}

func (p *permission) Grants(_ context.Context, c *quartermaster.Catalog, f quartermaster.GrantFilter) ([]*quartermaster.Grant, error) {
	if p.kept == nil {
		return c.Grants(f), p.down
	}
	var some []*quartermaster.Grant
	for _, g := range p.kept {
		if f.Match(g) {
			some = append(some, g)
		}
	}
	return some, p.down
}

func (p *permission) Judge(context.Context, *quartermaster.Catalog, quartermaster.Caller, quartermaster.Question, []*quartermaster.Tool) ([]quartermaster.Judgment, error) {
	return nil, p.down
}

func (p *permission) Schema(context.Context) (string, error) { return "definition user {}", p.down }
func (p *permission) Status() quartermaster.EngineStatus     { return p.status }

// rego stands in for a policy engine: a module with "broken" in it does not
// compile, and one with "fails" has a test that does.
type rego struct {
	quartermaster.PolicyEngine
	meanwhile func() // happens while policies are tested
	tested    []string
	status    quartermaster.EngineStatus
	down      error
}

func (p *rego) Test(_ context.Context, c *quartermaster.Catalog) (quartermaster.PolicyReport, error) {
	if p.meanwhile != nil {
		p.meanwhile()
	}
	var (
		report quartermaster.PolicyReport
		faults []quartermaster.Fault
		set    []string
	)
	for _, m := range c.Policies() {
		set = append(set, m.Name)
		if strings.Contains(m.Rego, "broken") {
			faults = append(faults, quartermaster.Fault{Location: "policies." + m.Name + ":3", Message: "rego_parse_error"})
		}
		if m.Test() {
			report.Tests = append(report.Tests, quartermaster.PolicyTest{
				Name: "data.test_" + m.Name, Location: m.File() + ":7", Passed: !strings.Contains(m.Rego, "fails"), Reason: "expected alice",
			})
		}
	}
	if c.Project().PolicyQuery == "data.no.such_rule" {
		report.Warnings = []string{"no policy defines data.no.such_rule: everything is refused"}
	}
	p.tested = append(p.tested, strings.Join(set, " "))
	return report, errors.Join(p.down, invalid(faults, "the policies do not compile"))
}

func (p *rego) Status() quartermaster.EngineStatus { return p.status }

// withEngines serves with both of them in place.
func withEngines(t *testing.T, database string) (*permission, *rego, rest) {
	t.Helper()
	s, r := newServer(t, database, nil)
	p, q := &permission{}, &rego{}
	s.Permission, s.Policy = p, q
	s.SetReady()
	return p, q, r
}

var errGone = quartermaster.Errorf(quartermaster.CodeUnavailable, "the engine does not answer")

// PERM-1, POL-1: which gates are on, with what, and in which trouble.
func TestStatusOfGates(t *testing.T) {
	p, q, r := withEngines(t, "")
	gate := func(name quartermaster.Gate) gateStatus {
		t.Helper()
		var st struct{ Gates []gateStatus }
		r.do("GET", "/api/v1/status", nil).ok(200, &st)
		for _, g := range st.Gates {
			if g.Name == name {
				return g
			}
		}
		t.Fatalf("no gate %s in %v", name, st)
		return gateStatus{}
	}
	p.status = quartermaster.EngineStatus{Detail: "SpiceDB, embedded", Loaded: 3, Total: 3}
	q.status = quartermaster.EngineStatus{Detail: "OPA, embedded", Trouble: "access.rego was refused: the old rules stay"}
	if g := gate("permission"); g.Detail != "SpiceDB, embedded" || g.Trouble != "" {
		t.Errorf("%+v", g)
	}
	if g := gate("policy"); g.Trouble != "access.rego was refused: the old rules stay" {
		t.Errorf("%+v", g)
	}
	r.do("GET", "/readyz", nil).ok(200, nil) // it can answer, by old rules
	p.status.Loaded, p.status.Total = 120000, 1000000
	if g := gate("permission"); g.Trouble != "loaded 120000 of 1000000 relationships" {
		t.Errorf("%+v", g)
	}
	if g := gate("group"); g.Detail == "" || g.Trouble != "" {
		t.Errorf("%+v", g)
	}
}

// GATE-1: not ready until loaded, and /readyz says how far.
func TestNotReadyBeforeLoaded(t *testing.T) {
	s, r := newServer(t, "", nil)
	p, q := &permission{}, &rego{}
	s.Permission, s.Policy = p, q
	for _, step := range []struct {
		ready          bool
		loaded, total  int
		rules          quartermaster.EngineStatus
		status         int
		want, progress string
	}{
		{false, 0, 5, quartermaster.EngineStatus{}, 503, "starting", "loaded 0 of 5 relationships"},
		{false, 5, 5, quartermaster.EngineStatus{}, 503, "starting", ""},
		{true, 4, 5, quartermaster.EngineStatus{}, 503, "starting", "loaded 4 of 5 relationships"},
		{true, 5, 5, quartermaster.EngineStatus{Loaded: 1, Total: 2}, 503, "starting", ""},
		{true, 5, 5, quartermaster.EngineStatus{}, 200, "ok", ""},
		{true, 9, 5, quartermaster.EngineStatus{}, 200, "ok", ""},
	} {
		s.ready.Store(step.ready)
		p.status = quartermaster.EngineStatus{Loaded: step.loaded, Total: step.total}
		q.status = step.rules
		var got map[string]string
		r.do("GET", "/readyz", nil).ok(step.status, &got)
		if got["status"] != step.want || got["permission"] != step.progress || (got["policy"] != "") != !step.rules.Ready() {
			t.Errorf("%+v: %v", step, got)
		}
	}
}

// GATE-1: a gate that cannot answer fails the request, and is counted.
func TestGateUnavailable(t *testing.T) {
	p, _, r := withEngines(t, "")
	s, failing := newServer(t, "", nil)
	p.down = errors.New("connection refused")
	resolver := resolve.New(s.Store, p, nil)
	s.Resolver, s.Advisor = resolver, resolver
	failing.do("PUT", "agents/a", `{"tools":["echo"]}`).ok(201, nil)
	for range 2 {
		a := failing.do("POST", "resolve", `{"agent":"a"}`)
		a.fails(503, quartermaster.CodeUnavailable, "")
		if strings.Contains(string(a.body), "refused") {
			t.Errorf("the answer tells the cause: %s", a.body)
		}
	}
	failing.do("GET", "explain?agent=a", nil).fails(503, quartermaster.CodeUnavailable, "")
	const line = `quartermaster_gate_unavailable_total{gate="permission",project="default"} 3`
	if m := string(failing.do("GET", "/metrics", nil).body); !strings.Contains(m, line) {
		t.Errorf("no %s in the metrics", line)
	}
	if m := string(r.do("GET", "/metrics", nil).body); strings.Contains(m, "quartermaster_gate_unavailable_total{") {
		t.Error("counted where nothing has failed")
	}
}
