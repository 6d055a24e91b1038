package client_test

import (
	"strings"
	"testing"

	"quartermaster"
)

// REST-2, POL-1
func TestPolicies(t *testing.T) {
	c, last := answering(t, 200, "application/json", `{"name":"a","rego":"package a","warnings":["odd"],"content":[{"name":"a"}],"last":true,
		"tests":[{"name":"t","location":"a_test.rego:3","passed":false,"duration":"3ms"}]}`)
	p := c.Project("p")
	check := func(err error, method, uri, body string) {
		t.Helper()
		if err != nil || last.method != method || last.uri != "/api/v1/projects/p/policies"+uri || strings.TrimSpace(last.body) != body {
			t.Errorf("%v: sent %s %s %s", err, last.method, last.uri, last.body)
		}
	}
	policies, err := p.Policies().Collect(t.Context())
	check(err, "GET", "?page=1&size=100", "")
	one, err := p.Policy(t.Context(), "a/b")
	check(err, "GET", "/a%2Fb", "")
	if len(policies) != 1 || one.Rego != "package a" {
		t.Errorf("%+v %+v", policies, one)
	}
	put, err := p.PutPolicy(t.Context(), "a", "package a\nx if 1 < 2")
	check(err, "PUT", "/a", `{"rego":"package a\nx if 1 < 2"}`)
	if put.Name != "a" || len(put.Warnings) != 1 {
		t.Errorf("%+v", put)
	}
	check(p.DeletePolicy(t.Context(), "a"), "DELETE", "/a", "")
	report, err := p.TestPolicies(t.Context(), map[string]string{"a": "package a"})
	check(err, "POST", "/test", `{"policies":{"a":"package a"}}`)
	if len(report.Failed()) != 1 {
		t.Errorf("%+v", report)
	}
	_, err = p.TestPolicies(t.Context(), nil)
	check(err, "POST", "/test", `{}`)
}

// GATE-7: roles go with the groups.
func TestPutUser(t *testing.T) {
	c, last := answering(t, 200, "application/json", `{"id":"a","groups":["g"],"roles":["r"]}`)
	user, err := c.Project("p").PutUser(t.Context(), quartermaster.User{ID: "a", Groups: []string{}, Roles: []string{"r"}})
	if err != nil || strings.TrimSpace(last.body) != `{"groups":[],"roles":["r"]}` || len(user.Roles) != 1 {
		t.Errorf("%+v %v, sent %s", user, err, last.body)
	}
	if _, err := c.Project("p").User(t.Context(), "a"); err != nil || last.method != "GET" || last.uri != "/api/v1/projects/p/users/a" {
		t.Errorf("%v from %s", err, last.uri)
	}
}

// GATE-1: a server that still loads says how far it is.
func TestNotReady(t *testing.T) {
	c, _ := answering(t, 503, "application/json", `{"status":"starting","permission":"loaded 1 of 5 relationships"}`)
	err := c.Ready(t.Context())
	if quartermaster.CodeOf(err) != quartermaster.CodeUnavailable || !strings.HasSuffix(err.Error(), "is not ready: starting, permission loaded 1 of 5 relationships") {
		t.Errorf("%v", err)
	}
}
