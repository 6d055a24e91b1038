package spicedb

import (
	"fmt"
	"strings"
	"testing"

	"quartermaster"
)

// GATE-9: each verdict has its reason in words, and what would change it; the
// same words for one tool and for many.
func testExplain(t *testing.T, o Options) {
	o.LocalOperator = true
	s := open(t, o)
	s.tools(t, "read", "write", "none", "own.ed")
	s.grant(t,
		"tool:read#executor@group:ops#member", "tool:read#executor@user:bob", "group:ops#member@user:alice",
		"tool:write#executor@group:ops#member", "group:ops#member@group:dev team#member", "group:dev team#member@user:d\"ave",
		"tool:own.ed#owner@user:bob", "project#admin@group:root#member", "group:root#member@user:carol",
	)
	remedy := func(user, tool string) string {
		return fmt.Sprintf("quartermaster grant %s executor %s --project %s", user, tool, s.project)
	}
	for _, tt := range []struct{ user, tool, reason, remedy string }{
		{"bob", "read", "bob is executor of read", ""},
		{"bob", "own.ed", "bob is owner of own.ed", ""},
		{"alice", "read", "alice is executor of read as member of group:ops", ""},
		{`d"ave`, "write", `"d\"ave" is executor of write as member of group:ops through group:"dev team"`, ""},
		{"local", "none", "local is admin of project " + s.project, ""},
		{"carol", "none", "carol is admin of project " + s.project + " as member of group:root", ""},
		{"eve", "read", "eve is no owner or executor of read; members of group:ops, members of group:root, user bob and 1 other are", remedy("user:eve", "read")},
		{"alice", "own.ed", "alice is no owner or executor of own.ed; members of group:root, user bob and user local are", remedy("user:alice", "own.ed")},
		{`d"ave`, "none", `"d\"ave" is no owner or executor of none; members of group:root and user local are`, remedy(`'user:d"ave'`, "none")},
	} {
		s.mustExplain(t, tt.user, tt.tool, tt.reason, tt.remedy)
	}
	var many []string
	for i := range 2 * traceable {
		many = append(many, fmt.Sprintf("t%02d", i))
	}
	s.tools(t, many...)
	for _, tt := range []struct{ user, tool, reason string }{
		{"alice", "read", "alice is executor of read as member of group:ops"},
		{`d"ave`, "write", `"d\"ave" is executor of write as member of group:ops through group:"dev team"`},
		{"local", "none", "local is admin of project " + s.project},
		{"bob", "own.ed", "bob is owner of own.ed"},
		{"alice", "t03", "alice is no owner or executor of t03; members of group:root and user local are"},
	} {
		if got := s.explainAll(t, tt.user)[tt.tool].Reason; got != tt.reason {
			t.Errorf("%s, %s among many: %q, want %q", tt.user, tt.tool, got, tt.reason)
		}
	}
	for _, user := range []string{"", strings.Repeat("x", 256)} {
		if why := s.explainAll(t, user)["read"]; why.Reason == "" || why.Remedy == "" {
			t.Errorf("%q: %+v", user, why)
		}
	}
}

func (s *site) mustExplain(t *testing.T, user, tool, reason, remedy string) {
	t.Helper()
	judgments, err := s.judge(t, user, quartermaster.Question{Explain: true}, tool)
	if err != nil {
		t.Fatal(err)
	}
	j := judgments[0]
	if j.Allowed != (remedy == "") || j.Why.Reason != reason || j.Why.Remedy != remedy {
		t.Errorf("%s, %s: %v %q, %q; want %q, %q", user, tool, j.Allowed, j.Why.Reason, j.Why.Remedy, reason, remedy)
	}
}

func (s *site) explainAll(t *testing.T, user string) map[string]quartermaster.Why {
	t.Helper()
	judgments, err := s.judge(t, user, quartermaster.Question{Explain: true})
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]quartermaster.Why{}
	for i, tool := range s.catalog(t).Tools() {
		all[tool.Name] = *judgments[i].Why
	}
	return all
}

