package provider

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"quartermaster"
)

// UpstreamOptions are what the connections to upstream servers need.
type UpstreamOptions struct {
	Store   quartermaster.Store // takes what is discovered
	Vault   quartermaster.Vault // opens what settings refer to as ${NAME}
	Version string              // of the program, for the upstreams to see

	Private  bool // upstreams may be in private networks
	Loopback bool // upstreams may be on this machine

	Grace  time.Duration                      // how long tools stay listed while their server is down; 0: 10 minutes
	Schema func(schema json.RawMessage) error // says what is wrong with a JSON Schema; nil: not looked at
	Events func(Event)                        // told of every transition; must not block; nil: nobody is told
	Log    *slog.Logger                       // nil: nothing is logged
}

// Upstreams keeps the connections to all upstream MCP servers of all projects,
// and runs their tools. What one server does, or fails to do, does not concern
// the others: they share no lock that is held while anybody waits.
type Upstreams struct {
	store   quartermaster.Store
	vault   quartermaster.Vault
	version string
	policy  dialPolicy
	grace   time.Duration
	schema  func(json.RawMessage) error
	events  func(Event)
	log     *slog.Logger
	timing  timing
	nursery *nursery
	reach   func(context.Context, *target) (*wire, error)

	hurry   context.Context // ends when there is no more time to end in good order
	rush    context.CancelFunc
	running sync.WaitGroup

	// all is replaced as a whole, so that a call finds its server without a lock.
	all atomic.Pointer[map[serverKey]*upstream]

	mu       sync.Mutex
	closed   bool
	catalogs map[string]*quartermaster.Catalog
	leaving  map[serverKey]<-chan struct{} // what is ending: a server of the same name waits for it
}

var (
	_ quartermaster.Provider  = (*Upstreams)(nil)
	_ quartermaster.Upstreams = (*Upstreams)(nil)
)

type serverKey struct{ project, server string }

// OpenUpstreams connects to nothing yet: Follow says to what.
func OpenUpstreams(o UpstreamOptions) *Upstreams {
	if o.Store == nil || o.Vault == nil {
		panic("provider: upstreams need a store and a vault")
	}
	u := &Upstreams{
		store: o.Store, vault: o.Vault, version: o.Version, policy: dialPolicy{Private: o.Private, Loopback: o.Loopback},
		grace: o.Grace, schema: o.Schema, events: o.Events, log: o.Log, timing: usualTiming(), nursery: newNursery(),
		reach:    func(ctx context.Context, t *target) (*wire, error) { return t.reach(ctx) },
		catalogs: map[string]*quartermaster.Catalog{}, leaving: map[serverKey]<-chan struct{}{},
	}
	if u.grace == 0 {
		u.grace = quartermaster.DefaultGrace
	}
	if u.log == nil {
		u.log = slog.New(slog.DiscardHandler)
	}
	u.all.Store(&map[serverKey]*upstream{})
	u.hurry, u.rush = context.WithCancel(context.Background())
	return u
}

// Close lets calls that are under way end and stops everything. When ctx ends
// first, it stops everything at once. Nothing is left behind in either case.
func (u *Upstreams) Close(ctx context.Context) error {
	u.mu.Lock()
	u.closed = true
	for _, up := range *u.all.Load() {
		up.stop()
	}
	u.mu.Unlock()
	defer u.rush()
	gone := make(chan struct{})
	go func() {
		u.running.Wait()
		close(gone)
	}()
	select {
	case <-gone:
		return nil
	case <-ctx.Done():
	}
	u.rush()
	<-gone
	return ctx.Err()
}

// Follow makes the connections of a project what its catalog says: begins
// those of new servers, ends those of servers that are gone or disabled, and
// does both where settings or secrets have changed. It never waits for any of
// them. Older catalogs than one that it has seen are ignored.
func (u *Upstreams) Follow(catalog *quartermaster.Catalog) {
	u.mu.Lock()
	defer u.mu.Unlock()
	project := catalog.Project().ID
	old := u.catalogs[project]
	if u.closed || old != nil && old.Revision() >= catalog.Revision() {
		return
	}
	u.catalogs[project] = catalog
	if old != nil && sameSlice(old.Servers(), catalog.Servers()) && sameSlice(old.Secrets(), catalog.Secrets()) {
		return // as after nearly every change
	}
	next := maps.Clone(*u.all.Load())
	var begin []func()
	for _, s := range catalog.Servers() {
		if s.Enabled {
			if launch := u.meet(next, old, catalog, s); launch != nil {
				begin = append(begin, launch)
			}
		}
	}
	for key, up := range next {
		if s := catalog.Server(key.server); key.project == project && (s == nil || !s.Enabled) {
			delete(next, key)
			u.leaving[key] = up.stop()
		}
	}
	u.all.Store(&next)
	for _, launch := range begin {
		launch()
	}
	maps.DeleteFunc(u.leaving, func(_ serverKey, gone <-chan struct{}) bool {
		select {
		case <-gone:
			return true
		default:
			return false
		}
	})
}

