package quartermaster

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// PERM-2: a key is read back as what it was made of, so that two grants never
// have one.
func FuzzGrantKey(f *testing.F) {
	for _, seed := range [][3]string{
		{"tool:a", "executor", "user:alice"},
		{"group:日本 @:", "member", "user:a#b@c:d"},
		{"project", "admin", "group:a@b#member"},
		{"a/b/folder:x@y", "viewer", "folder:x:y"},
		{"group:a", "executor", "user:#@"},
		{"group:a@b", "executor", "user:*x"},
		{"group:\u2028", "executor", "user:\n"},
	} {
		f.Add(seed[0], seed[1], seed[2], "group:a", "executor", "user:b")
		f.Add("group:a", "executor", "user:b", seed[0], seed[1], seed[2])
	}
	f.Fuzz(func(t *testing.T, resource, relation, subject, resource2, relation2, subject2 string) {
		a, b := Grant{Resource: resource, Relation: relation, Subject: subject}, Grant{Resource: resource2, Relation: relation2, Subject: subject2}
		if len(a.faults()) > 0 || len(b.faults()) > 0 {
			return
		}
		if (a.Key() == b.Key()) != (a == b) {
			t.Errorf("%+v and %+v have the keys %q and %q", a, b, a.Key(), b.Key())
		}
		on, rest, _ := strings.Cut(a.Key(), "#")
		by, to, _ := strings.Cut(rest, "@")
		kept := NewGrant(on, by, to, time.Time{})
		if kept.Resource != resource || kept.Relation != relation || kept.Subject != subject || kept.Key() != a.Key() {
			t.Errorf("%q is read back as %+v, was %+v", a.Key(), kept, a)
		}
		if user, ok := kept.User(); ok && "user:"+user != subject {
			t.Errorf("user %q of %q", user, subject)
		}
		if len(a.Key()) > 1000 {
			t.Errorf("a key of %d bytes is more than an index takes together with others", len(a.Key()))
		}
	})
}

// GATE-6: whatever can be a user's id can be granted something.
func TestGrantToAnyUser(t *testing.T) {
	odd := []string{"*", "**", "#", "@", "a#member", "user:", ":", "a\nb", "日本", strings.Repeat("🛠", 63), strings.Repeat("x", 256)}
	rapid.Check(t, func(t *rapid.T) {
		id := rapid.OneOf(rapid.String(), rapid.SampledFrom(odd)).Draw(t, "id")
		g := Grant{Resource: "project", Relation: "member", Subject: "user:" + id}
		valid := CheckUserID("id", id) == nil && id != "*"
		if faults := g.faults(); valid != (len(faults) == 0) {
			t.Fatalf("%q: %v, want valid %t", id, faults, valid)
		}
		if to, relation := g.To(); to != (Object{TypeUser, id}) || relation != "" {
			t.Fatalf("%q is granted to %+v %q", id, to, relation)
		}
	})
}

