package storetest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"quartermaster"
)

func grant(resource, relation, subject string) func(*quartermaster.Draft) error {
	return func(d *quartermaster.Draft) error {
		_, _, err := d.Grant(quartermaster.Grant{Resource: resource, Relation: relation, Subject: subject})
		return err
	}
}

func revoke(f quartermaster.GrantFilter) func(*quartermaster.Draft) error {
	return func(d *quartermaster.Draft) error { d.Revoke(f); return nil }
}

func grantKeys(c *quartermaster.Catalog) []string {
	keys := []string{}
	for _, g := range c.AllGrants() {
		keys = append(keys, g.Key())
	}
	return keys
}

// PERM-1: what is granted survives, to the letter and to the microsecond.
func testGrant(f *fixture) {
	f.tools("a", "A", "b.c-d")
	var want []string
	var edits []func(*quartermaster.Draft) error
	for _, resource := range []string{"tool:a", "tool:A", "tool:b.c-d", "group:ops", "group:Ops", "group:日本 \u2028<&>\"\\'", "project", "folder:x:y@z"} {
		for _, subject := range []string{
			"user:alice", "user:Alice", "user:a#b@c:d", "user: \n\t", "user:日本 \u2028<&>\"\\'", "user:" + strings.Repeat("🛠", 63), "group:ops#member", "group:a@b#member", "folder:x",
		} {
			edits = append(edits, grant(resource, "executor", subject))
			want = append(want, resource+"#executor@"+subject)
		}
	}
	give := func(d *quartermaster.Draft) error {
		var errs []error
		for _, edit := range edits {
			errs = append(errs, edit(d))
		}
		return errors.Join(errs...)
	}
	first := f.change(give)
	slices.Sort(want)
	if got := grantKeys(first); !slices.Equal(got, want) {
		f.Errorf("grants\n%q, want\n%q", got, want)
	}
	if at := first.AllGrants()[0].CreatedAt; time.Since(at) > time.Minute || !at.Equal(at.Truncate(time.Microsecond)) {
		f.Errorf("created %s", at)
	}
	f.survives(first)
	if again := f.change(give); again.Revision() != first.Revision() {
		f.Error("granting the same again is a change")
	}

	second := f.change(revoke(quartermaster.GrantFilter{Subject: "user:alice"}))
	if n := len(second.AllGrants()); n != len(want)-8 {
		f.Errorf("%d grants are left, want 8 less than %d", n, len(want))
	}
	f.survives(second)
	f.survives(f.change(grant("tool:a", "executor", "user:alice")))
	f.refused(quartermaster.CodeToolNotFound, grant("tool:unknown", "executor", "user:alice"))
	f.refused(quartermaster.CodeInvalidRequest, grant("tool:a", "executor", "user:*"))
	f.survives(f.change(revoke(quartermaster.GrantFilter{})))
	if n := len(f.catalog().AllGrants()); n != 0 {
		f.Errorf("%d grants are left", n)
	}
}

// PERM-2: grants go with their tool, within one draft too.
func testGrantsFollowTools(f *fixture) {
	ids := f.tools("a", "b", "c")
	f.change(func(d *quartermaster.Draft) error {
		return errors.Join(grant("tool:a", "executor", "user:x")(d), grant("tool:b", "owner", "user:y")(d), grant("tool:c", "owner", "user:z")(d))
	})
	was := f.catalog().AllGrants()
	c := f.change(func(d *quartermaster.Draft) error {
		return errors.Join(rename("a", "between")(d), rename("b", "a")(d), rename(ids[0], "b")(d), d.DeleteTool("c"))
	})
	if got, want := grantKeys(c), []string{"tool:a#owner@user:y", "tool:b#executor@user:x"}; !slices.Equal(got, want) {
		f.Errorf("after names have changed hands: %q, want %q", got, want)
	}
	if !c.AllGrants()[1].CreatedAt.Equal(was[0].CreatedAt) {
		f.Error("what moved has lost its time")
	}
	f.survives(c)
	// A new tool of the name of a deleted one is another: nobody may use it.
	f.tools("c")
	if got := f.catalog().Grants(quartermaster.GrantFilter{Resource: "tool:c"}); len(got) != 0 {
		f.Errorf("granted on a new tool: %v", got)
	}
	c = f.change(func(d *quartermaster.Draft) error {
		err := d.DeleteTool("a")
		_, created := d.CreateTool(quartermaster.Tool{Name: "a"})
		return errors.Join(err, created, grant("tool:a", "executor", "user:new")(d))
	})
	if got, want := grantKeys(c), []string{"tool:a#executor@user:new", "tool:b#executor@user:x"}; !slices.Equal(got, want) {
		f.Errorf("deleted, made anew and granted: %q, want %q", got, want)
	}
	f.survives(c)

	f.change(putServer("s"))
	f.change(grant("tool:s__later", "executor", "user:x")) // which the server may yet offer
	c = f.change(func(d *quartermaster.Draft) error { return d.DeleteServer("s") })
	if got := c.Grants(quartermaster.GrantFilter{Resource: "tool:s__later"}); len(got) != 0 {
		f.Errorf("granted on a tool of no server: %v", got)
	}
	f.survives(c)
}

// PERM-2: more than fit into one statement.
func testGrantsMany(f *fixture) {
	const n = 20_001
	f.tools("a")
	begin := time.Now()
	c := f.change(func(d *quartermaster.Draft) error {
		for i := range n {
			if err := grant("tool:a", "executor", fmt.Sprintf("user:%05d", i))(d); err != nil {
				return err
			}
		}
		return nil
	})
	f.Logf("%d grants given in %s", n, time.Since(begin))
	f.survives(c)
	begin = time.Now()
	c = f.change(func(d *quartermaster.Draft) error {
		for i := range n - 1 {
			d.Revoke(quartermaster.GrantFilter{Resource: "tool:a", Relation: "executor", Subject: fmt.Sprintf("user:%05d", i)})
		}
		return nil
	})
	f.Logf("all but one revoked in %s", time.Since(begin))
	if got := grantKeys(c); len(got) != 1 {
		f.Errorf("%d grants are left, want one", len(got))
	}
	f.survives(c)
}

// SCALE-2, GATE-2: what one replica revokes is gone from the catalog of the
// others.
func testGrantsFollow(f *fixture) {
	if !f.db.Shared {
		f.Skip("one process at a time")
	}
	other := f.open()
	defer func() { _ = other.Close() }()
	f.tools("a")
	f.followedBy(other, f.change(func(d *quartermaster.Draft) error {
		return errors.Join(grant("tool:a", "executor", "user:x")(d), grant("tool:a", "executor", "user:y")(d), putPolicy("p", "package p")(d))
	}))
	c := f.change(func(d *quartermaster.Draft) error {
		return errors.Join(revoke(quartermaster.GrantFilter{Subject: "user:x"})(d), d.DeletePolicy("p"))
	})
	if seen := f.followedBy(other, c); !slices.Equal(grantKeys(seen), []string{"tool:a#executor@user:y"}) || len(seen.Policies()) != 0 {
		f.Errorf("the other replica has %q and %d policies", grantKeys(seen), len(seen.Policies()))
	}
}
