package provider

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"quartermaster"
)

// edit changes a server's row as it is.
func (w *world) edit(name string, change func(*quartermaster.Server)) {
	w.Helper()
	_, err := w.ledger.Change(w.Context(), "p", func(d *quartermaster.Draft) error {
		s := *d.Server(name)
		change(&s)
		_, _, err := d.PutServer(s)
		return err
	})
	if err != nil {
		w.Fatal(err)
	}
}

// POOL-2: what does not concern a connection leaves it alone; what does, makes
// it anew.
func TestFollow(t *testing.T) {
	var dials, lists atomic.Int64
	dial := func() (*rogue, error) {
		dials.Add(1)
		return &rogue{on: map[string]func(*rogue, string, string){"tools/list": func(r *rogue, id, _ string) {
			lists.Add(1)
			r.answer(id, `{"tools":`+threeTools+`}`)
		}}}, nil
	}
	bubble(t, dial, func(t *testing.T, w *world) {
		change := func(edit func(d *quartermaster.Draft) error) {
			t.Helper()
			if _, err := w.ledger.Change(t.Context(), "p", edit); err != nil {
				t.Fatal(err)
			}
			time.Sleep(2 * time.Second)
		}
		expect := func(what string, wantDials, wantLists int64) {
			t.Helper()
			if dials.Load() != wantDials || lists.Load() != wantLists {
				t.Errorf("%s: %d dials, %d lists; want %d, %d", what, dials.Load(), lists.Load(), wantDials, wantLists)
			}
			if s := w.Status("p", "s"); s.State != "ready" {
				t.Errorf("%s: %+v", what, s)
			}
		}
		change(func(d *quartermaster.Draft) error {
			_, _, err := d.PutSecret("TOKEN", "one")
			return err
		})
		s := remote("s", quartermaster.TransportHTTP, "http://127.0.0.1:1")
		s.Headers = map[string]string{"Authorization": "${TOKEN}"}
		w.safe["TOKEN"] = "one"
		w.put(s)
		time.Sleep(2 * time.Second)
		expect("begun", 1, 1)
		w.Follow(w.ledger.catalog)
		change(func(d *quartermaster.Draft) error { _, _, err := d.PutAgent(quartermaster.Agent{ID: "x"}); return err })
		change(func(d *quartermaster.Draft) error {
			_, err := d.CreateTool(quartermaster.Tool{Name: "mine", Enabled: true})
			return err
		})
		w.edit("s", func(s *quartermaster.Server) { s.Groups = []string{"g"} })
		time.Sleep(2 * time.Second)
		expect("nothing that matters", 1, 1)
		w.edit("s", func(s *quartermaster.Server) { s.Pin = true })
		time.Sleep(2 * time.Second)
		expect("offers are taken in another way", 1, 2)
		old := w.ledger.catalog
		w.edit("s", func(s *quartermaster.Server) { s.Timeouts.Request = quartermaster.Duration(time.Second) })
		time.Sleep(2 * time.Second)
		expect("other settings", 2, 3)
		w.Follow(old)
		time.Sleep(2 * time.Second)
		expect("an old snapshot", 2, 3)
		change(func(d *quartermaster.Draft) error { _, _, err := d.PutSecret("OTHER", "x"); return err })
		expect("another secret", 2, 3)
		change(func(d *quartermaster.Draft) error { _, _, err := d.PutSecret("TOKEN", "two"); return err })
		expect("another value of its secret", 3, 4)
		w.edit("s", func(s *quartermaster.Server) { s.Enabled = false })
		time.Sleep(2 * time.Second)
		if s := w.Status("p", "s"); s.State != "stopped" || s.Reason != "is disabled" || w.Gone("p", "s") {
			t.Errorf("disabled: %+v", s)
		}
		if err := w.Available("p", tool("s", "a")); err == nil {
			t.Error("disabled, and available")
		}
		w.edit("s", func(s *quartermaster.Server) { s.Enabled = true })
		time.Sleep(2 * time.Second)
		expect("enabled", 4, 5)
		w.remove("s")
		if s := w.Status("p", "s"); s.Reason != "there is no such server" {
			t.Errorf("removed: %+v", s)
		}
	})
}

// POOL-2: a server that never answers is taken away as fast as any.
func TestRemovedWhileStarting(t *testing.T) {
	dial := func() (*rogue, error) {
		return &rogue{on: map[string]func(*rogue, string, string){"initialize": silent, "server/discover": silent}}, nil
	}
	bubble(t, dial, func(t *testing.T, w *world) {
		w.put(piped("s"))
		synctest.Wait()
		began := time.Now()
		w.remove("s")
		if err := w.Close(t.Context()); err != nil || time.Since(began) > time.Second {
			t.Errorf("%v after %s", err, at(began))
		}
	})
}

