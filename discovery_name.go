package quartermaster

import (
	"slices"
	"strings"
)

// namesFor are the names that a tool of a server may be given, best first
// (CAT-2). They depend on nothing but the two.
func namesFor(s *Server, upstream string) []string {
	plain := ToolName(s, upstream)
	full := upstream
	if s.Prefix {
		full = s.Name + "__" + upstream
	}
	names := []string{mappedName(full, upstream, 4), mappedName(full, upstream, 32)}
	if plain != names[0] && !Reserved(plain) {
		names = slices.Insert(names, 0, plain)
	}
	return names
}

// nameFor finds the first name of an offer that no other of the same server has.
// One that a tool from elsewhere has is not contended for: that is a reason to
// refuse the offer, unless the tool only waits for it.
func (m *merge) nameFor(upstream string, own *Tool) (name string, adopted *Tool, reason string) {
	for i, name := range namesFor(m.server, upstream) {
		if owner := m.ownerOf(name); owner != "" && own == nil {
			return "", nil, name + " is a name for a tool of server " + owner
		}
		other := m.draft.toolByName(name)
		if i == 0 && own == nil && other.awaits(m.server.Name) {
			return name, other, ""
		}
		if other == nil {
			other, reason = m.confusedWith(name, own)
		} else {
			reason = name + " is the name of another tool"
		}
		if reason == "" {
			return name, nil, ""
		}
		if other.Origin != OriginDiscovered || other.Server != m.server.Name {
			return "", nil, reason
		}
	}
	return "", nil, "too many tools of the server have names like it"
}

// ownerOf is the other server that a name speaks of: one without a prefix must not
// take what was granted on the tools of one that has not answered yet.
func (m *merge) ownerOf(name string) string {
	owner, _, ok := strings.Cut(name, "__")
	if !ok || m.server.Prefix || owner == m.server.Name || m.draft.Server(owner) == nil {
		return ""
	}
	return owner
}

// confusedWith finds the tool that could be meant by a name that is free.
func (m *merge) confusedWith(name string, own *Tool) (other *Tool, reason string) {
	t := Tool{Name: name, Server: m.server.Name}
	if own != nil {
		t.ID = own.ID
	}
	var f faults
	m.draft.checkReferences(&f, &t)
	if len(f) == 0 {
		return nil, ""
	}
	if other = m.draft.toolByID(strings.ToLower(name)); other != nil {
		return other, name + " is the id of another tool"
	}
	return m.draft.Tool("@" + m.server.Name + "/" + t.shortName()), f[0].Message
}

// awaits reports whether a row says nothing but that a server has such a tool,
// as a project file does that is applied before the server was ever reached.
func (t *Tool) awaits(server string) bool {
	return t != nil && t.Origin == OriginManual && t.Server == server && t.Description == "" &&
		string(t.InputSchema) == `{"type":"object"}` && t.OutputSchema == nil && t.Annotations == nil
}
