package quartermaster

import (
	"slices"
	"strings"
)

// Catalog is one project at one revision: immutable, so that any number of
// requests read it without a lock while the next one is built beside it.
//
// It is slices, each sorted by the key it is looked up by. A look-up is a
// binary search; the next revision is a copy of pointers with a few of them
// replaced, which at 100,000 tools still takes a millisecond or two.
type Catalog struct {
	project  Project
	tools    []*Tool // by name
	toolsID  []*Tool // by id
	servers  []*Server
	agents   []*Agent
	bindings []*Bindings // never with an empty set
	users    []*User
	secrets  []*Secret // never with a value
	grants   []*Grant
	informed bool // grants are a cluster's
	policies []*Policy
}

// Noun names a kind of thing that a catalog holds.
type Noun string

// The nouns of a catalog.
const (
	NounProject  Noun = "project"
	NounTool     Noun = "tool"
	NounServer   Noun = "server"
	NounAgent    Noun = "agent"
	NounBindings Noun = "bindings"
	NounUser     Noun = "user"
	NounSecret   Noun = "secret"
	NounGrant    Noun = "grant"
	NounPolicy   Noun = "policy"
)

// Change replaces one thing of a catalog by its next version, or removes it
// where the pointer of its noun is nil.
type Change struct {
	Noun     Noun
	Key      string // a tool's id, a server's name, an agent's id
	Project  *Project
	Tool     *Tool
	Server   *Server
	Agent    *Agent
	Bindings *Bindings
	User     *User
	Secret   *Secret
	Grant    *Grant
	Policy   *Policy
}

// NewCatalog makes the catalog of a project with nothing in it.
func NewCatalog(project Project) *Catalog { return &Catalog{project: project} }

// Project returns the project, with its revision.
func (c *Catalog) Project() Project { return c.project }

// Revision grows with every change of the project, in all replicas alike.
func (c *Catalog) Revision() int64 { return c.project.Revision }

// Tools returns all tools, active or not, by name. The slice and the tools are
// shared: they must not be modified. The same holds for what follows.
func (c *Catalog) Tools() []*Tool { return c.tools }

// Servers returns all servers, by name.
func (c *Catalog) Servers() []*Server { return c.servers }

// Agents returns all definitions, by agent id.
func (c *Catalog) Agents() []*Agent { return c.agents }

// AllBindings returns the bindings of every agent that has some, by agent id.
func (c *Catalog) AllBindings() []*Bindings { return c.bindings }

// Tool finds a tool by id, name or @server/tool; nil if there is none.
func (c *Catalog) Tool(ref string) *Tool { return referTo(ref, c.ToolByID, c.toolNamed) }

// Position finds where in Tools the tool with this very name stands.
func (c *Catalog) Position(name string) (int, bool) {
	return slices.BinarySearchFunc(c.tools, name, func(t *Tool, name string) int {
		return strings.Compare(t.Name, name)
	})
}

// ToolByID finds a tool by its id; nil if there is none.
func (c *Catalog) ToolByID(id string) *Tool { return find(c.toolsID, id, toolID) }

// ToolByName finds a tool by its name or as @server/tool; nil if there is none.
func (c *Catalog) ToolByName(name string) *Tool { return referToName(name, c.toolNamed) }

func (c *Catalog) toolNamed(name string) *Tool { return find(c.tools, name, toolName) }

// Server finds a server by name; nil if there is none.
func (c *Catalog) Server(name string) *Server { return find(c.servers, name, serverName) }

// Agent finds a definition by agent id; nil if there is none.
func (c *Catalog) Agent(id string) *Agent { return find(c.agents, id, agentID) }

// Bindings returns an agent's bindings: an empty set if it has none.
func (c *Catalog) Bindings(agent string) *Bindings {
	if b := find(c.bindings, agent, bindingsAgent); b != nil {
		return b
	}
	return &Bindings{Agent: agent}
}

// ServerEnabled reports whether nothing but the tool itself can be switched off:
// it has no server, or an enabled one.
func (c *Catalog) ServerEnabled(t *Tool) bool {
	if t.Server == "" {
		return true
	}
	s := c.Server(t.Server)
	return s == nil || s.Enabled
}

// GroupsOf returns the groups of a tool: its own, else its server's, else
// "default" (GATE-4).
func (c *Catalog) GroupsOf(t *Tool) []string {
	if t.Groups != nil {
		return t.Groups
	}
	if t.Server != "" {
		if s := c.Server(t.Server); s != nil && s.Groups != nil {
			return s.Groups
		}
	}
	return defaultGroups
}

var defaultGroups = []string{DefaultGroup}

