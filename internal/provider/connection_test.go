package provider

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"quartermaster"
)

// bubble runs a test in a world whose clock runs as fast as it can, and whose
// servers are at the other ends of pipes: dial makes them, or fails.
func bubble(t *testing.T, dial func() (*rogue, error), test func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, time.Hour, 100*time.Millisecond)
		w.Upstreams = OpenUpstreams(UpstreamOptions{Store: w.ledger, Vault: w.safe, Events: w.tell})
		w.reach = func(context.Context, *target) (*wire, error) {
			r, err := dial()
			if err != nil {
				return nil, err
			}
			here, there := net.Pipe()
			r.out, r.die = there, func() { _ = there.Close() }
			go func() {
				r.serve(there)
				_ = there.Close()
			}()
			wire := newWire()
			wire.over(here, lines(here), func() { _ = here.Close() })
			return wire, nil
		}
		w.ledger.follow = w.Follow
		w.Follow(w.ledger.catalog)
		defer func() {
			if err := w.Close(context.Background()); err != nil {
				t.Error(err)
			}
			w.checkEvents()
		}()
		test(t, w)
	})
}

// piped is a server that only exists in a bubble.
func piped(name string) quartermaster.Server {
	return remote(name, quartermaster.TransportTCP, "tcp://127.0.0.1:1")
}

func good() (*rogue, error) { return &rogue{}, nil }

// at is how long the test has run.
func at(began time.Time) string { return time.Since(began).Round(time.Millisecond).String() }

// history is what the events of a server say, without the reasons.
func (w *world) history(server string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var all []string
	for _, e := range w.events {
		if e.Server == server {
			all = append(all, e.To)
		}
	}
	return strings.Join(all, " ")
}

// toldOf reports whether an event's reason holds words.
func (w *world) toldOf(words string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.ContainsFunc(w.events, func(e Event) bool { return strings.Contains(e.Reason, words) })
}

// UP-3: failed connects are tried again with backoff, and after three in a row
// there are 60 s of rest.
func TestBackoffAndRest(t *testing.T) {
	var began time.Time
	var tried []time.Duration
	dial := func() (*rogue, error) {
		tried = append(tried, time.Since(began))
		return nil, errors.New("nobody is there")
	}
	bubble(t, dial, func(t *testing.T, w *world) {
		began = time.Now()
		w.put(piped("s"))
		time.Sleep(20 * time.Second)
		s := w.Status("p", "s")
		if s.State != "resting" || s.Health != "red" || !strings.Contains(s.Reason, "nobody is there; failed 3 times in a row and rests until ") {
			t.Errorf("is %+v", s)
		}
		time.Sleep(250 * time.Second)
		w.remove("s")
	})
	bounds := [][2]time.Duration{
		{0, 0},
		{time.Second, 3 * time.Second},
		{2 * time.Second, 6 * time.Second},
		{time.Minute, time.Minute},
		{time.Second, 3 * time.Second},
		{2 * time.Second, 6 * time.Second},
		{time.Minute, time.Minute},
	}
	for i, b := range bounds {
		wait := tried[i] - tried[max(0, i-1)]
		if wait < b[0] || wait > b[1] {
			t.Errorf("try %d was %v after the one before, not between %v and %v", i, wait, b[0], b[1])
		}
	}
}

// POOL-3, UP-6: while a server is down its calls fail at once.
func TestDownFailsAtOnce(t *testing.T) {
	dial := func() (*rogue, error) { return nil, errors.New("nobody is there") }
	bubble(t, dial, func(t *testing.T, w *world) {
		w.put(piped("s"))
		synctest.Wait()
		for range 200 { // over failed, starting and resting
			began := time.Now()
			_, err := w.run("s", "a", "{}")
			wantCode(t, err, quartermaster.CodeUnavailable, "nobody is there")
			if waited := time.Since(began); waited != 0 {
				t.Fatalf("waited %v", waited)
			}
			time.Sleep(time.Second)
		}
	})
}