// sameSlice reports whether a and b are the very same: catalogs share what
// does not change.
func sameSlice[T any](a, b []T) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// meet takes one enabled server of a catalog. What it returns begins the
// connection, once it can be found.
func (u *Upstreams) meet(all map[serverKey]*upstream, old, catalog *quartermaster.Catalog, s *quartermaster.Server) (launch func()) {
	key := serverKey{catalog.Project().ID, s.Name}
	print := fingerprint(s, catalog)
	was := all[key]
	if was != nil && string(was.print) == string(print) {
		if before := old.Server(s.Name); before != nil && !sameOffers(before, s) {
			poke(was.shared.changed)
		}
		return nil
	}
	up := newUpstream(u, key.project, s, print)
	all[key] = up
	gone := u.leaving[key]
	if was != nil {
		gone = was.stop()
	}
	delete(u.leaving, key)
	return func() { up.launch(up.shared, gone) }
}

// find looks a server up; nil if there is none that is enabled.
func (u *Upstreams) find(project, server string) *upstream {
	return (*u.all.Load())[serverKey{project, server}]
}

// Available implements quartermaster.Provider.
func (u *Upstreams) Available(project string, tool *quartermaster.Tool) error {
	up := u.find(project, tool.Server)
	if up == nil {
		return fmt.Errorf("server %s is not there or not enabled", tool.Server)
	}
	if now := up.shared.now.Load(); now.line == nil && !now.patient {
		return up.shared.unavailable(now)
	}
	if !tool.MissingSince.IsZero() {
		return fmt.Errorf("server %s has not offered it since %s", tool.Server, tool.MissingSince.UTC().Format(time.RFC3339))
	}
	return nil
}

// Gone reports whether a server has been down for longer than its tools stay
// listed (POOL-3).
func (u *Upstreams) Gone(project, server string) bool {
	up := u.find(project, server)
	if up == nil {
		return false
	}
	down := up.shared.now.Load().down
	return !down.IsZero() && time.Since(down) >= u.grace
}

// Status says how a server is doing.
func (u *Upstreams) Status(project, server string) quartermaster.ServerStatus {
	u.mu.Lock()
	catalog := u.catalogs[project]
	u.mu.Unlock()
	up := u.find(project, server)
	if up == nil {
		s := quartermaster.ServerStatus{Health: stateStopped.health(), State: string(stateStopped), Reason: "there is no such server"}
		if catalog != nil && catalog.Server(server) != nil {
			s.Reason = "is disabled"
		}
		return s
	}
	s := up.status()
	if catalog != nil {
		for _, t := range catalog.Tools() {
			if t.Server == server {
				s.Tools++
			}
		}
	}
	return s
}

// Stderr returns the last lines that a stdio server wrote to its error output.
func (u *Upstreams) Stderr(project, server string) []string {
	if up := u.find(project, server); up != nil {
		return up.stderr()
	}
	return nil
}

// Restart ends a server's connection, after the calls that are under way, and
// makes it anew at once, also where it is resting. It returns when that has gone
// well or failed.
func (u *Upstreams) Restart(ctx context.Context, project, server string) error {
	up := u.find(project, server)
	if up == nil {
		return quartermaster.Errorf(quartermaster.CodeNotFound, "there is no server %q that is enabled", server)
	}
	c := up.shared
	before := c.starts.Load()
	poke(c.again)
	for {
		now := c.now.Load()
		switch {
		case c.starts.Load() == before || now.state == stateStarting:
		case now.line != nil:
			return nil
		default:
			return c.unavailable(now)
		}
		select {
		case <-now.next:
		case <-c.done:
			return c.unavailable(c.now.Load())
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Release ends what an agent has of its own: the connections to servers whose
// scope is agent (UP-4).
func (u *Upstreams) Release(project, agent string) {
	for key, up := range *u.all.Load() {
		if key.project == project {
			up.release(agent)
		}
	}
}

// tell passes an event on, and writes it into the log.
func (u *Upstreams) tell(e Event) {
	level := slog.LevelInfo
	if e.To == string(stateFailed) || e.To == string(stateResting) {
		level = slog.LevelWarn
	}
	u.log.Log(context.Background(), level, "upstream server", "project", e.Project, "server", e.Server,
		"agent", e.Agent, "from", e.From, "to", e.To, "reason", e.Reason)
	if u.events != nil {
		u.events(e)
	}
}
