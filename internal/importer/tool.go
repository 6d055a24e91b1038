package importer

import (
	"slices"
	"strings"

	"quartermaster"
)

// membership is what a list of groups says of a tool.
type membership struct {
	tool, group string
	at          spot
}

// readTools reads the tools of 003 and the capabilities of 004: by name below
// tool:, as a list, or one alone; and lists of groups beside them.
func (b *build) readTools(root field) {
	if list, ok := root.value.([]any); ok {
		b.readToolList(root.at, list)
		return
	}
	e := b.entryOf(root)
	if e == nil {
		return
	}
	b.readRemotes(e)
	tools, found := e.field("tool", "tools")
	groups := e.object("groups")
	switch v := tools.value.(type) {
	case Object:
		b.readToolMap(tools.at, v)
	case []any:
		b.readToolList(tools.at, v)
	default:
		switch {
		case found:
			b.fault(tools.at, "must hold tools by name, or a list of them")
		case looksLikeTool(e.value):
			e.seen = map[string]bool{}
			b.readTool("", e)
			return
		case groups == nil:
			groups = e // names and lists, without a word above them
		}
	}
	if groups != nil {
		b.readGroups(groups)
	}
	if groups != e {
		e.warnOthers()
	}
}

func (b *build) readToolMap(at spot, tools Object) {
	for _, m := range tools {
		if e := b.entryOf(field{at.below(m.Key, m.Line), m.Value}); e != nil {
			b.readTool(m.Key, e)
		}
	}
}

func (b *build) readToolList(at spot, list []any) {
	for i, item := range list {
		if e := b.entryOf(field{at.item(i, item), item}); e != nil {
			b.readTool("", e)
		}
	}
}

// readTool makes a tool of an entry. Its key is its name, and the name in it is
// for people (CAT-5); without a key the id, else the name in it, is its name.
func (b *build) readTool(key string, e *entry) {
	shown, shownAt := e.text("name")
	id, _ := e.text("id")
	if key == "" {
		key = id
	}
	if key == "" {
		key, shown = shown, ""
	}
	if key == "" {
		b.fault(e.at, "has no name")
		return
	}
	r := b.newRow("tools", b.nameTool(key, e.at), e.at)
	if shown != "" && shown != r.name {
		r.set("displayName", shown, shownAt.at)
	}
	b.describeTool(r, e)
	b.provide(r, key, e)
	b.put(r)
}

// nameTool remembers what a tool is called here.
func (b *build) nameTool(name string, at spot) string {
	legal := toolName(name)
	if legal != name {
		b.tools[name] = legal
		b.warn(at, "the tool is called %s here", legal)
	}
	return legal
}

// describeTool takes over all that does not depend on what runs the tool.
func (b *build) describeTool(r *row, e *entry) {
	e.copyText(r, "displayName", "displayName", "display_name")
	e.copyText(r, "description", "description")
	e.copyText(r, "category", "category")
	e.copyTexts(r, "groups", "group", "groups")
	e.copyText(r, "state", "state")
	e.copyTexts(r, "availableInStates", "available_in_states", "applicable-states", "applicable_states", "availableInStates")
	e.copyObject(r, "inputSchema", "inputSchema", "input_schema", "schema", "parameters")
	e.copyObject(r, "outputSchema", "outputSchema", "output_schema")
	e.copyObject(r, "annotations", "annotations")
	if v, f := e.duration(seconds, "timeout"); v != "" {
		r.set("timeout", v, f.at)
	}
	if on, f, ok := e.truth("is_enabled", "enabled"); ok && !on {
		r.set("enabled", false, f.at)
	}
	if list := e.list("arguments"); list != nil {
		b.argumentSchema(r, list, e.at)
	}
}

// argumentTypes are the words of 003's programs for types of JSON Schema.
var argumentTypes = map[string]string{
	"string": "string", "number": "number", "integer": "integer", "int": "integer", "float": "number", "boolean": "boolean", "bool": "boolean",
	"array": "array", "object": "object",
}

// argumentSchema makes a schema of a list of arguments, all of which are needed.
func (b *build) argumentSchema(r *row, list []field, at spot) {
	properties, required := Object{}, []any{}
	for _, item := range list {
		e := b.entryOf(item)
		if e == nil {
			continue
		}
		name, f := e.text("name")
		if name == "" || contains(properties, name) {
			b.fault(f.at, "must have a name of its own")
			continue
		}
		schema := Object{}
		if word, f := e.text("type"); word != "" {
			known, ok := argumentTypes[word]
			if !ok {
				b.fault(f.at, "must be one of string, number, integer, boolean, array, object")
			}
			schema = schema.with("type", known)
		}
		if about, _ := e.text("description"); about != "" {
			schema = schema.with("description", about)
		}
		properties = properties.with(name, schema)
		required = append(required, name)
	}
	schema := Object{{Key: "type", Value: "object"}, {Key: "properties", Value: properties}}
	if len(required) > 0 {
		schema = schema.with("required", required)
	}
	r.set("inputSchema", schema, at)
}

