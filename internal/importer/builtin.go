package importer

import (
	"encoding/json"
	"slices"

	"quartermaster"
)

// readToolFile reads a tool.json of 001: a built-in with its policy, or a
// server.
func (b *build) readToolFile(e *entry, f File) {
	kind, kindAt := e.text("kind")
	policy := e.object("builtinPolicy")
	name := e.named(f)
	if name == "" {
		return
	}
	switch {
	case policy != nil:
		b.readBuiltin(name, e, policy)
	case kind == "builtin":
		b.fault(e.at, "a built-in tool needs a builtinPolicy that names it")
	case kind == "mcp" || kind == "" && contains(e.value, "transport", "command", "mcp"):
		b.readToolServer(name, e)
	case kind == "http" || kind == "external":
		r := b.toolOf(name, e)
		r.set("provider", string(quartermaster.ProviderHTTP), kindAt.at)
		b.config(r, e, "")
		b.put(r)
	default:
		r := b.toolOf(name, e)
		b.config(r, e, kind)
		b.unprovided(r, kindAt.at, "kind \""+cut(kind, 100)+"\" is not known here")
		b.put(r)
	}
}

// readToolServer is a server whose settings stand in the file itself or below
// one of its words.
func (b *build) readToolServer(name string, e *entry) {
	inner := e
	if own := e.object("mcp", "server", "connection"); own != nil {
		inner = own
		e.ignore("id", "name", "kind", "description", "title", "version")
		b.moveUp(e, own)
	}
	e.ignore("displayName", "category", "tags")
	b.offered[name] = true
	if shown, _ := e.text("name"); shown != "" {
		b.offered[shown] = true
		b.servers[shown] = serverName(name)
	}
	b.readServer(name, inner, serverSource{unit: guessed})
}

// moveUp lets what stands beside a server's settings count as one of them.
func (b *build) moveUp(e, into *entry) {
	for _, key := range []string{"healthCheck", "scope", "timeout", "timeouts", "enabled", "disabled", "env", "lazy"} {
		i := e.value.index(key)
		if i < 0 {
			continue
		}
		e.seen[key] = true
		if !contains(into.value, key) {
			into.value = append(into.value[:len(into.value):len(into.value)], e.value[i])
		}
	}
	e.warnOthers()
}

func (b *build) toolOf(name string, e *entry) *row {
	r := b.newRow("tools", b.nameTool(name, e.at), e.at)
	if shown, f := e.text("name"); shown != "" && shown != name {
		r.set("displayName", shown, f.at)
	}
	b.describeTool(r, e)
	e.ignore("id", "kind", "version", "icon", "author", "tags")
	return r
}

// policyWords are other words for the fields of a built-in's config (NAT-1, NAT-2).
var policyWords = map[string][]string{
	"allowedPaths":    {"allowedPaths", "allowed_paths", "paths"},
	"allowedCommands": {"allowedCommands", "allowed_commands", "commands", "commandAllowList"},
}

// readBuiltin makes a native tool of a built-in with a policy.
func (b *build) readBuiltin(name string, e, policy *entry) {
	r := b.toolOf(name, e)
	builtin, at := policy.text("name")
	if builtin == "" {
		b.fault(policy.at, "must name the built-in, such as fs_read")
		return
	}
	config := b.newRow("", "", policy.at)
	config.set("builtin", builtin, at.at)
	for _, field := range []string{"allowedPaths", "allowedCommands"} {
		policy.copyTexts(config, field, policyWords[field]...)
	}
	if v, f := policy.duration(guessed, "timeout", "timeoutMs", "timeout_ms"); v != "" {
		config.set("timeout", v, f.at)
	}
	for _, m := range policy.others() {
		config.set(m.Key, m.Value, policy.at.below(m.Key, m.Line))
	}
	e.warnOthers()
	r.set("provider", string(quartermaster.ProviderNative), policy.at)
	if schema, ok := builtinSchemas[builtin]; ok && r.get("inputSchema") == nil {
		r.set("inputSchema", schema, policy.at)
	}
	b.checkOpen(field{policy.at, config.value})
	r.set("config", config.value, policy.at)
	for field, f := range config.origins {
		r.origins["config."+field] = f
	}
	b.put(r)
}

// builtinSchemas are the arguments that built-ins of 001 take (NAT-1, NAT-2).
var builtinSchemas = map[string]Object{
	"fs_read":    argumentsOf([]string{"path"}, "path"),
	"fs_list":    argumentsOf([]string{"path"}, "path"),
	"fs_write":   argumentsOf([]string{"path", "content"}, "path", "content"),
	"shell_exec": shellArguments(),
}

func argumentsOf(required []string, names ...string) Object {
	properties := Object{}
	for _, name := range names {
		properties = append(properties, Member{Key: name, Value: Object{{Key: "type", Value: "string"}}})
	}
	return Object{
		{Key: "type", Value: "object"},
		{Key: "properties", Value: properties},
		{Key: "required", Value: words(required)},
		{Key: "additionalProperties", Value: false},
	}
}

func shellArguments() Object {
	schema := argumentsOf([]string{"argv"}, "argv", "cwd", "stdin")
	properties, _ := schema[1].Value.(Object)
	properties = slices.Clone(properties)
	properties[0].Value = Object{
		{Key: "type", Value: "array"},
		{Key: "minItems", Value: json.Number("1")},
		{Key: "items", Value: Object{{Key: "type", Value: "string"}}},
	}
	return schema.with("properties", properties)
}
