package quartermaster

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"
)

// CAT-2
func TestValidToolName(t *testing.T) {
	for name, want := range map[string]bool{
		"a": true, "A.b-c_9": true, "files__read_file": true, ".": true, "-": true,
		strings.Repeat("x", 128): true, strings.Repeat("x", 129): false,
		"": false, "a b": false, "a/b": false, "@a": false, "ä": false, "a\n": false, "a\x00": false, "\xff": false, "[": false, "`": false, "{": false,
	} {
		if got := ValidToolName(name); got != want {
			t.Errorf("%q: %t, want %t", name, got, want)
		}
	}
}

// CAT-2: stable: these are in people's files and in other systems.
func TestToolName(t *testing.T) {
	files, bare := &Server{Name: "files", Prefix: true}, &Server{Name: "files"}
	long := strings.Repeat("x", 200)
	for _, tt := range []struct {
		server   *Server
		upstream string
		want     string
	}{
		{files, "read_file", "files__read_file"},
		{files, "a.b-c", "files__a.b-c"},
		{files, "", "files__"},
		{files, strings.Repeat("x", 121), "files__" + strings.Repeat("x", 121)},
		{files, "read file", "files__read_file_1214148e"},
		{files, "read/file", "files__read_file_9cc468c6"},
		{files, "日本", "files_________cf2abf0c"},
		{files, long, "files__" + strings.Repeat("x", 112) + "_aa20c23e"},
		{bare, "read_file", "read_file"},
		{bare, "read file", "read_file_1214148e"},
		{bare, "", "_e3b0c442"},
	} {
		if got := ToolName(tt.server, tt.upstream); got != tt.want {
			t.Errorf("%q: %s, want %s", tt.upstream, got, tt.want)
		}
	}
}

// nastyNames are pairwise different and easily taken for each other.
var nastyNames = []string{
	"", "a", "a ", " a", "a/b", "a b", "a_b", "a:b", "a\x00b", "a\xffb", "a\ufffdb", "ä", "a\u0308", "Ä", "日", "日本", "本日",
	strings.Repeat("x", 126), strings.Repeat("x", 127), strings.Repeat("x", 128), strings.Repeat("x", 129), strings.Repeat("x", 10_000),
	strings.Repeat("x", 128) + "1", strings.Repeat("x", 128) + "2", "__", "___", "read_file", "read file", "Read file",
}

// CAT-2, POOL-5
func TestToolNamesStayDifferent(t *testing.T) {
	seen := map[string]string{}
	for _, server := range []*Server{{Name: "a", Prefix: true}, {Name: "a_b", Prefix: true}, {Name: "A", Prefix: true}, {Name: strings.Repeat("s", 40), Prefix: true}} {
		for _, upstream := range nastyNames {
			name := ToolName(server, upstream)
			if other, ok := seen[name]; ok {
				t.Errorf("%q of %s and %s are both called %s", upstream, server.Name, other, name)
			}
			seen[name] = upstream + " of " + server.Name
			if !ValidToolName(name) {
				t.Errorf("%q of %s is called %q, which is not valid", upstream, server.Name, name)
			}
		}
	}
}

// CAT-2
func FuzzToolName(f *testing.F) {
	for _, name := range nastyNames {
		f.Add(name, "a b", true)
		f.Add("a/b", name, false)
	}
	f.Fuzz(func(t *testing.T, a, b string, prefix bool) {
		server := &Server{Name: "files", Prefix: prefix}
		x, y := ToolName(server, a), ToolName(server, b)
		if !ValidToolName(x) || x != ToolName(server, a) {
			t.Errorf("%q is called %q, then %q", a, x, ToolName(server, a))
		}
		if prefix && !strings.HasPrefix(x, "files__") {
			t.Errorf("%q is called %q", a, x)
		}
		// A legal name may be spelled like a mapped one: that collision is
		// refused where it arises. Two of a kind never meet.
		legal := func(upstream, name string) bool { return strings.HasSuffix(name, upstream) }
		if x == y && a != b && legal(a, x) == legal(b, y) {
			t.Errorf("%q and %q are both called %s", a, b, x)
		}
	})
}

