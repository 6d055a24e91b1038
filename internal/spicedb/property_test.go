package spicedb

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	v1 "github.com/authzed/authzed-go/proto/authzed/api/v1"
	"pgregory.net/rapid"

	"quartermaster"
)

var (
	someUsers  = []string{"alice", "b.ob", "c@rol", "local", "*"}
	someGroups = []string{"ops", "d.ev"}
	someTools  = []string{"a", "b", "c.d", "e__f"}
)

// mustAgree compares, for every user and tool, what the engine answers with what
// SpiceDB answers to a direct question.
func (s *site) mustAgree(t testing.TB, users ...string) {
	t.Helper()
	tools := s.catalog(t).Tools()
	var items []*v1.CheckBulkPermissionsRequestItem
	for _, user := range users {
		for _, tool := range tools {
			items = append(items, &v1.CheckBulkPermissionsRequestItem{
				Resource: object(quartermaster.TypeTool, toolID(s.project, tool.Name)), Permission: permissionToUse, Subject: userSubject(user),
			})
		}
	}
	got := map[string]string{}
	for _, user := range users {
		got[user] = s.allowed(t, user)
	}
	if len(items) == 0 {
		return
	}
	r, err := s.direct.CheckBulkPermissions(t.Context(), &v1.CheckBulkPermissionsRequest{Consistency: fullyConsistent, Items: items})
	if err != nil {
		t.Fatal(err)
	}
	pairs := r.GetPairs()
	for _, user := range users {
		var want []string
		for _, tool := range tools {
			if err := pairs[0].GetError(); err != nil {
				t.Fatal(err)
			}
			if pairs[0].GetItem().GetPermissionship() == v1.CheckPermissionResponse_PERMISSIONSHIP_HAS_PERMISSION {
				want = append(want, tool.Name)
			}
			pairs = pairs[1:]
		}
		if got[user] != strings.Join(want, " ") {
			t.Fatalf("%s may execute %q, SpiceDB says %q", user, got[user], want)
		}
	}
}

// grants draws what the base schema has room for.
func drawGrant(t *rapid.T, tools []string) string {
	subject := rapid.OneOf(
		rapid.Map(rapid.SampledFrom(someUsers), func(u string) string { return "user:" + u }),
		rapid.Map(rapid.SampledFrom(someGroups), func(g string) string { return "group:" + g + "#member" }),
	).Draw(t, "subject")
	if strings.HasSuffix(subject, ":*") {
		subject = "user:x*"
	}
	on := []string{"project#admin", "project#member"}
	for _, g := range someGroups {
		on = append(on, "group:"+g+"#member")
	}
	for _, tool := range tools {
		on = append(on, "tool:"+tool+"#executor", "tool:"+tool+"#owner")
	}
	return rapid.SampledFrom(on).Draw(t, "relation") + "@" + subject
}

// edit makes a random change of the catalog and its grants.
func (s *site) edit(t *rapid.T, grants func(*rapid.T, []string) string) func(*quartermaster.Draft) error {
	name := rapid.SampledFrom(someTools).Draw(t, "tool")
	other := rapid.SampledFrom(someTools).Draw(t, "other")
	what := rapid.SampledFrom([]string{"grant", "grant", "grant", "grant", "revoke", "revoke", "revoke all", "create", "delete", "rename"}).Draw(t, "change")
	return func(d *quartermaster.Draft) error {
		var tools []string
		for _, tool := range d.Catalog().Tools() {
			tools = append(tools, tool.Name)
		}
		switch has := d.Tool(name) != nil; {
		case what == "grant":
			_, _, err := d.Grant(grantText(grants(t, tools)))
			if quartermaster.CodeOf(err) == quartermaster.CodeInvalidRequest {
				return nil // a group that would be part of itself
			}
			return err
		case what == "revoke":
			g := grantText(grants(t, tools))
			d.Revoke(quartermaster.GrantFilter{Subject: g.Subject, Relation: g.Relation, Resource: g.Resource})
		case what == "revoke all":
			d.Revoke(quartermaster.GrantFilter{Subject: "user:" + rapid.SampledFrom(someUsers).Draw(t, "user")})
		case what == "create" && !has:
			_, err := d.CreateTool(quartermaster.Tool{Name: name, Provider: "native"})
			return err
		case what == "delete" && has:
			return d.DeleteTool(name)
		case what == "rename" && has && d.Tool(other) == nil:
			_, err := d.UpdateTool(name, func(tool *quartermaster.Tool) error { tool.Name = other; return nil })
			return err
		}
		return nil
	}
}

// GATE-6, GATE-2: whatever is granted, revoked, made, renamed and deleted: after
// every change that has returned, what is kept is what SpiceDB says, while others
// ask all the time.
func testProperty(t *testing.T, o Options) {
	o.LocalOperator = true
	s := open(t, o)
	s.property(t, drawGrant)
}

func (s *site) property(t *testing.T, grants func(*rapid.T, []string) string) {
	done := make(chan struct{})
	var asking sync.WaitGroup
	for i := range 2 {
		asking.Go(func() {
			for n := i; ; n++ {
				select {
				case <-done:
					return
				default:
					s.allowed(t, someUsers[n%len(someUsers)])
				}
			}
		})
	}
	defer asking.Wait()
	defer close(done)
	rapid.Check(t, func(rt *rapid.T) {
		for range rapid.IntRange(1, 8).Draw(rt, "changes") {
			s.change(t, s.edit(rt, grants))
			s.mustAgree(t, someUsers...)
		}
	})
}

// GATE-6: several change one project at once, each about somebody else. Each sees
// the own change as soon as it has returned.
func testConcurrent(t *testing.T, o Options) {
	s := open(t, o)
	s.tools(t, "a", "b", "c")
	s.grant(t, "tool:c#executor@group:all#member")
	var writers sync.WaitGroup
	for i := range 4 {
		writers.Go(func() {
			user := fmt.Sprintf("user%d", i)
			for n := range 10 {
				has := []string{"", "c", "a c", "a"}[n%4]
				switch n % 4 {
				case 1:
					s.grant(t, "group:all#member@user:"+user)
				case 2:
					s.grant(t, "tool:a#executor@user:"+user)
				case 3:
					s.revoke(t, "group:all#member@user:"+user)
				case 0:
					if n > 0 {
						s.revoke(t, "tool:a#executor@user:"+user)
					}
				}
				if got := s.allowed(t, user); got != has {
					t.Errorf("%s may execute %q, want %q", user, got, has)
				}
				s.mustAgree(t, user)
			}
		})
	}
	writers.Wait()
}
