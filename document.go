package quartermaster

import (
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// DocumentVersion is the version of the project file that this package reads
// and writes.
const DocumentVersion = "v1"

// Document is a project as one file: what `apply` reads and `export` writes.
type Document struct {
	Version  string              `json:"quartermaster" enum:"v1" doc:"Version of this format"`
	Project  *DocumentProject    `json:"project,omitempty" doc:"Absent: the project's own settings stay as they are"`
	Servers  map[string]Server   `json:"servers,omitempty" doc:"Upstream MCP servers by name"`
	Tools    map[string]Tool     `json:"tools,omitempty" doc:"Tools by name; one that is built in takes only what a person may change"`
	Agents   map[string]Agent    `json:"agents,omitempty" doc:"Definitions by agent id"`
	Bindings map[string][]string `json:"bindings,omitempty" doc:"Agent id to the names of all tools bound to it"`
	Users    map[string]User     `json:"users,omitempty" doc:"Users by id, with the groups that they are granted"`
	Policies map[string]Policy   `json:"policies,omitempty" doc:"Rego modules by name"`
	Grants   []Grant             `json:"grants,omitempty" doc:"Who is related to what: the permission gate's"`
}

// DocumentProject are a project's own settings in a Document.
type DocumentProject struct {
	Name        string `json:"name,omitempty" maxLength:"255"`
	Plan        Plan   `json:"plan,omitempty" enum:"free,starter,team,enterprise"`
	PolicyQuery string `json:"policyQuery,omitempty" doc:"Rule of the project's policies that decides; data.quartermaster.tools.allow where absent"`
}

// Apply puts everything in doc into the draft. With prune it also removes what
// doc does not hold: tools that people have made, what they have changed in
// those that are built in or discovered, servers, definitions, bindings, users,
// policies and grants. All faults of doc are in the one error.
func (d *Draft) Apply(doc Document, prune bool) error {
	var f faults
	if doc.Version != DocumentVersion {
		f.add("quartermaster", "must be %s", DocumentVersion)
	}
	if doc.Project != nil {
		d.applyProject(&f, doc.Project, prune)
	}
	for _, name := range sortedKeys(doc.Servers) {
		s := doc.Servers[name]
		at := "servers." + name
		if keyed(&f, at+".name", &s.Name, name) {
			_, _, err := d.PutServer(s)
			f.collect(at, err)
		}
	}
	// Whether names can be told from each other is asked when all are there and
	// what is pruned is gone: in between, one may be in the way of the next.
	var moved []string
	later := func(_ *faults, t *Tool) { moved = append(moved, t.Name) }
	for _, name := range sortedKeys(doc.Tools) {
		t := doc.Tools[name]
		at := "tools." + name
		if keyed(&f, at+".name", &t.Name, name) {
			f.collect(at, d.applyTool(t, later))
		}
	}
	if prune {
		d.pruneTools(&f, doc) // before bindings, which must not name what goes
	}
	for _, name := range moved {
		if t := d.toolByName(name); t != nil {
			var own faults
			d.checkReferences(&own, t)
			f.collect("tools."+name, own.err("tool %q is not valid", name))
		}
	}
	for _, id := range sortedKeys(doc.Agents) {
		a := doc.Agents[id]
		at := "agents." + id
		if keyed(&f, at+".id", &a.ID, id) {
			_, _, err := d.PutAgent(a)
			f.collect(at, err)
		}
	}
	for _, agent := range sortedKeys(doc.Bindings) {
		d.applyBindings(&f, agent, doc.Bindings[agent])
	}
	for _, id := range sortedKeys(doc.Users) {
		u := doc.Users[id]
		at := "users." + id
		if keyed(&f, at+".id", &u.ID, id) {
			_, _, err := d.PutUser(u)
			f.collect(at, err)
		}
	}
	for _, name := range sortedKeys(doc.Policies) {
		p := doc.Policies[name]
		at := "policies." + name
		if keyed(&f, at+".name", &p.Name, name) {
			_, _, err := d.PutPolicy(p)
			f.collect(at, err)
		}
	}
	granted := d.applyGrants(&f, doc.Grants)
	if prune {
		d.pruneAgents(doc)
		d.pruneRules(doc, granted)
	}
	d.checkCircles(&f, doc.Grants)
	return f.err("the project file is not valid; nothing was changed")
}

// keyed lets an entry repeat its own key, but not contradict it.
func keyed(f *faults, location string, inside *string, key string) bool {
	if *inside != "" && *inside != key {
		f.add(location, "is %q, but the entry is called %q", *inside, key)
		return false
	}
	*inside = key
	return true
}

// collect adds the faults of err below location.
func (f *faults) collect(location string, err error) {
	if err == nil {
		return
	}
	e, ok := errors.AsType[*Error](err)
	if !ok || len(e.Faults) == 0 {
		f.add(location, "%v", err)
		return
	}
	for _, x := range e.Faults {
		f.add(location+"."+x.Location, "%s", x.Message)
	}
}

// applyProject keeps the name and plan that a file does not give: no project is
// without.
func (d *Draft) applyProject(f *faults, p *DocumentProject, prune bool) {
	next := d.Project()
	if p.Name != "" {
		next.Name = p.Name
	}
	if p.Plan != "" {
		next.Plan = p.Plan
	}
	if p.PolicyQuery != "" || prune {
		next.PolicyQuery = p.PolicyQuery
	}
	f.collect("project", d.SetProject(next))
}

func (d *Draft) applyTool(t Tool, check func(*faults, *Tool)) error {
	old := d.toolByName(t.Name)
	if old == nil {
		_, err := d.createTool(t, check)
		return err
	}
	_, err := d.updateTool(old.ID, func(next *Tool) error {
		if old.Origin == OriginManual {
			*next = t
			return nil
		}
		next.inherit(&t)
		return nil
	}, check)
	return err
}

// inherit takes from an entry what a person may change in a row that no person
// made. A fixed field that the entry does give must agree, which UpdateTool
// checks; absent it says nothing. Any other field that is absent is set back.
func (t *Tool) inherit(entry *Tool) {
	was := *t
	*t = *entry
	keep := func(field *string, old string) {
		if *field == "" {
			*field = old
		}
	}
	keepJSON := func(field *json.RawMessage, old json.RawMessage) {
		if *field == nil {
			*field = old
		}
	}
	keep(&t.Description, was.Description)
	keep((*string)(&t.Provider), string(was.Provider))
	keep(&t.Server, was.Server)
	keepJSON(&t.InputSchema, was.InputSchema)
	keepJSON(&t.OutputSchema, was.OutputSchema)
	keepJSON(&t.Annotations, was.Annotations)
	keepJSON(&t.Config, defaultTool(&was).Config)
}

func (d *Draft) applyBindings(f *faults, agent string, refs []string) {
	at := "bindings." + agent
	if err := CheckAgentID(at, agent); err != nil {
		f.add(at, "the key must be an agent id of 1 to 255 characters")
		return
	}
	ids := make([]string, 0, len(refs))
	seen := make(map[string]bool, len(refs))
	known := true
	for i, ref := range refs {
		// Here, and only here, the name goes before the id: an export writes
		// names, and the ids of this project are not those it was written in.
		t := d.toolByName(ref)
		if t == nil {
			t = d.Tool(ref)
		}
		if t == nil {
			f.add(at+"["+strconv.Itoa(i)+"]", "there is no tool %q", ref)
			known = false
			continue
		}
		if !seen[t.ID] {
			seen[t.ID] = true
			ids = append(ids, t.ID)
		}
	}
	if known {
		d.bind(agent, ids)
	}
}

// pruneTools removes the servers and tools that doc does not hold, and sets the
// built-in ones back that it does not mention.
func (d *Draft) pruneTools(f *faults, doc Document) {
	for _, name := range sortedKeys(doc.Tools) {
		server := doc.Tools[name].Server
		if _, ok := doc.Servers[server]; !ok && d.Server(server) != nil {
			f.add("tools."+name+".server", "server %q is not in the file and would be removed", server)
		}
	}
	for _, s := range d.base.servers {
		if _, ok := doc.Servers[s.Name]; !ok {
			_ = d.DeleteServer(s.Name)
		}
	}
	for _, t := range d.base.tools {
		now := d.toolByID(t.ID)
		if now == nil {
			continue
		}
		if _, ok := doc.Tools[now.Name]; ok {
			continue
		}
		switch now.Origin {
		case OriginManual:
			d.removeTool(now)
		case OriginBuiltin, OriginDiscovered: // the latter goes with its server only
			f.collect("tools."+now.Name, d.applyTool(Tool{Name: now.Name, Enabled: true}, d.checkReferences))
		}
	}
}

// pruneAgents removes the definitions, bindings and users that doc does not hold.
func (d *Draft) pruneAgents(doc Document) {
	for _, a := range d.base.agents {
		if _, ok := doc.Agents[a.ID]; !ok {
			d.agents[a.ID] = nil
		}
	}
	for _, b := range d.base.bindings {
		if _, ok := doc.Bindings[b.Agent]; !ok {
			d.bind(b.Agent, nil)
		}
	}
	for _, u := range d.base.users {
		if _, ok := doc.Users[u.ID]; !ok {
			d.users[u.ID] = nil
		}
	}
}

// applyGrants returns the keys of all grants of a file.
func (d *Draft) applyGrants(f *faults, grants []Grant) map[string]bool {
	keys := make(map[string]bool, len(grants))
	for i, g := range grants {
		granted, _, err := d.addGrant(g)
		f.collect("grants["+strconv.Itoa(i)+"]", err)
		if err == nil {
			keys[granted.Key()] = true
		}
	}
	return keys
}

// checkCircles looks at the grants of a file when all that it removes is gone.
func (d *Draft) checkCircles(f *faults, grants []Grant) {
	known := map[string][]*Grant{}
	for i, g := range grants {
		if d.settleGrant(&g) == nil {
			f.collect("grants["+strconv.Itoa(i)+"]", d.checkCircle(NewGrant(g.Resource, g.Relation, g.Subject, d.now), known))
		}
	}
}

// pruneRules removes the policies and grants that doc does not hold.
func (d *Draft) pruneRules(doc Document, granted map[string]bool) {
	for _, p := range d.base.policies {
		if _, ok := doc.Policies[p.Name]; !ok {
			d.policies[p.Name] = nil
		}
	}
	for _, g := range d.Grants(GrantFilter{}) {
		if !granted[g.Key()] {
			d.grants.set(g.Key(), nil)
		}
	}
}

// Export writes a catalog as plain values, ready for YAML or JSON: only what
// differs from the defaults, and nothing that only the server can know. Apply
// of an export changes nothing.
func (c *Catalog) Export() map[string]any {
	own := map[string]any{"name": c.project.Name, "plan": c.project.Plan}
	if c.project.PolicyQuery != DefaultPolicyQuery {
		own["policyQuery"] = c.project.PolicyQuery
	}
	out := map[string]any{"quartermaster": DocumentVersion, "project": own}
	section := func(name string, entries map[string]any) {
		if len(entries) > 0 {
			out[name] = entries
		}
	}
	servers := map[string]any{}
	for _, s := range c.servers {
		servers[s.Name] = differing(*s, defaultServer(), "name")
	}
	section("servers", servers)
	tools := map[string]any{}
	bound := c.boundAnywhere()
	for _, t := range c.tools {
		entry := differing(*t, defaultTool(t), "name")
		if t.Origin == OriginDiscovered && (len(entry) > 0 || bound[t.ID]) {
			entry["server"] = t.Server // elsewhere the entry waits for the server's offer
		}
		if t.Origin == OriginManual || len(entry) > 0 {
			tools[t.Name] = entry
		}
	}
	section("tools", tools)
	agents := map[string]any{}
	for _, a := range c.agents {
		agents[a.ID] = differing(*a, defaultAgent(), "id")
	}
	section("agents", agents)
	bindings := map[string]any{}
	for _, b := range c.bindings {
		bindings[b.Agent] = boundNames(b, c.ToolByID).Tools
	}
	section("bindings", bindings)
	users := map[string]any{}
	for _, u := range c.users {
		users[u.ID] = differing(*u, User{}, "id")
	}
	section("users", users)
	policies := map[string]any{}
	for _, p := range c.policies {
		policies[p.Name] = differing(*p, Policy{}, "name")
	}
	section("policies", policies)
	if len(c.grants) > 0 {
		out["grants"] = exportGrants(c.grants)
	}
	return out
}

func exportGrants(grants []*Grant) []any {
	all := make([]any, len(grants))
	for i, g := range grants {
		entry := map[string]any{"subject": g.Subject, "relation": g.Relation}
		if g.Tool != "" {
			entry["tool"] = g.Tool
		} else {
			entry["resource"] = g.Resource
		}
		all[i] = entry
	}
	return all
}

func defaultServer() Server {
	s := Server{Enabled: true, Prefix: true}
	s.normalize()
	return s
}

func defaultAgent() Agent {
	a := Agent{MaxDepth: DefaultMaxDepth}
	a.normalize()
	return a
}

// defaultTool is what an entry without any field would mean for t.
func defaultTool(t *Tool) Tool {
	d := Tool{Enabled: true}
	if t.Origin == OriginBuiltin {
		// Its row says what it is: it may be one of another version of the program.
		name, _ := t.Builtin()
		config, _ := json.Marshal(map[string]string{"builtin": name}) // strings always marshal
		d = Tool{
			Name: t.Name, Description: t.Description, Category: builtinCategory, Provider: t.Provider,
			InputSchema: t.InputSchema, OutputSchema: t.OutputSchema, Annotations: t.Annotations,
			Config: config, Enabled: true, Origin: OriginBuiltin,
		}
	}
	if t.Origin == OriginDiscovered {
		d = t.asOffered()
	}
	d.normalize()
	return d
}

// differing returns the fields of v, by their JSON names, that a person can
// set and that differ from those of base.
func differing[T any](v, base T, except string) map[string]any {
	out := map[string]any{}
	a, b := reflect.ValueOf(v), reflect.ValueOf(base)
	for i := range a.NumField() {
		field := a.Type().Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "-" || name == except || field.Tag.Get("readOnly") == "true" {
			continue
		}
		if x := a.Field(i).Interface(); !reflect.DeepEqual(x, b.Field(i).Interface()) {
			out[name] = x
		}
	}
	return out
}

// Difference is one line of what a draft would change, for a person to read.
type Difference struct {
	Action string                 `json:"action" enum:"create,update,delete"`
	Noun   Noun                   `json:"noun"`
	Name   string                 `json:"name"`
	Fields map[string]FieldChange `json:"fields,omitempty" doc:"What an update changes, by field"`
}

// FieldChange is a field's value before and after; absent where it had none.
type FieldChange struct {
	From any `json:"from,omitempty"`
	To   any `json:"to,omitempty"`
}

// Diff says what the draft changes, in words and values.
func (d *Draft) Diff() []Difference {
	diffs := []Difference{}
	for _, ch := range d.Changes() {
		var diff Difference
		switch ch.Noun {
		case NounProject:
			diff = difference(&d.base.project, ch.Project)
		case NounServer:
			diff = difference(d.base.Server(ch.Key), ch.Server)
		case NounTool:
			was := d.base.ToolByID(ch.Key)
			diff = difference(was, ch.Tool)
			ch.Key = toolLabel(was, ch.Tool)
		case NounAgent:
			diff = difference(d.base.Agent(ch.Key), ch.Agent)
		case NounUser:
			diff = difference(d.base.User(ch.Key), ch.User)
		case NounSecret:
			diff = difference(d.base.Secret(ch.Key), ch.Secret)
		case NounGrant:
			diff = difference(d.keptGrant(ch.Key), ch.Grant)
		case NounPolicy:
			diff = difference(d.base.Policy(ch.Key), ch.Policy)
		case NounBindings:
			diff = difference(boundNames(d.base.Bindings(ch.Key), d.base.ToolByID), boundNames(ch.Bindings, d.toolByID))
		}
		diff.Noun, diff.Name = ch.Noun, ch.Key
		diffs = append(diffs, diff)
	}
	return diffs
}

// difference compares two versions of a thing; nil: there is none.
func difference[T any](was, is *T) Difference {
	switch {
	case was == nil:
		return Difference{Action: "create"}
	case is == nil:
		return Difference{Action: "delete"}
	}
	diff := Difference{Action: "update", Fields: map[string]FieldChange{}}
	before, after := differing(*was, *is, ""), differing(*is, *was, "")
	for field := range before {
		diff.Fields[field] = FieldChange{From: orAbsent(before[field]), To: orAbsent(after[field])}
	}
	return diff
}

// orAbsent is nil for what a person would call absent. A false and a number are
// values, also if it is 0; and so is an empty list, which is kept only where it
// means something else than none.
func orAbsent(v any) any {
	r := reflect.ValueOf(v)
	_, isDuration := v.(Duration)
	if !r.IsValid() || r.IsZero() && (isDuration || !r.CanInt() && r.Kind() != reflect.Bool) {
		return nil
	}
	return v
}

// boundTools are an agent's bindings as a person names them.
type boundTools struct {
	Tools []string `json:"tools"`
}

func boundNames(b *Bindings, byID func(string) *Tool) *boundTools {
	if b == nil || len(b.Tools) == 0 {
		return nil
	}
	bound := &boundTools{}
	for _, x := range b.Tools {
		if t := byID(x.ToolID); t != nil {
			bound.Tools = append(bound.Tools, t.Name)
		}
	}
	slices.Sort(bound.Tools)
	return bound
}

func toolLabel(was, is *Tool) string {
	if was != nil {
		return was.Name
	}
	return is.Name
}
