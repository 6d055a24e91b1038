package client_test

import (
	"strings"
	"testing"

	"quartermaster"
	"quartermaster/client"
)

// REST-2
func TestGrants(t *testing.T) {
	c, last := answering(t, 200, "application/json", `{"content":[{"subject":"user:a","relation":"executor","tool":"x","resource":"tool:x"}],"last":true,"added":2,"removed":1}`)
	p := c.Project("p")
	check := func(err error, method, uri, body string) {
		t.Helper()
		if err != nil || last.method != method || last.uri != "/api/v1/projects/p/grants"+uri || strings.TrimSpace(last.body) != body {
			t.Errorf("%v: sent %s %s %s", err, last.method, last.uri, last.body)
		}
	}
	grants, err := p.Grants(client.GrantFilter{Subject: "group:ops#member", Tool: "@files/read"}).Collect(t.Context())
	check(err, "GET", "?page=1&size=100&subject=group%3Aops%23member&tool=%40files%2Fread", "")
	if len(grants) != 1 || grants[0].Key() != "tool:x#executor@user:a" {
		t.Errorf("%+v", grants)
	}
	_, err = p.Grant(t.Context(), quartermaster.Grant{Subject: "user:a", Relation: "executor", Tool: "x"})
	check(err, "POST", "", `{"relation":"executor","subject":"user:a","tool":"x"}`)
	check(p.Revoke(t.Context(), client.GrantFilter{Relation: "member", Resource: "group:ops"}), "DELETE", "?relation=member&resource=group%3Aops", "")
	changed, err := p.ChangeGrants(t.Context(), []quartermaster.Grant{{Subject: "user:a", Relation: "admin", Resource: "project"}}, []quartermaster.Grant{grants[0]})
	check(err, "PATCH", "", `{"add":[{"relation":"admin","resource":"project","subject":"user:a"}],"remove":[{"relation":"executor","resource":"tool:x","subject":"user:a","tool":"x"}]}`)
	if changed != (client.GrantsChanged{Added: 2, Removed: 1}) {
		t.Errorf("%+v", changed)
	}
}

// PERM-2
func TestSchema(t *testing.T) {
	c, last := answering(t, 200, "application/json", `{"schema":"definition user {}"}`)
	if text, err := c.Schema(t.Context()); err != nil || text != "definition user {}" || last.uri != "/api/v1/schema" {
		t.Errorf("%q %v from %s", text, err, last.uri)
	}
}
