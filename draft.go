package quartermaster

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"
)

// Draft is a catalog in the making: every administrative change is made here,
// checked against the state it starts from and against what was changed before
// in the same draft. A draft that is never stored answers "what if".
//
// A Draft is not safe for concurrent use.
type Draft struct {
	base     *Catalog
	now      time.Time
	project  *Project
	tools    map[string]*Tool // by id; nil: removed
	names    map[string]*Tool // by name; nil: no longer taken
	gone     map[string]bool  // ids of removed tools
	servers  map[string]*Server
	agents   map[string]*Agent
	bindings map[string]*Bindings
	users    map[string]*User
	secrets  map[string]*Secret // without their values
	values   map[string]string  // of the secrets that are put
	grants   grantEdits
	cluster  *clusterGrants // nil: the base has all grants
	policies map[string]*Policy
}

// Draft starts a draft from c. Changed things are stamped with now.
func (c *Catalog) Draft(now time.Time) *Draft {
	return &Draft{
		base: c, now: now.UTC().Truncate(time.Microsecond),
		tools: map[string]*Tool{}, names: map[string]*Tool{}, gone: map[string]bool{},
		servers: map[string]*Server{}, agents: map[string]*Agent{}, bindings: map[string]*Bindings{},
		users: map[string]*User{}, secrets: map[string]*Secret{}, values: map[string]string{},
		grants: grantEdits{}, policies: map[string]*Policy{},
	}
}

// Changes lists what differs from the start, in an order that a database with
// foreign keys accepts.
func (d *Draft) Changes() []Change {
	var all []Change
	if d.project != nil && *d.project != d.base.project {
		all = append(all, Change{Noun: NounProject, Key: d.project.ID, Project: d.project})
	}
	all = append(all, d.secretChanges()...)
	servers := sortedKeys(d.servers)
	for _, k := range servers {
		if s := d.servers[k]; s != nil {
			all = append(all, Change{Noun: NounServer, Key: k, Server: s})
		}
	}
	all = append(all, d.toolChanges()...)
	// A server goes last: with it goes what is still its own by then.
	for _, k := range servers {
		if d.servers[k] == nil && d.base.Server(k) != nil {
			all = append(all, Change{Noun: NounServer, Key: k})
		}
	}
	for _, k := range sortedKeys(d.agents) {
		if a := d.agents[k]; a != nil || d.base.Agent(k) != nil {
			all = append(all, Change{Noun: NounAgent, Key: k, Agent: a})
		}
	}
	for _, k := range sortedKeys(d.users) {
		if u := d.users[k]; u != nil || d.base.User(k) != nil {
			all = append(all, Change{Noun: NounUser, Key: k, User: u})
		}
	}
	for _, k := range sortedKeys(d.bindings) {
		if b := d.Bindings(k); !b.same(d.base.Bindings(k).without(d.gone)) {
			all = append(all, Change{Noun: NounBindings, Key: k, Bindings: b})
		}
	}
	for _, k := range sortedKeys(d.policies) {
		if p := d.policies[k]; p != nil || d.base.Policy(k) != nil {
			all = append(all, Change{Noun: NounPolicy, Key: k, Policy: p})
		}
	}
	return append(all, d.grantChanges()...)
}

