package importer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"quartermaster"
	"quartermaster/internal/schema"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func parsed(t testing.TB, name, text string) File {
	t.Helper()
	f, err := ParseJSON(name, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// imported is the document that one file becomes, as JSON.
func imported(t testing.TB, name, text string, o Options) (string, *Result) {
	t.Helper()
	r, err := Import([]File{parsed(t, name, text)}, o)
	if err != nil {
		t.Fatal(err)
	}
	return compact(t, r.Document), r
}

func compact(t testing.TB, v any) string {
	t.Helper()
	var b bytes.Buffer
	if err := appendJSON(&b, v); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// refused is the error of an import that must fail.
func refused(t testing.TB, text string, o Options) string {
	t.Helper()
	r, err := Import([]File{parsed(t, "f.json", text)}, o)
	if quartermaster.CodeOf(err) != quartermaster.CodeInvalidRequest {
		t.Fatalf("got %v, %v", r, err)
	}
	return err.Error()
}

// CAT-5: every file tells what it is.
func TestDetect(t *testing.T) {
	tests := []struct {
		name, text string
		want       Format
	}{
		{"a.json", `{"mcpServers": {}}`, FormatMCP},
		{"a.json", `{"MCP_SERVERS": {}}`, FormatMCP},
		{"a.json", `{"x": {"command": ["a"]}, "y": {"url": "b"}}`, FormatMCP},
		{"a.json", `{"servers": {"x": {"command": "a"}}}`, FormatVSCode},
		{"a.json", `{"servers": {"x": {}}, "inputs": []}`, FormatVSCode},
		{"settings.json", `{"a": 1, "mcp": {"servers": {}}}`, FormatVSCode},
		{"a.json", `{"tool": {"x": {"type": "prompt"}}}`, FormatTools},
		{"a.json", `{"tool": {}, "mcp": {"x": {"url": "y"}}}`, FormatTools},
		{"a.json", `[{"name": "x", "type": "prompt", "description": ""}]`, FormatTools},
		{"a.json", `{"name": "x", "type": "prompt", "group": []}`, FormatTools},
		{"a.json", `{"group": ["tool"]}`, FormatTools},
		{"agent.json", `{}`, FormatAgents},
		{"x/Agent.json", `{"tools": {"use": ["a"]}}`, FormatAgents},
		{"a.json", `{"instructions": "x", "model": "y", "mcpServers": {}}`, FormatAgents},
		{"tool.yaml", `{}`, FormatAgents},
		{"a.json", `{"builtinPolicy": {}}`, FormatAgents},
		{"a.json", `{"kind": "mcp", "transport": "ws"}`, FormatAgents},
		{"a.json", `{"openapi": "3.1.0"}`, FormatOpenAPI},
		{"a.json", `{"swagger": "2.0"}`, FormatOpenAPI},
		{"agent.json", `{"quartermaster": "v1", "servers": {}}`, FormatProject},
		{"package.json", `{"name": "x", "version": "1", "dependencies": {}}`, ""},
		{"k8s.json", `{"apiVersion": "v1", "kind": "Service", "metadata": {"name": "x"}}`, ""},
		{"tsconfig.json", `{"compilerOptions": {}, "include": ["src"]}`, ""},
		{"a.json", `{}`, ""},
		{"a.json", `[]`, ""},
		{"a.json", `[1]`, ""},
		{"a.json", `"mcpServers"`, ""},
		{"a.json", `null`, ""},
	}
	for _, tt := range tests {
		got, ok := Detect(parsed(t, tt.name, tt.text))
		if !ok {
			got = ""
		}
		if got != tt.want || ok != (tt.want != "") {
			t.Errorf("%s %s: got %q %v, want %q", tt.name, tt.text, got, ok, tt.want)
		}
	}
}

// A format that is said counts, whatever the file looks like.
func TestFormatIsSaid(t *testing.T) {
	if got, r := imported(t, "a.json", `{"web": {"command": "x"}}`, Options{Format: FormatMCP}); r.Files[0].Format != FormatMCP || !strings.Contains(got, `"web"`) {
		t.Error(got, r.Files)
	}
	for _, format := range Formats {
		for _, text := range []string{`{}`, `[]`, `7`, `null`, `{"a": null}`, `{"tool": 1, "mcpServers": 1, "servers": 1, "paths": 1, "openapi": "3.0.0", "quartermaster": "v1"}`} {
			_, _ = Import([]File{parsed(t, "f.json", text)}, Options{Format: format}) // must not end the program
		}
	}
	if got := refused(t, `{}`, Options{Format: "yaml"}); !strings.Contains(got, "must be one of mcp, vscode") {
		t.Error(got)
	}
}

// What was found in a directory may be anything; what was asked for must not.
func TestFoundFiles(t *testing.T) {
	known, other := parsed(t, "mcp.json", `{"mcpServers": {"x": {"command": "x"}}}`), parsed(t, "package.json", `{}`)
	other.Found = true
	r, err := Import([]File{known, other}, Options{})
	if err != nil || !slices.Equal(r.Skipped, []string{"package.json"}) {
		t.Error(r, err)
	}
	if _, err := Import([]File{other}, Options{}); err == nil || !strings.Contains(err.Error(), "nothing was found that can be imported") {
		t.Error(err)
	}
	other.Found = false
	if _, err := Import([]File{known, other}, Options{}); err == nil || !strings.Contains(err.Error(), "package.json: is in no format that is known") {
		t.Error(err)
	}
}

// CAT-2: names are legal, and the same for the same, whatever they come from.
func TestNames(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.OneOf(rapid.String(), rapid.StringMatching(`[A-Za-z0-9_ ./-]{0,200}`)).Draw(t, "name")
		server, tool := serverName(name), toolName(name)
		if !quartermaster.ValidServerName(server) || server != serverName(name) || serverName(server) != server {
			t.Fatalf("server %q becomes %q", name, server)
		}
		if !quartermaster.ValidToolName(tool) || quartermaster.Reserved(tool) || tool != toolName(name) || toolName(tool) != tool {
			t.Fatalf("tool %q becomes %q", name, tool)
		}
		if secret := secretName(name); secret != "" && !quartermaster.ValidSecretName(secret) {
			t.Fatalf("secret %q becomes %q", name, secret)
		}
	})
	for name, want := range map[string]string{
		"files": "files", "My Server": "My-Server", "a__b": "a_b", "-x-": "x", "io.github.user/weather": "io-github-user-weather",
		"": "server-e3b0c442", "日本": "server-cf2abf0c", strings.Repeat("a", 50): strings.Repeat("a", 31) + "-" + hash(strings.Repeat("a", 50)),
	} {
		if got := serverName(name); got != want {
			t.Errorf("%q: got %q, want %q", name, got, want)
		}
	}
	for route, want := range map[string]string{
		"/": "get", "/pets": "get_pets", "/pets/{id}": "get_pets_by_id", "/pets/{id}/photos/{n}.jpg": "get_pets_by_id_photos_by_n_jpg", "/{a}{b}": "get_by_aby_b",
	} {
		if got := routeName("get", route); got != want {
			t.Errorf("%q: got %q, want %q", route, got, want)
		}
	}
}

// ${...} stands for a secret where one may stand, else for what --set says.
func TestPlaceholders(t *testing.T) {
	const file = `{"mcpServers": {"x": {"command": %q, "env": {"V": %q}}}}`
	tests := map[string]struct {
		text, env, says string
		needs           []string
	}{
		"reference":      {text: "${A_TOKEN}", env: "${A_TOKEN}", needs: []string{"A_TOKEN"}},
		"environment":    {text: "x-${env:A}-y", env: "x-${A}-y", needs: []string{"A"}},
		"two":            {text: "${A}${B}${A}", env: "${A}${B}${A}", needs: []string{"A", "B"}},
		"input":          {text: "${input:my-key}", env: "${MY_KEY}", needs: []string{"MY_KEY"}},
		"default":        {text: "${A:-b c}", env: "b c"},
		"empty default":  {text: "x${A:-}", env: "x"},
		"given":          {text: "${given}/${env:given}", env: "value/${given}", needs: []string{"given"}},
		"separator":      {text: "a${pathSeparator}b${/}c", env: "a/b/c"},
		"folder":         {text: "${workspaceFolder}", says: "--set workspaceFolder=VALUE"},
		"home":           {text: "${userHome}/x", says: "--set userHome=VALUE"},
		"setting":        {text: "${config:a.b}", says: "--set config:a.b=VALUE"},
		"no placeholder": {text: "$A $${} ${} ${a b} ${{x}}", env: "$A $${} ${} ${a b} ${{x}}"},
	}
	o := Options{Values: map[string]string{"given": "value"}}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			f := parsed(t, "f.json", fmt.Sprintf(file, "c", tt.text))
			r, err := Import([]File{f}, o)
			if tt.says != "" {
				if err == nil || !strings.Contains(err.Error(), tt.says) {
					t.Errorf("got %v, want %s", err, tt.says)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := compact(t, r.Document); !strings.Contains(got, `"env":{"V":`+compact(t, tt.env)+`}`) {
				t.Errorf("got %s, want %s", got, tt.env)
			}
			var needs []string
			for _, s := range r.Secrets {
				needs = append(needs, s.Name)
			}
			if !slices.Equal(needs, tt.needs) {
				t.Errorf("needs %q, want %q", needs, tt.needs)
			}
		})
	}
	// A command is shown to everybody on the machine: no secret may stand in it.
	if got := refused(t, fmt.Sprintf(file, "${A_TOKEN}", ""), o); !strings.Contains(got, "f.json:1: mcpServers.x.command: holds ${A_TOKEN}") {
		t.Error(got)
	}
}