// provide says what runs the tool: its provider, or what follows from its type.
func (b *build) provide(r *row, key string, e *entry) {
	kind, at := e.text("type")
	provider, providerAt := e.text("provider")
	word := "provider"
	if provider == "" {
		provider, providerAt, word = kind, at, "type"
	}
	switch provider {
	case "mcp", "mcp-tool", "mcp_tool":
		b.mcpTool(r, key, kind, e)
	case "http", "external":
		r.set("provider", string(quartermaster.ProviderHTTP), providerAt.at)
		b.config(r, e, "")
	case "native":
		r.set("provider", string(quartermaster.ProviderNative), providerAt.at)
		b.config(r, e, "")
	case "":
		b.config(r, e, "")
		if config, ok := r.get("config").(Object); !ok || !contains(config, "builtin") {
			b.unprovided(r, e.at, "has no type")
		}
	default:
		b.config(r, e, kind)
		b.unprovided(r, providerAt.at, word+" \""+cut(provider, 100)+"\" is not known here")
	}
}

// config keeps what only the tool's own program understands, so that whoever
// maps the tool later has all of it.
func (b *build) config(r *row, e *entry, kind string) {
	config := Object{}
	if own := e.object("config"); own != nil {
		b.checkOpen(field{own.at, own.value})
		config = slices.Clone(own.value)
	}
	if kind != "" && !contains(config, "type") {
		config = append(config, Member{Key: "type", Value: kind})
	}
	others := e.others()
	b.checkOpen(field{e.at, others})
	for _, m := range others {
		if !contains(config, m.Key) {
			config = append(config, m)
		}
	}
	if len(config) > 0 {
		r.set("config", config, e.at)
	}
}

// unprovided makes a row that can be seen, granted and put into groups, and
// answers unsupported_provider until somebody says what runs it.
func (b *build) unprovided(r *row, at spot, why string) {
	if b.keepMapping(r) {
		return
	}
	r.set("provider", string(quartermaster.ProviderNative), at)
	b.warn(at, "%s: calls of %s answer unsupported_provider until it is given one", why, r.name)
}

// mcpTool is a tool of an upstream server, if the server is known.
func (b *build) mcpTool(r *row, key, kind string, e *entry) {
	named, at := e.text("server")
	id, idAt := e.text("mcp_tool_id", "mcp-tool", "mcp_tool", "mcpToolId")
	if id == "" {
		id, idAt = named, at
	}
	server, upstream, ok := b.upstream(id)
	if !ok {
		b.config(r, e, kind)
		if id != "" {
			config, _ := r.get("config").(Object)
			r.set("config", config.with("mcp_tool_id", id), idAt.at)
			b.unprovided(r, idAt.at, "there is no server \""+id+"\"; import it and then this file again")
			return
		}
		b.unprovided(r, e.at, "it does not say on which server it is (mcp_tool_id)")
		return
	}
	r.set("provider", string(quartermaster.ProviderMCP), idAt.at)
	r.set("server", server, idAt.at)
	b.config(r, e, "")
	if upstream != "" && upstream != key {
		config, _ := r.get("config").(Object)
		r.set("config", config.with("tool", upstream), idAt.at)
	}
}

// upstream finds the server, and the tool on it where that is named too, of
// server, @server/tool or server__tool.
func (b *build) upstream(id string) (server, tool string, ok bool) {
	if s, ok := b.servers[id]; ok {
		return s, b.remote(id), true
	}
	rest, isRef := strings.CutPrefix(id, "@")
	for _, mark := range []string{"/", "__"} {
		name, tool, cut := strings.Cut(rest, mark)
		if s, ok := b.servers[name]; ok && cut && (mark == "/" || !isRef) {
			return s, tool, true
		}
	}
	return "", "", false
}

// readGroups notes which tools a list of groups puts where.
func (b *build) readGroups(groups *entry) {
	for _, m := range groups.value {
		at := groups.at.below(m.Key, m.Line)
		if m.Value == nil {
			continue
		}
		for i, tool := range b.listOf(field{at, m.Value}) {
			b.groups = append(b.groups, membership{tool, m.Key, at.item(i, nil)})
		}
	}
}

// joinGroups puts tools into the groups that list them, beside those that they
// name themselves. A tool that names none is in the listed ones only: it is
// "default" that stands for no group.
func (b *build) joinGroups() {
	for _, g := range b.groups {
		name := g.tool
		if legal, ok := b.tools[name]; ok {
			name = legal
		}
		r, ok := b.index["tools."+name]
		if !ok {
			b.warn(g.at, "there is no tool %q in these files; it is not put into group %s", g.tool, g.group)
			continue
		}
		list, _ := r.get("groups").([]any)
		if !slices.Contains(list, any(g.group)) {
			r.set("groups", append(slices.Clone(list), g.group), g.at)
		}
	}
}
