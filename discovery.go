package quartermaster

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// DefaultGrace is how long a tool is kept that its server no longer offers.
const DefaultGrace = 10 * time.Minute

// Discovered says what became of a server's offers. Tools are named as in the
// catalog, refused offers as the server names them.
type Discovered struct {
	Added    []string          `json:"added,omitempty"`
	Changed  []string          `json:"changed,omitempty" doc:"Tools with another definition or another name than before"`
	Held     []string          `json:"held,omitempty" doc:"Those of added and changed that wait to be accepted"`
	Missing  []string          `json:"missing,omitempty" doc:"Tools that the server offers no longer"`
	Returned []string          `json:"returned,omitempty" doc:"Tools that were missing"`
	Removed  []string          `json:"removed,omitempty" doc:"Tools that were missing for too long"`
	Refused  map[string]string `json:"refused,omitempty" doc:"Offers that were left out, and why"`
	Flags    map[string][]Flag `json:"flags,omitempty" doc:"Signs of poisoning in what is added or changed"`
}

// Discover merges what a server offers now into the catalog. What people have
// set stays as it is.
func (d *Draft) Discover(server string, offers []Offer) (Discovered, error) {
	return d.Merge(server, d.base.Examine(server, offers, nil), DefaultGrace)
}

// Merge is Discover for offers that were examined before. A tool that is not
// among them is removed once it has been missing for grace.
func (d *Draft) Merge(server string, offers *Offers, grace time.Duration) (Discovered, error) {
	s := d.Server(server)
	if s == nil {
		return Discovered{}, Errorf(CodeNotFound, "there is no server %q", server)
	}
	m := merge{draft: d, server: s, offers: offers, first: s.DiscoveredAt.IsZero()}
	rows := d.discovered(server)
	for name, reason := range offers.refused {
		m.refuse(name, reason)
	}
	for _, o := range offers.all {
		if row := rows[o.Name]; row != nil {
			m.meet(row, o)
		} else {
			m.add(o)
		}
	}
	for _, upstream := range sortedKeys(rows) {
		if !offers.offered[upstream] {
			m.miss(rows[upstream], grace)
		}
	}
	if m.first {
		next := *s
		next.DiscoveredAt = d.now
		d.servers[server] = &next
	}
	return m.done(), nil
}

// discovered finds the tools that a server has offered, by its own names.
func (c *Catalog) discovered(server string) map[string]*Tool {
	rows := map[string]*Tool{}
	for _, t := range c.tools {
		if t.Server == server && t.Origin == OriginDiscovered {
			rows[t.ownName()] = t
		}
	}
	return rows
}

// ownName is the server's name for a tool. A row that went through a version
// without discovery has lost it.
func (t *Tool) ownName() string { return cmp.Or(t.Upstream, t.shortName()) }

func (d *Draft) discovered(server string) map[string]*Tool {
	rows := d.base.discovered(server)
	for upstream, t := range rows {
		if _, changed := d.tools[t.ID]; changed {
			delete(rows, upstream)
		}
	}
	for _, t := range d.tools {
		if t != nil && t.Server == server && t.Origin == OriginDiscovered {
			rows[t.ownName()] = t
		}
	}
	return rows
}

// merge is one discovery under way.
type merge struct {
	draft  *Draft
	server *Server
	offers *Offers
	first  bool // nothing of the server was known
	report Discovered
}

// add makes a row of an offer that has none.
func (m *merge) add(o *offered) {
	if !m.fit(o) {
		return
	}
	name, adopted, reason := m.nameFor(o.Name, nil)
	if reason != "" {
		m.refuse(o.Name, reason)
		return
	}
	t := Tool{Name: name, Provider: ProviderMCP, Server: m.server.Name, Enabled: true}
	if adopted != nil {
		t = *adopted
	}
	t.Origin = OriginDiscovered
	t.take(&o.Offer, o.hash)
	t.Flags = o.flags
	switch {
	case m.server.Quarantine:
		t.hold(HeldQuarantined, m.draft.now)
	case m.server.Pin && !m.first:
		t.hold(HeldNew, m.draft.now)
	}
	if adopted != nil {
		m.draft.reviseTool(adopted, t)
	} else {
		m.draft.addTool(t)
	}
	m.report.Added = append(m.report.Added, name)
	m.tell(&t)
}

// meet brings the row of an offer up to date.
func (m *merge) meet(row *Tool, o *offered) {
	t := *row
	t.Upstream = o.Name
	if !t.MissingSince.IsZero() {
		t.MissingSince = time.Time{}
		m.report.Returned = append(m.report.Returned, t.Name)
	}
	renamed := m.rename(&t)
	if redefined := m.redefine(&t, o); redefined || renamed {
		m.draft.reviseTool(row, t)
		m.report.Changed = append(m.report.Changed, t.Name)
		if redefined {
			m.tell(&t)
		}
	} else if !row.MissingSince.IsZero() {
		m.draft.putTool(&t) // being there is no change of the tool: its version stays
	}
}

