package quartermaster

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"time"
)

// Tool is one callable thing: a row in a project's catalog. Tools in a Catalog
// are shared and never modified.
type Tool struct {
	ID                string          `json:"id" readOnly:"true" doc:"UUID"`
	Name              string          `json:"name" required:"false" doc:"1 to 128 of A-Z a-z 0-9 _ . -, unique in the project" example:"files__read_file"`
	Target            string          `json:"target,omitempty" readOnly:"true" doc:"Real name of a tool that is listed under its alias"`
	DisplayName       string          `json:"displayName,omitempty" doc:"For people"`
	Description       string          `json:"description,omitempty" doc:"For the model: what the tool does and when to use it"`
	Category          string          `json:"category,omitempty"`
	Provider          ProviderKind    `json:"provider,omitempty" enum:"native,mcp,http" doc:"What runs it. Absent: mcp where a server is named, else native"`
	Server            string          `json:"server,omitempty" doc:"The upstream server of an mcp tool"`
	InputSchema       json.RawMessage `json:"inputSchema,omitempty" doc:"JSON Schema (2020-12 or draft-07) of the arguments. Absent: any object"`
	OutputSchema      json.RawMessage `json:"outputSchema,omitempty" doc:"JSON Schema of the structured result"`
	Annotations       json.RawMessage `json:"annotations,omitempty" doc:"MCP's hints: title, readOnlyHint, destructiveHint, idempotentHint, openWorldHint"`
	Config            json.RawMessage `json:"config,omitempty" doc:"Settings of the provider; a native tool names its built-in here" example:"{\"builtin\":\"echo\"}"`
	Enabled           bool            `json:"enabled" required:"false" doc:"Absent: true"`
	Available         bool            `json:"available" readOnly:"true" doc:"Whether it could be called now"`
	UnavailableReason string          `json:"unavailableReason,omitempty" readOnly:"true"`
	Groups            []string        `json:"groups,omitzero" doc:"Absent: the server's groups, else [\"default\"]. Empty: only a request for \"*\" reaches it"`
	State             string          `json:"state,omitempty" doc:"A success moves the session to this state"`
	AvailableInStates []string        `json:"availableInStates,omitzero" doc:"Absent: in every state. Empty: never"`
	Timeout           Duration        `json:"timeout,omitzero" pattern:"^([0-9]+([.][0-9]+)?(ns|us|µs|ms|s|m|h))+$" patternDescription:"a duration such as 30s" doc:"Absent: the server's, else 60s" example:"30s"`
	Version           int64           `json:"version" readOnly:"true" doc:"Grows by one with every change"`
	CreatedAt         time.Time       `json:"createdAt" readOnly:"true"`
	UpdatedAt         time.Time       `json:"updatedAt" readOnly:"true"`
	BoundAt           time.Time       `json:"boundAt,omitzero" readOnly:"true" doc:"In a list of bound tools: since when"`

	// What discovery knows of a tool that a server offers.
	Upstream     string    `json:"upstream,omitempty" readOnly:"true" doc:"The server's own name for it" example:"read_file"`
	Held         Hold      `json:"held,omitempty" readOnly:"true" enum:"new,changed,quarantined" doc:"Why it is held back until someone accepts it. Absent: it is not"`
	HeldSince    time.Time `json:"heldSince,omitzero" readOnly:"true"`
	MissingSince time.Time `json:"missingSince,omitzero" readOnly:"true" doc:"Since when its server no longer offers it"`
	Flags        []Flag    `json:"flags,omitempty" readOnly:"true" doc:"Signs of poisoning in its newest definition"`
	Title        string    `json:"-"` // the server's; displayName unless a person gives another
	Hash         string    `json:"-"` // of the definition in this row
	Pending      *Offer    `json:"-"` // the newest definition, where it waits to be accepted

	Origin Origin `json:"-"`
}

// ProviderKind names what runs a tool.
type ProviderKind string

// The kinds of providers.
const (
	ProviderNative ProviderKind = "native" // inside the server
	ProviderMCP    ProviderKind = "mcp"    // an upstream MCP server
	ProviderHTTP   ProviderKind = "http"   // a REST call
)

