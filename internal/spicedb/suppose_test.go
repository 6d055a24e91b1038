package spicedb

import (
	"testing"
	"time"

	"quartermaster"
)

// GATE-9: what would be, is judged without touching what is.
func testSuppose(t *testing.T, o Options) {
	o.LocalOperator = true
	s := open(t, o)
	s.tools(t, "a", "b")
	s.grant(t, "tool:a#executor@user:alice", "tool:b#executor@group:ops#member", "group:ops#member@user:bob")
	grants, err := s.Grants(t.Context(), s.catalog(t), quartermaster.GrantFilter{})
	if err != nil {
		t.Fatal(err)
	}
	d := s.catalog(t).WithGrants(grants).Draft(time.Now())
	d.Revoke(quartermaster.GrantFilter{Subject: "user:alice"})
	if _, _, err := d.Grant(grantText("group:ops#member@user:alice")); err != nil {
		t.Fatal(err)
	}
	if _, err := d.CreateTool(quartermaster.Tool{Name: "c", Provider: "native"}); err != nil {
		t.Fatal(err)
	}
	after := d.Catalog()
	judge, end, err := s.Suppose(t.Context(), after)
	if err != nil {
		t.Fatal(err)
	}
	defer end()
	for user, want := range map[string]string{"alice": "b", "bob": "b", "local": "a b c", "eve": ""} {
		judgments, err := judge.Judge(t.Context(), after, quartermaster.Caller{Project: s.project, User: user}, quartermaster.Question{}, after.Tools())
		if err != nil {
			t.Fatal(err)
		}
		if got := names(after, judgments); got != want {
			t.Errorf("%s would have %q, want %q", user, got, want)
		}
	}
	s.mustAllow(t, "alice", "a")
	s.mustAllow(t, "local", "a b")

	// What a catalog does not say of its cluster's grants is read from there.
	judge, end, err = s.Suppose(t.Context(), s.catalog(t))
	if err != nil {
		t.Fatal(err)
	}
	defer end()
	judgments, err := judge.Judge(t.Context(), s.catalog(t), quartermaster.Caller{Project: s.project, User: "bob"}, quartermaster.Question{}, s.catalog(t).Tools())
	if err != nil || names(s.catalog(t), judgments) != "b" {
		t.Errorf("bob would have %q, %v", names(s.catalog(t), judgments), err)
	}
}
