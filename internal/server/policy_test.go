package server

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"quartermaster"
)

// REST-2, GATE-7: policies are rows. Without an engine they are kept, and
// whoever keeps one is told.
func TestPolicies(t *testing.T) {
	onBoth(t, func(t *testing.T, r rest) {
		var p PolicyView
		r.do("PUT", "policies/office-hours", `{"rego":"package a\n"}`).ok(201, &p)
		if p.Name != "office-hours" || p.Rego != "package a\n" || p.CreatedAt.IsZero() || !strings.Contains(fmt.Sprint(p.Warnings), "no policy engine") {
			t.Errorf("%+v", p)
		}
		r.do("PUT", "policies/office-hours", p).ok(200, nil) // as it was answered
		r.do("PUT", "policies/access", `{"name":"access","rego":"package b"}`).ok(201, nil)
		r.do("GET", "policies/office-hours", nil).ok(200, &p)
		if p.Rego != "package a\n" {
			t.Errorf("%+v", p)
		}
		var page quartermaster.Page[quartermaster.Policy]
		r.do("GET", "policies?size=1", nil).ok(200, &page)
		if page.TotalElements != 2 || page.Content[0].Name != "access" || page.Last {
			t.Errorf("%+v", page)
		}
		for path, c := range map[string][2]string{
			"x":     {`{}`, "body.rego"},
			"y":     {`{"rego":" "}`, "body.rego"},
			"z":     {`{"rego":"package z","name":"other"}`, "body.name"},
			"a%20b": {`{"rego":"package z"}`, "path.policy"},
			"w":     {`{"rego":"` + strings.Repeat("x", mebibyte+1) + `"}`, "body.rego"},
		} {
			r.do("PUT", "policies/"+path, c[0]).fails(422, quartermaster.CodeInvalidRequest, c[1])
		}
		r.do("GET", "policies/none", nil).fails(404, quartermaster.CodeNotFound, "")
		r.do("DELETE", "policies/none", nil).fails(404, quartermaster.CodeNotFound, "")
		r.do("DELETE", "policies/access", nil).ok(204, nil)
		r.do("GET", "policies/access", nil).fails(404, quartermaster.CodeNotFound, "")
		r.do("POST", "policies/test", nil).fails(501, quartermaster.CodeUnsupportedProvider, "")
	})
}

// POL-1: a change by which the policies would not compile or fail a test is
// refused, by whatever way it comes; the old ones stay.
func TestPoliciesAreTested(t *testing.T) {
	_, q, r := withEngines(t, "")
	r.do("PUT", "policies/access", `{"rego":"package a"}`).ok(201, nil)
	r.do("PUT", "policies/access_test", `{"rego":"package a"}`).ok(201, nil)
	for _, c := range []struct{ method, path, body, at string }{
		{"PUT", "policies/access", `{"rego":"broken"}`, "policies.access:3"},
		{"PUT", "policies/next", `{"rego":"broken"}`, "policies.next:3"},
		{"PUT", "policies/access_test", `{"rego":"fails"}`, "policies.access_test:7"},
		{"POST", "apply", `{"quartermaster":"v1","policies":{"access":{"rego":"broken"}}}`, "body.policies.access:3"},
		{"POST", "apply?dryRun=true", `{"quartermaster":"v1","policies":{"access":{"rego":"broken"}}}`, "body.policies.access:3"},
		{"POST", "apply", `{"quartermaster":"v1","policies":{"new_test.rego":{"rego":"fails"}}}`, "body.policies.new_test.rego:7"},
		{"POST", "whatif", `{"quartermaster":"v1","policies":{"access":{"rego":"broken"}}}`, "body.policies.access:3"},
	} {
		before := len(q.tested)
		p := r.do(c.method, c.path, c.body).fails(422, quartermaster.CodeInvalidRequest, c.at)
		if len(p.Errors) != 1 || len(q.tested) != before+1 {
			t.Errorf("%s %s: %v after %d tests", c.method, c.path, p.Errors, len(q.tested)-before)
		}
	}
	// CAT-5: all that is wrong in a file is told at once.
	const wrong = `{"quartermaster":"v1","policies":{"access":{"rego":"broken"},"blank":{"rego":""}},"tools":{"x":{"server":"none"}},
		"grants":[{"subject":"user:a","relation":"janitor","tool":"echo"}]}`
	for _, path := range []string{"apply", "apply?dryRun=true", "whatif"} {
		for _, at := range []string{"body.policies.access:3", "body.policies.blank.rego", "body.tools.x.server", "body.grants[0].relation"} {
			r.do("POST", path, wrong).fails(422, quartermaster.CodeInvalidRequest, at)
		}
	}
	var p PolicyView
	r.do("GET", "policies/access", nil).ok(200, &p)
	if p.Rego != "package a" {
		t.Errorf("the old one is gone: %+v", p)
	}
	r.do("GET", "policies/next", nil).fails(404, quartermaster.CodeNotFound, "")

	before := len(q.tested)
	r.do("PUT", "policies/access", `{"rego":"package a"}`).ok(200, nil)
	r.do("POST", "apply", `{"quartermaster":"v1","agents":{"a":{}}}`).ok(200, nil)
	r.do("PATCH", "/api/v1/projects/default", `{"plan":"team"}`).ok(200, nil)
	if len(q.tested) != before {
		t.Errorf("what does not touch the rules was tested: %v", q.tested[before:])
	}
}

