package quartermaster

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// entry is a thing with a key, and a number that tells versions apart.
type entry struct {
	key     string
	version int
}

func entryKey(e *entry) string { return e.key }

// Invariant 7: the next slice is what a naive rebuild gives, and the one it is
// made from stays as it was.
func TestEditsApply(t *testing.T) {
	key := rapid.SampledFrom(strings.Split("a b c d e f g h i j k l", " "))
	rapid.Check(t, func(t *rapid.T) {
		var base []*entry
		for _, k := range rapid.SliceOfDistinct(key, rapid.ID).Draw(t, "base") {
			base = append(base, &entry{k, 0})
		}
		order := func(a, b *entry) int { return strings.Compare(a.key, b.key) }
		slices.SortFunc(base, order)
		before := slices.Clone(base)
		model := slices.Clone(base)

		// Each thing changes at most once, as in a list of changes; its key may
		// change too, to one that is free in the end.
		var e edits[entry]
		for i, old := range rapid.Permutation(slices.Clone(base)).Draw(t, "order") {
			switch rapid.SampledFrom([]string{"keep", "remove", "replace", "rename"}).Draw(t, "edit") {
			case "remove":
				e.replace(old, nil)
				model = slices.DeleteFunc(model, func(x *entry) bool { return x == old })
			case "replace":
				next := &entry{old.key, i + 1}
				e.replace(old, next)
				model[slices.Index(model, old)] = next
			case "rename":
				next := &entry{key.Draw(t, "to"), i + 1}
				if !slices.ContainsFunc(model, func(x *entry) bool { return x.key == next.key }) {
					e.replace(old, next)
					model[slices.Index(model, old)] = next
				}
			}
		}
		for _, k := range rapid.SliceOfDistinct(key, rapid.ID).Draw(t, "new") {
			if !slices.ContainsFunc(model, func(x *entry) bool { return x.key == k }) {
				next := &entry{k, 100}
				e.replace(nil, next)
				model = append(model, next)
			}
		}
		slices.SortFunc(model, order)
		got := e.apply(base, entryKey)
		if !slices.Equal(got, model) {
			t.Fatalf("got %v, want %v", values(got), values(model))
		}
		if !slices.Equal(base, before) {
			t.Fatalf("the base became %v, was %v", values(base), values(before))
		}
		for _, x := range model {
			if find(got, x.key, entryKey) != x {
				t.Fatalf("%s is not found in %v", x.key, values(got))
			}
		}
	})
}

func values[T any](pointers []*T) []T {
	var all []T
	for _, p := range pointers {
		all = append(all, *p)
	}
	return all
}

// catalogWith makes a catalog by one edit of an empty project.
func catalogWith(t testing.TB, edit func(*Draft)) *Catalog {
	t.Helper()
	d := NewCatalog(Project{ID: "p"}).Draft(time.Now())
	edit(d)
	return d.Catalog()
}

