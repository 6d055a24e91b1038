package server

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"quartermaster"
)

// CAT-1, REST-2: every field of a tool goes in and comes out.
func TestToolFields(t *testing.T) {
	onBoth(t, func(t *testing.T, r rest) {
		r.do("PUT", "servers/files", `{"transport":"stdio","command":"npx"}`).ok(201, nil)
		full := `{"name":"files__read_file","displayName":"Read","description":"Reads a file","category":"files","provider":"mcp","server":"files",
			"inputSchema":{"type":"object","properties":{"z":{"type":"string"},"a":{"type":"integer"}},"required":["z"]},
			"outputSchema":{"type":"object"},"annotations":{"readOnlyHint":true,"x-own":1},"config":{"k":[1,2]},"enabled":false,
			"groups":["read-only","basic"],"state":"analysis","availableInStates":["undefined","research"],"timeout":"1m30s"}`
		answer := r.do("POST", "tools", full)
		var created, read map[string]any
		answer.ok(201, &created)
		r.do("GET", "tools/"+created["id"].(string), nil).ok(200, &read)
		if fmt.Sprint(created) != fmt.Sprint(read) {
			t.Errorf("created %v\nread %v", created, read)
		}
		if got := answer.header.Get("Location"); !strings.HasSuffix(got, "/tools/"+created["id"].(string)) {
			t.Errorf("Location %q", got)
		}
		var sent map[string]any
		if err := json.Unmarshal([]byte(full), &sent); err != nil {
			t.Fatal(err)
		}
		for k, v := range sent {
			if fmt.Sprint(read[k]) != fmt.Sprint(v) {
				t.Errorf("%s: sent %v, read %v", k, v, read[k])
			}
			delete(read, k)
		}
		for _, k := range []string{"id", "available", "unavailableReason", "version", "createdAt", "updatedAt"} {
			if _, ok := read[k]; !ok {
				t.Errorf("%s is missing", k)
			}
			delete(read, k)
		}
		if len(read) > 0 {
			t.Errorf("unexpected fields: %v", read)
		}
		// CAT-2: by id, by name, as @server/tool.
		for _, ref := range []string{"files__read_file", "@files%2Fread_file", created["id"].(string)} {
			r.do("GET", "tools/"+ref, nil).ok(200, nil)
		}
		r.do("GET", "tools/@files%2Fnone", nil).fails(404, quartermaster.CodeToolNotFound, "")
		// An unchanged schema keeps the order of its keys: models read it.
		if !strings.Contains(string(answer.body), `"properties":{"z":{"type":"string"},"a":`) {
			t.Errorf("schema was reordered: %s", answer.body)
		}
	})
}

// CAT-1: absent is not empty, null is absent, and PATCH is a merge patch (CAT-3).
func TestToolPatch(t *testing.T) {
	r := newRest(t, "")
	tool := r.tool("x", "groups", []string{}, "availableInStates", []string{}, "annotations", map[string]any{"title": "T", "readOnlyHint": true})
	if tool.Groups == nil || tool.AvailableInStates == nil || tool.Version != 1 || !tool.Enabled || !tool.Available {
		t.Errorf("%+v", tool)
	}
	patch := func(body string) (next quartermaster.Tool) {
		t.Helper()
		r.do("PATCH", "tools/x", body).ok(200, &next)
		return next
	}
	next := patch(`{"groups":null,"availableInStates":null,"annotations":{"title":null},"description":"new"}`)
	if next.Groups != nil || next.AvailableInStates != nil || string(next.Annotations) != `{"readOnlyHint":true}` || next.Description != "new" || next.Version != 2 {
		t.Errorf("%+v", next)
	}
	if again := patch(`{"description":"new"}`); again.Version != 2 || !again.UpdatedAt.Equal(next.UpdatedAt) {
		t.Errorf("nothing changed, but the version is %d", again.Version)
	}
	if moved := patch(`{"name":"y"}`); moved.Name != "y" || moved.ID != tool.ID || moved.Version != 3 {
		t.Errorf("%+v", moved)
	}
	r.do("GET", "tools/x", nil).fails(404, quartermaster.CodeToolNotFound, "")
	r.tool("x") // the name is free again
	for body, at := range map[string]string{
		`{"name":null}`: "body.name", `{"name":"a b"}`: "body.name", `{"name":"find_tools"}`: "body.name",
		`{"enabled":"yes"}`: "body.enabled", `{"nonsense":null}`: "body.nonsense", `{"groups":[""]}`: "body.groups[0]",
		`{"inputSchema":{"type":"banana"}}`: "body.inputSchema", `{"inputSchema":[]}`: "body.inputSchema",
		`{"timeout":"soon"}`: "body.timeout", `{"server":"none"}`: "body.server", `[]`: "body",
	} {
		r.do("PATCH", "tools/y", body).fails(422, quartermaster.CodeInvalidRequest, at)
	}
	r.do("PATCH", "tools/y", `{"name":"x"}`).fails(409, quartermaster.CodeAlreadyExists, "")
	r.do("PATCH", "tools/y", `{"id":"`+quartermaster.NewID()+`","version":99,"available":false}`).ok(200, &next) // read only: ignored
	if next.ID != tool.ID || next.Version != 3 {
		t.Errorf("%+v", next)
	}
	r.do("PATCH", "tools/none", `{}`).fails(404, quartermaster.CodeToolNotFound, "")
}

