package resolve

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"quartermaster"
)

var sizes = []int{100, 1_000, 10_000, 100_000}

const large = 100_000

// bigCatalog has n tools on n/100 servers. Agents: "fifty" reaches 50 tools by
// globs, "names" the same by name, "bound" by bindings, "all" everything,
// "narrowed" everything that 50 globs allow, "renamed" everything, 50 of it under
// aliases. Ten tools are in group rare, ten others only in state rare.
func bigCatalog(b testing.TB, n int) *quartermaster.Catalog {
	b.Helper()
	bigMu.Lock()
	defer bigMu.Unlock()
	if c := big[n]; c != nil {
		return c
	}
	var changes []quartermaster.Change
	for i := range n / 100 {
		s := &quartermaster.Server{Name: fmt.Sprintf("srv%04d", i), Transport: quartermaster.TransportStdio, Command: "x", Enabled: true, Prefix: true}
		changes = append(changes, quartermaster.Change{Noun: quartermaster.NounServer, Key: s.Name, Server: s})
	}
	ids := make([]string, n)
	for i := range n {
		server := fmt.Sprintf("srv%04d", i/100)
		t := &quartermaster.Tool{
			ID: quartermaster.NewID(), Name: fmt.Sprintf("%s__tool%02d", server, i%100), Server: server,
			Description: "does what it does", Provider: quartermaster.ProviderMCP, Enabled: true, Version: 1,
		}
		switch i % (n / 10) {
		case 1:
			t.Groups = []string{"default", "rare"}
		case 2:
			t.AvailableInStates = []string{"rare"}
		}
		ids[i] = t.ID
		changes = append(changes, quartermaster.Change{Noun: quartermaster.NounTool, Key: t.ID, Tool: t})
	}
	aliases := map[string]string{}
	for i := range 50 {
		aliases[fmt.Sprintf("alias%d", i)] = fmt.Sprintf("@srv%04d/tool%02d", i*n/100/50, i)
	}
	for id, a := range map[string]quartermaster.Agent{
		"fifty":    {Tools: fiftyGlobs(n, 0)},
		"names":    {Tools: fiftyNames(n)},
		"all":      {Tools: []string{"*"}},
		"narrowed": {Tools: []string{"*"}, Allowed: fiftyGlobs(n, 0)},
		"renamed":  {Tools: []string{"*"}, Aliases: aliases},
	} {
		a.ID, a.MaxDepth = id, 2
		changes = append(changes, quartermaster.Change{Noun: quartermaster.NounAgent, Key: id, Agent: &a})
	}
	changes = append(changes, bindingsOf("bound", ids, 50, 0))
	c := empty().With(1, changes)
	big[n] = c
	return c
}

var (
	bigMu sync.Mutex
	big   = map[int]*quartermaster.Catalog{}
)

// fiftyGlobs match one tool each.
func fiftyGlobs(n, shift int) []string {
	var globs []string
	for i := range 50 {
		globs = append(globs, fmt.Sprintf("srv%04d__t*l%02d", (i*n/100/50+shift)%(n/100), i))
	}
	return globs
}

func fiftyNames(n int) []string {
	var names []string
	for i := range 50 {
		names = append(names, fmt.Sprintf("srv%04d__tool%02d", i*n/100/50, i))
	}
	return names
}

func bindingsOf(agent string, ids []string, n, shift int) quartermaster.Change {
	b := &quartermaster.Bindings{Agent: agent}
	for i := range n {
		b.Tools = append(b.Tools, quartermaster.Binding{ToolID: ids[(i*len(ids)/n+shift)%len(ids)], CreatedAt: time.Unix(1, 0)})
	}
	slices.SortFunc(b.Tools, func(x, y quartermaster.Binding) int { return compareStrings(x.ToolID, y.ToolID) })
	return quartermaster.Change{Noun: quartermaster.NounBindings, Key: agent, Bindings: b}
}

