package spicedb

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"time"

	v1 "github.com/authzed/authzed-go/proto/authzed/api/v1"

	"quartermaster"
)

// bigCatalog makes a project of tools and grants: a tenth of the grants by way
// of groups of 20 users, the rest to users.
func bigCatalog(tools, users, grants int) *quartermaster.Catalog {
	changes := make([]quartermaster.Change, 0, tools+grants)
	name := func(i int) string { return "server__tool_" + strconv.Itoa(i%tools) }
	for i := range tools {
		t := &quartermaster.Tool{ID: quartermaster.NewID(), Name: name(i)}
		changes = append(changes, quartermaster.Change{Noun: quartermaster.NounTool, Key: t.ID, Tool: t})
	}
	seen := make(map[string]bool, grants)
	for i := 0; len(seen) < grants; i++ {
		var g *quartermaster.Grant
		switch group := "group:" + strconv.Itoa(i%users/20); {
		case i < users:
			g = quartermaster.NewGrant(group, relationMember, "user:user"+strconv.Itoa(i), time.Time{})
		case i%10 == 0:
			g = quartermaster.NewGrant("tool:"+name(i*7), relationExecutor, group+"#member", time.Time{})
		default:
			g = quartermaster.NewGrant("tool:"+name(i/users*31+i), relationExecutor, "user:user"+strconv.Itoa(i%users), time.Time{})
		}
		if !seen[g.Key()] {
			seen[g.Key()] = true
			changes = append(changes, quartermaster.Change{Noun: quartermaster.NounGrant, Key: g.Key(), Grant: g})
		}
	}
	return quartermaster.NewCatalog(quartermaster.Project{ID: "p"}).With(1, changes)
}

func load(b *testing.B, c *quartermaster.Catalog) *Engine {
	b.Helper()
	e, err := Open(context.Background(), Options{LocalOperator: true})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = e.Close() })
	if err := e.Load(context.Background(), []*quartermaster.Catalog{c}); err != nil {
		b.Fatal(err)
	}
	return e
}

func mustJudge(b *testing.B, e *Engine, c *quartermaster.Catalog, user string, q quartermaster.Question, tools []*quartermaster.Tool) {
	judgments, err := e.Judge(context.Background(), c, quartermaster.Caller{Project: "p", User: user}, q, tools)
	if err != nil || len(judgments) != len(tools) {
		b.Fatal(err)
	}
}

func mustCheck(b *testing.B, e *Engine, tool, user string) {
	_, err := e.world.Load().client.CheckPermission(context.Background(), &v1.CheckPermissionRequest{
		Consistency: fullyConsistent, Resource: object("tool", toolID("p", tool)), Permission: permissionToUse, Subject: userSubject(user),
	})
	if err != nil {
		b.Fatal(err)
	}
}

func mustLookup(b *testing.B, e *Engine, user string) {
	if _, err := e.world.Load().lookup(context.Background(), "p", user, fullyConsistent, func(string) {}); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkWarm is what the gate adds to a request whose user is known, beside
// the same question to SpiceDB.
func BenchmarkWarm(b *testing.B) {
	c := bigCatalog(1000, 100, 9000)
	e := load(b, c)
	for _, user := range []string{"local", "user7"} {
		mustJudge(b, e, c, user, quartermaster.Question{}, nil)
		b.Run("admission/"+user, func(b *testing.B) {
			one := c.Tools()[500:501]
			for b.Loop() {
				mustJudge(b, e, c, user, quartermaster.Question{}, one)
			}
		})
		b.Run("list of 1000/"+user, func(b *testing.B) {
			for b.Loop() {
				mustJudge(b, e, c, user, quartermaster.Question{}, c.Tools())
			}
		})
		b.Run("direct check/"+user, func(b *testing.B) {
			for b.Loop() {
				mustCheck(b, e, c.Tools()[500].Name, user)
			}
		})
		b.Run("direct lookup/"+user, func(b *testing.B) {
			for b.Loop() {
				mustLookup(b, e, user)
			}
		})
	}
	b.Run("admission in parallel", func(b *testing.B) {
		one := c.Tools()[500:501]
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				mustJudge(b, e, c, "user7", quartermaster.Question{}, one)
			}
		})
	})
}

// BenchmarkCold is the first question of a user, beside the same question to
// SpiceDB.
func BenchmarkCold(b *testing.B) {
	for _, tools := range []int{1000, 10_000} {
		c := bigCatalog(tools, 1000, tools)
		e := load(b, c)
		b.Run(fmt.Sprintf("%d tools/all of them", tools), func(b *testing.B) {
			for b.Loop() {
				e.world.Load().forgetAnswers()
				mustJudge(b, e, c, "local", quartermaster.Question{}, c.Tools())
			}
		})
		b.Run(fmt.Sprintf("%d tools/a thousand users", tools), func(b *testing.B) {
			n := 0
			for b.Loop() {
				if n%1000 == 0 {
					e.world.Load().forgetAnswers()
				}
				mustJudge(b, e, c, "user"+strconv.Itoa(n%1000), quartermaster.Question{}, c.Tools())
				n++
			}
		})
		b.Run(fmt.Sprintf("%d tools/direct lookup", tools), func(b *testing.B) {
			for b.Loop() {
				mustLookup(b, e, "local")
			}
		})
	}
}