func mustCreate(t testing.TB, d *Draft, tool Tool) *Tool {
	t.Helper()
	made, err := d.CreateTool(tool)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func mustPutServer(t testing.TB, d *Draft, s Server) {
	t.Helper()
	s.Transport, s.Command = TransportStdio, "x"
	if _, _, err := d.PutServer(s); err != nil {
		t.Fatal(err)
	}
}

// CAT-2: a tool is found by its name and as @server/tool, by no other words.
func TestToolReferences(t *testing.T) {
	var own *Tool
	c := catalogWith(t, func(d *Draft) {
		mustPutServer(t, d, Server{Name: "files", Prefix: true})
		mustPutServer(t, d, Server{Name: "bare"})
		mustCreate(t, d, Tool{Name: "files__read", Server: "files"})
		mustCreate(t, d, Tool{Name: "list", Server: "bare"})
		own = mustCreate(t, d, Tool{Name: "files__fake"})
		for ref, want := range map[string]string{"@files/read": "files__read", "@bare/list": "list", "@files/fake": "", "read": ""} {
			if got := d.Tool(ref); want == "" && got != nil || want != "" && (got == nil || got.Name != want) {
				t.Errorf("in the draft %s is %v, want %q", ref, got, want)
			}
		}
	})
	for ref, want := range map[string]string{
		"files__read": "files__read", "@files/read": "files__read", "@bare/list": "list", "list": "list",
		"files__fake": "files__fake", own.ID: "files__fake", strings.ToUpper(own.ID): "files__fake",
		"@files/fake": "", // it only looks as if it were of that server
		"@files/list": "", "@bare/files__read": "", "@nowhere/read": "", "@files": "", "@": "", "@/": "", "": "", "Files__read": "",
	} {
		got := ""
		if tool := c.Tool(ref); tool != nil {
			got = tool.Name
		}
		if got != want {
			t.Errorf("%q is %q, want %q", ref, got, want)
		}
	}
}

// CAT-2: a reference means one tool: no name is another tool's id, and no two
// tools of a server have one @server/tool.
func TestToolReferencesAreUnique(t *testing.T) {
	d := NewCatalog(Project{ID: "p"}).Draft(time.Now())
	mustPutServer(t, d, Server{Name: "files", Prefix: true})
	mustPutServer(t, d, Server{Name: "bare"})
	echo := mustCreate(t, d, Tool{Name: "echo"})
	mustCreate(t, d, Tool{Name: "files__read", Server: "files"})
	mustCreate(t, d, Tool{Name: "list", Server: "bare"})
	mustCreate(t, d, Tool{Name: "other", Server: "bare"})
	for _, tt := range []struct {
		tool Tool
		want string
	}{
		{Tool{Name: echo.ID}, "is the id of another tool"},
		{Tool{Name: echo.ID, ID: echo.ID}, "is the id of another tool"},
		{Tool{Name: strings.ToUpper(echo.ID)}, "is the id of another tool"},
		{Tool{Name: "read", Server: "files"}, "@files/read already means files__read"},
		{Tool{Name: "bare__list", Server: "bare"}, "@bare/list already means list"},
		{Tool{Name: "read", Server: "bare"}, ""},
		{Tool{Name: "bare__files__read", Server: "bare"}, ""},
		{Tool{Name: "files__list"}, ""},
		{Tool{Name: "files__files__read", Server: "files"}, ""},
	} {
		for what, try := range map[string]func(*Draft) error{
			"create": func(d *Draft) error { _, err := d.CreateTool(tt.tool); return err },
			"update": func(d *Draft) error {
				_, err := d.UpdateTool("other", func(t *Tool) error { *t = tt.tool; return nil })
				return err
			},
		} {
			err := try(d.Catalog().Draft(time.Now()))
			e, ok := errors.AsType[*Error](err)
			if tt.want == "" && err != nil || tt.want != "" && (!ok || len(e.Faults) != 1 || e.Faults[0] != Fault{"name", tt.want}) {
				t.Errorf("%s %s of %q: %v, want %q", what, tt.tool.Name, tt.tool.Server, err, tt.want)
			}
		}
	}
	// Its own id, and its own reference, mean itself.
	for _, name := range []string{echo.ID, "echo"} {
		if _, err := d.UpdateTool(echo.ID, func(t *Tool) error { t.Name = name; return nil }); err != nil {
			t.Error(err)
		}
	}
	if _, err := d.UpdateTool("list", func(t *Tool) error { t.Name = "bare__list"; return nil }); err != nil {
		t.Error(err)
	}
}

// Invariant 7, PERM-2: a grant is added or taken away by its key, and the catalog
// before stays as it was.
func TestWithGrants(t *testing.T) {
	a, b := NewGrant("group:a", "member", "user:x", time.Time{}), NewGrant("group:b", "member", "user:x", time.Time{})
	c := NewCatalog(Project{ID: "p"}).With(1, []Change{{Noun: NounGrant, Key: b.Key(), Grant: b}, {Noun: NounGrant, Key: a.Key(), Grant: a}})
	if got := grantKeys(c.AllGrants()); got != "group:a#member@user:x group:b#member@user:x" {
		t.Errorf("grants %s", got)
	}
	next := c.With(2, []Change{{Noun: NounGrant, Key: a.Key()}, {Noun: NounGrant, Key: "group:none#member@user:x"}})
	if got := grantKeys(next.AllGrants()); got != "group:b#member@user:x" || len(c.AllGrants()) != 2 {
		t.Errorf("grants %s", got)
	}
	if informed := c.WithGrants([]*Grant{a}); !informed.Informed() || c.Informed() || len(informed.AllGrants()) != 1 || len(c.AllGrants()) != 2 {
		t.Error("a catalog that is given a cluster's grants is another")
	}
}

// GATE-4: a tool's groups are its own, else its server's, else default.
func TestGroupsOf(t *testing.T) {
	c := catalogWith(t, func(d *Draft) {
		mustPutServer(t, d, Server{Name: "plain"})
		mustPutServer(t, d, Server{Name: "grouped", Groups: []string{"g"}})
		mustPutServer(t, d, Server{Name: "closed", Groups: []string{}})
		for i, tool := range []Tool{
			{},
			{Groups: []string{}},
			{Groups: []string{"a"}},
			{Server: "plain"},
			{Server: "grouped"},
			{Server: "grouped", Groups: []string{}},
			{Server: "grouped", Groups: []string{"a"}},
			{Server: "closed"},
		} {
			tool.Name, tool.Enabled = fmt.Sprint("t", i), true
			mustCreate(t, d, tool)
		}
	})
	want := []string{"[default]", "[]", "[a]", "[default]", "[g]", "[]", "[a]", "[]"}
	for i, tool := range c.Tools() {
		if got := fmt.Sprint(c.GroupsOf(tool)); got != want[i] {
			t.Errorf("%s: groups %s, want %s", tool.Name, got, want[i])
		}
	}
	if got := fmt.Sprint(c.Groups()); got != "[{a [t2 t6]} {default [t0 t3]} {g [t4]}]" { // WF-4
		t.Errorf("groups %s", got)
	}
}

// GATE-5, WF-4
func TestStates(t *testing.T) {
	c := catalogWith(t, func(d *Draft) {
		mustCreate(t, d, Tool{Name: "anywhere", Enabled: true})
		mustCreate(t, d, Tool{Name: "begin", Enabled: true, State: "open", AvailableInStates: []string{"undefined"}})
		mustCreate(t, d, Tool{Name: "never", Enabled: true, AvailableInStates: []string{}})
		mustCreate(t, d, Tool{Name: "off", State: "nowhere"})
		mustCreate(t, d, Tool{Name: "star", Enabled: true, AvailableInStates: []string{"*"}})
		mustCreate(t, d, Tool{Name: "work", Enabled: true, State: "done", AvailableInStates: []string{"open"}})
	})
	want := "[{done [anywhere star] [work]} {open [anywhere star work] [begin]} {undefined [anywhere begin star] []}]"
	if got := fmt.Sprint(c.States()); got != want {
		t.Errorf("states %s\nwant   %s", got, want)
	}
}

// BIND-4, BIND-7: a deleted tool is in no list and in no set.
func TestWithPurgesBindings(t *testing.T) {
	var a, b *Tool
	c := catalogWith(t, func(d *Draft) {
		a, b = mustCreate(t, d, Tool{Name: "a", Enabled: true}), mustCreate(t, d, Tool{Name: "b", Enabled: true})
		_, errX := d.ReplaceBindings("x", []string{a.ID, b.ID})
		_, errY := d.ReplaceBindings("y", []string{a.ID})
		if errX != nil || errY != nil {
			t.Fatal(errX, errY)
		}
	})
	next := c.With(9, []Change{{Noun: NounTool, Key: a.ID}})
	if got := next.AllBindings(); len(got) != 1 || got[0].Agent != "x" || len(got[0].Tools) != 1 || got[0].Tools[0].ToolID != b.ID {
		t.Errorf("bindings %+v, want b of x", got)
	}
	if next.Revision() != 9 || c.Revision() == 9 || len(c.AllBindings()) != 2 || c.ToolByID(a.ID) == nil {
		t.Errorf("the base has changed: %+v", c)
	}
}