// op is something that happens to one of a few servers.
type op struct {
	What   string
	Server int
	Wait   time.Duration
}

// Whatever happens in whatever order: every connection makes legal moves only,
// and once the servers are well again, all that are wanted work.
func TestAnyOrder(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		ops := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) op {
			return op{
				rapid.SampledFrom([]string{"put", "lazy", "agent", "remove", "restart", "die", "away", "back", "mute", "speak", "call", "list_changed", "release"}).Draw(rt, "what"),
				rapid.IntRange(0, 2).Draw(rt, "server"),
				rapid.SampledFrom([]time.Duration{0, 0, time.Millisecond, time.Second, 15 * time.Second, 6 * time.Minute}).Draw(rt, "wait"),
			}
		}), 1, 25).Draw(rt, "ops")
		t.Run("", func(t *testing.T) { anyOrder(t, ops) })
		if t.Failed() {
			rt.Fatalf("%+v", ops)
		}
	})
}

func anyOrder(t *testing.T, ops []op) {
	var away, mute atomic.Bool
	var last atomic.Pointer[rogue]
	dial := func() (*rogue, error) {
		if away.Load() {
			return nil, fmt.Errorf("away")
		}
		r := &rogue{begin: last.Store, on: map[string]func(*rogue, string, string){}}
		r.on["tools/call"] = func(r *rogue, id, _ string) {
			if !mute.Load() {
				r.answer(id, `{"content":[]}`)
			}
		}
		if mute.Load() {
			r.on["initialize"] = silent
		}
		return r, nil
	}
	bubble(t, dial, func(t *testing.T, w *world) {
		wanted := map[string]bool{}
		for _, o := range ops {
			name := fmt.Sprint("s", o.Server)
			switch o.What {
			case "put", "lazy", "agent":
				s := piped(name)
				s.Lazy = o.What == "lazy"
				if o.What == "agent" {
					s.Scope = quartermaster.ScopeAgent
				}
				w.put(s)
				wanted[name] = true
			case "remove":
				if wanted[name] {
					w.remove(name)
				}
				delete(wanted, name)
			case "restart":
				go func() { _ = w.Restart(w.Context(), "p", name) }()
			case "die":
				if r := last.Load(); r != nil {
					r.die()
				}
			case "away", "back":
				away.Store(o.What == "away")
			case "mute", "speak":
				mute.Store(o.What == "mute")
			case "call":
				go func() { _, _ = w.run(name, "a", "{}") }()
			case "list_changed":
				if up := w.find("p", name); up != nil {
					poke(up.shared.changed)
				}
			case "release":
				w.Release("p", "a")
			}
			time.Sleep(o.Wait)
		}
		away.Store(false)
		mute.Store(false)
		time.Sleep(10 * time.Minute)
		for i := range 3 {
			name := fmt.Sprint("s", i)
			_, err := w.run(name, "a", "{}")
			if wanted[name] != (err == nil) {
				t.Errorf("%s: wanted %v, called: %v, %+v", name, wanted[name], err, w.Status("p", name))
			}
		}
	})
}

// UP-2: after any sequence of additions, removals, crashes, restarts and kills
// there is no process, no zombie and no goroutine left.
func TestAnyOrderOfProcesses(t *testing.T) {
	w := open(t, quick, func(u *Upstreams) { u.timing.rest = 50 * time.Millisecond })
	titles := []string{"crashes at once", "silent", "dies listing", "chatty", "answers twice", "greets on stdout"}
	for range 60 {
		name := fmt.Sprint("s", rand.IntN(4))
		up := w.find("p", name)
		switch rand.IntN(8) {
		case 0:
			w.put(self(t, name, "model"))
		case 1:
			w.put(self(t, name, "model"))
			w.awaitState(name, stateReady)
		case 2:
			s := self(t, name, "rogue", titles[rand.IntN(len(titles))])
			s.Timeouts.Startup = quartermaster.Duration(300 * time.Millisecond)
			w.put(s)
		case 3:
			if up != nil {
				w.remove(name)
			}
		case 4:
			if up != nil {
				poke(up.shared.again)
			}
		case 5:
			if pid := w.Status("p", name).PID; pid > 1 {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		default:
			ctx, cancel := contextFor(t, time.Duration(rand.IntN(100))*time.Millisecond)
			_, _ = w.Call(ctx, caller, tool(name, []string{"echo", "hang", "die"}[rand.IntN(3)]), nil)
			cancel()
		}
	}
	for i := range 4 {
		w.put(self(t, fmt.Sprint("s", i), "model"))
	}
	for i := range 4 {
		name := fmt.Sprint("s", i)
		w.await(name+" works", func() bool {
			r, err := w.run(name, "echo", `{"again":1}`)
			return err == nil && strings.Contains(textOf(r), "again")
		})
	}
}