// GATE-7: deleting a policy and asking another rule are changes like any other.
func TestRulesThatGo(t *testing.T) {
	_, q, r := withEngines(t, "")
	r.do("PUT", "policies/a_test", `{"rego":"package a"}`).ok(201, nil)
	r.do("PUT", "policies/b", `{"rego":"package b"}`).ok(201, nil)
	q.meanwhile = func() {
		q.down = invalid([]quartermaster.Fault{{Location: "policies.a_test:2", Message: "b is gone"}}, "no")
	}
	r.do("DELETE", "policies/b", nil).fails(422, quartermaster.CodeInvalidRequest, "policies.a_test:2")
	r.do("PATCH", "/api/v1/projects/default", `{"policyQuery":"data.b.other"}`).fails(422, quartermaster.CodeInvalidRequest, "policies.a_test:2")
	r.do("PATCH", "/api/v1/projects/default", `{"policyQuery":"nonsense"}`).fails(422, quartermaster.CodeInvalidRequest, "body.policyQuery")
	r.do("POST", "apply?prune=true", `{"quartermaster":"v1"}`).fails(422, quartermaster.CodeInvalidRequest, "body.policies.a_test:2")
	r.do("GET", "policies/b", nil).ok(200, nil)

	q.meanwhile, q.down = nil, nil
	var p PatchedProject
	r.do("PATCH", "/api/v1/projects/default", `{"policyQuery":"data.no.such_rule"}`).ok(200, &p)
	if p.PolicyQuery != "data.no.such_rule" || !strings.Contains(fmt.Sprint(p.Warnings), "everything is refused") {
		t.Errorf("%+v", p)
	}
	var view PolicyView
	r.do("PUT", "policies/c", `{"rego":"package c"}`).ok(201, &view)
	if !strings.Contains(fmt.Sprint(view.Warnings), "everything is refused") {
		t.Errorf("%+v", view)
	}
	var warned struct{ Warnings []string }
	r.do("POST", "apply", `{"quartermaster":"v1","policies":{"d":{"rego":"package d"}}}`).ok(200, &warned)
	if !strings.Contains(fmt.Sprint(warned.Warnings), "everything is refused") {
		t.Errorf("%+v", warned)
	}
	r.do("DELETE", "policies/b", nil).ok(204, nil)

	q.down = errGone
	r.do("PUT", "policies/e", `{"rego":"package e"}`).fails(503, quartermaster.CodeUnavailable, "")
	r.do("POST", "apply", `{"quartermaster":"v1","policies":{"e":{"rego":"package e"}}}`).fails(503, quartermaster.CodeUnavailable, "")
	r.do("GET", "policies/e", nil).fails(404, quartermaster.CodeNotFound, "")
}

// POL-1: what is kept was tested as it is kept, also if others change the
// policies meanwhile; and nobody waits while policies are tested.
func TestRulesThatMoveMeanwhile(t *testing.T) {
	_, q, r := withEngines(t, "")
	other := newOther(q, r)
	q.meanwhile = func() { other(1) }
	r.do("PUT", "policies/mine", `{"rego":"package mine"}`).ok(201, nil)
	// Each round tests mine, then what the other has put is tested as well.
	if last := q.tested[len(q.tested)-1]; last != "mine other1" || !slices.Contains(q.tested, "mine") {
		t.Errorf("tested %q", q.tested)
	}
	before := len(q.tested)
	q.meanwhile = func() { other(2) }
	r.do("POST", "apply", `{"quartermaster":"v1","policies":{"file":{"rego":"package file"}}}`).ok(200, nil)
	if last := q.tested[len(q.tested)-1]; last != "file mine other1 other2" {
		t.Errorf("tested %q", q.tested[before:])
	}
	// Other changes do not matter to it.
	before = len(q.tested)
	q.meanwhile = func() { q.meanwhile = nil; r.tool("unrelated") }
	r.do("DELETE", "policies/file", nil).ok(204, nil)
	if len(q.tested) != before+1 {
		t.Errorf("tested %q", q.tested[before:])
	}
	// Somebody who never stops is not waited for.
	n := 2
	q.meanwhile = func() { n++; other(n) }
	r.do("PUT", "policies/last", `{"rego":"package last"}`).fails(503, quartermaster.CodeUnavailable, "")
	q.meanwhile = nil
	r.do("GET", "policies/last", nil).fails(404, quartermaster.CodeNotFound, "")
}