// With returns the catalog at the next revision. It keeps the promise of
// BIND-7: no binding of a tool that is gone.
func (c *Catalog) With(revision int64, changes []Change) *Catalog {
	var (
		names, ids edits[Tool]
		servers    edits[Server]
		agents     edits[Agent]
		bindings   edits[Bindings]
		users      edits[User]
		secrets    edits[Secret]
		grants     edits[Grant]
		policies   edits[Policy]
		gone       = map[string]bool{}
	)
	next := *c
	for _, ch := range changes {
		switch ch.Noun {
		case NounProject:
			next.project = *ch.Project
		case NounTool:
			old := c.ToolByID(ch.Key)
			names.replace(old, ch.Tool)
			ids.replace(old, ch.Tool)
			if ch.Tool == nil {
				gone[ch.Key] = true
			}
		case NounServer:
			servers.replace(c.Server(ch.Key), ch.Server)
		case NounAgent:
			agents.replace(c.Agent(ch.Key), ch.Agent)
		case NounUser:
			users.replace(c.User(ch.Key), ch.User)
		case NounSecret:
			secrets.replace(c.Secret(ch.Key), ch.Secret.withoutValue())
		case NounGrant:
			grants.replace(c.grant(ch.Key), ch.Grant)
		case NounPolicy:
			policies.replace(c.Policy(ch.Key), ch.Policy)
		case NounBindings:
			if ch.Bindings != nil && len(ch.Bindings.Tools) == 0 {
				ch.Bindings = nil
			}
			bindings.replace(find(c.bindings, ch.Key, bindingsAgent), ch.Bindings)
		}
	}
	next.project.Revision = revision
	next.tools = names.apply(c.tools, toolName)
	next.toolsID = ids.apply(c.toolsID, toolID)
	next.servers = servers.apply(c.servers, serverName)
	next.agents = agents.apply(c.agents, agentID)
	next.users = users.apply(c.users, userID)
	next.secrets = secrets.apply(c.secrets, secretKey)
	next.grants = grants.apply(c.grants, (*Grant).Key)
	next.policies = policies.apply(c.policies, policyName)
	next.bindings = purge(bindings.apply(c.bindings, bindingsAgent), gone)
	return &next
}

// purge removes bindings of tools that are gone.
func purge(all []*Bindings, gone map[string]bool) []*Bindings {
	if len(gone) == 0 {
		return all
	}
	rest := make([]*Bindings, 0, len(all))
	for _, b := range all {
		if b = b.without(gone); len(b.Tools) > 0 {
			rest = append(rest, b)
		}
	}
	return rest
}

func toolName(t *Tool) string          { return t.Name }
func toolID(t *Tool) string            { return t.ID }
func serverName(s *Server) string      { return s.Name }
func agentID(a *Agent) string          { return a.ID }
func bindingsAgent(b *Bindings) string { return b.Agent }

func byName(a, b *Tool) int { return strings.Compare(a.Name, b.Name) }

// find looks key up in a slice that is sorted by it.
func find[T any](sorted []*T, key string, keyOf func(*T) string) *T {
	i, ok := slices.BinarySearchFunc(sorted, key, func(v *T, key string) int {
		return strings.Compare(keyOf(v), key)
	})
	if !ok {
		return nil
	}
	return sorted[i]
}

// edits are the removals and insertions that turn one sorted slice into the
// next.
type edits[T any] struct{ remove, insert []*T }

func (e *edits[T]) replace(old, new *T) {
	if old != nil {
		e.remove = append(e.remove, old)
	}
	if new != nil {
		e.insert = append(e.insert, new)
	}
}

// apply copies base run by run, around the places that change.
func (e *edits[T]) apply(base []*T, keyOf func(*T) string) []*T {
	if len(e.remove)+len(e.insert) == 0 {
		return base
	}
	order := func(a, b *T) int { return strings.Compare(keyOf(a), keyOf(b)) }
	slices.SortFunc(e.remove, order)
	slices.SortFunc(e.insert, order)
	next := make([]*T, 0, len(base)-len(e.remove)+len(e.insert))
	remove, insert := e.remove, e.insert
	for len(remove)+len(insert) > 0 {
		// A removal comes first where both have one key: it makes the room.
		removes := len(insert) == 0 || len(remove) > 0 && order(remove[0], insert[0]) <= 0
		edit := insert
		if removes {
			edit = remove
		}
		at, _ := slices.BinarySearchFunc(base, edit[0], order)
		next = append(next, base[:at]...)
		base = base[at:]
		if removes {
			base, remove = base[1:], remove[1:]
		} else {
			next, insert = append(next, insert[0]), insert[1:]
		}
	}
	return append(next, base...)
}