func compareStrings(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

func benchCaller(agent string) quartermaster.Caller {
	return quartermaster.Caller{Project: "default", Agent: agent, User: "u", Granted: []string{"*"}}
}

// ask does not mark itself as a helper: that would cost more than a gate.
func ask(b *testing.B, r *Resolver, caller quartermaster.Caller, q quartermaster.Question, want int) {
	res, err := r.Resolve(context.Background(), caller, q)
	if err != nil || len(res.Tools) != want {
		b.Fatalf("%d tools, %v; want %d", len(res.Tools), err, want)
	}
}

// One name, admitted or refused.
func BenchmarkAdmit(b *testing.B) {
	for _, n := range sizes {
		catalog := bigCatalog(b, n)
		r := New(fixed{catalog}, nil, nil)
		for _, bb := range []struct {
			name, agent string
			tools       []string
			want        int
		}{
			{"admitted", "names", reachedNames(catalog, "names"), 1},
			{"everything", "all", allNames(catalog), 1},
			{"refused", "fifty", []string{fmt.Sprintf("srv%04d__tool99", n/200)}, 0},
			{"unknown", "fifty", []string{"srv0000__unknown"}, 0},
		} {
			b.Run(fmt.Sprintf("%s/tools=%d", bb.name, n), func(b *testing.B) {
				b.ReportAllocs()
				caller, i := benchCaller(bb.agent), 0
				ask(b, r, caller, quartermaster.Question{Tool: bb.tools[0]}, bb.want)
				for b.Loop() {
					// A stride that is prime to the number: no name is in the cache.
					ask(b, r, caller, quartermaster.Question{Tool: bb.tools[i%len(bb.tools)]}, bb.want)
					i += 7919
				}
			})
		}
	}
}

// reachedNames are those of an agent's tools that are available in any state.
func reachedNames(c *quartermaster.Catalog, agent string) []string {
	return slices.DeleteFunc(slices.Clone(c.Agent(agent).Tools), func(name string) bool { return c.ToolByName(name).AvailableInStates != nil })
}

func allNames(c *quartermaster.Catalog) []string {
	var names []string
	for _, t := range c.Tools() {
		if t.AvailableInStates == nil {
			names = append(names, t.Name)
		}
	}
	return names
}

// A list of 50 tools costs the same however many others there are.
func BenchmarkListFifty(b *testing.B) {
	for _, agent := range []string{"fifty", "bound"} {
		for _, n := range sizes {
			b.Run(fmt.Sprintf("%s/tools=%d", agent, n), func(b *testing.B) {
				b.ReportAllocs()
				r, caller := New(fixed{bigCatalog(b, n)}, nil, nil), benchCaller(agent)
				caller.State = "rare"
				ask(b, r, caller, quartermaster.Question{}, 50)
				for b.Loop() {
					ask(b, r, caller, quartermaster.Question{}, 50)
				}
			})
		}
	}
}

// A list of everything, per tool.
func BenchmarkListEverything(b *testing.B) {
	for _, agent := range []string{"all", "renamed"} {
		for _, n := range sizes {
			b.Run(fmt.Sprintf("%s/tools=%d", agent, n), func(b *testing.B) {
				b.ReportAllocs()
				r, caller := New(fixed{bigCatalog(b, n)}, nil, nil), benchCaller(agent)
				ask(b, r, caller, quartermaster.Question{}, n-10)
				for b.Loop() {
					ask(b, r, caller, quartermaster.Question{}, n-10)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/tool")
			})
		}
	}
}

// An agent that reaches everything asks for a group with ten tools; the loop over
// all tools that this saves stands beside it.
func BenchmarkListRare(b *testing.B) {
	for _, n := range sizes {
		catalog := bigCatalog(b, n)
		caller := benchCaller("all")
		caller.Groups = []string{"rare"}
		b.Run(fmt.Sprintf("index/tools=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			r := New(fixed{catalog}, nil, nil)
			ask(b, r, caller, quartermaster.Question{}, 10)
			for b.Loop() {
				ask(b, r, caller, quartermaster.Question{}, 10)
			}
		})
		b.Run(fmt.Sprintf("scan/tools=%d", n), func(b *testing.B) {
			for b.Loop() {
				found := 0
				for _, t := range catalog.Tools() {
					if t.Enabled && catalog.Server(t.Server).Enabled && t.AvailableIn("undefined") && slices.Contains(catalog.GroupsOf(t), "rare") {
						found++
					}
				}
				if found != 10 {
					b.Fatal(found)
				}
			}
		})
	}
}

// After one change, the next list of an agent with 50 globs: the next index and
// the followed reach.
func BenchmarkAfterChange(b *testing.B) {
	for _, n := range []int{1_000, large} {
		first := bigCatalog(b, n)
		target := first.ToolByName(fmt.Sprintf("srv%04d__tool01", n/200))
		extra := &quartermaster.Tool{ID: quartermaster.NewID(), Name: "srv0005__zadded", Server: "srv0005", Enabled: true}
		agent := *first.Agent("fifty")
		tool := func(t *quartermaster.Tool, id string) func(*quartermaster.Catalog) quartermaster.Change {
			return func(*quartermaster.Catalog) quartermaster.Change {
				if t == nil {
					return quartermaster.Change{Noun: quartermaster.NounTool, Key: id}
				}
				next := *t
				next.Version++
				return quartermaster.Change{Noun: quartermaster.NounTool, Key: id, Tool: &next}
			}
		}
		for _, bb := range []struct {
			name   string
			before func(*quartermaster.Catalog) quartermaster.Change // not measured
			change func(*quartermaster.Catalog) quartermaster.Change
			agent  string
			want   int
		}{
			{"tool changed", nil, tool(target, target.ID), "fifty", 50},
			{"tool added", tool(nil, extra.ID), tool(extra, extra.ID), "fifty", 50},
			{"tool removed", tool(extra, extra.ID), tool(nil, extra.ID), "fifty", 50},
			{"tool changed, bound", nil, tool(target, target.ID), "bound", 50},
			{"tool changed, narrowed", nil, tool(target, target.ID), "narrowed", 50},
			{"definition changed", nil, func(*quartermaster.Catalog) quartermaster.Change {
				next := agent
				return quartermaster.Change{Noun: quartermaster.NounAgent, Key: next.ID, Agent: &next}
			}, "fifty", 50},
			{"other definition changed", nil, func(c *quartermaster.Catalog) quartermaster.Change {
				next := *c.Agent("names")
				return quartermaster.Change{Noun: quartermaster.NounAgent, Key: next.ID, Agent: &next}
			}, "fifty", 50},
		} {
			b.Run(fmt.Sprintf("%s/tools=%d", bb.name, n), func(b *testing.B) {
				b.ReportAllocs()
				var project moving
				catalog := first
				project.catalog.Store(catalog)
				r, caller := New(&project, nil, nil), benchCaller(bb.agent)
				caller.State = "rare"
				advance := func(change func(*quartermaster.Catalog) quartermaster.Change) {
					catalog = catalog.With(catalog.Revision()+1, []quartermaster.Change{change(catalog)})
					project.catalog.Store(catalog)
				}
				ask(b, r, caller, quartermaster.Question{}, bb.want)
				b.ResetTimer()
				for range b.N {
					b.StopTimer()
					if bb.before != nil {
						advance(bb.before)
						ask(b, r, caller, quartermaster.Question{}, bb.want)
					}
					advance(bb.change)
					b.StartTimer()
					ask(b, r, caller, quartermaster.Question{}, bb.want)
				}
			})
		}
	}
}

// The index from nothing, and the reach of an agent compiled from nothing.
func BenchmarkIndex(b *testing.B) {
	catalog := bigCatalog(b, large)
	b.Run(fmt.Sprintf("tools=%d", large), func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			newIndex(catalog)
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/large, "ns/tool")
	})
	ix := newIndex(catalog)
	for _, agent := range []string{"fifty", "names", "bound", "all", "narrowed", "renamed"} {
		b.Run("reach/"+agent, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				compile(ix, catalog.Agent(agent), catalog.Bindings(agent))
			}
		})
	}
}

