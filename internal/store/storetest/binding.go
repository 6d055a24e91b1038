package storetest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"quartermaster"
)

func (f *fixture) bind(agent string, ids ...string) *quartermaster.Catalog {
	f.Helper()
	return f.change(func(d *quartermaster.Draft) error {
		_, err := d.ReplaceBindings(agent, ids)
		return err
	})
}

func boundIDs(c *quartermaster.Catalog, agent string) []string {
	ids := []string{}
	for _, b := range c.Bindings(agent).Tools {
		ids = append(ids, b.ToolID)
	}
	return ids
}

func boundNames(c *quartermaster.Catalog, agent string, filter quartermaster.ToolFilter) string {
	var names []string
	for t := range c.Bound(agent, filter) {
		names = append(names, t.Name)
	}
	return strings.Join(names, " ")
}

func unboundNames(c *quartermaster.Catalog, agent string, filter quartermaster.ToolFilter) string {
	var names []string
	for t := range c.Unbound(agent, filter) {
		names = append(names, t.Name)
	}
	return strings.Join(names, " ")
}

func sorted(ids ...string) []string {
	ids = slices.Clone(ids)
	slices.Sort(ids)
	return slices.Compact(ids)
}

// BIND-3
func testBindingsReplace(f *fixture) {
	ids := f.tools("a", "b", "c")
	first := f.bind("x", ids[0], ids[1])
	createdAt := func(c *quartermaster.Catalog, id string) time.Time {
		for _, b := range c.Bindings("x").Tools {
			if b.ToolID == id {
				return b.CreatedAt
			}
		}
		f.Fatalf("%s is not bound", id)
		return time.Time{}
	}
	var answer []string
	second := f.change(func(d *quartermaster.Draft) (err error) {
		time.Sleep(time.Millisecond) // the two times differ, at any resolution
		answer, err = d.ReplaceBindings("x", []string{ids[2], ids[1], strings.ToUpper(ids[1]), ids[2]})
		return err
	})
	if !slices.Equal(answer, []string{ids[2], ids[1]}) {
		f.Errorf("answer %v, want them folded in the order given", answer)
	}
	if got := boundIDs(second, "x"); !slices.Equal(got, sorted(ids[1:]...)) {
		f.Errorf("bound %v, want %v", got, ids[1:])
	}
	if !createdAt(second, ids[1]).Equal(createdAt(first, ids[1])) || !createdAt(second, ids[2]).After(createdAt(first, ids[1])) {
		f.Errorf("created %v, before %v", second.Bindings("x"), first.Bindings("x"))
	}
	f.survives(second)
	if again := f.bind("x", ids[1], ids[2]); again.Revision() != second.Revision() {
		f.Error("the same set again is a change")
	}

	// One that is taken away and given back within one draft has stayed.
	c := f.change(func(d *quartermaster.Draft) error {
		_, err := d.ReplaceBindings("x", nil)
		_, again := d.ReplaceBindings("x", ids)
		return errors.Join(err, again)
	})
	if !createdAt(c, ids[1]).Equal(createdAt(first, ids[1])) {
		f.Errorf("created %v, want %v", createdAt(c, ids[1]), createdAt(first, ids[1]))
	}
	f.survives(c)

	c = f.change(func(d *quartermaster.Draft) error {
		_, err := d.ChangeBindings("x", []string{ids[0]}, []string{strings.ToUpper(ids[1]), "unknown"})
		return err
	})
	if got := boundIDs(c, "x"); !slices.Equal(got, sorted(ids[0], ids[2])) {
		f.Errorf("bound %v, want a and c", got)
	}
	f.survives(c)

	// Agents are exactly what they are called.
	f.bind("X", ids[1])
	f.bind("x ", ids[1])
	c = f.bind("x")
	if len(boundIDs(c, "x")) != 0 || len(boundIDs(c, "X")) != 1 || len(boundIDs(c, "x ")) != 1 {
		f.Errorf("bindings %v", c.AllBindings())
	}
	f.survives(c)
}