// CAT-2, REST-1: what cannot be a tool is refused with the field's name.
func TestToolInput(t *testing.T) {
	r := newRest(t, "")
	for body, at := range map[string]string{
		`{}`:             "body.name",
		`{"name":""}`:    "body.name",
		`{"name":"a b"}`: "body.name",
		`{"name":"ä"}`:   "body.name",
		`{"name":"` + strings.Repeat("x", 129) + `"}`:                   "body.name",
		`{"name":"spawn_agents"}`:                                       "body.name",
		`{"name":"call_tool"}`:                                          "body.name",
		`{"name":"x","provider":"ftp"}`:                                 "body.provider",
		`{"name":"x","provider":"mcp"}`:                                 "body.server",
		`{"name":"x","server":"none"}`:                                  "body.server",
		`{"name":"x","provider":"http","server":"s"}`:                   "body.server",
		`{"name":"x","inputSchema":"{}"}`:                               "body.inputSchema",
		`{"name":"x","inputSchema":{"type":"string"}}`:                  "body.inputSchema.type",
		`{"name":"x","inputSchema":{"$ref":"file:///etc/passwd"}}`:      "body.inputSchema",
		`{"name":"x","outputSchema":{"type":7}}`:                        "body.outputSchema",
		`{"name":"x","config":[]}`:                                      "body.config",
		`{"name":"x","config":{"builtin":7}}`:                           "body.config.builtin",
		`{"name":"x","groups":"a"}`:                                     "body.groups",
		`{"name":"x","groups":["a",null]}`:                              "body.groups[1]",
		`{"name":"x","timeout":30}`:                                     "body.timeout",
		`{"name":"x","timeout":"-3s"}`:                                  "body.timeout",
		`{"name":"x","description":"a\u0000b"}`:                         "body.description",
		`{"name":"x","Description":"a"}`:                                "body.Description",
		`{"name":"x","displayName":"` + strings.Repeat("x", 256) + `"}`: "body.displayName",
	} {
		r.do("POST", "tools", body).fails(422, quartermaster.CodeInvalidRequest, at)
	}
	for body, at := range map[string]string{
		`{"name":"x","config":{"a":1,"b":{"c":1,"c":2}}}`:     "body.config.b.c",
		`{"name":"x","config":{"n":1e999}}`:                   "body.config.n",
		`{"name":"x","config":{"n":[0,-1e400]}}`:              "body.config.n[1]",
		`{"name":"x","description":"a\ud800"}`:                "body.description",
		`{"name":"x","description":"\udc00\ud800"}`:           "body.description",
		`{"name":"x","groups":["a","\ud83d\ud83d\ude00"]}`:    "body.groups[1]",
		`{"name":"x","config":{"a":{"\uDBFF!":1}}}`:           "body.config.a",
		`{"name":"x","description":"\\\\ud800 \ufffd\ud800"}`: "body.description",
	} {
		r.do("POST", "tools", body).fails(400, quartermaster.CodeMalformedRequest, at)
	}
	if p := r.page("tools"); names(p) != builtinNames {
		t.Errorf("something was created: %s", names(p))
	}
	r.tool("echo2")
	r.do("POST", "tools", `{"name":"echo2"}`).fails(409, quartermaster.CodeAlreadyExists, "")
	r.do("POST", "tools", `{"name":"echo"}`).fails(409, quartermaster.CodeAlreadyExists, "")
	// What is no half pair stays, and so does a number, however it is written.
	var odd quartermaster.Tool
	r.do("POST", "tools", `{"name":"odd","description":"\ud83d\ude00 \ufffd \\ud800","config":{"n":1.50e-400}}`).ok(201, &odd)
	if odd.Description != "\U0001F600 \uFFFD \\ud800" || string(odd.Config) != `{"n":1.50e-400}` {
		t.Errorf("%q %s", odd.Description, odd.Config)
	}
	// A name may look like anything the grammar allows, even like an id.
	for _, name := range []string{".", "..", "-", "_", quartermaster.NewID(), strings.Repeat("x", 128)} {
		tool := r.tool(name)
		r.do("GET", "tools/"+tool.ID, nil).ok(200, nil)
		r.do("GET", "tools/"+strings.ReplaceAll(url.PathEscape(name), ".", "%2E"), nil).ok(200, nil)
	}
}