// UP-3: not ready within timeouts.startup is failed.
func TestStartupTimeout(t *testing.T) {
	for limit, want := range map[time.Duration]time.Duration{0: 10 * time.Second, 3 * time.Second: 3 * time.Second} {
		dial := func() (*rogue, error) {
			return &rogue{on: map[string]func(*rogue, string, string){"initialize": silent}}, nil
		}
		bubble(t, dial, func(t *testing.T, w *world) {
			began := time.Now()
			s := piped("s")
			s.Timeouts.Startup = quartermaster.Duration(limit)
			w.put(s)
			_, err := w.run("s", "a", "{}") // waits for the start
			wantCode(t, err, quartermaster.CodeUnavailable, fmt.Sprintf("was not ready within %v", want))
			if at(began) != want.String() {
				t.Errorf("failed after %s, not after %v", at(began), want)
			}
		})
	}
}

// UP-6: a lost connection is made anew at once; one that is lost again and again
// is left alone for longer and longer, until it has lasted for a while.
func TestLossAndReturn(t *testing.T) {
	var current *rogue
	var dials int
	dial := func() (*rogue, error) {
		dials++
		current = &rogue{}
		return current, nil
	}
	bubble(t, dial, func(t *testing.T, w *world) {
		w.put(piped("s"))
		synctest.Wait()
		time.Sleep(time.Minute)
		current.die()
		synctest.Wait()
		if w.Status("p", "s").State != "ready" || dials != 2 {
			t.Fatalf("after the first loss: %+v, %d dials", w.Status("p", "s"), dials)
		}
		if got := w.history("s"); got != "starting ready failed starting ready" {
			t.Error(got)
		}
		lost := time.Now()
		current.die()
		synctest.Wait()
		if s := w.Status("p", "s"); s.State != "failed" || s.Reason != "closed the connection while being used" {
			t.Errorf("after the second loss: %+v", s)
		}
		w.awaitState("s", stateReady)
		if waited := time.Since(lost); waited < time.Second || waited > 3*time.Second {
			t.Errorf("came back after %v", waited)
		}
		time.Sleep(time.Minute)
		current.die()
		synctest.Wait()
		if s := w.Status("p", "s"); s.State != "ready" || s.Restarts != 3 || s.LastError == "" {
			t.Errorf("after a loss when it was stable: %+v", s)
		}
	})
}

// POOL-3: the tools of a server that is down stay listed for ten minutes.
func TestGrace(t *testing.T) {
	var up atomic.Bool
	up.Store(true)
	var current *rogue
	dial := func() (*rogue, error) {
		if !up.Load() {
			return nil, errors.New("nobody is there")
		}
		current = &rogue{}
		return current, nil
	}
	bubble(t, dial, func(t *testing.T, w *world) {
		w.put(piped("s"))
		w.awaitTools("s", "a", "b", "c")
		up.Store(false)
		current.die()
		synctest.Wait()
		time.Sleep(10*time.Minute - time.Second)
		if w.Gone("p", "s") {
			t.Error("gone too early")
		}
		time.Sleep(2 * time.Second)
		if !w.Gone("p", "s") || !w.toldOf("its tools are no longer listed: down for 10m0s") {
			t.Error("is not gone, or nobody was told")
		}
		if w.awaitTools("s", "a", "b", "c"); w.Gone("p", "other") {
			t.Error("what does not exist is not gone")
		}
		up.Store(true)
		w.awaitState("s", stateReady)
		if w.Gone("p", "s") {
			t.Error("is back, and gone")
		}
	})
}

// POOL-3: a server that was never reached is gone after the same time.
func TestNeverReached(t *testing.T) {
	bubble(t, func() (*rogue, error) { return nil, errors.New("no") }, func(t *testing.T, w *world) {
		w.put(piped("s"))
		time.Sleep(11 * time.Minute)
		if !w.Gone("p", "s") || len(w.tools("s")) != 0 {
			t.Error("is listed")
		}
	})
}

