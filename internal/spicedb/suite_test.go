package spicedb

import (
	"slices"
	"strings"
	"testing"

	"quartermaster"
)

// suite is what holds for an engine wherever it runs.
var suite = map[string]func(*testing.T, Options){
	"Grant":      testGrant,
	"Tool":       testTool,
	"Nobody":     testNobody,
	"Operator":   testOperator,
	"Tenants":    testTenants,
	"Explain":    testExplain,
	"Holders":    testHolders,
	"Grants":     testGrants,
	"Kept":       testKept,
	"Burst":      testBurst,
	"Suppose":    testSuppose,
	"Property":   testProperty,
	"Concurrent": testConcurrent,
}

// GATE-6, PERM-2: what is granted can be executed, what is revoked cannot, on the
// very next question.
func testGrant(t *testing.T, o Options) {
	s := open(t, o)
	s.tools(t, "files__read_file", "files.write", "web")
	s.mustAllow(t, "alice", "")
	for _, tt := range []struct {
		grant, user, want string
	}{
		{"tool:files__read_file#executor@user:alice", "alice", "files__read_file"},
		{"tool:web#owner@user:alice", "alice", "files__read_file web"},
		{"tool:files.write#executor@group:ops#member", "alice", "files__read_file web"},
		{"group:ops#member@user:alice", "alice", "files.write files__read_file web"},
		{"group:ops#member@group:dev.team#member", "bob", ""},
		{"group:dev.team#member@user:bob", "bob", "files.write"},
		{"project#admin@group:root#member", "carol", ""},
		{"group:root#member@user:carol", "carol", "files.write files__read_file web"},
		{"project#member@user:dave", "dave", ""},
	} {
		s.grant(t, tt.grant)
		s.mustAllow(t, tt.user, tt.want)
	}
	for _, tt := range []struct {
		revoke, user, want string
	}{
		{"tool:web#owner@user:alice", "alice", "files.write files__read_file"},
		{"group:ops#member@user:alice", "alice", "files__read_file"},
		{"group:ops#member@group:dev.team#member", "bob", ""},
		{"project#admin@group:root#member", "carol", ""},
		{"tool:files__read_file#executor@user:alice", "alice", ""},
	} {
		s.revoke(t, tt.revoke)
		s.mustAllow(t, tt.user, tt.want)
	}
}

// PERM-2: the rows that tie tools to their project follow the catalog by
// themselves; what was granted on a tool goes with it, and not to the next that
// bears its name.
func testTool(t *testing.T, o Options) {
	s := open(t, o)
	s.tools(t, "a", "b")
	s.grant(t, "project#admin@user:root", "tool:a#executor@user:alice")
	s.mustAllow(t, "root", "a b")
	s.tools(t, "c")
	s.mustAllow(t, "root", "a b c")
	s.mustAllow(t, "alice", "a")
	s.change(t, func(d *quartermaster.Draft) error {
		_, err := d.UpdateTool("a", func(tool *quartermaster.Tool) error { tool.Name = "z"; return nil })
		return err
	})
	s.mustAllow(t, "root", "b c z")
	s.mustAllow(t, "alice", "z")
	s.change(t, func(d *quartermaster.Draft) error { return d.DeleteTool("z") })
	s.mustAllow(t, "root", "b c")
	s.mustAllow(t, "alice", "")
	s.tools(t, "a", "z")
	s.mustAllow(t, "root", "a b c z")
	s.mustAllow(t, "alice", "")
}

// GATE-6: nobody has nothing, nor has an id that is too long; * is a user like
// any other. None of them is asked about.
func testNobody(t *testing.T, o Options) {
	s := open(t, o)
	s.tools(t, "a")
	s.grant(t, "tool:a#executor@user:"+strings.Repeat("é", 127), "tool:a#executor@user:a.b@c", "tool:a#executor@user:=2A")
	s.mustAllow(t, "", "")
	s.mustAllow(t, strings.Repeat("x", 256), "")
	s.mustAllow(t, "*", "")
	s.mustAllow(t, "=2A", "a")
	s.mustAllow(t, "a.b@c", "a")
	s.mustAllow(t, "a=2Eb=40c", "")
	s.mustAllow(t, strings.Repeat("é", 127), "a")
	if judgments, err := s.Judge(t.Context(), s.catalog(t), quartermaster.Caller{Project: s.project, User: "a.b@c"}, quartermaster.Question{}, nil); err != nil || len(judgments) != 0 {
		t.Errorf("asked about no tool: %v, %v", judgments, err)
	}
}

// GATE-6, SEC-1: local is admin of every project where it is the operator, and
// nobody where it is not, even if it was.
func testOperator(t *testing.T, o Options) {
	o.LocalOperator = true
	s := open(t, o)
	s.tools(t, "a", "b")
	s.mustAllow(t, quartermaster.LocalUser, "a b")
	if grants, err := s.Grants(t.Context(), s.catalog(t), quartermaster.GrantFilter{}); err != nil || len(grants) != 0 {
		t.Errorf("grants %v, %v", grants, err)
	}
	o.LocalOperator = false
	other := open(t, o)
	other.project, other.store = s.project, s.store
	other.mustAllow(t, quartermaster.LocalUser, "")
}

// Tenants do not see each other, whatever they are called.
func testTenants(t *testing.T, o Options) {
	s := open(t, o)
	s.tools(t, "a")
	s.grant(t, "tool:a#executor@group:ops#member", "group:ops#member@user:alice")
	other := &site{Engine: s.Engine, project: s.project + "x"}
	other.store = s.Keep(newBook(other.project))
	other.tools(t, "a")
	other.grant(t, "tool:a#executor@group:ops#member")
	other.mustAllow(t, "alice", "")
	s.mustAllow(t, "alice", "a")
	other.grant(t, "group:ops#member@user:alice")
	other.mustAllow(t, "alice", "a")
	s.revoke(t, "group:ops#member@user:alice")
	s.mustAllow(t, "alice", "")
	other.mustAllow(t, "alice", "a")
}

func keys(grants []*quartermaster.Grant) string {
	var all []string
	for _, g := range grants {
		all = append(all, g.Key())
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}