// PERM-2
func TestGrantFaults(t *testing.T) {
	const (
		noRelation = "must be the name of a relation, such as executor"
		noResource = "must be tool:NAME, group:NAME or project"
		noSubject  = "must be user:ID or group:NAME#member"
		notAlone   = "must be project alone: a grant is always on its own project"
		noMember   = "a group as such can do nothing: write group:ops#member"
	)
	for _, tt := range []struct {
		resource, relation, subject string
		want                        []Fault
	}{
		{"tool:a", "executor", "user:alice", nil},
		{"group:ops", "member", "group:a b@c:d#member", nil},
		{"project", "admin", "user:a#b", nil},
		{"own/folder:x", "viewer", "own/folder:y#viewer", nil},
		{"own/folder:x", "viewer", "own/folder:y", nil},

		{"tool:a", "", "user:x", []Fault{{"relation", noRelation}}},
		{"tool:a", "Executor", "user:x", []Fault{{"relation", noRelation}}},
		{"tool:a", "a@b", "user:x", []Fault{{"relation", noRelation}}},
		{"tool:a", "executor\n", "user:x", []Fault{{"relation", noRelation}}},
		{"tool:a", strings.Repeat("x", 65), "user:x", []Fault{{"relation", noRelation}}},

		{"project:other", "admin", "user:x", []Fault{{"resource", notAlone}}},
		{"project:", "admin", "user:x", []Fault{{"resource", notAlone}}},
		{"projects", "admin", "user:x", []Fault{{"resource", noResource}}},
		{"tool", "executor", "user:x", []Fault{{"resource", noResource}}},
		{"tool:", "executor", "user:x", []Fault{{"resource", noResource}}},
		{"Tool:a", "executor", "user:x", []Fault{{"resource", noResource}}},
		{"a#b:c", "executor", "user:x", []Fault{{"resource", noResource}}},
		{strings.Repeat("abc/", 32) + "def:x", "executor", "user:x", []Fault{{"resource", noResource}}},
		{"tool:a b", "executor", "user:x", []Fault{{"resource", `"a b" is no name of a tool`}}},
		{"tool:*", "executor", "user:x", []Fault{{"resource", "* is nothing: name what it is granted on"}}},
		{"group:*", "member", "user:x", []Fault{{"resource", "* is nothing: name what it is granted on"}}},
		{"group:a#b", "member", "user:x", []Fault{{"resource", "the id must not contain #"}}},
		{"group:" + strings.Repeat("ä", 128), "member", "user:x", []Fault{{"resource", "the id must have at most 255 bytes, has 256"}}},
		{"group:\xff", "member", "user:x", []Fault{{"resource", "must be valid UTF-8"}}},
		{"group:a\x00", "member", "user:x", []Fault{{"resource", "must not contain a NUL character"}}},

		{"tool:a", "executor", "", []Fault{{"subject", noSubject}}},
		{"tool:a", "executor", "alice", []Fault{{"subject", noSubject}}},
		{"tool:a", "executor", "user:", []Fault{{"subject", noSubject}}},
		{"tool:a", "executor", "group:#member", []Fault{{"subject", noSubject}}},
		{"tool:a", "executor", "User:x", []Fault{{"subject", noSubject}}},
		{"tool:a", "executor", "project#member", []Fault{{"subject", noSubject}}},
		{"tool:a", "executor", "user:*", []Fault{{"subject", "* is nobody: grant it to a group"}}},
		{"tool:a", "executor", "group:*#member", []Fault{{"subject", "* is nobody: grant it to a group"}}},
		{"tool:a", "executor", "user:" + strings.Repeat("x", 256), []Fault{{"subject", "must have at most 255 bytes, has 256"}}},
		{"tool:a", "executor", "user:\xff", []Fault{{"subject", "must be valid UTF-8"}}},
		{"tool:a", "executor", "user:a\x00", []Fault{{"subject", "must not contain a NUL character"}}},
		{"tool:a", "executor", "group:ops", []Fault{{"subject", noMember}}},
		{"tool:a", "executor", "group:ops#", []Fault{{"subject", noMember}}},
		{"tool:a", "executor", "group:ops#Member", []Fault{{"subject", `"Member" is no name of a relation`}}},
		{"tool:a", "executor", "group:a#b#member", []Fault{{"subject", "the id must not contain #"}}},
		{"tool:a", "executor", "folder:x#", []Fault{{"subject", "must have the name of a relation after #, or no #"}}},
		{"tool:a", "executor", "tool:a b", []Fault{{"subject", `"a b" is no name of a tool`}}},

		{"", "", "", []Fault{{"relation", noRelation}, {"resource", noResource}, {"subject", noSubject}}},
	} {
		g := Grant{Resource: tt.resource, Relation: tt.relation, Subject: tt.subject}
		if got := g.faults(); !slices.Equal(got, tt.want) {
			t.Errorf("%.60q: %v, want %v", g.Key(), got, tt.want)
		}
	}
}

// granting is a draft with tools of every kind.
func granting(t *testing.T) *Draft {
	t.Helper()
	d := NewCatalog(Project{ID: "p"}).Draft(time.Now())
	mustPutServer(t, d, Server{Name: "files", Prefix: true})
	mustPutServer(t, d, Server{Name: "bare"})
	mustCreate(t, d, Tool{Name: "files__read", Server: "files"})
	mustCreate(t, d, Tool{Name: "list", Server: "bare"})
	mustCreate(t, d, Tool{Name: "own"})
	return d
}