// A lazy server is started once to learn its tools, then only for those who
// call, and is stopped when nobody does.
func TestLazy(t *testing.T) {
	var dials atomic.Int64
	dial := func() (*rogue, error) {
		dials.Add(1)
		return &rogue{on: map[string]func(*rogue, string, string){"tools/list": func(r *rogue, id, _ string) {
			time.Sleep(2 * time.Second)
			r.answer(id, `{"tools":`+threeTools+`}`)
		}}}, nil
	}
	bubble(t, dial, func(t *testing.T, w *world) {
		lazy := piped("s")
		lazy.Lazy = true
		w.put(lazy)
		w.awaitTools("s", "a", "b", "c")
		time.Sleep(6 * time.Minute)
		s := w.Status("p", "s")
		if s.State != "stopped" || s.Tools != 3 || s.Health != "yellow" || s.Reason != "starts on first use" || w.Gone("p", "s") {
			t.Fatalf("unused: %+v", s)
		}
		if err := w.Available("p", tool("s", "a")); err != nil {
			t.Error(err)
		}
		var calls sync.WaitGroup
		for range 10 {
			calls.Go(func() {
				if got := w.runText("s", "a", "{}"); got != "called" {
					t.Error(got)
				}
			})
		}
		calls.Wait()
		for range 10 {
			time.Sleep(4 * time.Minute) // used now and then
			if _, err := w.run("s", "b", "{}"); err != nil {
				t.Error(err)
			}
		}
		if s := w.Status("p", "s"); dials.Load() != 2 || s.State != "ready" {
			t.Errorf("%d starts, %+v", dials.Load(), s)
		}
		time.Sleep(6 * time.Minute)
		if s := w.Status("p", "s"); s.State != "stopped" {
			t.Errorf("unused again: %+v", s)
		}
	})
}

// A lazy server that does not start is tried when somebody calls, not on its own.
func TestLazyThatFails(t *testing.T) {
	var dials, down atomic.Int64
	dial := func() (*rogue, error) {
		dials.Add(1)
		if down.Load() == 1 {
			return nil, errors.New("no")
		}
		return good()
	}
	bubble(t, dial, func(t *testing.T, w *world) {
		lazy := piped("s")
		lazy.Lazy = true
		w.put(lazy)
		w.awaitTools("s", "a", "b", "c")
		time.Sleep(6 * time.Minute)
		down.Store(1)
		_, err := w.run("s", "a", "{}")
		wantCode(t, err, quartermaster.CodeUnavailable, "server s is failed: no")
		time.Sleep(9 * time.Minute)
		if s := w.Status("p", "s"); dials.Load() != 2 || s.State != "stopped" || !strings.Contains(s.Reason, "the last time it failed: no") {
			t.Errorf("%d dials, %+v", dials.Load(), s)
		}
		if time.Sleep(2 * time.Minute); !w.Gone("p", "s") {
			t.Error("its tools are still listed")
		}
		for range 4 {
			_, err = w.run("s", "a", "{}")
			wantCode(t, err, quartermaster.CodeUnavailable, "no")
			time.Sleep(7 * time.Second)
		}
		if s := w.Status("p", "s"); s.State != "resting" {
			t.Errorf("after three failures in a row: %+v", s)
		}
		down.Store(0)
		time.Sleep(time.Minute)
		if got := w.runText("s", "a", "{}"); got != "called" || w.Gone("p", "s") {
			t.Errorf("answers %q", got)
		}
	})
}