// CAT-5: the fields of a server, in all the words that programs have for them.
func TestServerFields(t *testing.T) {
	tests := map[string]struct{ entry, want string }{
		"sse by its path":   {`{"url": "https://x.example.com/a/sse/"}`, `{"transport":"sse","url":"https://x.example.com/a/sse/"}`},
		"said otherwise":    {`{"type": "streamable-http", "url": "https://x.example.com/sse"}`, `{"transport":"http","url":"https://x.example.com/sse"}`},
		"Windsurf":          {`{"serverUrl": "https://x.example.com/mcp"}`, `{"transport":"http","url":"https://x.example.com/mcp"}`},
		"Gemini":            {`{"httpUrl": "https://x.example.com/mcp", "timeout": 5000}`, `{"transport":"http","url":"https://x.example.com/mcp","timeouts":{"request":"5s"}}`},
		"tcp":               {`{"transport": "tcp", "host": "h", "port": 9}`, `{"transport":"tcp","url":"tcp://h:9"}`},
		"websocket":         {`{"transport": "websocket", "endpoint": "h:9/mcp"}`, `{"transport":"ws","url":"ws://h:9/mcp"}`},
		"process":           {`{"transport": "process", "command": "x"}`, `{"transport":"stdio","command":"x"}`},
		"command as a list": {`{"command": ["a", "b"], "args": ["c"]}`, `{"transport":"stdio","command":"a","args":["b","c"]}`},
		"empty fields":      {`{"command": "a", "args": [], "env": {}, "headers": {}, "cwd": "", "url": null}`, `{"transport":"stdio","command":"a"}`},
		"disabled":          {`{"command": "a", "disabled": true}`, `{"transport":"stdio","command":"a","enabled":false}`},
		"enabled":           {`{"command": "a", "disabled": false, "enabled": true}`, `{"transport":"stdio","command":"a"}`},
		"ours": {
			`{"command": "a", "scope": "agent", "prefix": false, "lazy": true, "pin": true, "quarantine": true, "groups": [], "maxConcurrent": 3, "timeouts": {"startup": "5s", "request": 2.5}, "healthCheck": {"kind": "command", "command": ["x"], "interval": 5}}`,
			`{"transport":"stdio","command":"a","scope":"agent","prefix":false,"lazy":true,"pin":true,"quarantine":true,"groups":[],"maxConcurrent":3,"timeouts":{"startup":"5s","request":"2.5s"},"healthCheck":{"kind":"command","interval":"5s","command":["x"]}}`,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, _ := imported(t, "f.json", `{"mcpServers": {"x": `+tt.entry+`}}`, Options{})
			if want := `{"quartermaster":"v1","servers":{"x":` + tt.want + `}}`; got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		})
	}
}