// PERM-2, CAT-2: a tool is meant by its name, its id, or as @server/tool, and
// kept by its name.
func TestGrantTool(t *testing.T) {
	d := granting(t)
	id := d.Tool("own").ID
	for _, tt := range []struct{ tool, resource, want string }{
		{"own", "", "tool:own"},
		{"", "tool:own", "tool:own"},
		{"own", "tool:own", "tool:own"},
		{id, "", "tool:own"},
		{strings.ToUpper(id), "", "tool:own"},
		{id, "tool:own", "tool:own"},
		{id, "tool:" + id, "tool:own"},
		{"@files/read", "", "tool:files__read"},
		{"@files/read", "tool:@files/read", "tool:files__read"},
		{"@files/read", "tool:files__read", "tool:files__read"},
		{"@bare/list", "", "tool:list"},
		{"", "group:g", "group:g"},
		{"", "project", "project"},
		// The server may yet offer it: a project file names both at once.
		{"files__later", "", "tool:files__later"},
		{"", "tool:files__later", "tool:files__later"},
		{"@files/later", "", "tool:files__later"},
		{"bare__later", "", "tool:bare__later"},

		{"", "", "the grant is not valid: tool: must be the name of a tool, or resource something else"},
		{"unknown", "", `there is no tool "unknown"`},
		{"", "tool:unknown", `there is no tool "unknown"`},
		{"nowhere__later", "", `there is no tool "nowhere__later"`},
		{"@bare/later", "", `there is no tool "later"`}, // it would be called that, as anything could
		{"files__", "", `there is no tool "files__"`},
		{"@files/", "", `the grant tool:@files/#executor@user:x is not valid: resource: "@files/" is no name of a tool`},
		{"@nowhere/later", "", `the grant tool:@nowhere/later#executor@user:x is not valid: resource: "@nowhere/later" is no name of a tool`},
		{"", "tool:@files/read", `the grant tool:@files/read#executor@user:x is not valid: resource: "@files/read" is no name of a tool`},
		{"own", "tool:list", `the grant tool:list#executor@user:x is not valid: resource: is "tool:list", but tool is "own"`},
		{"own", "project", `the grant project#executor@user:x is not valid: resource: is "project", but tool is "own"`},
	} {
		grant, created, err := d.Catalog().Draft(time.Now()).Grant(Grant{Tool: tt.tool, Resource: tt.resource, Relation: "executor", Subject: "user:x"})
		if err != nil {
			if err.Error() != tt.want {
				t.Errorf("%q %q: %v, want %s", tt.tool, tt.resource, err, tt.want)
			}
			continue
		}
		name, isTool := strings.CutPrefix(tt.want, "tool:")
		if !created || grant.Resource != tt.want || isTool && grant.Tool != name || !isTool && grant.Tool != "" {
			t.Errorf("%q %q: granted %+v, want on %s", tt.tool, tt.resource, grant, tt.want)
		}
	}
}

// PERM-2: what is there stays as it is, since when it was.
func TestGrantTwice(t *testing.T) {
	alice := Grant{Tool: "own", Relation: "executor", Subject: "user:alice", CreatedAt: time.Unix(1, 0)}
	d := granting(t)
	first, created, err := d.Grant(alice)
	if err != nil || !created || first.CreatedAt != d.now {
		t.Fatalf("granted %+v, created %t: %v", first, created, err)
	}
	if again, created, err := d.Grant(alice); err != nil || created || again != first {
		t.Errorf("again %+v, created %t: %v", again, created, err)
	}
	d = d.Catalog().Draft(time.Now().Add(time.Hour))
	if again, created, err := d.Grant(alice); err != nil || created || again != first || len(d.Changes()) != 0 {
		t.Errorf("in another draft %+v, created %t: %v", again, created, err)
	}
	if gone := d.Revoke(GrantFilter{Subject: "user:alice"}); len(gone) != 1 || gone[0] != first {
		t.Errorf("revoked %v", gone)
	}
	if gone := d.Revoke(GrantFilter{Subject: "user:alice"}); gone != nil {
		t.Errorf("revoked twice: %v", gone)
	}
	if again, created, err := d.Grant(alice); err != nil || !created || again != first || len(d.Changes()) != 0 {
		t.Errorf("revoked and given back %+v, created %t: %v, %v", again, created, err, d.Diff())
	}
}