// Discovery: the list is asked for now and then, also when nobody says that it
// has changed.
func TestPeriodicRefresh(t *testing.T) {
	var more atomic.Bool
	dial := func() (*rogue, error) {
		return &rogue{on: map[string]func(*rogue, string, string){"tools/list": func(r *rogue, id, _ string) {
			if more.Load() {
				r.answer(id, `{"tools":[{"name":"new"}]}`)
			} else {
				r.answer(id, `{"tools":[]}`)
			}
		}}}, nil
	}
	bubble(t, dial, func(t *testing.T, w *world) {
		w.put(piped("s"))
		w.awaitState("s", stateReady)
		more.Store(true)
		began := time.Now()
		w.awaitTools("s", "new")
		if waited := time.Since(began); waited < 2*time.Minute || waited > 8*time.Minute {
			t.Errorf("waited %v", waited)
		}
	})
}

// Whatever a server says, its list is asked for once a second at most.
func TestListChangedIsSettled(t *testing.T) {
	var lists atomic.Int64
	dial := func() (*rogue, error) {
		return &rogue{on: map[string]func(*rogue, string, string){
			"notifications/initialized": func(r *rogue, _, _ string) {
				go func() {
					for range 3000 { // for half a minute
						r.write(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
						time.Sleep(10 * time.Millisecond)
					}
				}()
			},
			"tools/list": func(r *rogue, id, _ string) {
				lists.Add(1)
				r.answer(id, `{"tools":[]}`)
			},
		}}, nil
	}
	bubble(t, dial, func(t *testing.T, w *world) {
		w.put(piped("s"))
		time.Sleep(40 * time.Second)
		if n := lists.Load(); n < 25 || n > 35 {
			t.Errorf("was asked %d times in 30 s", n)
		}
	})
}

// POOL-4: what a server says while its list is still being taken in is not lost.
func TestListChangedMeanwhile(t *testing.T) {
	var lists atomic.Int64
	dial := func() (*rogue, error) {
		return &rogue{on: map[string]func(*rogue, string, string){"tools/list": func(r *rogue, id, _ string) {
			n := min(lists.Add(1), 4)
			var tools []string
			for _, name := range []string{"a", "b", "c", "d"}[:n] {
				tools = append(tools, `{"name":"`+name+`","inputSchema":{"type":"object"}}`)
			}
			r.answer(id, `{"tools":[`+strings.Join(tools, ",")+`]}`)
			if n < 4 {
				r.write(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
			}
		}}}, nil
	}
	bubble(t, dial, func(t *testing.T, w *world) {
		w.put(piped("s"))
		began := time.Now()
		w.awaitTools("s", "a", "b", "c", "d")
		if waited := time.Since(began); waited > time.Minute {
			t.Errorf("only the periodic refresh has noticed, after %v", waited)
		}
	})
}

// A list that cannot be had again, or not be recorded, is a reason to worry, not
// to hang up.
func TestDegraded(t *testing.T) {
	var broken atomic.Bool
	dial := func() (*rogue, error) {
		return &rogue{on: map[string]func(*rogue, string, string){"tools/list": func(r *rogue, id, _ string) {
			if broken.Load() {
				r.write(`{"jsonrpc":"2.0","id":` + id + `,"error":{"code":-1,"message":"not now"}}`)
			} else {
				r.answer(id, `{"tools":`+threeTools+`}`)
			}
		}}}, nil
	}
	bubble(t, dial, func(t *testing.T, w *world) {
		w.put(piped("s"))
		w.awaitTools("s", "a", "b", "c")
		broken.Store(true)
		s := w.awaitState("s", stateDegraded)
		if s.Health != "yellow" || s.Reason != "its tools could not be listed again: not now" || s.Restarts != 0 {
			t.Errorf("is %+v", s)
		}
		if got := w.runText("s", "a", "{}"); got != "called" || w.Available("p", tool("s", "a")) != nil {
			t.Error("cannot be called")
		}
		broken.Store(false)
		w.ledger.mu.Lock()
		w.ledger.broken = errBroken
		w.ledger.mu.Unlock()
		w.await("the database is away", func() bool {
			return w.Status("p", "s").Reason == "its tools could not be recorded: the database is away"
		})
		w.ledger.mu.Lock()
		w.ledger.broken = nil
		w.ledger.mu.Unlock()
		w.awaitState("s", stateReady)
	})
}

// sleeper answers a call after as many seconds as its arguments say.
func sleeper() (*rogue, error) {
	return &rogue{on: map[string]func(*rogue, string, string){"tools/call": func(r *rogue, id, params string) {
		go func() {
			var seconds int
			_, _ = fmt.Sscanf(params[strings.Index(params, `"s":`)+4:], "%d", &seconds)
			time.Sleep(time.Duration(seconds) * time.Second)
			r.answer(id, `{"content":[{"type":"text","text":"slept"}]}`)
		}()
	}}}, nil
}

// Drain: calls on a server that is taken away may end, for ten seconds.
func TestDrain(t *testing.T) {
	ends := map[string]func(w *world){
		"removed": func(w *world) { w.remove("s") },
		"disabled": func(w *world) {
			_, _ = w.ledger.Change(w.Context(), "p", func(d *quartermaster.Draft) error {
				s := *d.Server("s")
				s.Enabled = false
				_, _, err := d.PutServer(s)
				return err
			})
		},
		"changed": func(w *world) {
			s := piped("s")
			s.URL = "tcp://127.0.0.1:2"
			w.put(s)
		},
		"restarted": func(w *world) { _ = w.Restart(w.Context(), "p", "s") },
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			bubble(t, sleeper, func(t *testing.T, w *world) {
				w.put(piped("s"))
				w.awaitTools("s", "a", "b", "c")
				began := time.Now()
				var calls sync.WaitGroup
				calls.Go(func() {
					r, err := w.run("s", "a", `{"s":9}`)
					if err != nil || textOf(r) != "slept" || at(began) != "9s" {
						t.Errorf("short: %v %v after %s", r, err, at(began))
					}
				})
				calls.Go(func() {
					_, err := w.run("s", "a", `{"s":30}`)
					wantCode(t, err, quartermaster.CodeExecutionFailed, "the tool may have run")
					if at(began) != "10s" {
						t.Errorf("long: ended after %s", at(began))
					}
				})
				synctest.Wait()
				go end(w)
				synctest.Wait()
				if name == "removed" || name == "disabled" {
					_, err := w.run("s", "a", `{"s":0}`)
					wantCode(t, err, quartermaster.CodeUnavailable, "not there or not enabled")
				} else if got := w.runText("s", "a", `{"s":0}`); got != "slept" {
					t.Errorf("the new one answers %q", got)
				}
				calls.Wait()
				time.Sleep(time.Minute) // for the sleepers
			})
		})
	}
}