// few is an engine that takes at most three policies.
type few struct{ quartermaster.PolicyEngine }

func (few) Test(_ context.Context, c *quartermaster.Catalog) (quartermaster.PolicyReport, error) {
	if len(c.Policies()) > 3 {
		return quartermaster.PolicyReport{}, fault("policies.x:1", "too many")
	}
	return quartermaster.PolicyReport{}, nil
}

// POL-1: whatever many do at once, no set is kept that would be refused.
func TestRulesUnderConcurrentChanges(t *testing.T) {
	s, r := newServer(t, "", nil)
	s.Policy = few{}
	var wg sync.WaitGroup
	for i := range 12 {
		wg.Go(func() {
			a := r.do("PUT", fmt.Sprintf("policies/p%d", i), `{"rego":"package p"}`)
			if a.status != 201 && a.status != 422 && a.status != 503 {
				t.Errorf("%s: %d %s", a.what, a.status, a.body)
			}
		})
	}
	wg.Wait()
	var page quartermaster.Page[quartermaster.Policy]
	r.do("GET", "policies", nil).ok(200, &page)
	if page.TotalElements == 0 || page.TotalElements > 3 {
		t.Errorf("%d are kept", page.TotalElements)
	}
}

// newOther is somebody else who changes policies while ours are tested.
func newOther(q *rego, r rest) func(n int) {
	return func(n int) {
		again := q.meanwhile
		q.meanwhile = nil
		r.do("PUT", fmt.Sprintf("policies/other%d", n), `{"rego":"package other"}`).ok(201, nil)
		if n > 2 {
			q.meanwhile = again
		}
	}
}

// POL-1: policies can be tested before they are kept.
func TestTestPolicies(t *testing.T) {
	_, q, r := withEngines(t, "")
	var report quartermaster.PolicyReport
	a := r.do("POST", "policies/test", nil)
	a.ok(200, &report)
	if !strings.Contains(string(a.body), `"tests":[]`) {
		t.Errorf("%s", a.body)
	}
	r.do("PUT", "policies/a_test", `{"rego":"package a"}`).ok(201, nil)
	for body, want := range map[string]string{
		``:                                "a_test.rego:7 true",
		`{}`:                              "a_test.rego:7 true",
		`{"policies":{"a_test":"fails"}}`: "a_test.rego:7 false",
		`{"policies":{"b_test":"fails"}}`: "a_test.rego:7 true b_test.rego:7 false",
	} {
		var given any
		if body != "" {
			given = body
		}
		r.do("POST", "policies/test", given).ok(200, &report)
		var got []string
		for _, test := range report.Tests {
			got = append(got, fmt.Sprint(test.Location, " ", test.Passed))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %q, want %q", body, got, want)
		}
	}
	r.do("POST", "policies/test", `{"policies":{"b":"broken"}}`).fails(422, quartermaster.CodeInvalidRequest, "policies.b:3")
	r.do("POST", "policies/test", `{"policies":{"b c":"package b"}}`).fails(422, quartermaster.CodeInvalidRequest, "body.policies.b c.name")
	r.do("POST", "policies/test", `{"policies":{"b":""}}`).fails(422, quartermaster.CodeInvalidRequest, "body.policies.b.rego")
	r.do("GET", "policies/b_test", nil).fails(404, quartermaster.CodeNotFound, "") // nothing is kept
	q.down = errGone
	r.do("POST", "policies/test", nil).fails(503, quartermaster.CodeUnavailable, "")
}

// GATE-7: roles are rows, for policies to know users by.
func TestUserRoles(t *testing.T) {
	onBoth(t, func(t *testing.T, r rest) {
		var u quartermaster.User
		r.do("PUT", "users/alice", `{"groups":["default"],"roles":["tool_user","admin","admin"]}`).ok(201, &u)
		if fmt.Sprint(u.Roles) != "[tool_user admin]" {
			t.Errorf("%+v", u)
		}
		r.do("GET", "users/alice", nil).ok(200, &u)
		if fmt.Sprint(u.Roles) != "[tool_user admin]" {
			t.Errorf("%+v", u)
		}
		r.do("PUT", "users/bob", `{"groups":[],"roles":[""]}`).fails(422, quartermaster.CodeInvalidRequest, "body.roles[0]")
	})
}