// crowd is 100,000 tools with 10,000 agents: half with 50 globs, half with 500
// bindings.
func crowd(b testing.TB) (*quartermaster.Catalog, []string) {
	b.Helper()
	catalog := bigCatalog(b, large)
	ids := make([]string, large)
	for i, t := range catalog.Tools() {
		ids[i] = t.ID
	}
	var changes []quartermaster.Change
	agents := make([]string, 10_000)
	for i := range agents {
		agents[i] = fmt.Sprintf("agent%05d", i)
		if i%2 == 0 {
			changes = append(changes, quartermaster.Change{
				Noun: quartermaster.NounAgent, Key: agents[i], Agent: &quartermaster.Agent{ID: agents[i], Tools: fiftyGlobs(large, i), MaxDepth: 2},
			})
		} else {
			changes = append(changes, bindingsOf(agents[i], ids, 500, i))
		}
	}
	return catalog.With(2, changes), agents
}

// 10,000 agents: each asked in turn, memory of each, and who would be hit by a
// change.
func BenchmarkCrowd(b *testing.B) {
	catalog, agents := crowd(b)
	r := New(fixed{catalog}, nil, nil)
	heap := func() float64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return float64(m.HeapAlloc)
	}
	before := heap()
	ix := r.indexOf(catalog)
	indexed := heap()
	for i := 0; i < len(agents); i += 2 {
		ix.reachOf(agents[i])
	}
	globs := heap()
	for i := 1; i < len(agents); i += 2 {
		ix.reachOf(agents[i])
	}
	bound := heap()
	b.Run("list", func(b *testing.B) {
		b.ReportAllocs()
		caller, i := benchCaller(""), 0
		for b.Loop() {
			caller.Agent = agents[i%len(agents)]
			if _, err := r.Resolve(context.Background(), caller, quartermaster.Question{}); err != nil {
				b.Fatal(err)
			}
			i += 7919
		}
		b.ReportMetric((indexed-before)/large, "B/tool")
		b.ReportMetric((globs-indexed)/5000, "B/globbing-agent")
		b.ReportMetric((bound-globs)/5000, "B/bound-agent")
	})
	b.Run("impact", func(b *testing.B) {
		tool := *catalog.Tools()[large/2]
		tool.Enabled = false
		after := catalog.With(3, []quartermaster.Change{{Noun: quartermaster.NounTool, Key: tool.ID, Tool: &tool}})
		for b.Loop() {
			if impact, err := r.ImpactOf(b.Context(), catalog, after); err != nil || len(impact.Agents) == 0 {
				b.Fatal(err, "nobody")
			}
		}
	})
	b.Run("who-can", func(b *testing.B) {
		for b.Loop() {
			if _, err := r.WhoCan(b.Context(), catalog, catalog.Tools()[large/2].Name); err != nil {
				b.Fatal(err)
			}
		}
	})
	runtime.KeepAlive(r)
}

// All cores at once: admission shares nothing but what is read.
func BenchmarkAdmitParallel(b *testing.B) {
	r, caller := New(fixed{bigCatalog(b, large)}, nil, nil), benchCaller("names")
	names := reachedNames(bigCatalog(b, large), "names")
	ask(b, r, caller, quartermaster.Question{Tool: names[0]}, 1)
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for i := 0; pb.Next(); i += 7919 {
			ask(b, r, caller, quartermaster.Question{Tool: names[i%len(names)]}, 1)
		}
	})
}