// Close waits for calls as long as it may, and no longer.
func TestCloseDrains(t *testing.T) {
	bubble(t, sleeper, func(t *testing.T, w *world) {
		w.put(piped("s"))
		w.awaitTools("s", "a", "b", "c")
		var calls sync.WaitGroup
		calls.Go(func() {
			_, err := w.run("s", "a", `{"s":60}`)
			wantCode(t, err, quartermaster.CodeExecutionFailed, "the tool may have run")
		})
		synctest.Wait()
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		if err := w.Close(ctx); !errors.Is(err, context.DeadlineExceeded) || at(began) != "3s" {
			t.Errorf("closed with %v after %s", err, at(began))
		}
		calls.Wait()
		_, err := w.run("s", "a", `{"s":0}`)
		wantCode(t, err, quartermaster.CodeUnavailable, "is stopped")
		w.put(piped("late"))
		if s := w.Status("p", "late"); s.State != "stopped" {
			t.Errorf("%+v", s)
		}
		time.Sleep(time.Minute) // for the sleepers
	})
}

// Restart ends a rest, and says how it went.
func TestRestart(t *testing.T) {
	var up atomic.Bool
	dial := func() (*rogue, error) {
		if up.Load() {
			return good()
		}
		return nil, errors.New("nobody is there")
	}
	bubble(t, dial, func(t *testing.T, w *world) {
		w.put(piped("s"))
		w.awaitState("s", stateResting)
		wantCode(t, w.Restart(t.Context(), "p", "s"), quartermaster.CodeUnavailable, "nobody is there")
		wantCode(t, w.Restart(t.Context(), "p", "x"), quartermaster.CodeNotFound, `"x"`)
		up.Store(true)
		began := time.Now()
		if err := w.Restart(t.Context(), "p", "s"); err != nil || at(began) != "0s" {
			t.Errorf("%v after %s", err, at(began))
		}
		if err := w.Restart(t.Context(), "p", "s"); err != nil {
			t.Error(err)
		}
		if s := w.Status("p", "s"); s.State != "ready" || s.Restarts < 4 {
			t.Errorf("%+v", s)
		}
	})
}

