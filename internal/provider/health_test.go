package provider

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"quartermaster"
)

// UP-5: green is answering, yellow is slow or one missed, red is failed; the
// transitions are events.
func TestHealthPing(t *testing.T) {
	var delay atomic.Int64 // of an answer to ping; negative: none
	dial := func() (*rogue, error) {
		return &rogue{on: map[string]func(*rogue, string, string){"ping": func(r *rogue, id, _ string) {
			if d := time.Duration(delay.Load()); d >= 0 {
				go func() {
					time.Sleep(d)
					r.answer(id, `{}`)
				}()
			}
		}}}, nil
	}
	bubble(t, dial, func(t *testing.T, w *world) {
		s := piped("s")
		s.HealthCheck = &quartermaster.HealthCheck{Kind: quartermaster.HealthPing, Interval: quartermaster.Duration(10 * time.Second)}
		w.put(s)
		w.awaitTools("s", "a", "b", "c")
		time.Sleep(time.Minute)
		since := w.Status("p", "s").Since
		if s := w.Status("p", "s"); s.Health != "green" || s.Restarts != 0 {
			t.Errorf("answering: %+v", s)
		}
		delay.Store(int64(4 * time.Second))
		if s := w.awaitState("s", stateDegraded); s.Health != "yellow" || s.Reason != "is slow: the health check took 4s" || !s.Since.After(since) {
			t.Errorf("slow: %+v", s)
		}
		delay.Store(0)
		w.awaitState("s", stateReady)
		delay.Store(-1)
		began := time.Now()
		if s := w.awaitState("s", stateDegraded); s.Health != "yellow" || s.Reason != "missed 1 health check(s): no answer within 5s" {
			t.Errorf("missed one: %+v", s)
		}
		if err := w.Available("p", tool("s", "a")); err != nil {
			t.Error(err)
		}
		w.await("red", func() bool { return w.Status("p", "s").Restarts == 1 })
		if !w.toldOf("missed 2 health check(s): no answer within 5s") || time.Since(began) > 35*time.Second {
			t.Errorf("%s after %v", w.history("s"), time.Since(began))
		}
		w.awaitState("s", stateReady)
		if got := w.history("s"); got != "starting ready degraded ready degraded failed starting ready" {
			t.Error(got)
		}
		synctest.Wait()
	})
}

// UP-5: a server can be asked by HTTP.
func TestHealthHTTP(t *testing.T) {
	var status atomic.Int64
	status.Store(204)
	s := serveSite(t, &site{before: func(rw http.ResponseWriter, r *http.Request, _ string) bool {
		if r.URL.Path != "/health" {
			return false
		}
		if r.Header.Get("X-Key") != "hunter2" {
			t.Error("asked without its headers")
		}
		rw.WriteHeader(int(status.Load()))
		return true
	}})
	w := open(t, quick)
	w.safe["KEY"] = "hunter2"
	server := byHTTP(s.URL + "/mcp")
	server.Headers = map[string]string{"X-Key": "${KEY}"}
	server.HealthCheck = &quartermaster.HealthCheck{Kind: quartermaster.HealthHTTP, Path: "/health", Interval: quartermaster.Duration(time.Second)}
	w.put(server)
	w.awaitTools("s", "a", "b", "c")
	status.Store(500)
	w.await("one missed", func() bool { return w.toldOf("missed 1 health check(s): answered 500 Internal Server Error") })
	w.await("red", func() bool { return strings.Contains(w.history("s"), "degraded failed") })
}

// UP-5: a server can be asked by a program, which gets what the server gets.
func TestHealthCommand(t *testing.T) {
	sick := filepath.Join(t.TempDir(), "sick")
	w := open(t, quick)
	w.safe["KEY"] = "hunter2"
	server := self(t, "s", "model")
	server.Env = map[string]string{"SICK": sick, "KEY": "${KEY}"}
	server.HealthCheck = &quartermaster.HealthCheck{
		Kind: quartermaster.HealthCommand, Interval: quartermaster.Duration(time.Second),
		Command: []string{"sh", "-c", `echo ok; test "$KEY" = hunter2 || exit 9; if test -e "$SICK"; then echo "I feel $KEY" >&2; exit 3; fi`},
	}
	w.put(server)
	w.awaitTools("s", modelTools...)
	before := w.Status("p", "s").PID
	if err := os.WriteFile(sick, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	w.await("one missed", func() bool { return w.toldOf("missed 1 health check(s): exited with status 3: I feel [hidden]") })
	if err := os.Remove(sick); err != nil {
		t.Fatal(err)
	}
	w.await("started anew or well again", func() bool { return w.Status("p", "s").Health == "green" })
	if before == 0 {
		t.Error("has no process")
	}
}

// A check that cannot be made says so.
func TestHealthCheckOfNoUse(t *testing.T) {
	w := open(t, quick)
	server := self(t, "s", "model")
	server.HealthCheck = &quartermaster.HealthCheck{Kind: quartermaster.HealthHTTP, Path: "/", Interval: quartermaster.Duration(time.Second)}
	w.put(server)
	w.await("it says so", func() bool { return w.toldOf("only a server with an http or ws url can be checked by http") })
}