// Origin says where a tool's row comes from, and with it who may change what.
type Origin string

// The origins of tools.
const (
	OriginManual     Origin = "manual"     // made by a person, who may change all of it
	OriginBuiltin    Origin = "builtin"    // in every project from the start
	OriginDiscovered Origin = "discovered" // offered by an upstream server
)

// DefaultGroup is the group of tools and requests that name none.
const DefaultGroup = "default"

// Names of tools that only Quartermaster itself may offer.
const (
	ToolFindTools           = "find_tools"
	ToolCallTool            = "call_tool"
	ToolSpawnAgents         = "spawn_agents"
	ToolListAvailableAgents = "list_available_agents"
)

// Reserved reports whether no one may give a tool this name.
func Reserved(name string) bool {
	switch name {
	case ToolFindTools, ToolCallTool, ToolSpawnAgents, ToolListAvailableAgents:
		return true
	}
	return false
}

// UnmarshalJSON reads a tool in which an absent `enabled` means true.
func (t *Tool) UnmarshalJSON(data []byte) error {
	type plain Tool
	p := plain{Enabled: true}
	if err := json.Unmarshal(data, &p); err != nil {
		return err
	}
	*t = Tool(p)
	return nil
}

// Active reports whether the tool can be bound and listed (CAT-3): it is
// switched on and accepted. Whether its server is up does not matter.
func (t *Tool) Active() bool { return t.Enabled && t.Held == "" }

// ValidToolName reports whether name fits the grammar of CAT-2.
func ValidToolName(name string) bool {
	return within(name, maxToolName, isToolNameByte)
}

const maxToolName = 128

func isToolNameByte(c byte) bool {
	return isAlphanum(c) || c == '_' || c == '.' || c == '-'
}

// ToolName is the name in the catalog of what a server calls upstream. The
// same input gives the same name, always; an upstream name that does not fit
// the grammar is made to, and told apart from its likes by a hash.
func ToolName(server *Server, upstream string) string {
	name := upstream
	if server.Prefix {
		name = server.Name + "__" + upstream
	}
	if ValidToolName(name) {
		return name
	}
	return mappedName(name, upstream, 4)
}

// mappedName makes name fit the grammar and ends it with so many bytes of the
// hash of upstream.
func mappedName(name, upstream string, bytes int) string {
	sum := sha256.Sum256([]byte(upstream))
	suffix := "_" + hex.EncodeToString(sum[:bytes])
	legal := []byte(name)
	for i, c := range legal {
		if !isToolNameByte(c) {
			legal[i] = '_'
		}
	}
	return string(legal[:min(len(legal), maxToolName-len(suffix))]) + suffix
}

// normalize fills in what absent fields stand for, where that is a constant.
func (t *Tool) normalize() {
	if t.Provider == "" {
		t.Provider = ProviderNative
		if t.Server != "" {
			t.Provider = ProviderMCP
		}
	}
	if len(t.InputSchema) == 0 || string(t.InputSchema) == "null" {
		t.InputSchema = json.RawMessage(`{"type":"object"}`)
	}
	t.Target, t.Available, t.UnavailableReason, t.BoundAt = "", false, "", time.Time{}
	if t.Origin != OriginDiscovered {
		t.keepDiscovered(&Tool{})
	} else if t.DisplayName == "" {
		t.DisplayName = t.Title
	}
}

// keepDiscovered makes what discovery knows of t the same as of o: no person
// can set it.
func (t *Tool) keepDiscovered(o *Tool) {
	t.Upstream, t.Title, t.Hash, t.Flags = o.Upstream, o.Title, o.Hash, o.Flags
	t.Held, t.HeldSince, t.Pending, t.MissingSince = o.Held, o.HeldSince, o.Pending, o.MissingSince
}

// fold drops repetitions: after faults, which tell the place in what was given.
func (t *Tool) fold() {
	t.Groups = fold(t.Groups)
	t.AvailableInStates = fold(t.AvailableInStates)
}