// A server that no longer reads is given up: nobody's call hangs in a write.
func TestStalledWrite(t *testing.T) {
	dial := func() (*rogue, error) {
		return &rogue{on: map[string]func(*rogue, string, string){"tools/call": func(*rogue, string, string) {
			time.Sleep(time.Hour) // reads nothing meanwhile
		}}}, nil
	}
	bubble(t, dial, func(t *testing.T, w *world) {
		w.put(piped("s"))
		w.awaitTools("s", "a", "b", "c")
		var calls sync.WaitGroup
		began := time.Now()
		calls.Go(func() {
			_, err := w.run("s", "a", "{}")
			wantCode(t, err, quartermaster.CodeExecutionFailed, "has not read what was sent to it for 10s; the tool may have run")
		})
		synctest.Wait()
		calls.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			_, err := w.Call(ctx, caller, tool("s", "a"), nil)
			wantCode(t, err, quartermaster.CodeTimeout, "")
			if at(began) != "1.1s" {
				t.Errorf("waited for %s", at(began))
			}
		})
		calls.Wait()
		if at(began) != "10s" {
			t.Errorf("waited for %s", at(began))
		}
		time.Sleep(2 * time.Hour)
	})
}

// UP-0: not more than maxConcurrent calls at a time.
func TestMaxConcurrent(t *testing.T) {
	bubble(t, sleeper, func(t *testing.T, w *world) {
		s := piped("s")
		s.MaxConcurrent = 2
		w.put(s)
		w.awaitTools("s", "a", "b", "c")
		began := time.Now()
		var calls sync.WaitGroup
		var ends []string
		var mu sync.Mutex
		for range 6 {
			calls.Go(func() {
				w.runText("s", "a", `{"s":10}`)
				mu.Lock()
				defer mu.Unlock()
				ends = append(ends, at(began))
			})
		}
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := w.Call(ctx, caller, tool("s", "a"), nil)
		wantCode(t, err, quartermaster.CodeTimeout, "had no place for the call in time")
		calls.Wait()
		if want := []string{"10s", "10s", "20s", "20s", "30s", "30s"}; !slices.Equal(ends, want) {
			t.Errorf("ended after %v", ends)
		}
		if s := w.Status("p", "s"); s.Calls != 6 || s.P50 != 10_000 || s.P99 != 10_000 {
			t.Errorf("%+v", s)
		}
	})
}