// BIND-3: one bad id and nothing changes; all of them are told.
func testBindingsInvalid(f *fixture) {
	ids := f.tools("a", "b", "off")
	f.change(enable("off", false))
	f.bind("x", ids[0])
	unknown := quartermaster.NewID()
	bad := []string{"nonsense", ids[2], unknown, "", "a", strings.ToUpper(unknown), "nonsense", ids[1] + " "}
	edits := map[string]func(*quartermaster.Draft) error{
		"replace": func(d *quartermaster.Draft) error {
			_, err := d.ReplaceBindings("x", append([]string{ids[1]}, bad...))
			return err
		},
		"change": func(d *quartermaster.Draft) error {
			_, err := d.ChangeBindings("x", append([]string{ids[1]}, bad...), ids[:1])
			return err
		},
	}
	for name, edit := range edits {
		e := f.refusal(quartermaster.CodeInvalidToolIDs, edit)
		want := []string{"nonsense", ids[2], unknown, "", "a", ids[1] + " "}
		if got := e.Details["invalidIds"]; !reflect.DeepEqual(got, want) {
			f.Errorf("%s: invalid %v, want %v", name, got, want)
		}
	}
	for _, agent := range []string{"", strings.Repeat("ä", 256), "a\x00b", "\xff"} { // BIND-6
		if e := f.refusal(quartermaster.CodeInvalidRequest, func(d *quartermaster.Draft) error {
			_, err := d.ReplaceBindings(agent, ids[:1])
			return err
		}); e.Faults[0].Location != "agentId" {
			f.Errorf("agent %q: %v", agent, e.Faults)
		}
	}
	f.survives(f.bind(strings.Repeat("🛠", 255), ids[0]))
}

// BIND-4
func testBindingsLists(f *fixture) {
	ids := f.tools("b", "a", "B", "_", "c")
	all := "B _ a b c echo list_available_agents spawn_agents time_now" // by bytes
	check := func(c *quartermaster.Catalog, agent string, filter quartermaster.ToolFilter, bound, unbound string) {
		f.Helper()
		if got := boundNames(c, agent, filter); got != bound {
			f.Errorf("%s %+v: bound %q, want %q", agent, filter, got, bound)
		}
		if got := unboundNames(c, agent, filter); got != unbound {
			f.Errorf("%s %+v: unbound %q, want %q", agent, filter, got, unbound)
		}
	}
	var none quartermaster.ToolFilter
	check(f.catalog(), "nobody", none, "", all)
	f.bind("x", ids[4], ids[0], ids[2])
	check(f.reopen(), "x", none, "B b c", "_ a echo list_available_agents spawn_agents time_now")
	check(f.change(enable("b", false)), "x", none, "B c", "_ a echo list_available_agents spawn_agents time_now")
	check(f.reopen(), "x", none, "B c", "_ a echo list_available_agents spawn_agents time_now")
	check(f.change(enable("b", true)), "x", none, "B b c", "_ a echo list_available_agents spawn_agents time_now")

	c := f.change(func(d *quartermaster.Draft) error {
		return errors.Join(
			update("a", func(t *quartermaster.Tool) { t.DisplayName, t.Category = "NeedLe", "k" })(d),
			update("c", func(t *quartermaster.Tool) { t.Description, t.Category = "xneedlex ÄÖ", "k" })(d))
	})
	check(c, "x", quartermaster.ToolFilter{Text: "nEEDle"}, "c", "a")
	check(c, "x", quartermaster.ToolFilter{Text: "ÄÖ"}, "c", "")
	check(c, "x", quartermaster.ToolFilter{Text: "äö"}, "", "") // only ASCII is folded
	check(c, "x", quartermaster.ToolFilter{Category: "k"}, "c", "a")
	check(c, "x", quartermaster.ToolFilter{Category: "K"}, "", "")
	check(c, "x", quartermaster.ToolFilter{Text: "B", Category: "k"}, "", "")
	check(c, "x", quartermaster.ToolFilter{Text: "B"}, "B b", "list_available_agents")
}

// BIND-7: what follows a deletion in its draft does not bring the binding back.
func testBindingsOfDeletedToolInOneDraft(f *fixture) {
	ids := f.tools("a", "b", "c")
	f.bind("x", ids[0], ids[1])
	f.bind("y", ids[0])
	c := f.change(func(d *quartermaster.Draft) error {
		if _, err := d.ReplaceBindings("y", ids); err != nil {
			return err
		}
		if err := d.DeleteTool("a"); err != nil {
			return err
		}
		if got := d.Bindings("x").Tools; len(got) != 1 || got[0].ToolID != ids[1] {
			f.Errorf("the draft says %v, want b", got)
		}
		_, err := d.ChangeBindings("x", []string{ids[2]}, nil)
		return err
	})
	for _, agent := range []string{"x", "y"} {
		if got := boundIDs(c, agent); !slices.Equal(got, sorted(ids[1:]...)) {
			f.Errorf("%s has %v, want b and c", agent, got)
		}
	}
	f.survives(c)
}

