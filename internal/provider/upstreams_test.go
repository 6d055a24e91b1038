package provider

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"quartermaster"
)

// ledger is a store of one project, in memory.
type ledger struct {
	quartermaster.Store
	mu      sync.Mutex
	catalog *quartermaster.Catalog
	follow  func(*quartermaster.Catalog)
	broken  error // what Change answers, if set
}

func newLedger() *ledger {
	return &ledger{catalog: quartermaster.NewCatalog(quartermaster.Project{ID: "p", Revision: 1})}
}

func (l *ledger) Catalog(context.Context, string) (*quartermaster.Catalog, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.catalog, l.broken
}

func (l *ledger) Change(_ context.Context, _ string, edit func(*quartermaster.Draft) error) (*quartermaster.Catalog, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.broken != nil {
		return nil, l.broken
	}
	d := l.catalog.Draft(time.Now())
	if err := edit(d); err != nil {
		return nil, err
	}
	if changes := d.Changes(); len(changes) > 0 {
		l.catalog = l.catalog.With(l.catalog.Revision()+1, changes)
		l.follow(l.catalog)
	}
	return l.catalog, nil
}

// safe is a vault in memory.
type safe map[string]string

func (s safe) Secret(_ context.Context, _, name string) (string, error) {
	if value, ok := s[name]; ok {
		return value, nil
	}
	return "", quartermaster.Errorf(quartermaster.CodeNotFound, "there is no secret %q", name)
}

// world is what a test of upstreams has: them, a store that they follow, and
// everything that they have told.
type world struct {
	testing.TB
	*Upstreams
	ledger *ledger
	safe   safe

	patience, look time.Duration // for await

	mu     sync.Mutex
	events []Event
	told   chan struct{} // has room for one
}

func newWorld(t testing.TB, patience, look time.Duration) *world {
	return &world{TB: t, ledger: newLedger(), safe: safe{}, patience: patience, look: look, told: make(chan struct{}, 1)}
}

// open makes upstreams. At the end of the test nothing of them may be left.
func open(t testing.TB, adjust ...func(*Upstreams)) *world {
	t.Helper()
	w := newWorld(t, 20*time.Second, 5*time.Millisecond)
	before, children := goleak.IgnoreCurrent(), offspring()
	w.Upstreams = OpenUpstreams(UpstreamOptions{
		Store: w.ledger, Vault: w.safe, Version: "test", Loopback: true, Events: w.tell,
	})
	for _, f := range adjust {
		f(w.Upstreams)
	}
	w.ledger.follow = w.Follow
	w.Follow(w.ledger.catalog)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := w.Close(ctx); err != nil {
			t.Error("closing:", err)
		}
		if err := goleak.Find(before); err != nil {
			t.Error(err)
		}
		w.await("no process is left behind", func() bool { return offspring() <= children })
		w.checkEvents()
	})
	return w
}

func (w *world) tell(e Event) {
	w.mu.Lock()
	w.events = append(w.events, e)
	w.mu.Unlock()
	poke(w.told)
}

// checkEvents proves that every connection only made legal moves, and told all.
func (w *world) checkEvents() {
	w.Helper()
	at := map[[2]string]string{}
	for _, e := range w.events {
		key := [2]string{e.Server, e.Agent}
		if was, ok := at[key]; ok && was != e.From && e.From != string(stateStopped) {
			w.Errorf("%s was %s and went from %s to %s", e.Server, was, e.From, e.To)
		}
		if e.From != e.To && !legal(state(e.From), state(e.To)) {
			w.Errorf("%s went from %s to %s", e.Server, e.From, e.To)
		}
		at[key] = e.To
	}
}

// put adds or changes a server.
func (w *world) put(s quartermaster.Server) {
	w.Helper()
	s.Enabled, s.Prefix = true, true
	_, err := w.ledger.Change(w.Context(), "p", func(d *quartermaster.Draft) error {
		_, _, err := d.PutServer(s)
		return err
	})
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) remove(name string) {
	w.Helper()
	_, err := w.ledger.Change(w.Context(), "p", func(d *quartermaster.Draft) error { return d.DeleteServer(name) })
	if err != nil {
		w.Fatal(err)
	}
}