// fold drops repeated words and keeps the order; nil stays nil.
func fold(words []string) []string {
	if words == nil {
		return nil
	}
	folded := make([]string, 0, len(words))
	for _, w := range words {
		if !slices.Contains(folded, w) {
			folded = append(folded, w)
		}
	}
	return folded
}

// faults says what is wrong with the tool by itself.
func (t *Tool) faults() faults {
	var f faults
	if !ValidToolName(t.Name) {
		f.add("name", "must be 1 to 128 of A-Z a-z 0-9 _ . -")
	}
	checkText(&f, "displayName", t.DisplayName, 255)
	checkText(&f, "description", t.Description, 100_000)
	checkText(&f, "category", t.Category, 255)
	checkText(&f, "state", t.State, 255)
	checkNames(&f, "groups", t.Groups)
	checkNames(&f, "availableInStates", t.AvailableInStates)
	switch t.Provider {
	case ProviderNative, ProviderHTTP:
		if t.Server != "" {
			f.add("server", "only a tool with provider mcp has a server")
		}
	case ProviderMCP:
		if t.Server == "" {
			f.add("server", "a tool with provider mcp names its server")
		}
	default:
		f.add("provider", "must be one of native, mcp, http")
	}
	checkDuration(&f, "timeout", t.Timeout)
	checkObject(&f, "inputSchema", &t.InputSchema)
	checkObject(&f, "outputSchema", &t.OutputSchema)
	checkObject(&f, "annotations", &t.Annotations)
	checkObject(&f, "config", &t.Config)
	checkArgumentsType(&f, t.InputSchema)
	if t.Provider == ProviderNative {
		if _, err := t.Builtin(); err != nil {
			f.add("config.builtin", "must be a string")
		}
	}
	return f
}

// checkArgumentsType refuses a schema that no arguments could satisfy: they
// are always an object.
func checkArgumentsType(f *faults, schema json.RawMessage) {
	var v any
	if member(schema, "type", &v) != nil {
		return // reported already
	}
	switch v := v.(type) {
	case string:
		if v != "object" {
			f.add("inputSchema.type", "must be \"object\": arguments are always an object")
		}
	case []any:
		if !slices.Contains(v, any("object")) {
			f.add("inputSchema.type", "must include \"object\": arguments are always an object")
		}
	}
}

// Builtin is the name of the built-in that a native tool runs, "" where its
// config names none.
func (t *Tool) Builtin() (string, error) {
	if len(t.Config) == 0 {
		return "", nil
	}
	var name string
	err := member(t.Config, "builtin", &name)
	return name, err
}

// clone shares nothing with t that can be changed in place.
func (t *Tool) clone() Tool {
	c := *t
	c.Groups, c.AvailableInStates = slices.Clone(t.Groups), slices.Clone(t.AvailableInStates)
	for _, raw := range c.objects() {
		*raw = bytes.Clone(*raw)
	}
	return c
}

// objects are the fields that hold a JSON object.
func (t *Tool) objects() []*json.RawMessage {
	return []*json.RawMessage{&t.InputSchema, &t.OutputSchema, &t.Annotations, &t.Config}
}

// respell writes each object as old does where it means the same.
func (t *Tool) respell(old *Tool) {
	was := old.objects()
	for i, raw := range t.objects() {
		respell(raw, *was[i])
	}
}

// same reports whether nothing that a person can change differs.
func (t *Tool) same(o *Tool) bool {
	a, b := *t, *o
	a.Version, a.CreatedAt, a.UpdatedAt = b.Version, b.CreatedAt, b.UpdatedAt
	return reflect.DeepEqual(a, b)
}

// fixedFields names the fields in which t differs from o although a row that
// no person made keeps them.
func (t *Tool) fixedFields(o *Tool) faults {
	var f faults
	check := func(field string, same bool) {
		if !same {
			f.add(field, "is fixed for a %s tool; only its displayName, category, config, enabled, groups, state, availableInStates and timeout can be changed", o.Origin)
		}
	}
	check("name", t.Name == o.Name)
	check("description", t.Description == o.Description)
	check("provider", t.Provider == o.Provider)
	check("server", t.Server == o.Server)
	check("inputSchema", string(t.InputSchema) == string(o.InputSchema))
	check("outputSchema", string(t.OutputSchema) == string(o.OutputSchema))
	check("annotations", string(t.Annotations) == string(o.Annotations))
	was, _ := o.Builtin()
	is, _ := t.Builtin()
	check("config.builtin", was == is)
	return f
}

