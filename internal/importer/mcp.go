package importer

// readMCP reads the servers of Claude, Cursor and their likes, and MCP_SERVERS
// of 004, in which a time without a unit counts seconds.
func (b *build) readMCP(e *entry) {
	how := serverSource{unit: guessed}
	servers := e.object("mcpServers", "mcp_servers")
	if servers == nil {
		how.unit = seconds
		if servers = e.object("MCP_SERVERS"); servers == nil {
			servers = e // names and servers, without a word above them
		}
	}
	if servers != e {
		b.warnElsewhere(e)
	}
	b.readServers(servers, how)
}

// warnElsewhere tells of the servers that Claude Code keeps for each folder:
// which of them belong into this project nobody can know.
func (b *build) warnElsewhere(e *entry) {
	v, _ := e.value.Get("projects")
	folders, _ := v.(Object)
	for _, m := range folders {
		folder, _ := m.Value.(Object)
		if v, _ := folder.Get("mcpServers"); v != nil {
			if o, ok := v.(Object); ok && len(o) > 0 {
				b.warn(e.at.below("projects", 0).below(m.Key, m.Line), "its servers are not imported; put them into a file of their own")
			}
		}
	}
}

func (b *build) readServers(servers *entry, how serverSource) {
	for _, m := range servers.value {
		if e := b.entryOf(field{servers.at.below(m.Key, m.Line), m.Value}); e != nil {
			b.readServer(m.Key, e, how)
		}
	}
}

// readVSCode reads mcp.json of VS Code, or the part of its settings.json.
func (b *build) readVSCode(e *entry) {
	if inner := e.object("mcp"); inner != nil {
		e = inner
	}
	asked := b.readInputs(e)
	servers := e.object("servers")
	if servers == nil {
		b.fault(e.at, "has no servers")
		return
	}
	b.readServers(servers, serverSource{unit: guessed, asked: asked})
}

func (b *build) readInputs(e *entry) inputs {
	asked := inputs{}
	for _, item := range e.list("inputs") {
		q := b.entryOf(item)
		if q == nil {
			continue
		}
		id, f := q.text("id")
		if id == "" {
			b.fault(f.at, "has no id")
			continue
		}
		var in input
		in.description, _ = q.text("description")
		in.password, _, _ = q.truth("password")
		if v, ok := q.field("default"); ok {
			in.fallback, _ = scalarText(v.value)
		}
		asked[id] = in
	}
	return asked
}