// toolChanges has removals first: the next tool may bear the name of one that
// goes.
func (d *Draft) toolChanges() []Change {
	var removals, rest []Change
	for _, k := range sortedKeys(d.tools) {
		if t := d.tools[k]; t != nil {
			rest = append(rest, Change{Noun: NounTool, Key: k, Tool: t})
		} else if d.base.ToolByID(k) != nil {
			removals = append(removals, Change{Noun: NounTool, Key: k})
		}
	}
	return append(removals, rest...)
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// Base is the catalog that the draft starts from.
func (d *Draft) Base() *Catalog { return d.base }

// Catalog is what the draft would become.
func (d *Draft) Catalog() *Catalog { return d.base.With(d.base.Revision()+1, d.Changes()) }

// Tool finds a tool in the draft by id, name or @server/tool.
func (d *Draft) Tool(ref string) *Tool { return referTo(ref, d.toolByID, d.toolByName) }

func (d *Draft) toolByID(id string) *Tool {
	if t, ok := d.tools[id]; ok {
		return t
	}
	return d.base.ToolByID(id)
}

func (d *Draft) toolByName(name string) *Tool {
	if t, ok := d.names[name]; ok {
		return t
	}
	return d.base.toolNamed(name)
}

// Server finds a server in the draft.
func (d *Draft) Server(name string) *Server {
	if s, ok := d.servers[name]; ok {
		return s
	}
	return d.base.Server(name)
}

// Agent finds a definition in the draft.
func (d *Draft) Agent(id string) *Agent {
	if a, ok := d.agents[id]; ok {
		return a
	}
	return d.base.Agent(id)
}

// Bindings returns an agent's bindings in the draft.
func (d *Draft) Bindings(agent string) *Bindings {
	if b, ok := d.bindings[agent]; ok {
		return b.without(d.gone)
	}
	return d.base.Bindings(agent).without(d.gone)
}

// SetProject changes the project's own settings.
func (d *Draft) SetProject(p Project) error {
	was := d.base.project
	p.ID, p.GrantsToken, p.Revision, p.CreatedAt = was.ID, d.Project().GrantsToken, was.Revision, was.CreatedAt
	if err := p.Validate(); err != nil {
		return err
	}
	d.project = &p
	return nil
}

// SetGrantsToken notes how fresh the grants must be read from now on.
func (d *Draft) SetGrantsToken(token string) {
	p := d.Project()
	p.GrantsToken = token
	d.project = &p
}

// Project returns the project's own settings in the draft.
func (d *Draft) Project() Project {
	if d.project != nil {
		return *d.project
	}
	return d.base.project
}

// CreateTool adds a tool that a person has made.
func (d *Draft) CreateTool(t Tool) (*Tool, error) { return d.createTool(t, d.checkReferences) }

// createTool leaves it to check whether the name can be told from others.
func (d *Draft) createTool(t Tool, check func(*faults, *Tool)) (*Tool, error) {
	t.ID, t.Origin = "", OriginManual
	t.normalize()
	f := t.faults()
	t.fold()
	if Reserved(t.Name) {
		f.add("name", "%s is reserved", t.Name)
	}
	d.checkServer(&f, &t)
	check(&f, &t)
	if err := f.err("tool %q is not valid", t.Name); err != nil {
		return nil, err
	}
	if d.toolByName(t.Name) != nil {
		return nil, Errorf(CodeAlreadyExists, "a tool named %s exists already", t.Name)
	}
	return d.addTool(t), nil
}

func (d *Draft) addTool(t Tool) *Tool {
	t.ID, t.Version, t.CreatedAt, t.UpdatedAt = NewID(), 1, d.now, d.now
	d.putTool(&t)
	return &t
}

func (d *Draft) putTool(t *Tool) {
	d.tools[t.ID] = t
	d.names[t.Name] = t
}

func (d *Draft) checkServer(f *faults, t *Tool) {
	if t.Server != "" && d.Server(t.Server) == nil {
		f.add("server", "there is no server named %q", t.Server)
	}
}

// checkReferences refuses a name by which a tool would be taken for another, as
// an id or as @server/tool (CAT-2). The same name is for others to refuse.
func (d *Draft) checkReferences(f *faults, t *Tool) {
	if other := d.toolByID(strings.ToLower(t.Name)); other != nil && other.ID != t.ID {
		f.add("name", "is the id of another tool")
	}
	if t.Server == "" {
		return
	}
	short := t.shortName()
	for _, name := range []string{t.Server + "__" + short, short} {
		other := d.toolByName(name)
		if other != nil && other.ID != t.ID && name != t.Name && other.Server == t.Server && other.shortName() == short {
			f.add("name", "@%s/%s already means %s", t.Server, short, name)
		}
	}
}

// UpdateTool gives edit a copy of a tool and keeps what edit made of it. An
// edit that changes nothing leaves the version as it is.
func (d *Draft) UpdateTool(ref string, edit func(*Tool) error) (*Tool, error) {
	return d.updateTool(ref, edit, d.checkReferences)
}

// updateTool leaves it to check whether a new name can be told from others.
func (d *Draft) updateTool(ref string, edit func(*Tool) error, check func(*faults, *Tool)) (*Tool, error) {
	old := d.Tool(ref)
	if old == nil {
		return nil, toolMissing(ref)
	}
	t := old.clone()
	if err := edit(&t); err != nil {
		return nil, err
	}
	t.ID, t.Version, t.CreatedAt, t.Origin = old.ID, old.Version, old.CreatedAt, old.Origin
	t.keepDiscovered(old)
	t.normalize()
	if t.Origin == OriginBuiltin && t.Category == "" {
		t.Category = builtinCategory
	}
	f := t.faults()
	t.fold()
	t.respell(old)
	if t.Origin != OriginManual {
		f = append(f, t.fixedFields(old)...)
	} else if Reserved(t.Name) {
		f.add("name", "%s is reserved", t.Name)
	}
	d.checkServer(&f, &t)
	if t.Name != old.Name || t.Server != old.Server {
		check(&f, &t)
	}
	if err := f.err("tool %q is not valid", old.Name); err != nil {
		return nil, err
	}
	if t.same(old) {
		return old, nil
	}
	if other := d.toolByName(t.Name); other != nil && other.ID != t.ID {
		return nil, Errorf(CodeAlreadyExists, "a tool named %s exists already", t.Name)
	}
	t.Version, t.UpdatedAt = old.Version+1, d.now
	if t.Name != old.Name {
		d.names[old.Name] = nil
		d.moveGrants(old.Name, t.Name)
	}
	d.putTool(&t)
	return &t, nil
}

// DeleteTool removes a tool that a person has made, and with it its bindings and
// what was granted on it.
func (d *Draft) DeleteTool(ref string) error {
	t := d.Tool(ref)
	switch {
	case t == nil:
		return toolMissing(ref)
	case t.Origin == OriginBuiltin:
		return Errorf(CodeNotDeletable, "%s is built in and cannot be deleted; disable it instead", t.Name)
	case t.Origin == OriginDiscovered:
		return Errorf(CodeNotDeletable, "%s is offered by server %s and cannot be deleted; disable it, or delete the server", t.Name, t.Server)
	}
	d.removeTool(t)
	return nil
}

func (d *Draft) removeTool(t *Tool) {
	d.tools[t.ID] = nil
	d.names[t.Name] = nil
	d.gone[t.ID] = true
	d.moveGrants(t.Name, "")
}

func toolMissing(ref string) error {
	return Errorf(CodeToolNotFound, "there is no tool %q", ref)
}

// AddBuiltins gives the project the tools that every project has from the start.
func (d *Draft) AddBuiltins() { d.AddMissing(Builtins()) }

// AddMissing adds those of builtins whose names the project lacks. It never
// changes what is there: processes of different versions that share a database
// would undo each other's changes for ever.
func (d *Draft) AddMissing(builtins []Tool) {
	for _, b := range builtins {
		if d.toolByName(b.Name) == nil {
			d.addTool(b)
		}
	}
}

// PutServer adds a server or replaces its settings. Values in it that look
// secret become secrets of the project.
func (d *Draft) PutServer(s Server) (server *Server, created bool, err error) {
	s.normalize()
	if err := s.faults().err("server %q is not valid", s.Name); err != nil {
		return nil, false, err
	}
	s.fold()
	if err := d.hideSecrets(&s); err != nil {
		return nil, false, err
	}
	old := d.Server(s.Name)
	s.CreatedAt, s.UpdatedAt, s.DiscoveredAt = d.now, d.now, time.Time{}
	if old != nil {
		s.DiscoveredAt = old.DiscoveredAt
		if s.same(old) {
			return old, false, nil
		}
		s.CreatedAt = old.CreatedAt
		d.holdOrRelease(old, &s)
	}
	d.servers[s.Name] = &s
	return &s, old == nil, nil
}

// DeleteServer removes a server, its tools, their bindings and what was granted
// on them.
func (d *Draft) DeleteServer(name string) error {
	if d.Server(name) == nil {
		return Errorf(CodeNotFound, "there is no server %q", name)
	}
	for _, t := range d.base.tools {
		if t.Server != name {
			continue
		}
		if now := d.toolByID(t.ID); now != nil && now.Server == name {
			d.removeTool(now)
		}
	}
	for _, t := range d.tools {
		if t != nil && t.Server == name {
			d.removeTool(t)
		}
	}
	d.servers[name] = nil
	d.revokeUnoffered(name)
	return nil
}

// PutAgent adds or replaces a definition.
func (d *Draft) PutAgent(a Agent) (agent *Agent, created bool, err error) {
	a.normalize()
	if err := a.faults().err("the definition of agent %q is not valid", a.ID); err != nil {
		return nil, false, err
	}
	a.fold()
	old := d.Agent(a.ID)
	a.CreatedAt, a.UpdatedAt = d.now, d.now
	if old != nil {
		respell(&a.Memory, old.Memory)
		if a.same(old) {
			return old, false, nil
		}
		a.CreatedAt = old.CreatedAt
	}
	d.agents[a.ID] = &a
	return &a, old == nil, nil
}

// DeleteAgent removes a definition; the agent's bindings stay.
func (d *Draft) DeleteAgent(id string) error {
	if d.Agent(id) == nil {
		return Errorf(CodeNotFound, "agent %q has no definition", id)
	}
	d.agents[id] = nil
	return nil
}

// ReplaceBindings makes toolIDs the whole set of an agent's bindings (BIND-3)
// and returns it without repetitions. If one of them is unknown or not active
// the error lists all such and nothing changes.
func (d *Draft) ReplaceBindings(agent string, toolIDs []string) ([]string, error) {
	if err := CheckAgentID("agentId", agent); err != nil {
		return nil, err
	}
	ids, err := d.activeTools(toolIDs)
	if err != nil {
		return nil, err
	}
	d.bind(agent, ids)
	return ids, nil
}

// ChangeBindings adds to and takes from an agent's bindings, and leaves the
// others as they are.
func (d *Draft) ChangeBindings(agent string, add, remove []string) (*Bindings, error) {
	if err := CheckAgentID("agentId", agent); err != nil {
		return nil, err
	}
	added, err := d.activeTools(add)
	if err != nil {
		return nil, err
	}
	skip := make(map[string]bool, len(add)+len(remove))
	for _, id := range slices.Concat(added, remove) {
		skip[strings.ToLower(id)] = true
	}
	for _, b := range d.Bindings(agent).without(skip).Tools {
		added = append(added, b.ToolID)
	}
	d.bind(agent, added)
	return d.Bindings(agent), nil
}

// activeTools checks ids and folds repetitions.
func (d *Draft) activeTools(ids []string) ([]string, error) {
	folded := make([]string, 0, len(ids))
	seen := make(map[string]bool, len(ids))
	var invalid []string
	for _, given := range ids {
		id := strings.ToLower(given) // UUIDs are written in either case
		if seen[id] {
			continue
		}
		seen[id] = true
		if t := d.toolByID(id); t == nil || !t.Active() {
			invalid = append(invalid, given)
			continue
		}
		folded = append(folded, id)
	}
	if len(invalid) > 0 {
		e := Errorf(CodeInvalidToolIDs, "%d of the tool ids are unknown or not active; nothing was changed", len(invalid))
		e.Details = map[string]any{"invalidIds": invalid}
		return nil, e
	}
	return folded, nil
}

// bind sets an agent's bindings. Those that the project has already keep their
// time, even if the draft had let go of them meanwhile.
func (d *Draft) bind(agent string, ids []string) {
	old := d.base.Bindings(agent)
	next := &Bindings{Agent: agent, Tools: make([]Binding, len(ids))}
	for i, id := range ids {
		next.Tools[i] = Binding{ToolID: id, CreatedAt: d.now}
		if j, ok := old.find(id); ok {
			next.Tools[i].CreatedAt = old.Tools[j].CreatedAt
		}
	}
	slices.SortFunc(next.Tools, func(a, b Binding) int { return cmp.Compare(a.ToolID, b.ToolID) })
	d.bindings[agent] = next
}
