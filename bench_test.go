package quartermaster

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

const benchTools = 10_000

// benchChanges are n tools as the store reads them, 1,000 of them bound to x.
func benchChanges(n int) []Change {
	changes := make([]Change, 0, n+1)
	bound := &Bindings{Agent: "x"}
	for i := range n {
		t := &Tool{
			ID: NewID(), Name: fmt.Sprintf("server%02d__tool_%06d", i%50, i), Server: fmt.Sprintf("server%02d", i%50),
			Description: "Reads something from somewhere and answers with what it has found there, if anything.",
			Provider:    ProviderMCP, Enabled: true, Version: 1, Origin: OriginManual,
		}
		changes = append(changes, Change{Noun: NounTool, Key: t.ID, Tool: t})
		if i%max(1, n/1000) == 0 {
			bound.Tools = append(bound.Tools, Binding{ToolID: t.ID, CreatedAt: time.Now()})
		}
	}
	slices.SortFunc(bound.Tools, func(a, b Binding) int { return strings.Compare(a.ToolID, b.ToolID) })
	return append(changes, Change{Noun: NounBindings, Key: "x", Bindings: bound})
}

// timed runs f as often as it is asked to and reports the slowest hundredth.
func timed(b *testing.B, f func()) {
	b.Helper()
	b.ReportAllocs()
	var times []time.Duration
	for b.Loop() {
		begin := time.Now()
		f()
		times = append(times, time.Since(begin))
	}
	slices.Sort(times)
	b.ReportMetric(float64(times[len(times)*99/100].Microseconds())/1000, "p99-ms")
}

func BenchmarkCatalogBuild10k(b *testing.B) {
	changes := benchChanges(benchTools)
	timed(b, func() { NewCatalog(Project{ID: "p"}).With(1, changes) })
}

func benchmarkOneChange(b *testing.B, n int) {
	changes := benchChanges(n)
	c := NewCatalog(Project{ID: "p"}).With(1, changes)
	next := *changes[n/2].Tool
	next.Description = "changed"
	one := []Change{{Noun: NounTool, Key: next.ID, Tool: &next}}
	timed(b, func() { c.With(2, one) })
}

func BenchmarkCatalogWithOneChange10k(b *testing.B)  { benchmarkOneChange(b, benchTools) }
func BenchmarkCatalogWithOneChange100k(b *testing.B) { benchmarkOneChange(b, 10*benchTools) }

// A deletion also takes the tool from the bindings of every agent: here from
// all of 1,000 agents with 100 tools each.
func BenchmarkCatalogWithOneDeletion10k(b *testing.B) {
	changes := benchChanges(benchTools)
	set := changes[benchTools].Bindings
	one := []Change{{Noun: NounTool, Key: set.Tools[50].ToolID}}
	for i := range 1_000 {
		agent := fmt.Sprintf("agent%04d", i)
		changes = append(changes, Change{Noun: NounBindings, Key: agent, Bindings: &Bindings{Agent: agent, Tools: set.Tools[:100]}})
	}
	c := NewCatalog(Project{ID: "p"}).With(1, changes)
	timed(b, func() { c.With(2, one) })
}

// filters are the cheapest and the dearest question.
var filters = map[string]ToolFilter{"all": {}, "text": {Text: "tool_0012"}, "text in none": {Text: "there, or nothing"}}

// BIND-1
func BenchmarkBoundPage(b *testing.B) {
	c := NewCatalog(Project{ID: "p"}).With(1, benchChanges(benchTools))
	for name, filter := range filters {
		b.Run(name, func(b *testing.B) {
			timed(b, func() {
				PageOf(func(yield func(*Tool) bool) {
					for t := range c.Bound("x", filter) {
						if !yield(t) {
							return
						}
					}
				}, 1, 20)
			})
		})
	}
}

// BIND-2
func BenchmarkUnboundPage(b *testing.B) {
	c := NewCatalog(Project{ID: "p"}).With(1, benchChanges(benchTools))
	for name, filter := range filters {
		b.Run(name, func(b *testing.B) {
			timed(b, func() { PageOf(c.Unbound("x", filter), 1, 20) })
		})
	}
}

// benchGrants gives so many users each of n tools of one server.
func benchGrants(b *testing.B, n, users int) *Catalog {
	b.Helper()
	changes := []Change{{Noun: NounServer, Key: "files", Server: &Server{Name: "files"}}}
	for i := range n {
		t := &Tool{ID: NewID(), Name: fmt.Sprintf("files__tool_%05d", i), Server: "files", Provider: ProviderMCP, Enabled: true, Origin: OriginManual}
		changes = append(changes, Change{Noun: NounTool, Key: t.ID, Tool: t})
		for u := range users {
			g := NewGrant(toolResource(t.Name), "executor", fmt.Sprintf("user:%d@example.com", u), time.Now())
			changes = append(changes, Change{Noun: NounGrant, Key: g.Key(), Grant: g})
		}
	}
	return NewCatalog(Project{ID: "p"}).With(1, changes)
}

// PERM-2
func BenchmarkCatalogWithOneGrant1M(b *testing.B) {
	c := benchGrants(b, benchTools, 100)
	g := NewGrant("tool:files__tool_05000", "executor", "user:one more", time.Now())
	one := []Change{{Noun: NounGrant, Key: g.Key(), Grant: g}}
	timed(b, func() { c.With(2, one) })
}

// PERM-2: each tool of a server that is deleted takes its grants with it.
func BenchmarkDeleteServer10kTools(b *testing.B) {
	for _, users := range []int{1, 10, 100} {
		c := benchGrants(b, benchTools, users)
		b.Run(fmt.Sprintf("%d grants", users*benchTools), func(b *testing.B) {
			timed(b, func() {
				d := c.Draft(time.Now())
				if err := d.DeleteServer("files"); err != nil || len(d.Changes()) != 1+benchTools*(1+users) {
					b.Fatal(err)
				}
			})
		})
	}
}

// CAT-5: a file with a tenth of the grants, of which the others are pruned.
func BenchmarkPrune1MGrants(b *testing.B) {
	c := benchGrants(b, benchTools, 100)
	doc := Document{Version: DocumentVersion, Servers: map[string]Server{"files": {Name: "files", Transport: TransportStdio, Command: "x"}}, Tools: map[string]Tool{}}
	for _, t := range c.tools {
		doc.Tools[t.Name] = Tool{Name: t.Name, Server: t.Server}
	}
	for i := 0; i < len(c.grants); i += 10 {
		doc.Grants = append(doc.Grants, *c.grants[i])
	}
	timed(b, func() {
		d := c.Draft(time.Now())
		if err := d.Apply(doc, true); err != nil || len(d.grantChanges()) != 900_000 {
			b.Fatal(err)
		}
	})
}
