package resolve

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/RoaringBitmap/roaring/v2"
	"pgregory.net/rapid"

	"quartermaster"
)

// moving is a project whose catalog is replaced from time to time.
type moving struct {
	catalog atomic.Pointer[quartermaster.Catalog]
}

func (m *moving) Catalog(context.Context, string) (*quartermaster.Catalog, error) {
	return m.catalog.Load(), nil
}

// POOL-2, GATE-2: a resolver that has followed a project through its changes,
// asked now and then, answers as one that sees the project for the first time.
func TestFollowingEqualsFresh(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		catalogs := []*quartermaster.Catalog{randomCatalog(t)}
		var project moving
		project.catalog.Store(catalogs[0])
		old := New(&project, nil, nil)
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			newest := laterCatalog(t, catalogs[len(catalogs)-1])
			catalogs = append(catalogs, newest)
			for range rapid.IntRange(0, 2).Draw(t, "questions") {
				// Mostly the newest; at times a reader that has fallen behind.
				catalog := oneOf(t, "catalog", newest, newest, newest, catalogs[len(catalogs)-2], oneOf(t, "any", catalogs...))
				project.catalog.Store(catalog)
				caller := randomCaller(t)
				caller.Granted = []string{"*"}
				if mostly(t, "sees all") {
					caller.Groups, caller.Depth = []string{"*"}, 0
				}
				fresh, names := New(fixed{catalog}, nil, nil), everyName(catalog)
				if got, want := everything(t.Context(), old, caller, names), everything(t.Context(), fresh, caller, names); got != want {
					t.Fatalf("after %d changes\n%s\nwant\n%s", len(catalogs)-1, got, want)
				}
			}
		}
		checkIndex(t, old.indexOf(catalogs[len(catalogs)-1]))
	})
}

// GATE-2, AGT-5: what a change means to an agent that was asked about before.
func TestFollowing(t *testing.T) {
	const project = `
quartermaster: v1
servers: {s: {transport: stdio, command: x}}
tools: {a: {}, b: {}, s__r: {server: s}}
agents:
  m: {tools: [x, "q*"], allowed: [x, "q*", "z*", b], aliases: {x: a, y: late}}
bindings: {m: [b, s__r]}
`
	edit := func(ref string, change func(*quartermaster.Tool)) func(*quartermaster.Draft) error {
		return func(d *quartermaster.Draft) error {
			_, err := d.UpdateTool(ref, func(t *quartermaster.Tool) error { change(t); return nil })
			return err
		}
	}
	create := func(name string) func(*quartermaster.Draft) error {
		return func(d *quartermaster.Draft) error {
			_, err := d.CreateTool(quartermaster.Tool{Name: name, Enabled: true})
			return err
		}
	}
	for _, tt := range []struct {
		name string
		edit func(*quartermaster.Draft) error
		want string
	}{
		{"as it was", func(*quartermaster.Draft) error { return nil }, "b x"},
		{"a tool under its alias is changed", edit("a", func(t *quartermaster.Tool) { t.DisplayName = "new" }), "b x:new"},
		{"it is disabled", edit("a", func(t *quartermaster.Tool) { t.Enabled = false }), "b"},
		{"its name is another", edit("a", func(t *quartermaster.Tool) { t.Name = "c" }), "b"},
		{"a bound tool's name is another", edit("b", func(t *quartermaster.Tool) { t.Name = "zb" }), "x zb"},
		{"a bound tool becomes allowed", edit("s__r", func(t *quartermaster.Tool) { t.Name, t.Server, t.Provider = "zr", "", "" }), "b x zr"},
		{"a tool is matched", create("q"), "b q x"},
		{"the target of an alias is made", create("late"), "b x"},
		{"a tool is made that is called as an alias", create("x"), "b x"},
		{"a bound tool goes", func(d *quartermaster.Draft) error { return d.DeleteTool("b") }, "x"},
		{"the tool under an alias goes", func(d *quartermaster.Draft) error { return d.DeleteTool("a") }, "b"},
		{"a server goes", func(d *quartermaster.Draft) error { return d.DeleteServer("s") }, "b x"},
		{"another definition", func(d *quartermaster.Draft) error {
			_, _, err := d.PutAgent(quartermaster.Agent{ID: "m", Tools: []string{"a"}})
			return err
		}, "a b s__r"},
		{"no definition", func(d *quartermaster.Draft) error { return d.DeleteAgent("m") }, "b s__r"},
		{"no bindings", func(d *quartermaster.Draft) error {
			_, err := d.ReplaceBindings("m", []string{})
			return err
		}, "x"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			catalog := catalogOf(t, []byte(project))
			var project moving
			project.catalog.Store(catalog)
			r := New(&project, nil, nil)
			caller := quartermaster.Caller{Project: "default", Agent: "m"}
			before := shown(t, r, caller)
			d := catalog.Draft(time.Unix(2, 0))
			if err := tt.edit(d); err != nil {
				t.Fatal(err)
			}
			project.catalog.Store(d.Catalog())
			if got := shown(t, r, caller); got != tt.want {
				t.Errorf("%s, want %s", got, tt.want)
			}
			project.catalog.Store(catalog) // a reader that is one behind
			if got := shown(t, r, caller); got != before {
				t.Errorf("the catalog before it: %s, was %s", got, before)
			}
		})
	}
}

func shown(t *testing.T, r *Resolver, caller quartermaster.Caller) string {
	t.Helper()
	res, err := r.Resolve(t.Context(), caller, quartermaster.Question{})
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, tool := range res.Tools {
		if tool.DisplayName != "" {
			all = append(all, tool.Name+":"+tool.DisplayName)
		} else {
			all = append(all, tool.Name)
		}
	}
	return strings.Join(all, " ")
}