// PERM-2: a grant on what is no tool any more, as a cluster may have it, is no
// reason to refuse a file that repeats it.
func TestGrantThatIsThereNeedsNoTool(t *testing.T) {
	g := NewGrant("tool:gone", "executor", "user:alice", time.Now())
	d := NewCatalog(Project{ID: "p"}).With(1, []Change{{Noun: NounGrant, Key: g.Key(), Grant: g}}).Draft(time.Now())
	if again, created, err := d.Grant(Grant{Tool: "gone", Relation: "executor", Subject: "user:alice"}); err != nil || created || again != g {
		t.Errorf("again %+v, created %t: %v", again, created, err)
	}
	if _, _, err := d.Grant(Grant{Tool: "gone", Relation: "owner", Subject: "user:alice"}); CodeOf(err) != CodeToolNotFound {
		t.Errorf("another: %v", err)
	}
}

// CAT-5: grants in a file name tools by name, even where one looks like the id
// that another tool happens to have here.
func TestGrantNamesBeforeIDs(t *testing.T) {
	d := granting(t)
	c := d.Catalog()
	named := *c.ToolByName("own")
	named.Name = c.ToolByName("list").ID
	d = c.With(2, []Change{{Noun: NounTool, Key: named.ID, Tool: &named}}).Draft(time.Now())
	if g, _, err := d.Grant(Grant{Tool: named.Name, Relation: "executor", Subject: "user:alice"}); err != nil || g.Tool != named.Name {
		t.Errorf("granted %+v: %v", g, err)
	}
}

func grantKeys(grants []*Grant) string {
	var keys []string
	for _, g := range grants {
		keys = append(keys, g.Key())
	}
	return strings.Join(keys, " ")
}