// CAT-3, NAT-0, GATE-3: what every project has stays, but can be switched off.
func TestBuiltinTools(t *testing.T) {
	onBoth(t, func(t *testing.T, r rest) {
		r.do("POST", "/api/v1/projects", `{"id":"other"}`).ok(201, nil)
		for _, project := range []string{"default", "other"} {
			base := "/api/v1/projects/" + project + "/"
			if p := r.page(base + "tools"); names(p) != builtinNames {
				t.Errorf("%s has %s", project, names(p))
			}
			r.do("DELETE", base+"tools/echo", nil).fails(409, quartermaster.CodeNotDeletable, "")
			r.do("PATCH", base+"tools/echo", `{"description":"mine"}`).fails(422, quartermaster.CodeInvalidRequest, "body.description")
			r.do("PATCH", base+"tools/echo", `{"name":"mine"}`).fails(422, quartermaster.CodeInvalidRequest, "body.name")
			r.do("PATCH", base+"tools/echo", `{"config":{"builtin":"time_now"}}`).fails(422, quartermaster.CodeInvalidRequest, "body.config.builtin")
			var tool quartermaster.Tool
			r.do("PATCH", base+"tools/echo", `{"enabled":false,"groups":["x"]}`).ok(200, &tool)
			if tool.Enabled || !slices.Equal(tool.Groups, []string{"x"}) || tool.Version != 2 {
				t.Errorf("%+v", tool)
			}
		}
		var tool quartermaster.Tool
		r.do("GET", "tools/spawn_agents", nil).ok(200, &tool)
		if tool.Available || !strings.Contains(tool.UnavailableReason, "spawn_agents") {
			t.Errorf("%+v", tool)
		}
	})
}