// CAT-5: a tool is mapped to a server of the project, as soon as there is one.
func TestToolsOfKnownServers(t *testing.T) {
	const file = `{"tool": {"a": {"type": "mcp-tool", "mcp_tool_id": "analysis"}, "b": {"provider": "mcp", "server": "analysis"}, "c": {"type": "mcp-tool", "mcp-tool": "analysis__run"}}}`
	got, r := imported(t, "f.json", file, Options{Existing: Object{{Key: "servers", Value: Object{{Key: "analysis", Value: Object{}}}}}})
	want := `{"quartermaster":"v1","tools":{"a":{"provider":"mcp","server":"analysis"},"b":{"provider":"mcp","server":"analysis"},"c":{"provider":"mcp","server":"analysis","config":{"tool":"run"}}}}`
	if got != want || len(r.Warnings) != 0 {
		t.Errorf("got %s %q\nwant %s", got, r.Warnings, want)
	}
	got, r = imported(t, "f.json", file, Options{})
	if strings.Contains(got, `"provider":"mcp"`) || len(r.Warnings) != 3 || !strings.Contains(r.Warnings[0], `there is no server "analysis"; import it and then this file again`) {
		t.Errorf("got %s %q", got, r.Warnings)
	}
}

// One import tells all that is wrong, but not more than anybody would read.
func TestFaultsAreBounded(t *testing.T) {
	var b strings.Builder
	b.WriteString(`{"mcpServers": {"ok": {"command": "x"}`)
	for i := range 500 {
		fmt.Fprintf(&b, `, "s%d": {}`, i)
	}
	_, err := Import([]File{parsed(t, "f.json", b.String()+"}}")}, Options{})
	e, ok := err.(*quartermaster.Error) //nolint:errorlint // it must be this very one
	if !ok || len(e.Faults) != maxFaults || !strings.Contains(e.Message, "400 more") {
		t.Errorf("%d faults: %.200v", len(e.Faults), err)
	}
	b.Reset()
	b.WriteString(`{"mcpServers": {"ok": {"command": "x"}`)
	for i := range 500 {
		fmt.Fprintf(&b, `, "s %d": {"command": "x"}`, i)
	}
	r, err := Import([]File{parsed(t, "f.json", b.String()+"}}")}, Options{})
	if err != nil || len(r.Warnings) != maxWarnings+1 || r.Warnings[maxWarnings] != "and 300 warnings more" {
		t.Errorf("%d warnings, %v", len(r.Warnings), err)
	}
}