// EXE-3: a call's time is the tool's, else the server's, else a minute. The error
// carries what had arrived, and the upstream is told.
func TestCallTimeout(t *testing.T) {
	tests := map[string]struct{ tool, server, want time.Duration }{
		"the tool's":   {2 * time.Second, 5 * time.Second, 2 * time.Second},
		"the server's": {0, 5 * time.Second, 5 * time.Second},
		"a minute":     {0, 0, time.Minute},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			told := make(chan string, 1)
			dial := func() (*rogue, error) {
				return &rogue{on: map[string]func(*rogue, string, string){
					"tools/call": func(r *rogue, id, params string) {
						token := strings.Split(params[strings.Index(params, `"progressToken":`)+16:], "}")[0]
						for i := range 25 {
							r.write(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%d,"message":"at work"}}`, token, i))
						}
					},
					"notifications/cancelled": func(_ *rogue, _, params string) { told <- params }, //nolint:misspell // as MCP spells it
				}}, nil
			}
			bubble(t, dial, func(t *testing.T, w *world) {
				s := piped("s")
				s.Timeouts.Request = quartermaster.Duration(tt.server)
				w.put(s)
				w.awaitTools("s", "a", "b", "c")
				began := time.Now()
				row := tool("s", "a")
				row.Timeout = quartermaster.Duration(tt.tool)
				_, err := w.Call(t.Context(), caller, row, nil)
				wantCode(t, err, quartermaster.CodeTimeout, fmt.Sprintf("did not answer within %v; it was told to cancel, but the tool may have run", tt.want))
				if at(began) != tt.want.String() {
					t.Errorf("ended after %s", at(began))
				}
				e, _ := errors.AsType[*quartermaster.Error](err)
				heard, _ := e.Details["progress"].([]progress)
				if len(heard) != maxNotes || heard[maxNotes-1] != (progress{Progress: 24, Message: "at work"}) {
					t.Errorf("carries %v", heard)
				}
				if params := <-told; !strings.Contains(params, "requestId") {
					t.Error(params)
				}
				if w.Status("p", "s").State != "ready" {
					t.Error("the connection suffered")
				}
			})
		})
	}
}

// agents counts those that have a connection of their own.
func (w *world) agents(server string) int {
	up := w.find("p", server)
	up.mu.Lock()
	defer up.mu.Unlock()
	return len(up.agents)
}

// UP-4: with scope agent every agent has a connection of its own, which ends
// when it is told or not used.
func TestAgentScope(t *testing.T) {
	var dials atomic.Int64
	dial := func() (*rogue, error) {
		n := dials.Add(1)
		return &rogue{on: map[string]func(*rogue, string, string){"tools/call": func(r *rogue, id, _ string) {
			r.answer(id, fmt.Sprintf(`{"content":[{"type":"text","text":"%d"}]}`, n))
		}}}, nil
	}
	bubble(t, dial, func(t *testing.T, w *world) {
		s := piped("s")
		s.Scope = quartermaster.ScopeAgent
		w.put(s)
		w.awaitTools("s", "a", "b", "c")
		ask := func(agent string) string {
			r, err := w.Call(t.Context(), quartermaster.Caller{Project: "p", Agent: agent}, tool("s", "a"), nil)
			if err != nil {
				t.Fatal(err)
			}
			return textOf(r)
		}
		got := []string{ask("x"), ask("y"), ask("x"), ask("")}
		if want := []string{"2", "3", "2", "1"}; !slices.Equal(got, want) {
			t.Errorf("calls went to %v, not %v", got, want)
		}
		w.Release("p", "x")
		synctest.Wait()
		if n := w.agents("s"); n != 1 {
			t.Errorf("%d agents are left", n)
		}
		if got := ask("x") + ask("y"); got != "43" {
			t.Errorf("after a release calls went to %s", got)
		}
		time.Sleep(6 * time.Minute)
		if n := w.agents("s"); n != 0 {
			t.Errorf("%d agents are left that use nothing", n)
		}
		if got := ask("x"); got != "5" {
			t.Errorf("after a long time calls went to %s", got)
		}
		for i := range maxAgents - 1 {
			ask(fmt.Sprint("agent", i))
		}
		_, err := w.Call(t.Context(), quartermaster.Caller{Project: "p", Agent: "one too many"}, tool("s", "a"), nil)
		wantCode(t, err, quartermaster.CodeUnavailable, "has connections for 256 agents already")
	})
}

// UP-3 holds for the connection of an agent too: one that does not start rests,
// and is forgotten when the agent gives up.
func TestAgentScopeThatFails(t *testing.T) {
	var dials, down atomic.Int64
	dial := func() (*rogue, error) {
		if dials.Add(1); down.Load() == 1 {
			return nil, errors.New("no")
		}
		return good()
	}
	bubble(t, dial, func(t *testing.T, w *world) {
		s := piped("s")
		s.Scope = quartermaster.ScopeAgent
		w.put(s)
		w.awaitTools("s", "a", "b", "c")
		down.Store(1)
		for range 50 {
			_, err := w.run("s", "a", "{}")
			wantCode(t, err, quartermaster.CodeUnavailable, "no")
			time.Sleep(time.Second)
		}
		if dials.Load() != 4 || w.agents("s") != 1 {
			t.Errorf("%d dials, %d agents", dials.Load(), w.agents("s"))
		}
		if time.Sleep(10 * time.Minute); w.agents("s") != 0 {
			t.Error("is not forgotten")
		}
	})
}

// A server without tools is no reason to worry: it may have something else.
func TestNoTools(t *testing.T) {
	dial := func() (*rogue, error) {
		return &rogue{on: map[string]func(*rogue, string, string){
			"initialize": func(r *rogue, id, _ string) {
				r.answer(id, `{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"x","version":"1"}}`)
			},
			"tools/list": func(*rogue, string, string) { t.Error("was asked for what it does not have") },
		}}, nil
	}
	bubble(t, dial, func(_ *testing.T, w *world) {
		w.put(piped("s"))
		w.awaitState("s", stateReady)
	})
}

// A server that never answers what it does not know is asked once only.
func TestSilentProbeIsRemembered(t *testing.T) {
	var asked atomic.Int64
	var current atomic.Pointer[rogue]
	dial := func() (*rogue, error) {
		return &rogue{begin: current.Store, on: map[string]func(*rogue, string, string){
			"server/discover": func(*rogue, string, string) { asked.Add(1) },
		}}, nil
	}
	bubble(t, dial, func(t *testing.T, w *world) {
		began := time.Now()
		w.put(piped("s"))
		w.awaitState("s", stateReady)
		if at(began) != "5s" {
			t.Errorf("was ready after %s", at(began))
		}
		time.Sleep(time.Minute)
		current.Load().die()
		began = time.Now()
		synctest.Wait()
		if s := w.Status("p", "s"); s.State != "ready" || at(began) != "0s" || asked.Load() != 1 {
			t.Errorf("%+v, asked %d times", s, asked.Load())
		}
		if err := w.Restart(t.Context(), "p", "s"); err != nil || asked.Load() != 2 {
			t.Errorf("%v, asked %d times", err, asked.Load())
		}
	})
}

// A tool that its server calls something else from now on is another tool.
func TestRenaming(t *testing.T) {
	var name atomic.Value
	name.Store("old")
	dial := func() (*rogue, error) {
		return &rogue{on: map[string]func(*rogue, string, string){"tools/list": func(r *rogue, id, _ string) {
			r.answer(id, fmt.Sprintf(`{"tools":[{"name":%q}]}`, name.Load()))
		}}}, nil
	}
	bubble(t, dial, func(_ *testing.T, w *world) {
		w.put(piped("s"))
		w.awaitTools("s", "old")
		name.Store("new")
		w.awaitTools("s", "new", "old")
		w.awaitTools("s", "new") // after a grace
	})
}

// A server behind HTTP that goes away while nobody calls is noticed when its
// list is asked for.
func TestRefreshNotices(t *testing.T) {
	addr, kill := program(t, selfArgs("listen", "http-json")...)
	w := open(t, quick)
	w.put(byHTTP("http://" + addr))
	w.awaitTools("s", modelTools...)
	kill()
	poke(w.find("p", "s").shared.changed)
	w.await("it is noticed", func() bool { return strings.Contains(w.Status("p", "s").LastError, "cannot be reached") })
}