// redefine takes the definition of an offer, or lets it wait.
func (m *merge) redefine(t *Tool, o *offered) bool {
	if o.hash == t.NewestHash() || !m.fit(o) {
		return false
	}
	switch {
	case o.hash == t.Hash:
		t.release() // the server went back to what was accepted
	case t.Held == HeldNew || t.Held == HeldQuarantined || !m.server.holdsBack():
		t.take(&o.Offer, o.hash) // nobody has accepted another, or nobody needs to
	default:
		t.hold(HeldChanged, m.draft.now)
		t.Pending = &o.Offer
	}
	t.Flags = o.flags
	return true
}

// rename gives a tool the name that it would be given now, if its server has
// changed its mind about prefixes since.
func (m *merge) rename(t *Tool) bool {
	plain := ToolName(m.server, t.Upstream) // what nearly all are called: the others cost more to find
	if t.Name == plain && !Reserved(plain) || slices.Contains(namesFor(m.server, t.Upstream), t.Name) {
		return false
	}
	name, adopted, reason := m.nameFor(t.Upstream, t)
	if adopted != nil {
		reason = name + " is the name of another tool"
	}
	if reason != "" {
		m.refuse(t.Upstream, fmt.Sprintf("%s; it is called %s as before", reason, t.Name))
		return false
	}
	t.Name = name
	return true
}

// miss notes that a tool is no longer offered, and removes it in the end.
func (m *merge) miss(t *Tool, grace time.Duration) {
	switch {
	case t.MissingSince.IsZero():
		next := *t
		next.MissingSince = m.draft.now
		m.draft.putTool(&next)
		m.report.Missing = append(m.report.Missing, t.Name)
	case m.draft.now.Sub(t.MissingSince) >= grace:
		m.draft.removeTool(t)
		m.report.Removed = append(m.report.Removed, t.Name)
	}
}

// fit reports whether a definition can be taken.
func (m *merge) fit(o *offered) bool {
	m.offers.inspect(o)
	if o.fault != "" {
		m.refuse(o.Name, o.fault)
	}
	return o.fault == ""
}

func (m *merge) refuse(upstream, reason string) {
	if m.report.Refused == nil {
		m.report.Refused = map[string]string{}
	}
	m.report.Refused[visible(upstream, 128)] = reason
}

// tell reports what people should know of a definition that was taken.
func (m *merge) tell(t *Tool) {
	if t.Held != "" {
		m.report.Held = append(m.report.Held, t.Name)
	}
	if len(t.Flags) > 0 {
		if m.report.Flags == nil {
			m.report.Flags = map[string][]Flag{}
		}
		m.report.Flags[t.Name] = t.Flags
	}
}

func (m *merge) done() Discovered {
	for _, names := range [][]string{m.report.Added, m.report.Changed, m.report.Held, m.report.Missing, m.report.Returned, m.report.Removed} {
		slices.Sort(names)
	}
	return m.report
}

// Offer is the definition that the row of a discovered tool shows.
func (t *Tool) Offer() *Offer {
	return &Offer{
		Name: t.Upstream, Title: t.Title, Description: t.Description,
		InputSchema: t.InputSchema, OutputSchema: t.OutputSchema, Annotations: t.Annotations,
	}
}

// asOffered is the row as if no person had changed anything in it.
func (t *Tool) asOffered() Tool {
	offered := Tool{Name: t.Name, Provider: t.Provider, Server: t.Server, Enabled: true, Origin: OriginDiscovered}
	offered.take(t.Offer(), t.Hash)
	return offered
}

// boundAnywhere are the ids of the tools that are bound to an agent.
func (c *Catalog) boundAnywhere() map[string]bool {
	bound := map[string]bool{}
	for _, b := range c.bindings {
		for _, x := range b.Tools {
			bound[x.ToolID] = true
		}
	}
	return bound
}

// Newest is the newest definition of a discovered tool: the one that waits to be
// accepted, if there is one.
func (t *Tool) Newest() *Offer {
	if t.Pending != nil {
		return t.Pending
	}
	return t.Offer()
}

// NewestHash is the hash of Newest.
func (t *Tool) NewestHash() string {
	if t.Pending != nil {
		return t.Pending.hash()
	}
	return t.Hash
}

// take makes an offer the definition of the row. A displayName that a person
// has given stays.
func (t *Tool) take(o *Offer, hash string) {
	if t.DisplayName == "" || t.DisplayName == t.Title {
		t.DisplayName = o.Title
	}
	t.Upstream, t.Title, t.Description = o.Name, o.Title, o.Description
	t.InputSchema, t.OutputSchema, t.Annotations = o.InputSchema, o.OutputSchema, o.Annotations
	t.Hash, t.Pending = hash, nil
}

// reviseTool replaces a row by its next version.
func (d *Draft) reviseTool(old *Tool, t Tool) *Tool {
	t.Version, t.UpdatedAt = old.Version+1, d.now
	if t.Name != old.Name {
		d.names[old.Name] = nil
		d.moveGrants(old.Name, t.Name)
	}
	d.putTool(&t)
	return &t
}
