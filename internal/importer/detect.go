package importer

import (
	"path"
	"slices"
	"strings"
)

// Format is what a file can be.
type Format string

// The formats of CAT-5.
const (
	FormatMCP     Format = "mcp"           // mcpServers of Claude and Cursor, MCP_SERVERS
	FormatVSCode  Format = "vscode"        // servers and inputs of VS Code
	FormatTools   Format = "tools"         // tool: with groups and states
	FormatAgents  Format = "agents"        // agent.json and tool.json
	FormatOpenAPI Format = "openapi"       // an OpenAPI 3 document
	FormatProject Format = "quartermaster" // a project file
)

// Formats lists all of them.
var Formats = []Format{FormatMCP, FormatVSCode, FormatTools, FormatAgents, FormatOpenAPI, FormatProject}

func formatList() string {
	names := make([]string, len(Formats))
	for i, f := range Formats {
		names[i] = string(f)
	}
	return strings.Join(names, ", ")
}

// Detect tells a file's format by what is in it, and where that could be
// several by what it is called.
func Detect(f File) (Format, bool) {
	o, ok := f.Value.(Object)
	if !ok {
		return FormatTools, isToolList(f.Value)
	}
	for _, known := range detectors {
		if known.is(o, base(f)) {
			return known.format, true
		}
	}
	return "", false
}

// detectors are asked in this order: the surest signs come first.
var detectors = []struct {
	format Format
	is     func(o Object, name string) bool
}{
	{FormatProject, func(o Object, _ string) bool { return contains(o, "quartermaster") }},
	{FormatOpenAPI, func(o Object, _ string) bool { return contains(o, "openapi", "swagger") }},
	{FormatAgents, func(o Object, name string) bool {
		return name == "agent.json" || name == "tool.json" || isAgent(o) || isTool(o)
	}},
	{FormatMCP, func(o Object, _ string) bool { return contains(o, "mcpServers", "mcp_servers", "MCP_SERVERS") }},
	{FormatVSCode, isVSCode},
	{FormatTools, func(o Object, _ string) bool { return isToolMap(o) || looksLikeTool(o) }},
	{FormatMCP, func(o Object, _ string) bool { return allMembers(o, looksLikeServer) }},
	{FormatTools, func(o Object, _ string) bool { return allMembers(o, isTextList) }},
}

// base is the name by which folders of 001 tell agents from tools; the ending
// does not matter.
func base(f File) string {
	name := path.Base(strings.ReplaceAll(f.Name, `\`, "/"))
	return strings.TrimSuffix(name, path.Ext(name)) + ".json"
}

func isToolFile(f File) bool {
	o, _ := f.Value.(Object)
	return base(f) == "tool.json" || base(f) != "agent.json" && isTool(o)
}

// isAgent knows a definition by its fields: 001's tools.use, 000's list of
// tools.
func isAgent(o Object) bool {
	tools, _ := o.Get("tools")
	if inner, ok := tools.(Object); ok && len(inner) > 0 && allKeys(inner, "use", "allowed", "aliases") {
		return true
	}
	return contains(o, "instruction", "instructions", "systemPrompt") && (isTextList(tools) || contains(o, "model", "id", "name"))
}

// isTool knows a tool.json of 001.
func isTool(o Object) bool {
	_, hasKind := text(o, "kind")
	return contains(o, "builtinPolicy") || hasKind && contains(o, "name", "id", "mcp", "transport", "command")
}

func isVSCode(o Object, _ string) bool {
	if mcp, ok := o.Get("mcp"); ok {
		if inner, ok := mcp.(Object); ok && contains(inner, "servers") && !contains(o, "tool", "tools") {
			return true
		}
	}
	servers, _ := o.Get("servers")
	inner, ok := servers.(Object)
	return ok && (contains(o, "inputs") || len(inner) == 0 || allMembers(inner, looksLikeServer))
}

// isToolMap knows 003's tool: by the tools in it, whether by name or as a list.
func isToolMap(o Object) bool {
	for _, key := range []string{"tool", "tools"} {
		v, _ := o.Get(key)
		if isToolList(v) {
			return true
		}
		if inner, ok := v.(Object); ok && (key == "tool" || allMembers(inner, isObject)) {
			return true
		}
	}
	return false
}

func isToolList(v any) bool {
	list, ok := v.([]any)
	return ok && len(list) > 0 && !slices.ContainsFunc(list, func(item any) bool {
		o, ok := item.(Object)
		return !ok || !looksLikeTool(o)
	})
}

func looksLikeTool(o Object) bool {
	_, named := text(o, "name")
	return named && contains(o, "type", "provider") && contains(o, "description", "group", "groups", "schema", "is_enabled", "available_in_states", "applicable-states", "mcp_tool_id", "mcp-tool")
}

func looksLikeServer(v any) bool {
	o, ok := v.(Object)
	return ok && contains(o, append([]string{"command"}, addressKeys...)...)
}

func isObject(v any) bool {
	_, ok := v.(Object)
	return ok
}

func isTextList(v any) bool {
	list, ok := v.([]any)
	return ok && !slices.ContainsFunc(list, func(item any) bool {
		_, ok := item.(string)
		return !ok
	})
}

// allMembers is false for an object without members, which is of no kind.
func allMembers(o Object, is func(any) bool) bool {
	return len(o) > 0 && !slices.ContainsFunc(o, func(m Member) bool { return !is(m.Value) })
}

func allKeys(o Object, known ...string) bool {
	return !slices.ContainsFunc(keys(o), func(key string) bool { return !slices.Contains(known, key) })
}

func text(o Object, key string) (string, bool) {
	v, _ := o.Get(key)
	s, ok := v.(string)
	return s, ok
}