// checkIndex compares an index with one from nothing, set by set.
func checkIndex(t *rapid.T, ix *index) {
	fresh := newIndex(ix.catalog)
	if a, b := describe(ix), describe(fresh); a != b {
		t.Fatalf("the index is\n%s\nwant\n%s", a, b)
	}
}

func describe(ix *index) string {
	return fmt.Sprintln("every", names(ix, ix.every)) + fmt.Sprintln("live", names(ix, ix.live)) + fmt.Sprintln("any state", names(ix, ix.anyState)) +
		fmt.Sprintln(setNames(ix, ix.groups), setNames(ix, ix.states), setNames(ix, ix.servers))
}

func setNames(ix *index, sets map[string]*roaring.Bitmap) map[string][]string {
	all := map[string][]string{}
	for name, m := range sets {
		all[name] = names(ix, m)
	}
	return all
}

// manyTools makes n tools, t00000 and so on.
func manyTools(t testing.TB, n int) *quartermaster.Catalog {
	t.Helper()
	d := empty().Draft(time.Unix(1, 0))
	for i := range n {
		if _, err := d.CreateTool(quartermaster.Tool{Name: fmt.Sprintf("t%05d", i), Enabled: true}); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := d.PutAgent(quartermaster.Agent{ID: "m", Tools: []string{"t*7", "t0001?"}}); err != nil {
		t.Fatal(err)
	}
	return d.Catalog()
}

// A reach that has fallen further behind than what was touched is remembered
// for is compiled anew.
func TestFollowingFromAfar(t *testing.T) {
	const step = maxTouches*2/3 + 1
	catalog := manyTools(t, 3*step)
	var project moving
	project.catalog.Store(catalog)
	r := New(&project, nil, nil)
	caller := quartermaster.Caller{Project: "default", Agent: "m", Granted: []string{"*"}}
	listFor(t, r, caller)
	for from := range 3 {
		d := catalog.Draft(time.Unix(2, 0))
		for i := range step {
			if _, err := d.UpdateTool(fmt.Sprintf("t%05d", from*step+i), func(t *quartermaster.Tool) error { t.Name = "new" + t.Name; return nil }); err != nil {
				t.Fatal(err)
			}
		}
		catalog = d.Catalog()
		project.catalog.Store(catalog)
		r.indexOf(catalog) // somebody asks, but not about this agent
	}
	if got := listFor(t, r, caller); len(got) > 0 {
		t.Errorf("%d tools of the old names are listed: %v", len(got), got[0])
	}
	if ix := r.indexOf(catalog); len(ix.touches) > 2*step+maxTouches {
		t.Errorf("%d touches are kept", len(ix.touches))
	}
}

// A catalog that was read anew from the database at the same revision becomes
// the newest; it is not indexed on the side for every request.
func TestSameRevisionReadAnew(t *testing.T) {
	one, two := manyTools(t, 3), manyTools(t, 3)
	r := New(fixed{one}, nil, nil)
	if a, b := r.indexOf(one), r.indexOf(one); a != b {
		t.Error("the same catalog was indexed twice")
	}
	if a, b := r.indexOf(two), r.indexOf(two); a != b || a.catalog != two {
		t.Error("the catalog that was read anew is indexed for every request")
	}
	if a, b := r.indexOf(one), r.indexOf(one); a != b {
		t.Error("a reader one behind is indexed for every request")
	}
}

// Agents that are gone do not stay in memory for good.
func TestForgottenAgents(t *testing.T) {
	catalog := manyTools(t, 3)
	var project moving
	r := New(&project, nil, nil)
	for i := range 1000 {
		d := catalog.Draft(time.Unix(2, 0))
		id := fmt.Sprintf("agent %d", i)
		if _, _, err := d.PutAgent(quartermaster.Agent{ID: id, Tools: []string{"*"}}); err != nil {
			t.Fatal(err)
		}
		if i > 0 {
			_ = d.DeleteAgent(fmt.Sprintf("agent %d", i-1))
		}
		catalog = d.Catalog()
		project.catalog.Store(catalog)
		listFor(t, r, quartermaster.Caller{Project: "default", Agent: id})
	}
	for i := range 1000 {
		listFor(t, r, quartermaster.Caller{Project: "default", Agent: fmt.Sprintf("stranger %d", i)})
	}
	if n := len(r.indexOf(catalog).reaches.byAgent); n > 100 {
		t.Errorf("%d reaches are kept for two agents", n)
	}
}

// chosen is a project of which each reader has a catalog of its own choice.
type chosen struct{}

func (chosen) Catalog(ctx context.Context, _ string) (*quartermaster.Catalog, error) {
	return ctx.Value(chosen{}).(*quartermaster.Catalog), nil
}

// Invariant 7: readers of old and new catalogs, all at once, each get the truth
// of the catalog that they read.
func TestConcurrentReaders(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		catalogs := []*quartermaster.Catalog{randomCatalog(t)}
		for range 6 {
			catalogs = append(catalogs, laterCatalog(t, catalogs[len(catalogs)-1]))
		}
		caller := randomCaller(t)
		caller.Granted = []string{"*"}
		want := make([]string, len(catalogs))
		for i, c := range catalogs {
			want[i] = everything(t.Context(), New(fixed{c}, nil, nil), caller, toolWords)
		}
		r := New(chosen{}, nil, nil)
		var wg sync.WaitGroup
		for behind := range 4 {
			wg.Go(func() {
				for i := range catalogs {
					at := max(0, i-behind%3)
					ctx := context.WithValue(t.Context(), chosen{}, catalogs[at])
					if got := everything(ctx, r, caller, toolWords); got != want[at] {
						t.Errorf("catalog %d: %s\nwant\n%s", at, got, want[at])
					}
				}
			})
		}
		wg.Wait()
	})
}
