package provider

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"sync"

	"quartermaster"
)

// upstream is one server of one project, with one set of settings: other
// settings make another upstream.
type upstream struct {
	owner   *Upstreams
	project string
	server  *quartermaster.Server
	print   []byte // of the settings, to tell whether they have changed

	shared *connection   // the one for all, or that only discovers
	turns  chan struct{} // a place for each call at a time; nil: no limit
	took   latency

	mu     sync.Mutex
	ended  bool
	agents map[string]*connection // where every agent has its own
}

// maxAgents bounds the connections that agents can cause by being many.
const maxAgents = 256

func newUpstream(owner *Upstreams, project string, server *quartermaster.Server, print []byte) *upstream {
	up := &upstream{owner: owner, project: project, server: server, print: print, agents: map[string]*connection{}}
	if server.MaxConcurrent > 0 {
		up.turns = make(chan struct{}, server.MaxConcurrent)
	}
	up.shared = newConnection(up, "", server.Lazy)
	// What was never discovered has to be, or nobody could ever use it.
	up.shared.eager = server.DiscoveredAt.IsZero()
	return up
}

// fingerprint covers everything in the settings on which a connection depends,
// and when the secrets were set that they refer to.
func fingerprint(s *quartermaster.Server, catalog *quartermaster.Catalog) []byte {
	c := *s
	c.Groups, c.Prefix, c.Pin, c.Quarantine = nil, false, false, false
	c.CreatedAt, c.UpdatedAt, c.DiscoveredAt, c.Status, c.Warnings = s.CreatedAt, s.CreatedAt, s.CreatedAt, nil, nil
	var b bytes.Buffer
	_ = json.NewEncoder(&b).Encode(c) // of a plain value: cannot fail
	var names []string
	for _, values := range []map[string]string{s.Env, s.Headers} {
		for _, value := range values {
			names = append(names, quartermaster.SecretsIn(value)...)
		}
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if secret := catalog.Secret(name); secret != nil {
			b.WriteString(name + strconv.FormatInt(secret.UpdatedAt.UnixMicro(), 36))
		}
	}
	return b.Bytes()
}

// sameOffers reports whether what the server offers is taken in the same way.
func sameOffers(a, b *quartermaster.Server) bool {
	return a.Prefix == b.Prefix && a.Pin == b.Pin && a.Quarantine == b.Quarantine
}

func (up *upstream) timing() timing { return up.owner.timing }

// connectionOf is the one that an agent's calls go through.
func (up *upstream) connectionOf(agent string) (*connection, error) {
	if up.server.Scope != quartermaster.ScopeAgent || agent == "" {
		return up.shared, nil
	}
	up.mu.Lock()
	defer up.mu.Unlock()
	if c := up.agents[agent]; c != nil {
		return c, nil
	}
	if up.ended {
		return up.shared, nil // which says why not
	}
	if len(up.agents) == maxAgents {
		return nil, quartermaster.Errorf(quartermaster.CodeUnavailable,
			"server %s has connections for %d agents already; end some, or set its scope to project", up.server.Name, maxAgents)
	}
	c := newConnection(up, agent, true)
	up.agents[agent] = c
	up.launch(c, nil)
	return c, nil
}

// launch runs a connection.
func (up *upstream) launch(c *connection, after <-chan struct{}) {
	up.owner.running.Go(func() {
		c.run(after)
		up.forget(c)
	})
}

// forget makes the agent's next call begin another connection.
func (up *upstream) forget(c *connection) {
	up.mu.Lock()
	defer up.mu.Unlock()
	if up.agents[c.agent] == c {
		delete(up.agents, c.agent)
	}
}

func (up *upstream) stopped() bool {
	up.mu.Lock()
	defer up.mu.Unlock()
	return up.ended
}

// stop ends all connections. The channel is closed when they are gone.
func (up *upstream) stop() <-chan struct{} {
	up.mu.Lock()
	defer up.mu.Unlock()
	up.ended = true
	all := []*connection{up.shared}
	for _, c := range up.agents {
		all = append(all, c)
	}
	for _, c := range all {
		c.stop()
	}
	gone := make(chan struct{})
	up.owner.running.Go(func() {
		for _, c := range all {
			<-c.done
		}
		close(gone)
	})
	return gone
}

// release ends an agent's own connection.
func (up *upstream) release(agent string) {
	up.mu.Lock()
	defer up.mu.Unlock()
	if c := up.agents[agent]; c != nil {
		c.stop()
	}
}

// status puts together what is known.
func (up *upstream) status() quartermaster.ServerStatus {
	c := up.shared
	now := c.now.Load()
	s := quartermaster.ServerStatus{
		Health: now.state.health(), State: string(now.state), Reason: now.reason, Since: now.since,
		Restarts: max(0, int(c.starts.Load())-1), LastError: c.lastTrouble(),
	}
	if now.line != nil {
		s.Era = now.line.session.era()
		if p := now.line.session.wire.process; p != nil {
			s.PID = p.PID()
		}
	}
	calls, p50, p99 := up.took.summary()
	s.Calls, s.P50, s.P99 = calls, float64(p50.Microseconds())/1000, float64(p99.Microseconds())/1000
	return s
}

// stderr is what the server's program wrote last.
func (up *upstream) stderr() []string {
	if p := up.shared.program.Load(); p != nil {
		return p.Stderr()
	}
	return nil
}
