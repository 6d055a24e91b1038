package provider

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"quartermaster"
)

// BenchmarkPool measures how long it takes until the pool of 95 stdio servers is
// complete, alone and beside 5 that are dead: silent ones, which nothing but
// their timeout tells from slow ones, and which come first. Both are measured in
// turns, because nothing else makes a ratio of theirs mean something.
func BenchmarkPool(b *testing.B) {
	var alone, beside time.Duration
	for b.Loop() {
		alone += pool(b, 0)
		beside += pool(b, 5)
	}
	b.ReportMetric(alone.Seconds()/float64(b.N), "s/alone")
	b.ReportMetric(beside.Seconds()/float64(b.N), "s/beside-dead")
	b.ReportMetric(beside.Seconds()/alone.Seconds(), "ratio")
}

func pool(b *testing.B, dead int) time.Duration {
	w := open(b)
	var servers []quartermaster.Server
	for i := range dead {
		servers = append(servers, self(b, fmt.Sprintf("a-dead-%d", i), "rogue", "silent"))
	}
	for i := range 95 {
		servers = append(servers, self(b, fmt.Sprintf("m-%d", i), "model"))
	}
	began := time.Now()
	w.putAll(servers)
	w.awaitPool(95 * len(modelTools))
	took := time.Since(began)
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = w.Close(ctx)
	return took
}

func (w *world) putAll(servers []quartermaster.Server) {
	_, err := w.ledger.Change(context.Background(), "p", func(d *quartermaster.Draft) error {
		for _, s := range servers {
			s.Enabled, s.Prefix = true, true
			if _, _, err := d.PutServer(s); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		w.Fatal(err)
	}
}

// awaitPool waits until the catalog has so many tools.
func (w *world) awaitPool(tools int) {
	w.patience = 2 * time.Minute
	w.await(fmt.Sprint(tools, " tools"), func() bool {
		c, _ := w.ledger.Catalog(context.Background(), "p")
		return len(c.Tools()) == tools
	})
}

// BenchmarkFollowLazy measures how long 200 lazy servers hold up a start: until
// all their tools could be listed.
func BenchmarkFollowLazy(b *testing.B) {
	var servers []quartermaster.Server
	for i := range 200 {
		s := self(b, fmt.Sprint("s", i), "model")
		s.Lazy, s.Enabled, s.Prefix, s.DiscoveredAt = true, true, true, time.Now()
		servers = append(servers, s)
	}
	changes := make([]quartermaster.Change, len(servers))
	for i := range servers {
		changes[i] = quartermaster.Change{Noun: quartermaster.NounServer, Key: servers[i].Name, Server: &servers[i]}
	}
	for b.Loop() {
		b.StopTimer()
		w := open(b)
		w.ledger.catalog = w.ledger.catalog.With(2, changes)
		b.StartTimer()
		w.Follow(w.ledger.catalog)
		for i := range servers {
			if err := w.Available("p", tool(servers[i].Name, "echo")); err != nil {
				b.Fatal(err)
			}
		}
		b.StopTimer()
		_ = w.Close(context.Background())
		b.StartTimer()
	}
}

// BenchmarkIdleConnection measures what a connection takes of our own memory
// while nobody uses it, the server's apart.
func BenchmarkIdleConnection(b *testing.B) {
	const n = 40
	url := "http://" + network(b, "http-2025-11-25")
	ways := map[string]func(i int) quartermaster.Server{
		"stdio": func(i int) quartermaster.Server { return self(b, fmt.Sprint("s", i), "model") },
		"lazy": func(i int) quartermaster.Server {
			s := self(b, fmt.Sprint("s", i), "model")
			s.Lazy = true
			return s
		},
		"http": func(i int) quartermaster.Server {
			return remote(fmt.Sprint("s", i), quartermaster.TransportHTTP, url)
		},
	}
	for name, way := range ways {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				w := open(b, func(u *Upstreams) {
					if name == "lazy" {
						u.timing.idle = time.Millisecond
					}
				})
				before, goroutines := heap(), runtime.NumGoroutine()
				for i := range n {
					w.put(way(i))
				}
				w.awaitPool(n * len(modelTools))
				if name == "lazy" {
					for i := range n {
						w.awaitState(fmt.Sprint("s", i), stateStopped)
					}
				}
				b.ReportMetric(float64(heap()-before)/n/1024, "KiB/connection")
				b.ReportMetric(float64(runtime.NumGoroutine()-goroutines)/n, "goroutines/connection")
				_ = w.Close(context.Background())
			}
		})
	}
}

// heap is what is in use, stacks included.
func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc + m.StackInuse
}

// BenchmarkCall measures a call of a tool that does nothing, through everything
// that is here.
func BenchmarkCall(b *testing.B) {
	for name, server := range map[string]quartermaster.Server{
		"stdio": self(b, "s", "model"),
		"http":  remote("s", quartermaster.TransportHTTP, "http://"+network(b, "http-2025-11-25")),
	} {
		b.Run(name, func(b *testing.B) {
			w := open(b)
			w.put(server)
			w.awaitTools("s", modelTools...)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := w.run("s", "echo", `{"a":1}`); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkGone is asked for every server of every list.
func BenchmarkGone(b *testing.B) {
	w := open(b)
	w.put(self(b, "s", "model"))
	w.awaitTools("s", modelTools...)
	row := tool("s", "echo")
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			if w.Gone("p", "s") || w.Available("p", row) != nil {
				b.Error("is gone")
			}
		}
	})
}