// Describe gives a built-in tool the texts that builtins have for it: those of
// the program that runs it, whichever version has written its row.
func (t *Tool) Describe(builtins []Tool) {
	if t.Origin != OriginBuiltin {
		return
	}
	for _, b := range builtins {
		if b.Name == t.Name {
			t.Description, t.InputSchema, t.OutputSchema, t.Annotations = b.Description, b.InputSchema, b.OutputSchema, b.Annotations
		}
	}
}

const builtinCategory = "built-in"

// Builtins are the tools that every project has from the start (NAT-0, GATE-3).
func Builtins() []Tool {
	native := func(name, description, schema, annotations string) Tool {
		return Tool{
			Name: name, Description: description, Category: builtinCategory, Provider: ProviderNative,
			InputSchema: json.RawMessage(schema), Annotations: json.RawMessage(annotations),
			Config: json.RawMessage(`{"builtin":"` + name + `"}`), Enabled: true, Origin: OriginBuiltin,
		}
	}
	const harmless = `{"readOnlyHint":true,"idempotentHint":true,"openWorldHint":false}`
	return []Tool{
		native("echo", "Answers with the arguments it was given.", `{"type":"object"}`, harmless),
		native("time_now", "Tells the current time in UTC, or in the time zone asked for.",
			`{"type":"object","properties":{"zone":{"type":"string","description":"IANA name such as Europe/Vienna"}},"additionalProperties":false}`,
			`{"readOnlyHint":true,"openWorldHint":false}`),
		native(ToolSpawnAgents, "Starts other agents on tasks of their own, in parallel, and answers with their results in order.",
			`{"type":"object","properties":{"agents":{"type":"array","minItems":1,"items":{"type":"object","properties":{`+
				`"agent_name":{"type":"string"},"task":{"type":"string"},"timeout":{"type":"string"},"resume_run_id":{"type":"string"}},`+
				`"required":["agent_name","task"],"additionalProperties":false}}},"required":["agents"],"additionalProperties":false}`,
			`{"readOnlyHint":false}`),
		native(ToolListAvailableAgents, "Lists the agents that can be started with spawn_agents.",
			`{"type":"object","additionalProperties":false}`, harmless),
	}
}

// referTo finds a tool by its id, in either letter case as UUIDs are, else by
// its name, else as @server/tool. No tool bears the id of another as its name,
// so that whoever gives a name means the name.
func referTo(ref string, byID, byName func(string) *Tool) *Tool {
	if t := byID(strings.ToLower(ref)); t != nil {
		return t
	}
	return referToName(ref, byName)
}

// referToName is referTo without ids.
func referToName(ref string, byName func(string) *Tool) *Tool {
	server, upstream, ok := splitServerRef(ref)
	if !ok {
		return byName(ref)
	}
	for _, name := range []string{server + "__" + upstream, upstream} {
		// A tool has one such reference only: if its name starts with its
		// server's, the rest of it.
		if t := byName(name); t != nil && t.Server == server && t.shortName() == upstream {
			return t
		}
	}
	return nil
}

// shortName is what follows @server/ in the tool's reference: its name without
// the server's. Where the server's own name for it does not fit the grammar the
// two differ, so that a reference is always made of the letters of a name.
func (t *Tool) shortName() string { return strings.TrimPrefix(t.Name, t.Server+"__") }

// splitServerRef splits "@server/tool".
func splitServerRef(ref string) (server, tool string, ok bool) {
	rest, ok := strings.CutPrefix(ref, "@")
	if !ok {
		return "", "", false
	}
	server, tool, ok = strings.Cut(rest, "/")
	return server, tool, ok && server != ""
}