// PERM-2: grants go with the tool that they are on, and a tool begins with none,
// whatever bore its name before.
func TestGrantsFollowTheirTool(t *testing.T) {
	type step = func(*Draft) error
	rename := func(ref, name string) step {
		return func(d *Draft) error {
			_, err := d.UpdateTool(ref, func(t *Tool) error { t.Name = name; return nil })
			return err
		}
	}
	remove := func(ref string) step { return func(d *Draft) error { return d.DeleteTool(ref) } }
	create := func(name string) step {
		return func(d *Draft) error { _, err := d.CreateTool(Tool{Name: name}); return err }
	}
	grant := func(tool, user string) step {
		return func(d *Draft) error {
			_, _, err := d.Grant(Grant{Tool: tool, Relation: "executor", Subject: "user:" + user})
			return err
		}
	}
	drop := func(server string) step { return func(d *Draft) error { return d.DeleteServer(server) } }

	d := granting(t)
	for _, g := range []step{grant("own", "alice"), grant("list", "bob"), grant("files__later", "carl")} {
		if err := g(d); err != nil {
			t.Fatal(err)
		}
	}
	c := d.Catalog()
	const (
		later = "tool:files__later#executor@user:carl"
		list  = "tool:list#executor@user:bob"
		own   = "tool:own#executor@user:alice"
	)
	for name, tt := range map[string]struct {
		steps []step
		want  []string
	}{
		"nothing":             {nil, []string{later, list, own}},
		"deleted":             {[]step{remove("own")}, []string{later, list}},
		"renamed":             {[]step{rename("own", "new")}, []string{later, list, "tool:new#executor@user:alice"}},
		"renamed and back":    {[]step{rename("own", "new"), rename("new", "own")}, []string{later, list, own}},
		"renamed and deleted": {[]step{rename("own", "new"), remove("new")}, []string{later, list}},
		"renamed, the name taken by another": {
			[]step{rename("own", "new"), create("own")},
			[]string{later, list, "tool:new#executor@user:alice"},
		},
		"names exchanged": {
			[]step{rename("own", "between"), rename("list", "own"), rename("between", "list")},
			[]string{later, "tool:list#executor@user:alice", "tool:own#executor@user:bob"},
		},
		"names exchanged, both granted to one": {
			[]step{grant("list", "alice"), rename("own", "between"), rename("list", "own"), rename("between", "list")},
			[]string{later, "tool:list#executor@user:alice", own, "tool:own#executor@user:bob"},
		},
		"deleted and made again": {[]step{remove("own"), create("own")}, []string{later, list}},
		"deleted, made again and granted": {
			[]step{remove("own"), create("own"), grant("own", "zoe")},
			[]string{later, list, "tool:own#executor@user:zoe"},
		},
		"deleted, made again and granted as before": {[]step{remove("own"), create("own"), grant("own", "alice")}, []string{later, list, own}},
		"granted and deleted":                       {[]step{grant("own", "zoe"), remove("own")}, []string{later, list}},
		"granted and renamed": {
			[]step{grant("own", "zoe"), rename("own", "new")},
			[]string{later, list, "tool:new#executor@user:alice", "tool:new#executor@user:zoe"},
		},
		"made, granted and deleted":                     {[]step{create("x"), grant("x", "zoe"), remove("x")}, []string{later, list, own}},
		"its server deleted":                            {[]step{drop("bare")}, []string{later, own}},
		"the server deleted that might have offered it": {[]step{drop("files")}, []string{list, own}},
		"granted and its server deleted":                {[]step{grant("files__more", "zoe"), drop("files")}, []string{list, own}},
		"named like a tool of the server that is deleted": {
			[]step{create("files__mine"), grant("files__mine", "zoe"), drop("files")},
			[]string{"tool:files__mine#executor@user:zoe", list, own},
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := c.Draft(time.Now())
			for _, step := range tt.steps {
				if err := step(d); err != nil {
					t.Fatal(err)
				}
			}
			want := strings.Join(tt.want, " ")
			if got := grantKeys(d.Grants(GrantFilter{})); got != want {
				t.Errorf("the draft has\n%s, want\n%s", got, want)
			}
			if got := d.Catalog().AllGrants(); grantKeys(got) != want || !slices.Equal(got, d.Grants(GrantFilter{})) {
				t.Errorf("the catalog has\n%s, want\n%s", grantKeys(got), want)
			}
		})
	}
	if got := grantKeys(c.AllGrants()); got != later+" "+list+" "+own { // Invariant 7
		t.Errorf("the base has become %s", got)
	}
}

// PERM-2: a filter chooses what looking at every grant would.
func TestGrantFilter(t *testing.T) {
	part := func(words string) *rapid.Generator[string] { return rapid.SampledFrom(strings.Split(words, " ")) }
	resource, relation, subject := part("group:a group:a! group:a-b group:aa group:b project tool:a tool:a.b"), part("member owner"), part("user:a user:b group:z#member")
	start := catalogWith(t, func(d *Draft) { mustCreate(t, d, Tool{Name: "a"}); mustCreate(t, d, Tool{Name: "a.b"}) })
	rapid.Check(t, func(t *rapid.T) {
		c := start
		var d *Draft
		for range 2 { // so that some are the catalog's and some the draft's
			d = c.Draft(time.Now())
			for range rapid.IntRange(0, 20).Draw(t, "steps") {
				g := Grant{Resource: resource.Draw(t, "resource"), Relation: relation.Draw(t, "relation"), Subject: subject.Draw(t, "subject")}
				if rapid.Bool().Draw(t, "revoke") {
					d.Revoke(GrantFilter{g.Subject, g.Relation, g.Resource})
				} else if _, _, err := d.Grant(g); err != nil {
					t.Fatal(err)
				}
			}
			c = d.Catalog()
		}
		all := c.AllGrants()
		if !slices.IsSortedFunc(all, func(a, b *Grant) int { return strings.Compare(a.Key(), b.Key()) }) {
			t.Fatalf("out of order: %s", grantKeys(all))
		}
		maybe := func(g *rapid.Generator[string]) string { return rapid.OneOf(rapid.Just(""), g).Draw(t, "filter") }
		filter := GrantFilter{maybe(subject), maybe(relation), maybe(resource)}
		var want []*Grant
		for _, g := range all {
			if filter.Match(g) {
				want = append(want, g)
			}
		}
		if got := c.Grants(filter); !slices.Equal(got, want) {
			t.Fatalf("%+v chooses %s, want %s", filter, grantKeys(got), grantKeys(want))
		}
		if got := d.Grants(filter); !slices.Equal(got, want) {
			t.Fatalf("in the draft %+v chooses %s, want %s", filter, grantKeys(got), grantKeys(want))
		}
		if gone := d.Revoke(filter); !slices.Equal(gone, want) || len(d.Grants(filter)) != 0 {
			t.Fatalf("%+v revokes %s, want %s", filter, grantKeys(gone), grantKeys(want))
		}
		if left := len(d.Catalog().AllGrants()); left != len(all)-len(want) {
			t.Fatalf("%d are left of %d", left, len(all))
		}
	})
}