// BenchmarkRevocation is a grant or revocation and the next question, in which it
// acts.
func BenchmarkRevocation(b *testing.B) {
	c := bigCatalog(1000, 100, 9000)
	e := load(b, c)
	g := quartermaster.NewGrant("tool:"+c.Tools()[3].Name, relationOwner, "user:user7", time.Time{})
	with := []quartermaster.Change{{Noun: quartermaster.NounGrant, Key: g.Key(), Grant: g}}
	without := []quartermaster.Change{{Noun: quartermaster.NounGrant, Key: g.Key()}}
	n := int64(1)
	for b.Loop() {
		n++
		if n%2 == 0 {
			c = c.With(n, with)
		} else {
			c = c.With(n, without)
		}
		mustJudge(b, e, c, "user7", quartermaster.Question{}, c.Tools()[:1])
	}
}

// BenchmarkExplain is every verdict with its reason.
func BenchmarkExplain(b *testing.B) {
	c := bigCatalog(1000, 100, 9000)
	e := load(b, c)
	for _, user := range []string{"local", "user7", "nobody"} {
		b.Run("1000 tools/"+user, func(b *testing.B) {
			for b.Loop() {
				mustJudge(b, e, c, user, quartermaster.Question{Explain: true}, c.Tools())
			}
		})
	}
	b.Run("one tool", func(b *testing.B) {
		for b.Loop() {
			mustJudge(b, e, c, "user7", quartermaster.Question{Explain: true}, c.Tools()[:1])
		}
	})
}

// sizes are how many relationships there are. The largest takes minutes and
// gigabytes, and has to be asked for.
func sizes() []int {
	if os.Getenv("QUARTERMASTER_BENCH_MILLION") != "" {
		return []int{10_000, 100_000, 1_000_000}
	}
	return []int{10_000, 100_000}
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// cpu is the time that this process has worked. Beside others on one machine it
// tells more than the clock.
func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkLoad is the start with so many relationships, what they take in
// memory, and a first question at that size.
func BenchmarkLoad(b *testing.B) {
	for _, n := range sizes() {
		c := bigCatalog(min(n/10, 10_000), 1000, n-min(n/10, 10_000))
		b.Run(fmt.Sprintf("%d", n), func(b *testing.B) {
			for b.Loop() {
				before := heap()
				began, worked := time.Now(), cpu()
				e := load(b, c)
				b.ReportMetric(float64(n)/time.Since(began).Seconds(), "rels/s")
				b.ReportMetric(float64(n)/(cpu()-worked).Seconds(), "rels/cpu-s")
				b.ReportMetric(float64(heap()-before)/float64(n), "B/rel")
				for user, unit := range map[string]string{"user7": "user", "local": "all"} {
					began, worked = time.Now(), cpu()
					mustJudge(b, e, c, user, quartermaster.Question{}, c.Tools())
					b.ReportMetric(float64(time.Since(began).Microseconds())/1000, "ms/"+unit)
					b.ReportMetric(float64((cpu()-worked).Microseconds())/1000, "cpu-ms/"+unit)
				}
				_ = e.Close()
			}
		})
	}
}

// BenchmarkLoadBy compares the ways to load: ours, smaller writes, and SpiceDB's
// import in bulk.
func BenchmarkLoadBy(b *testing.B) {
	const n = 100_000
	c := bigCatalog(10_000, 1000, n-10_000)
	by := func(name string, load func(*world) error) {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				e, err := Open(context.Background(), Options{})
				if err != nil {
					b.Fatal(err)
				}
				before, worked := heap(), cpu()
				if err := load(e.world.Load()); err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(n/(cpu()-worked).Seconds(), "rels/cpu-s")
				b.ReportMetric(float64(heap()-before)/n, "B/rel")
				_ = e.Close()
			}
		})
	}
	for _, most := range []int{embeddedUpdates, 1000} {
		by(fmt.Sprintf("writes of %d", most), func(w *world) error {
			w.updates = most
			return w.load(context.Background(), w.rowsIn(c))
		})
	}
	by("import in bulk", func(w *world) error {
		stream, err := w.client.ImportBulkRelationships(context.Background())
		if err != nil {
			return err
		}
		message := &v1.ImportBulkRelationshipsRequest{}
		for r := range w.rowsIn(c) {
			if message.Relationships = append(message.Relationships, r); len(message.GetRelationships()) == 1000 {
				if err := stream.Send(message); err != nil {
					return err
				}
				message.Relationships = nil
			}
		}
		_, err = stream.CloseAndRecv()
		return err
	})
}

// BenchmarkMemory is what 1,000 users of 10,000 tools take.
func BenchmarkMemory(b *testing.B) {
	c := bigCatalog(10_000, 1000, 10_000)
	e := load(b, c)
	for b.Loop() {
		e.world.Load().forgetAnswers()
		before := heap()
		for i := range 1000 {
			mustJudge(b, e, c, "user"+strconv.Itoa(i), quartermaster.Question{}, nil)
		}
		b.ReportMetric(float64(heap()-before)/1000, "B/user")
		b.ReportMetric(float64(e.world.Load().project("p").state.Load().answers.size.Load())/1000, "answerB/user")
	}
}

// BenchmarkOpen is the start of an empty engine.
func BenchmarkOpen(b *testing.B) {
	for b.Loop() {
		e, err := Open(context.Background(), Options{})
		if err != nil {
			b.Fatal(err)
		}
		_ = e.Close()
	}
}