// CAT-3: whether its server is up does not matter for a tool to be active.
func TestServersAndTheirTools(t *testing.T) {
	onBoth(t, func(t *testing.T, r rest) {
		r.do("PUT", "servers/files", `{"transport":"process","command":"npx","args":["-y","x"],"groups":["read"]}`).ok(201, nil)
		var s quartermaster.Server
		r.do("PUT", "servers/files", `{"transport":"stdio","command":"npx","groups":["read"],"timeouts":{"startup":"3s"},"healthCheck":{"kind":"ping","interval":"5s"}}`).ok(200, nil)
		r.do("GET", "servers/files", nil).ok(200, &s)
		if s.Transport != "stdio" || !s.Enabled || !s.Prefix || s.Scope != "project" || s.Status == nil || s.Status.Health != "red" || s.Status.Reason == "" || s.CreatedAt.Equal(s.UpdatedAt) {
			t.Errorf("%+v %+v", s, s.Status)
		}
		tool := r.tool("files__read", "provider", "mcp", "server", "files", "config", nil)
		if tool.Available || tool.UnavailableReason == "" {
			t.Errorf("%+v", tool)
		}
		r.bind("a", tool.ID)
		if p := r.page("bindings/bound?agentId=a"); names(p) != "files__read" {
			t.Errorf("bound: %s", names(p))
		}
		// WF-4: the server's groups are those of its tools.
		var groups quartermaster.Page[quartermaster.Group]
		r.do("GET", "groups", nil).ok(200, &groups)
		if fmt.Sprint(groups.Content) != "[{default [echo list_available_agents spawn_agents time_now]} {read [files__read]}]" {
			t.Errorf("%v", groups.Content)
		}
		r.do("GET", "servers/files", nil).ok(200, &s)
		if s.Status.Tools != 1 {
			t.Errorf("%+v", s.Status)
		}
		r.do("POST", "servers/files/restart", nil).fails(503, quartermaster.CodeUnavailable, "")
		r.do("POST", "servers/none/restart", nil).fails(404, quartermaster.CodeNotFound, "")
		r.do("DELETE", "servers/files", nil).ok(204, nil)
		r.do("DELETE", "servers/files", nil).fails(404, quartermaster.CodeNotFound, "")
		r.do("GET", "tools/files__read", nil).fails(404, quartermaster.CodeToolNotFound, "")
		if p := r.page("bindings/bound?agentId=a"); p.TotalElements != 0 {
			t.Errorf("bound: %s", names(p))
		}
		for body, at := range map[string]string{
			`{}`:                                                   "body.transport",
			`{"transport":"carrier-pigeon"}`:                       "body.transport",
			`{"transport":"stdio"}`:                                "body.command",
			`{"transport":"http"}`:                                 "body.url",
			`{"transport":"http","url":"ftp://x"}`:                 "body.url",
			`{"transport":"ws","url":"http://x"}`:                  "body.url",
			`{"transport":"http","url":"http://u:p@x/"}`:           "body.url",
			`{"transport":"stdio","command":"x","url":"http://x"}`: "body.url",
			`{"transport":"stdio","command":"x","healthCheck":{"kind":"ping","interval":"10ms"}}`: "body.healthCheck.interval",
			`{"transport":"http","url":"http://x","headers":{"A":"b\r\nC: d"}}`:                   "body.headers.A",
			`{"transport":"stdio","command":"x","env":{"A=B":"c"}}`:                               "body.env",
			`{"transport":"stdio","command":"x","name":"other"}`:                                  "body.name",
			`{"transport":"stdio","command":"x","surprise":1}`:                                    "body.surprise",
		} {
			r.do("PUT", "servers/s", body).fails(422, quartermaster.CodeInvalidRequest, at)
		}
		for _, name := range []string{"a__b", "-a", "a-", strings.Repeat("x", 41), "a.b", "%20"} {
			r.do("PUT", "servers/"+name, `{"transport":"stdio","command":"x"}`).fails(422, quartermaster.CodeInvalidRequest, "path.server")
		}
	})
}

// WF-4: states and the tools in each.
func TestStates(t *testing.T) {
	r := newRest(t, "")
	r.tool("query", "state", "analysis", "availableInStates", []string{"undefined", "research"})
	r.tool("never", "availableInStates", []string{})
	r.tool("always", "availableInStates", []string{"*"})
	var states quartermaster.Page[quartermaster.State]
	r.do("GET", "states", nil).ok(200, &states)
	got := map[string]quartermaster.State{}
	for _, s := range states.Content {
		got[s.Name] = s
	}
	if len(got) != 3 || !slices.Equal(got["analysis"].EnteredBy, []string{"query"}) || slices.Contains(got["analysis"].Tools, "query") ||
		!slices.Contains(got["research"].Tools, "query") || !slices.Contains(got["undefined"].Tools, "always") || slices.Contains(got["undefined"].Tools, "never") {
		t.Errorf("%+v", got)
	}
}