// GATE-9: from the other side, who may execute a tool and why.
func testHolders(t *testing.T, o Options) {
	o.LocalOperator = true
	s := open(t, o)
	s.tools(t, "a", "b")
	s.grant(t,
		"tool:a#executor@user:zoë", "tool:a#owner@user:zoë", "tool:a#executor@group:ops#member",
		"group:ops#member@group:dev#member", "group:dev#member@user:dave",
		"project#admin@group:root#member", "group:root#member@user:carol", "project#member@user:nobody",
	)
	holders, err := s.Holders(t.Context(), s.catalog(t), s.catalog(t).ToolByName("a"))
	if err != nil {
		t.Fatal(err)
	}
	project := s.project
	want := fmt.Sprint([]quartermaster.Holder{
		{User: "carol", Via: "admin of project " + project + " as member of group:root"},
		{User: "dave", Via: "executor, as member of group:ops through group:dev"},
		{User: "local", Via: "admin of project " + project},
		{User: "zoë", Via: "owner"},
	})
	if got := fmt.Sprint(holders); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	if users, err := s.Users(t.Context(), s.catalog(t)); err != nil || strings.Join(users, " ") != "carol dave nobody zoë" {
		t.Errorf("users %q, %v", users, err)
	}
}

// Grants are listed as they were made, by key; what follows from the catalog is
// none.
func testGrants(t *testing.T, o Options) {
	o.LocalOperator = true
	s := open(t, o)
	s.tools(t, "a.b", "b")
	all := []string{
		"group:ops#member@user:alice", "project#admin@user:alice", "tool:a.b#executor@group:ops#member",
		"tool:a.b#executor@user:alice", "tool:b#owner@user:al:ice#member",
	}
	s.grant(t, all...)
	for _, tt := range []struct {
		filter quartermaster.GrantFilter
		want   []string
	}{
		{quartermaster.GrantFilter{}, all},
		{quartermaster.GrantFilter{Subject: "user:alice"}, []string{all[0], all[1], all[3]}},
		{quartermaster.GrantFilter{Resource: "tool:a.b"}, all[2:4]},
		{quartermaster.GrantFilter{Resource: "project"}, all[1:2]},
		{quartermaster.GrantFilter{Relation: "executor"}, all[2:4]},
		{quartermaster.GrantFilter{Relation: "executor", Subject: "group:ops#member"}, all[2:3]},
		{quartermaster.GrantFilter{Subject: "user:al:ice#member", Resource: "tool:b", Relation: "owner"}, all[4:]},
		{quartermaster.GrantFilter{Relation: "ruler"}, nil},
		{quartermaster.GrantFilter{Resource: "folder:x"}, nil},
		{quartermaster.GrantFilter{Subject: "robot:x"}, nil},
		{quartermaster.GrantFilter{Resource: "group:ops", Subject: "group:x#member"}, nil},
	} {
		grants, err := s.Grants(t.Context(), s.catalog(t), tt.filter)
		if got := keys(grants); err != nil || got != strings.Join(tt.want, " ") {
			t.Errorf("%+v: %q, %v; want %q", tt.filter, got, err, tt.want)
		}
	}
	c := s.change(t, func(d *quartermaster.Draft) error {
		if gone := d.Revoke(quartermaster.GrantFilter{Subject: "user:alice"}); len(gone) != 3 {
			t.Errorf("revoked %s", keys(gone))
		}
		if diff := d.Diff(); len(diff) != 3 || diff[0].Action != "delete" {
			t.Errorf("differs by %+v", diff)
		}
		return nil
	})
	if grants, err := s.Grants(t.Context(), c, quartermaster.GrantFilter{}); err != nil || keys(grants) != all[2]+" "+all[4] {
		t.Errorf("left: %s, %v", keys(grants), err)
	}
}