// BIND-3: at least 10,000 ids.
func testBindingsMany(f *fixture) {
	names := make([]string, 10_000)
	for i := range names {
		names[i] = fmt.Sprintf("tool_%05d", i)
	}
	ids := f.tools(names...)
	begin := time.Now()
	c := f.bind("x", ids...)
	f.Logf("10,000 bindings replaced in %s", time.Since(begin))
	if got := boundIDs(c, "x"); !slices.Equal(got, sorted(ids...)) {
		f.Errorf("%d bound, want 10,000", len(got))
	}
	f.bind("x", ids[5_000:]...)
	c = f.change(func(d *quartermaster.Draft) error { return d.DeleteTool(ids[9_999]) })
	if got := boundIDs(c, "x"); !slices.Equal(got, sorted(ids[5_000:9_999]...)) {
		f.Errorf("%d bound, want 4,999", len(got))
	}
	f.survives(c)
}

// BIND-7: whatever happens at the same time, the outcome is that of the
// requests one after the other.
func testBindingsConcurrent(f *fixture) {
	const agents, workers, requests = 3, 8, 25
	stores := []Store{f.Store}
	if f.db.Shared {
		other := f.open()
		f.Cleanup(func() { _ = other.Close() })
		stores = append(stores, other)
	}
	var names []string
	for i := range 40 {
		names = append(names, fmt.Sprintf("tool_%d", i))
	}
	pool := f.tools(names...)

	// What was answered, and at which revision: the order of the requests.
	type request struct {
		revision int64
		set      []string
	}
	var (
		mu      sync.Mutex
		last    = map[string]request{}
		deleted = map[string]bool{}
	)
	work := func(store Store, rnd *rand.Rand, worker int) error {
		for i := range requests {
			mu.Lock()
			id, set, agent := pool[rnd.IntN(len(pool))], []string{}, fmt.Sprint("agent", rnd.IntN(agents))
			for _, x := range pool {
				if rnd.IntN(3) == 0 {
					set = append(set, x)
				}
			}
			mu.Unlock()
			var edit func(*quartermaster.Draft) error
			kind := rnd.IntN(10)
			switch kind {
			case 0:
				edit = func(d *quartermaster.Draft) error { return d.DeleteTool(id) }
			case 1, 2:
				edit = enable(id, kind == 1)
			case 3:
				edit = func(d *quartermaster.Draft) error {
					t, err := d.CreateTool(quartermaster.Tool{Name: fmt.Sprintf("new_%d_%d", worker, i), Enabled: true})
					if err == nil {
						id = t.ID
					}
					return err
				}
			default:
				edit = func(d *quartermaster.Draft) error {
					// Only what is active, or under this storm nearly all are refused.
					set = slices.DeleteFunc(slices.Clone(set), func(id string) bool {
						t := d.Tool(id)
						return rnd.IntN(50) > 0 && (t == nil || !t.Active())
					})
					_, err := d.ReplaceBindings(agent, set)
					return err
				}
			}
			c, err := store.Change(f.Context(), quartermaster.DefaultProject, edit)
			if code := quartermaster.CodeOf(err); err != nil && code != quartermaster.CodeInvalidToolIDs && code != quartermaster.CodeToolNotFound {
				return err
			}
			if err != nil {
				continue
			}
			mu.Lock()
			switch kind {
			case 0:
				deleted[id] = true
			case 1, 2:
			case 3:
				pool = append(pool, id)
			default:
				if r, ok := last[agent]; !ok || r.revision <= c.Revision() {
					last[agent] = request{c.Revision(), sorted(set...)}
				}
			}
			mu.Unlock()
		}
		return nil
	}
	var group sync.WaitGroup
	for worker := range workers {
		group.Go(func() {
			if err := work(stores[worker%len(stores)], rand.New(rand.NewPCG(1, uint64(worker))), worker); err != nil {
				f.Error(err)
			}
		})
	}
	group.Wait()

	// A replica may be a moment behind; a change that changes nothing looks.
	c := f.change(func(*quartermaster.Draft) error { return nil })
	f.same(c, f.reopen())
	f.Logf("%d tools deleted, revision %d", len(deleted), c.Revision())
	for agent, r := range last {
		want := slices.DeleteFunc(r.set, func(id string) bool { return deleted[id] })
		if got := boundIDs(f.catalog(), agent); !slices.Equal(got, want) {
			f.Errorf("%s has %v, want those of the last request less the deleted, %v", agent, got, want)
		}
	}
	for _, b := range f.catalog().AllBindings() {
		for i, x := range b.Tools {
			if f.catalog().ToolByID(x.ToolID) == nil {
				f.Errorf("orphan: %s of %s", x.ToolID, b.Agent)
			}
			if i > 0 && b.Tools[i-1].ToolID >= x.ToolID {
				f.Errorf("duplicate or out of order: %s of %s", x.ToolID, b.Agent)
			}
		}
	}
}