// CAT-1: absent fields mean what the specification says.
func TestToolJSON(t *testing.T) {
	var tool Tool
	if err := json.Unmarshal([]byte(`{"name":"a"}`), &tool); err != nil {
		t.Fatal(err)
	}
	if !tool.Enabled || tool.Groups != nil || tool.AvailableInStates != nil {
		t.Errorf("absent: %+v", tool)
	}
	if err := json.Unmarshal([]byte(`{"name":"a","enabled":false,"groups":[],"availableInStates":[],"timeout":"1m30s"}`), &tool); err != nil {
		t.Fatal(err)
	}
	if tool.Enabled || tool.Groups == nil || tool.AvailableInStates == nil || tool.Timeout != Duration(90*time.Second) {
		t.Errorf("given: %+v", tool)
	}
	for _, groups := range [][]string{nil, {}, {"a"}} {
		text, err := json.Marshal(Tool{Groups: groups})
		if err != nil {
			t.Fatal(err)
		}
		var back Tool
		if err := json.Unmarshal(text, &back); err != nil || !reflect.DeepEqual(back.Groups, groups) {
			t.Errorf("groups %#v became %#v (%v)", groups, back.Groups, err)
		}
	}
}

// CAT-1
func TestToolFaults(t *testing.T) {
	long := strings.Repeat("ä", 256)
	for name, tt := range map[string]struct {
		edit func(*Tool)
		want []string
	}{
		"none":           {func(*Tool) {}, nil},
		"255 characters": {func(t *Tool) { t.DisplayName, t.Category, t.State = long[2:], long[2:], long[2:] }, nil},
		"256 characters": {func(t *Tool) { t.DisplayName, t.Category, t.State = long, long, long }, []string{"displayName", "category", "state"}},
		"NUL":            {func(t *Tool) { t.Description = "a\x00" }, []string{"description"}},
		"no UTF-8":       {func(t *Tool) { t.Description = "\xff" }, []string{"description"}},
		"empty group":    {func(t *Tool) { t.Groups = []string{"a", ""} }, []string{"groups[1]"}},
		"empty after repeated": {func(t *Tool) {
			t.Groups, t.AvailableInStates = []string{"a", "a", ""}, []string{"a", "a", "b", "\x00"}
		}, []string{"groups[2]", "availableInStates[3]"}},
		"empty state":         {func(t *Tool) { t.AvailableInStates = []string{""} }, []string{"availableInStates[0]"}},
		"unknown provider":    {func(t *Tool) { t.Provider = "ftp" }, []string{"provider"}},
		"mcp without server":  {func(t *Tool) { t.Provider = ProviderMCP }, []string{"server"}},
		"native with server":  {func(t *Tool) { t.Provider, t.Server = ProviderNative, "s" }, []string{"server"}},
		"negative timeout":    {func(t *Tool) { t.Timeout = -1 }, []string{"timeout"}},
		"longest timeout":     {func(t *Tool) { t.Timeout = Duration(8784 * time.Hour) }, nil},
		"too long a timeout":  {func(t *Tool) { t.Timeout = Duration(8784*time.Hour) + 1 }, []string{"timeout"}},
		"schema of a string":  {func(t *Tool) { t.InputSchema = json.RawMessage(`{"type":"string"}`) }, []string{"inputSchema.type"}},
		"schema of a list":    {func(t *Tool) { t.InputSchema = json.RawMessage(`{"type":["string","null"]}`) }, []string{"inputSchema.type"}},
		"schema of either":    {func(t *Tool) { t.InputSchema = json.RawMessage(`{"type":["null","object"]}`) }, nil},
		"schema without type": {func(t *Tool) { t.InputSchema = json.RawMessage(`{"properties":{}}`) }, nil},
		"schema with a Type":  {func(t *Tool) { t.InputSchema = json.RawMessage(`{"type":"object","Type":"string"}`) }, nil}, // a keyword of nobody
		"schema is no object": {func(t *Tool) { t.InputSchema = json.RawMessage(`true`) }, []string{"inputSchema"}},
		"objects": {func(t *Tool) {
			t.OutputSchema, t.Annotations, t.Config = json.RawMessage(`1`), json.RawMessage(`[]`), json.RawMessage(`x`)
		}, []string{"outputSchema", "annotations", "config", "config.builtin"}},
		"Builtin is no string": {func(t *Tool) { t.Config = json.RawMessage(`{"BUILTIN":1}`) }, nil},
		"builtin is no string": {func(t *Tool) { t.Config = json.RawMessage(`{"builtin":1}`) }, []string{"config.builtin"}},
		"all at once":          {func(t *Tool) { t.Name, t.State, t.Timeout = "", "\x00", -1 }, []string{"name", "state", "timeout"}},
	} {
		t.Run(name, func(t *testing.T) {
			tool := Tool{Name: "a"}
			tt.edit(&tool)
			tool.normalize()
			var got []string
			for _, f := range tool.faults() {
				got = append(got, f.Location)
			}
			if !reflect.DeepEqual(got, tt.want) {
				t.Errorf("faults of %q, want %q", got, tt.want)
			}
		})
	}
}