// What was read is never changed: a file may be imported again.
func TestFilesStay(t *testing.T) {
	for _, text := range []string{
		`{"tool": {"a": {"type": "mcp-tool", "mcp-tool": "w"}, "b": {"type": "prompt", "config": {"x": 1}, "y": 2}}, "mcp": {"w": {"url": "https://w.example.com", "auth-token": "x"}}, "groups": {"g": ["a", "b"]}}`,
		`{"kind": "mcp", "id": "a", "mcp": {"transport": "ws", "url": "ws://x"}, "healthCheck": true}`,
		`{"openapi": "3.0.0", "servers": [{"url": "https://x.example.com"}], "paths": {"/a/{b}": {"post": {"parameters": [{"name": "b", "in": "path", "schema": {"type": "string", "nullable": true}}], "requestBody": {"content": {"application/json": {"schema": {"type": "object", "properties": {"b": {"minimum": 1, "exclusiveMinimum": true, "readOnly": true}, "c": {}}}}}}}}}}`,
	} {
		f := parsed(t, "f.json", text)
		first, err := Import([]File{f}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if got := compact(t, f.Value); got != compact(t, parsed(t, "f.json", text).Value) {
			t.Errorf("%s became %s", text, got)
		}
		again, err := Import([]File{f, f}, Options{})
		if err != nil || compact(t, again.Document) != compact(t, first.Document) {
			t.Errorf("%v: %s, then %s", err, compact(t, first.Document), compact(t, again.Document))
		}
	}
}

// checkTools makes sure that what became of an OpenAPI document can be called:
// its schemas are valid, and every argument has one place.
func checkTools(t testing.TB, r *Result) {
	t.Helper()
	body := compact(t, r.Document)
	var doc quartermaster.Document
	if err := json.Unmarshal([]byte(body), &doc); err != nil {
		t.Fatal(err)
	}
	for name, tool := range doc.Tools {
		if !quartermaster.ValidToolName(name) {
			t.Errorf("%q is no name", name)
		}
		checkArguments(t, name, tool)
	}
}

type httpConfig struct {
	Method, URL string
	Parameters  []struct{ Name, In, Argument string }
	Body        *struct {
		ContentType, Argument string
		Fields                []struct{ Name, Argument string }
	}
}

func checkArguments(t testing.TB, name string, tool quartermaster.Tool) {
	t.Helper()
	for _, s := range []json.RawMessage{tool.InputSchema, tool.OutputSchema} {
		if len(s) > maxSchema+1024 {
			t.Errorf("%s has a schema of %d bytes", name, len(s))
		}
		if len(s) > 0 {
			if err := schema.Check(s); err != nil && !strings.Contains(err.Error(), "regex") {
				t.Errorf("%s: %v: %.2000s", name, err, s)
			}
		}
	}
	var in struct {
		Properties map[string]json.RawMessage
		Required   []string
	}
	var config httpConfig
	if err := json.Unmarshal(tool.InputSchema, &in); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(tool.Config, &config); err != nil {
		t.Fatal(err)
	}
	var placed []string
	for _, p := range config.Parameters {
		placed = append(placed, p.Argument)
	}
	if b := config.Body; b != nil {
		if b.Argument != "" {
			placed = append(placed, b.Argument)
		}
		for _, f := range b.Fields {
			placed = append(placed, f.Argument)
		}
	}
	for _, argument := range placed {
		if _, ok := in.Properties[argument]; !ok || !legalArgument.MatchString(argument) {
			t.Errorf("%s: argument %q is not in %s", name, argument, tool.InputSchema)
		}
	}
	slices.Sort(placed)
	if len(slices.Compact(placed)) != len(in.Properties) {
		t.Errorf("%s: %d arguments have %q for places", name, len(in.Properties), placed)
	}
	for _, v := range pathVariable.FindAllStringSubmatch(config.URL, -1) {
		if !slices.ContainsFunc(config.Parameters, func(p struct{ Name, In, Argument string }) bool { return p.In == "path" && p.Name == v[1] }) {
			t.Errorf("%s: nothing fills {%s} of %s", name, v[1], config.URL)
		}
	}
}

// CAT-5: an import leaves alone what people have set beside the file.
func TestImportKeepsSettings(t *testing.T) {
	now := parsed(t, "now", `{"servers": {"x": {"transport": "stdio", "command": "old", "pin": true, "enabled": false, "timeouts": {"startup": "1s", "request": "1s"}, "groups": ["ops"], "env": {"OLD": "1"}}},
		"tools": {"a": {"groups": ["ops"], "enabled": false, "description": "old"}, "b": {"config": {"builtin": "echo"}, "timeout": "5s"}, "c": {"provider": "mcp", "server": "x"}}}`).Value.(Object)
	got, r := imported(t, "f.json", `{"mcpServers": {"x": {"command": "new", "timeout": 5}}}`, Options{Existing: now})
	want := `{"quartermaster":"v1","servers":{"x":{"transport":"stdio","command":"new","timeouts":{"request":"5s","startup":"1s"},"enabled":false,"pin":true,"groups":["ops"]}}}`
	if got != want || len(r.Warnings) != 1 || !strings.Contains(r.Warnings[0], "server x stays disabled") {
		t.Errorf("got %s %q\nwant %s", got, r.Warnings, want)
	}
	got, r = imported(t, "f.json", `{"tool": {"a": {"type": "prompt", "group": ["web"]}, "b": {"type": "prompt", "template": "t"}, "c": {"type": "mcp-tool", "mcp_tool_id": "gone"}}}`, Options{Existing: now})
	want = `{"quartermaster":"v1","tools":{"a":{"groups":["web"],"config":{"type":"prompt"},"provider":"native","enabled":false},` +
		`"b":{"config":{"builtin":"echo"},"timeout":"5s"},"c":{"provider":"mcp","server":"x"}}}`
	if got != want || len(r.Warnings) != 2 {
		t.Errorf("got %s %q\nwant %s", got, r.Warnings, want)
	}
	// A project file says everything.
	got, _ = imported(t, "f.json", `{"quartermaster": "v1", "servers": {"x": {"transport": "stdio", "command": "new"}}}`, Options{Existing: now})
	if want := `{"quartermaster":"v1","servers":{"x":{"transport":"stdio","command":"new"}}}`; got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

// SEC-3: where nobody would hide a secret it is refused, and not repeated.
func TestOpenSecrets(t *testing.T) {
	for text, at := range map[string]string{
		`{"tool": {"a": {"provider": "external", "config": {"headers": {"Authorization": "Bearer hunter2"}}}}}`:                    "tool.a.config.headers.Authorization",
		`{"tool": {"a": {"type": "prompt", "api_key": "hunter2"}}}`:                                                                "tool.a.api_key",
		`{"tool": {"a": {"type": "prompt", "x": ["ghp_hunter2hunter2"]}}}`:                                                         "tool.a.x[0]",
		`{"kind": "builtin", "id": "a", "builtinPolicy": {"name": "shell_exec", "env": {"TOKEN": "hunter2"}}}`:                     "builtinPolicy.env.TOKEN",
		`{"instructions": "x", "id": "a", "tools": [], "memory": {"url": "postgres://u:hunter2@h/db"}}`:                            "memory.url",
		`{"openapi": "3.0.0", "servers": [{"url": "https://u:hunter2@x.example.com"}], "paths": {"/a": {"get": {}}}}`:              "servers[0].url",
		`{"tool": {"a": {"type": "prompt", "password": "${A}hunter2", "b": "Bearer hunter2 ${A}"}}}`:                               "tool.a.b",
		`{"tool": {"a": {"type": "mcp-tool", "mcp-tool": "w"}}, "mcp": {"w": {"url": "u", "auth-token": {"hunter2": "hunter2"}}}}`: "mcp.w.auth-token",
	} {
		if got := refused(t, text, Options{}); !strings.Contains(got, ": "+at+": ") || strings.Contains(got, "hunter2") {
			t.Errorf("%s: got %s", text, got)
		}
	}
	imported(t, "f.json", `{"tool": {"a": {"provider": "external", "config": {"auth": "Bearer ${A}", "token_url": "https://x.example.com", "x": "`+strings.Repeat("y", 40_000)+`"}}}}`, Options{})
}
