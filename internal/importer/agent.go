package importer

import (
	"cmp"
	"path"
	"strings"

	"quartermaster"
)

// readAgentFile reads an agent.json or a tool.json of 001.
func (b *build) readAgentFile(e *entry, f File) {
	if isToolFile(f) {
		b.readToolFile(e, f)
		return
	}
	b.readAgent(e, f)
}

// named is what a file says that it is called, else what its folder is called.
func (e *entry) named(f File) string {
	id, _ := e.text("id")
	name, _ := e.text("name")
	if id = cmp.Or(id, name); id != "" {
		return id
	}
	file := strings.ReplaceAll(f.Name, `\`, "/")
	folder := path.Base(path.Dir(file))
	if b := base(f); b != "agent.json" && b != "tool.json" {
		folder = strings.TrimSuffix(b, ".json")
	}
	if folder == "." || folder == "/" || folder == ".." {
		e.fault(e.at, "has no id, and no folder that could name it")
		return ""
	}
	return folder
}

func (b *build) readAgent(e *entry, f File) {
	id := e.named(f)
	if id == "" {
		return
	}
	r := b.newRow("agents", id, e.at)
	if name, at := e.text("name"); name != "" && name != id {
		r.set("name", name, at.at)
	}
	e.copyText(r, "description", "description")
	e.copyText(r, "instruction", "instruction", "instructions", "systemPrompt", "prompt")
	b.model(r, e)
	b.agentTools(r, e)
	e.copyNumber(r, "maxDepth", "maxDepth", "max_depth")
	e.copyNumber(r, "maxSteps", "maxSteps", "max_steps")
	if v, at := e.duration(guessed, "timeout"); v != "" {
		r.set("timeout", v, at.at)
	}
	e.copyText(r, "visibility", "visibility")
	b.flow(r, e)
	e.copyText(r, "discovery", "discovery")
	e.copyTruth(r, "fixed", "fixed")
	b.memory(r, e)
	b.agentServers(r, e)
	e.ignore("version", "schemaVersion", "icon", "author", "tags", "kind")
	e.warnOthers()
	b.agents = append(b.agents, r)
}

// model is a word, or an object that names provider and model.
func (b *build) model(r *row, e *entry) {
	f, ok := e.field("model")
	if !ok {
		return
	}
	if name, ok := f.value.(string); ok {
		r.set("model", name, f.at)
		return
	}
	m := b.entryOf(f)
	if m == nil {
		return
	}
	provider, _ := m.text("provider")
	name, _ := m.text("name", "model", "id")
	if provider != "" && name != "" {
		name = provider + "/" + name
	}
	r.set("model", name, f.at)
	m.warnOthers()
}

// agentTools are 000's list, or 001's use, allowed and aliases.
func (b *build) agentTools(r *row, e *entry) {
	if f, ok := e.field("tools"); ok {
		if _, isObject := f.value.(Object); isObject {
			inner := b.entryOf(f)
			inner.copyTexts(r, "tools", "use")
			inner.copyTexts(r, "allowed", "allowed")
			inner.copyObject(r, "aliases", "aliases")
			inner.warnOthers()
		} else {
			r.set("tools", words(b.listOf(f)), f.at)
		}
	}
	e.copyTexts(r, "allowed", "allowed")
	e.copyObject(r, "aliases", "aliases")
}

// flow is a word, or an object whose type is one.
func (b *build) flow(r *row, e *entry) {
	f, ok := e.field("flow", "flowType", "flow_type")
	if !ok {
		return
	}
	if o, isObject := f.value.(Object); isObject {
		word, _ := text(o, "type")
		r.set("flow", word, f.at)
		if len(o) > 1 {
			b.warn(f.at, "only its type is taken over")
		}
		return
	}
	e.copyText(r, "flow", "flow", "flowType", "flow_type")
}

// memory is an object, or a word for the adapter, or a switch.
func (b *build) memory(r *row, e *entry) {
	f, ok := e.field("memory")
	if !ok {
		return
	}
	switch v := f.value.(type) {
	case Object:
		b.checkOpen(f)
		r.set("memory", v, f.at)
	case string:
		r.set("memory", Object{{Key: "adapter", Value: v}}, f.at)
	case bool:
		if v {
			r.set("memory", Object{}, f.at)
		}
	default:
		b.fault(f.at, "must be an object")
	}
}

// agentServers are names, or servers of the agent's own, which nobody shares.
func (b *build) agentServers(r *row, e *entry) {
	f, ok := e.field("mcpServers", "mcp_servers", "servers", "mcp")
	if !ok {
		return
	}
	if _, isObject := f.value.(Object); !isObject {
		r.set("servers", words(b.listOf(f)), f.at)
		return
	}
	own := b.entryOf(f)
	if inner := own.object("servers"); inner != nil {
		own = inner
	}
	b.readServers(own, serverSource{unit: guessed, scope: quartermaster.ScopeAgent})
	r.set("servers", words(keys(own.value)), f.at)
}

// resolveAgents gives the patterns of agents the names that servers and tools
// have here. What uses a tool.json of a server as if it were one tool uses all
// tools of that server.
func (b *build) resolveAgents() {
	for _, r := range b.agents {
		for _, name := range []string{"tools", "allowed"} {
			if list, ok := r.get(name).([]any); ok {
				b.rename(r, name, list, b.pattern)
			}
		}
		if list, ok := r.get("servers").([]any); ok {
			b.rename(r, "servers", list, b.serverCalled)
		}
		if aliases, ok := r.get("aliases").(Object); ok {
			renamed := make(Object, len(aliases))
			for i, m := range aliases {
				if target, ok := m.Value.(string); ok {
					m.Value = b.pattern(target)
				} else {
					b.fault(r.origins["aliases"].at.below(m.Key, m.Line), "must be text")
				}
				renamed[i] = m
			}
			r.set("aliases", renamed, r.origins["aliases"].at)
		}
		b.put(r)
	}
}

func (b *build) rename(r *row, name string, list []any, call func(string) string) {
	renamed := make([]any, len(list))
	for i, v := range list {
		s, _ := v.(string) // listOf has made sure
		renamed[i] = call(s)
	}
	r.set(name, renamed, r.origins[name].at)
}

func (b *build) serverCalled(name string) string {
	if legal, ok := b.servers[name]; ok {
		return legal
	}
	return name
}

func (b *build) pattern(p string) string {
	if rest, ok := strings.CutPrefix(p, "@"); ok {
		server, tool, ok := strings.Cut(rest, "/")
		if !ok {
			return p
		}
		return "@" + b.serverCalled(server) + "/" + tool
	}
	if b.offered[p] && b.index["tools."+p] == nil {
		return "@" + b.serverCalled(p) + "/*"
	}
	if legal, ok := b.tools[p]; ok {
		return legal
	}
	return p
}