// PERM-2: a filter that only spells the key of a grant does not choose it.
func TestGrantFilterTakesFieldsAsTheyAre(t *testing.T) {
	d := granting(t)
	if _, _, err := d.Grant(Grant{Resource: "group:a", Relation: "member", Subject: "user:x@user:y"}); err != nil {
		t.Fatal(err)
	}
	if got := d.Revoke(GrantFilter{Resource: "group:a", Relation: "member@user:x", Subject: "user:y"}); got != nil {
		t.Errorf("revoked %s", grantKeys(got))
	}
	if got := d.Revoke(GrantFilter{Resource: "group:a", Relation: "member", Subject: "user:x@user:y"}); len(got) != 1 {
		t.Errorf("revoked %d", len(got))
	}
}

// CAT-5: a person reads in a difference what was granted on what to whom.
func TestGrantDiff(t *testing.T) {
	d := granting(t)
	if _, _, err := d.Grant(Grant{Tool: "own", Relation: "executor", Subject: "user:alice"}); err != nil {
		t.Fatal(err)
	}
	d = d.Catalog().Draft(time.Now())
	d.Revoke(GrantFilter{})
	if _, _, err := d.Grant(Grant{Tool: "@files/read", Relation: "owner", Subject: "group:ops#member"}); err != nil {
		t.Fatal(err)
	}
	want := []Difference{
		{Action: "delete", Noun: NounGrant, Name: "tool:own#executor@user:alice"},
		{Action: "create", Noun: NounGrant, Name: "tool:files__read#owner@group:ops#member"},
	}
	if got := d.Diff(); !reflect.DeepEqual(got, want) {
		t.Errorf("difference %+v\nwant %+v", got, want)
	}
}

// clusterOf keeps grants by resource, and under "" all of them.
func clusterOf(grants ...*Grant) map[string][]*Grant {
	kept := map[string][]*Grant{}
	for _, g := range grants {
		kept[g.Resource] = append(kept[g.Resource], g)
		kept[""] = append(kept[""], g)
	}
	return kept
}

