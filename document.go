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
}

// DocumentProject are a project's own settings in a Document.
type DocumentProject struct {
	Name string `json:"name,omitempty" maxLength:"255"`
	Plan Plan   `json:"plan,omitempty" enum:"free,starter,team,enterprise"`
}

// Apply puts everything in doc into the draft. With prune it also removes what
// doc does not hold: tools that people have made, servers, definitions and
// bindings. All faults of doc are in the one error.
func (d *Draft) Apply(doc Document, prune bool) error {
	var f faults
	if doc.Version != DocumentVersion {
		f.add("quartermaster", "must be %s", DocumentVersion)
	}
	if doc.Project != nil {
		d.applyProject(&f, doc.Project)
	}
	for _, name := range sortedKeys(doc.Servers) {
		s := doc.Servers[name]
		at := "servers." + name
		if keyed(&f, at+".name", &s.Name, name) {
			_, _, err := d.PutServer(s)
			f.collect(at, err)
		}
	}
	for _, name := range sortedKeys(doc.Tools) {
		t := doc.Tools[name]
		at := "tools." + name
		if keyed(&f, at+".name", &t.Name, name) {
			f.collect(at, d.applyTool(t))
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
	if prune {
		d.prune(doc)
	}
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

func (d *Draft) applyProject(f *faults, p *DocumentProject) {
	next := d.base.project
	if p.Name != "" {
		next.Name = p.Name
	}
	if p.Plan != "" {
		next.Plan = p.Plan
	}
	f.collect("project", d.SetProject(next))
}

func (d *Draft) applyTool(t Tool) error {
	old := d.toolByName(t.Name)
	if old == nil {
		_, err := d.CreateTool(t)
		return err
	}
	_, err := d.UpdateTool(old.ID, func(next *Tool) error {
		if old.Origin == OriginManual {
			*next = t
			return nil
		}
		next.inherit(&t)
		return nil
	})
	return err
}

// inherit takes from an entry what a person may change in a row that no person
// made. A fixed field that the entry does give must agree, which UpdateTool
// checks; absent it says nothing.
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
	keep(&t.Category, was.Category)
	keepJSON(&t.InputSchema, was.InputSchema)
	keepJSON(&t.OutputSchema, was.OutputSchema)
	keepJSON(&t.Annotations, was.Annotations)
	keepJSON(&t.Config, was.Config)
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
		t := d.Tool(ref)
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

func (d *Draft) prune(doc Document) {
	for _, s := range d.base.servers {
		if _, ok := doc.Servers[s.Name]; !ok {
			_ = d.DeleteServer(s.Name)
		}
	}
	for _, t := range d.base.tools {
		now := d.toolByID(t.ID)
		if now == nil || now.Origin != OriginManual {
			continue
		}
		if _, ok := doc.Tools[now.Name]; !ok {
			d.removeTool(now)
		}
	}
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
}

// Export writes a catalog as plain values, ready for YAML or JSON: only what
// differs from the defaults, and nothing that only the server can know. Apply
// of an export changes nothing.
func (c *Catalog) Export() map[string]any {
	out := map[string]any{
		"quartermaster": DocumentVersion,
		"project":       map[string]any{"name": c.project.Name, "plan": c.project.Plan},
	}
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
	for _, t := range c.tools {
		if entry := differing(*t, defaultTool(t), "name"); t.Origin == OriginManual || len(entry) > 0 {
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
		names := make([]string, len(b.Tools))
		for i, x := range b.Tools {
			names[i] = c.ToolByID(x.ToolID).Name
		}
		slices.Sort(names)
		bindings[b.Agent] = names
	}
	section("bindings", bindings)
	return out
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
	if t.Origin == OriginBuiltin {
		for _, b := range Builtins() {
			if b.Name == t.Name {
				return b
			}
		}
	}
	d := Tool{Enabled: true}
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
	add := func(noun Noun, name string, was, is map[string]any) {
		diff := Difference{Action: "update", Noun: noun, Name: name}
		switch {
		case was == nil && is == nil:
			return
		case was == nil:
			diff.Action = "create"
		case is == nil:
			diff.Action = "delete"
		default:
			if diff.Fields = fieldChanges(was, is); len(diff.Fields) == 0 {
				return
			}
		}
		diffs = append(diffs, diff)
	}
	for _, ch := range d.Changes() {
		switch ch.Noun {
		case NounProject:
			add(ch.Noun, ch.Key, differing(d.base.project, Project{}, "id"), differing(*ch.Project, Project{}, "id"))
		case NounServer:
			add(ch.Noun, ch.Key, serverFields(d.base.Server(ch.Key)), serverFields(ch.Server))
		case NounTool:
			was := d.base.ToolByID(ch.Key)
			add(ch.Noun, toolLabel(was, ch.Tool), toolFields(was), toolFields(ch.Tool))
		case NounAgent:
			add(ch.Noun, ch.Key, agentFields(d.base.Agent(ch.Key)), agentFields(ch.Agent))
		case NounBindings:
			add(ch.Noun, ch.Key, bindingFields(find(d.base.bindings, ch.Key, bindingsAgent), d.base.ToolByID), bindingFields(ch.Bindings, d.toolByID))
		}
	}
	return diffs
}

func fieldChanges(was, is map[string]any) map[string]FieldChange {
	changes := map[string]FieldChange{}
	for k, from := range was {
		if to := is[k]; !reflect.DeepEqual(from, to) {
			changes[k] = FieldChange{From: from, To: to}
		}
	}
	for k, to := range is {
		if _, ok := was[k]; !ok {
			changes[k] = FieldChange{To: to}
		}
	}
	return changes
}

func serverFields(s *Server) map[string]any {
	if s == nil {
		return nil
	}
	return differing(*s, Server{}, "name")
}

func toolFields(t *Tool) map[string]any {
	if t == nil {
		return nil
	}
	return differing(*t, Tool{}, "")
}

func agentFields(a *Agent) map[string]any {
	if a == nil {
		return nil
	}
	return differing(*a, Agent{}, "id")
}

func bindingFields(b *Bindings, byID func(string) *Tool) map[string]any {
	if b == nil || len(b.Tools) == 0 {
		return nil
	}
	names := make([]string, 0, len(b.Tools))
	for _, x := range b.Tools {
		if t := byID(x.ToolID); t != nil {
			names = append(names, t.Name)
		}
	}
	slices.Sort(names)
	return map[string]any{"tools": names}
}

func toolLabel(was, is *Tool) string {
	if was != nil {
		return was.Name
	}
	if is != nil {
		return is.Name
	}
	return ""
}