// NAT-0, GATE-3: what every project has is itself valid, and stays as it is
// when it is read and written.
func TestBuiltinsAreValid(t *testing.T) {
	for _, b := range Builtins() {
		t.Run(b.Name, func(t *testing.T) {
			is := b.clone()
			is.normalize()
			if f := is.faults(); len(f) > 0 {
				t.Error(f)
			}
			if !reflect.DeepEqual(is, b) {
				t.Errorf("normalized %+v, want %+v", is, b)
			}
			if name, err := b.Builtin(); err != nil || name != b.Name {
				t.Errorf("builtin %q (%v)", name, err)
			}
			if d := defaultTool(&b); !reflect.DeepEqual(d, b) { // else an export would not be empty
				t.Errorf("set back it is %+v, want %+v", d, b)
			}
		})
	}
}

// NAT-0: keys are told apart by their letter case, as everywhere in JSON.
func TestBuiltinIsThisVeryKey(t *testing.T) {
	for config, want := range map[string]string{
		`{"builtin":"echo"}`: "echo", `{"builtin":"echo","Builtin":"other"}`: "echo", `{"BUILTIN":"other","builtin":"echo"}`: "echo",
		`{"Builtin":"echo"}`: "", `{"builtin":null}`: "", `{}`: "", "": "",
	} {
		tool := Tool{Config: json.RawMessage(config)}
		if got, err := tool.Builtin(); err != nil || got != want {
			t.Errorf("%s: %q (%v), want %q", config, got, err, want)
		}
	}
}

// NAT-0: the texts of a built-in are those of the program that runs it; what
// people have set stays, and so does what this program does not know.
func TestDescribe(t *testing.T) {
	newer := Builtins()
	newer[0].Description, newer[0].InputSchema = "newer", json.RawMessage(`{"type":"object","title":"newer"}`)
	tool := Builtins()[0]
	tool.Enabled, tool.Category, tool.Groups = false, "mine", []string{"g"}
	want := tool
	want.Description, want.InputSchema = newer[0].Description, newer[0].InputSchema
	if tool.Describe(newer); !reflect.DeepEqual(tool, want) {
		t.Errorf("described %+v, want %+v", tool, want)
	}
	for name, origin := range map[string]Origin{"unknown": OriginBuiltin, "echo": OriginManual} {
		tool := Tool{Name: name, Origin: origin, Description: "own"}
		if tool.Describe(newer); tool.Description != "own" {
			t.Errorf("%s %s: %q", origin, name, tool.Description)
		}
	}
}