// await waits until what it is told is so. It looks again after every event,
// and now and then, because not everything is one.
func (w *world) await(what string, so func() bool) {
	w.Helper()
	deadline := time.NewTimer(w.patience)
	defer deadline.Stop()
	for !so() {
		select {
		case <-w.told:
		case <-time.After(w.look):
		case <-deadline.C:
			var all []string
			for _, key := range slices.SortedFunc(maps.Keys(*w.all.Load()), func(a, b serverKey) int { return strings.Compare(a.server, b.server) }) {
				stderr := w.Stderr("p", key.server)
				all = append(all, fmt.Sprintf("%s: %+v %.300q", key.server, w.Status("p", key.server), stderr[max(0, len(stderr)-3):]))
			}
			w.Fatalf("in vain: %s\n%s", what, strings.Join(all, "\n"))
		}
	}
}

func (w *world) awaitState(server string, states ...state) quartermaster.ServerStatus {
	w.Helper()
	var s quartermaster.ServerStatus
	w.await(fmt.Sprintf("%s %v", server, states), func() bool {
		s = w.Status("p", server)
		return slices.Contains(states, state(s.State))
	})
	return s
}

// awaitTools waits until the catalog has these tools of a server.
func (w *world) awaitTools(server string, names ...string) {
	w.Helper()
	w.await(fmt.Sprintf("%s offers %q", server, names), func() bool { return slices.Equal(w.tools(server), names) })
}

// tools are the server's own names of what the catalog has of it.
func (w *world) tools(server string) []string {
	c, _ := w.ledger.Catalog(w.Context(), "p")
	names := []string{}
	for _, t := range c.Tools() {
		if t.Server == server {
			names = append(names, t.Upstream)
		}
	}
	return names
}

var caller = quartermaster.Caller{Project: "p", Agent: "a"}

func tool(server, name string) *quartermaster.Tool {
	return &quartermaster.Tool{Name: server + "__" + name, Server: server, Upstream: name}
}

func (w *world) run(server, name, arguments string) (*quartermaster.Result, error) {
	return w.Call(w.Context(), caller, tool(server, name), json.RawMessage(arguments))
}

// runText runs a tool that must work, and returns the text of its answer.
func (w *world) runText(server, name, arguments string) string {
	w.Helper()
	r, err := w.run(server, name, arguments)
	if err != nil {
		w.Fatalf("%s/%s: %v", server, name, err)
	}
	return textOf(r)
}

func textOf(r *quartermaster.Result) string {
	var all strings.Builder
	for _, c := range r.Content {
		var part struct{ Text string }
		_ = json.Unmarshal(c, &part)
		all.WriteString(part.Text)
	}
	return all.String()
}

// self is a stdio server that is this test program in a mode.
func self(t testing.TB, name string, args ...string) quartermaster.Server {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return quartermaster.Server{Name: name, Transport: quartermaster.TransportStdio, Command: program, Args: append([]string{runMode}, args...)}
}

func wantCode(t testing.TB, err error, code quartermaster.Code, words string) {
	t.Helper()
	if quartermaster.CodeOf(err) != code || !strings.Contains(fmt.Sprint(err), words) {
		t.Errorf("got %s %v; want %s %q", quartermaster.CodeOf(err), err, code, words)
	}
}

// quick is a timing for tests that wait for it.
func quick(u *Upstreams) {
	u.timing.backoff = func(tries int) time.Duration { return time.Duration(min(tries, 1)) * 20 * time.Millisecond }
	u.timing.rest = time.Hour
	u.timing.settle = time.Millisecond
	u.timing.grace = 300 * time.Millisecond
}

var errBroken = errors.New("the database is away")

// offspring counts the processes below us, at any depth: orphans come to us.
func offspring() int {
	parents := map[string]string{}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		stat, _ := os.ReadFile(path)
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		if len(fields) > 1 {
			parents[filepath.Base(filepath.Dir(path))] = fields[1]
		}
	}
	n, us := 0, strconv.Itoa(os.Getpid())
	for pid := range parents {
		for up := pid; up != ""; up = parents[up] {
			if parents[up] == us {
				n++
				break
			}
		}
	}
	return n
}

func contextFor(t testing.TB, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(t.Context(), d)
}