// PERM-1: a draft sees the grants that a cluster keeps, reads each resource once,
// and leaves what it changes to the cluster.
func TestGrantsOfACluster(t *testing.T) {
	kept := clusterOf(
		NewGrant("project", "admin", "user:dora", time.Time{}),
		NewGrant("tool:list", "owner", "user:bob", time.Time{}),
		NewGrant("tool:own", "executor", "user:alice", time.Time{}),
		NewGrant("tool:own", "executor", "user:carl", time.Time{}),
	)
	var asked []string
	draft := func() *Draft {
		asked = nil
		d := granting(t).Catalog().Draft(time.Now())
		d.ReadGrants(func(resource string) ([]*Grant, error) { asked = append(asked, resource); return kept[resource], nil })
		return d
	}
	d := draft()
	if g, created, err := d.Grant(Grant{Tool: "own", Relation: "executor", Subject: "user:alice"}); err != nil || created || g != kept["tool:own"][0] {
		t.Errorf("granted again: %v, created %t: %v", g, created, err)
	}
	if _, created, err := d.Grant(Grant{Tool: "own", Relation: "executor", Subject: "user:zoe"}); err != nil || !created {
		t.Errorf("created %t: %v", created, err)
	}
	if err := d.DeleteTool("list"); err != nil {
		t.Fatal(err)
	}
	if _, err := d.UpdateTool("own", func(t *Tool) error { t.Name = "new"; return nil }); err != nil {
		t.Fatal(err)
	}
	add, remove, err := d.TakeGrants()
	if got := grantKeys(add); err != nil || got != "tool:new#executor@user:alice tool:new#executor@user:carl tool:new#executor@user:zoe" {
		t.Errorf("to add: %s (%v)", got, err)
	}
	if got := grantKeys(remove); got != "tool:list#owner@user:bob tool:own#executor@user:alice tool:own#executor@user:carl" {
		t.Errorf("to remove: %s", got)
	}
	if slices.Sort(asked); !slices.Equal(asked, []string{"tool:list", "tool:new", "tool:own"}) {
		t.Errorf("asked for %q", asked)
	}
	for _, ch := range d.Changes() {
		if ch.Noun == NounGrant {
			t.Errorf("the store would keep %s", ch.Key)
		}
	}

	d = draft()
	for resource, want := range map[string]int{"": 4, "tool:own": 2, "tool:none": 0, "project": 1} {
		d.Grants(GrantFilter{})
		if got := d.Grants(GrantFilter{Resource: resource}); len(got) != want {
			t.Errorf("on %q: %s", resource, grantKeys(got))
		}
	}
	if !slices.Equal(asked, []string{""}) {
		t.Errorf("all were read, and then %q", asked)
	}
}

// GATE-1: a draft that could not see a cluster's grants says so.
func TestGrantsOfAClusterThatIsDown(t *testing.T) {
	d := granting(t).Catalog().Draft(time.Now())
	down := errors.New("down")
	d.ReadGrants(func(string) ([]*Grant, error) { return nil, down })
	if err := d.DeleteTool("own"); err != nil {
		t.Fatal(err)
	}
	if _, _, err := d.TakeGrants(); !errors.Is(err, down) {
		t.Errorf("what could not be read is %v, want the reason", err)
	}
}

// PERM-2: a group that were part of itself would be a question without an end.
func TestGrantCircle(t *testing.T) {
	member := func(group, of string) Grant {
		return Grant{Resource: "group:" + of, Relation: "member", Subject: "group:" + group + "#member"}
	}
	base := catalogWith(t, func(d *Draft) {
		for _, g := range []Grant{member("a", "b"), member("b", "c"), {Resource: "project", Relation: "member", Subject: "group:c#member"}} {
			if _, _, err := d.Grant(g); err != nil {
				t.Fatal(err)
			}
		}
	})
	for _, tt := range []struct {
		grant Grant
		fine  bool
	}{
		{member("a", "a"), false},
		{member("b", "a"), false},
		{member("c", "a"), false},
		{member("a", "c"), true},
		{member("d", "a"), true},
		{Grant{Resource: "group:a", Relation: "member", Subject: "project:p#member"}, false},
		{Grant{Resource: "group:a", Relation: "member", Subject: "project:p#admin"}, true},
		{Grant{Resource: "group:a", Relation: "owner", Subject: "group:a#member"}, true},
	} {
		d := base.Draft(time.Now())
		_, created, err := d.Grant(tt.grant)
		if created != tt.fine || (err == nil) != tt.fine || len(d.Changes()) > 0 != tt.fine {
			t.Errorf("%s: created %v, %v, changes %v", tt.grant.Key(), created, err, d.Changes())
		}
	}
	doc := Document{Version: "v1", Grants: []Grant{member("c", "b"), member("b", "a")}}
	if err := base.Draft(time.Now()).Apply(doc, false); err == nil || !strings.Contains(err.Error(), "grants[0].subject") {
		t.Errorf("beside what is there: %v", err)
	}
	if err := base.Draft(time.Now()).Apply(doc, true); err != nil {
		t.Errorf("in place of what is there: %v", err)
	}
}
