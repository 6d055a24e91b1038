package server

import (
	"bytes"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"quartermaster"
)

// REST-1: the document says of every operation what the server does.
func TestOpenAPIIsTrue(t *testing.T) {
	r := newRest(t, "")
	var doc map[string]any
	r.do("GET", "/openapi.json", nil).ok(200, &doc)
	schemas := at(t, doc, "components", "schemas")
	checkRefs(t, doc, schemas)
	for name, s := range schemas {
		properties, _ := s.(map[string]any)["properties"].(map[string]any)
		required, _ := s.(map[string]any)["required"].([]any)
		for _, field := range required {
			if properties[field.(string)].(map[string]any)["readOnly"] == true {
				t.Errorf("%s: %s is read only and required", name, field)
			}
		}
		if !strings.HasSuffix(name, "Patch") {
			continue
		}
		for field, p := range properties {
			types, _ := p.(map[string]any)["type"].([]any)
			words, enum := p.(map[string]any)["enum"].([]any)
			if !slices.Contains(types, any("null")) || slices.Contains(types, any("")) || enum && !slices.Contains(words, nil) {
				t.Errorf("%s.%s does not take null: %v", name, field, p)
			}
		}
	}
	for path, operations := range at(t, doc, "paths") {
		for method, op := range operations.(map[string]any) {
			t.Run(method+" "+path, func(t *testing.T) { checkOperation(t, path, method, op.(map[string]any)) })
		}
	}
	// What is declared is what comes.
	success := func(a answer, path string, want ...string) {
		t.Helper()
		var got []string
		method := strings.ToLower(strings.Fields(a.what)[0])
		for status := range at(t, doc, "paths", path, method, "responses") {
			if status < "300" {
				got = append(got, status)
			}
		}
		slices.Sort(got)
		if !slices.Equal(got, want) || !slices.Contains(want, strconv.Itoa(a.status)) {
			t.Errorf("%s: declared %v, got %d %s, want %v", a.what, got, a.status, a.body, want)
		}
	}
	success(r.do("POST", "/api/v1/projects", `{"id":"other"}`), api+"/projects", "201")
	success(r.do("POST", "tools", `{"name":"x"}`), project+"/tools", "201")
	success(r.do("PATCH", "tools/x", `{"groups":null}`), project+"/tools/{tool}", "200")
	for range 2 {
		success(r.do("PUT", "servers/s", `{"transport":"stdio","command":"x"}`), project+"/servers/{server}", "200", "201")
		success(r.do("PUT", "users/u", `{"groups":[]}`), project+"/users/{user}", "200", "201")
		success(r.do("PUT", "agents/a", `{}`), project+"/agents/{agent}", "200", "201")
		success(r.do("PUT", "secrets/S", `{"value":"v"}`), project+"/secrets/{secret}", "200", "201")
		success(r.do("PUT", "policies/p", `{"rego":"package p"}`), project+"/policies/{policy}", "200", "201")
		success(r.do("POST", "grants", `{"subject":"user:u","relation":"executor","tool":"x"}`), project+"/grants", "200", "201")
	}
	success(r.do("PATCH", "grants", `{}`), project+"/grants", "200")
	success(r.do("POST", "whatif", `{"quartermaster":"v1","revoke":[]}`), project+"/whatif", "200")
	success(r.do("DELETE", "grants?subject=user:u", nil), project+"/grants", "204")
	success(r.do("DELETE", "policies/p", nil), project+"/policies/{policy}", "204")
	success(r.do("PUT", "bindings", `{"agentId":"a","toolIds":[]}`), project+"/bindings", "200")
	success(r.do("PATCH", "bindings", `{"agentId":"a"}`), project+"/bindings", "200")
	success(r.do("POST", "resolve", `{"agent":"a"}`), project+"/resolve", "200")
	success(r.do("POST", "apply", `{"quartermaster":"v1"}`), project+"/apply", "200")
	success(r.do("DELETE", "tools/x", nil), project+"/tools/{tool}", "204")
}

// at walks down into a document.
func at(t *testing.T, doc map[string]any, path ...string) map[string]any {
	t.Helper()
	for _, step := range path {
		next, ok := doc[step].(map[string]any)
		if !ok {
			t.Fatalf("there is no %s in %v", step, path)
		}
		doc = next
	}
	return doc
}

func checkRefs(t *testing.T, v any, schemas map[string]any) {
	t.Helper()
	switch v := v.(type) {
	case map[string]any:
		if ref, ok := v["$ref"].(string); ok && schemas[strings.TrimPrefix(ref, refPrefix)] == nil {
			t.Errorf("%s leads nowhere", ref)
		}
		for _, inner := range v {
			checkRefs(t, inner, schemas)
		}
	case []any:
		for _, inner := range v {
			checkRefs(t, inner, schemas)
		}
	}
}

func checkOperation(t *testing.T, path, method string, op map[string]any) {
	responses := at(t, op, "responses")
	want := []string{"400", "403", "422", "500", "503"}
	if strings.Contains(path, "{") {
		want = append(want, "404")
	}
	if _, ok := op["requestBody"]; ok {
		want = append(want, "413", "415")
		types := at(t, op, "requestBody", "content")
		ref, _ := at(t, types, "application/json", "schema")["$ref"].(string)
		if _, ok := types["application/merge-patch+json"]; ok != strings.HasSuffix(ref, "Patch") {
			t.Errorf("%s is sent as %v", ref, types)
		}
	}
	succeeds := false
	for status, response := range responses {
		succeeds = succeeds || status[0] == '2'
		if status[0] != '4' && status[0] != '5' {
			continue
		}
		if ref := at(t, response.(map[string]any), "content", "application/problem+json", "schema")["$ref"]; ref != refPrefix+"Problem" {
			t.Errorf("%s answers %v", status, ref)
		}
	}
	if !succeeds {
		t.Error("never succeeds")
	}
	for _, status := range want {
		if responses[status] == nil {
			t.Errorf("%s is not declared", status)
		}
	}
	if method == "delete" && (responses["204"] == nil || responses["409"] == nil) {
		t.Errorf("declared are %v", responses)
	}
}

// CAT-5: editors get a JSON Schema that takes every project file and finds a
// typo.
func TestProjectSchema(t *testing.T) {
	r := newRest(t, "")
	a := r.do("GET", "/schemas/project.json", nil)
	var doc any
	a.ok(200, &doc)
	for _, word := range []string{`"availableInStates"`, `"transport"`, `"bindings"`, `"maxDepth"`} {
		if !bytes.Contains(a.body, []byte(word)) {
			t.Errorf("%s is missing", word)
		}
	}
	if bytes.Contains(a.body, []byte(`"createdAt"`)) || bytes.Contains(a.body, []byte("components")) {
		t.Errorf("more than a file holds: %s", a.body)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("project.json", doc); err != nil {
		t.Fatal(err)
	}
	schema, err := compiler.Compile("project.json")
	if err != nil {
		t.Fatal(err)
	}
	check := func(file []byte) error {
		v, err := jsonschema.UnmarshalJSON(bytes.NewReader(file))
		if err != nil {
			t.Fatal(err)
		}
		return schema.Validate(v)
	}
	example, err := os.ReadFile("../../examples/quickstart.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if example, err = yaml.YAMLToJSON(example); err != nil {
		t.Fatal(err)
	}
	if err := check(example); err != nil {
		t.Errorf("the example: %v", err)
	}
	r.do("POST", "apply", string(example)).ok(200, nil)
	r.do("POST", "apply", projectFile).ok(200, nil)
	r.do("PUT", "users/alice", `{"groups":["default"],"roles":["tool_user"]}`).ok(201, nil)
	r.do("PUT", "policies/access", `{"rego":"package quartermaster.tools\n\nallow := true\n"}`).ok(201, nil)
	r.do("PATCH", "grants", `{"add":[{"subject":"user:alice","relation":"executor","tool":"echo"},{"subject":"user:eve","relation":"admin","resource":"project"}]}`).ok(200, nil)
	r.do("PUT", "servers/web", `{"transport":"http","url":"https://x","headers":{"A":"b"},"timeouts":{"startup":"3s"},
		"healthCheck":{"kind":"ping","interval":"5s"},"maxConcurrent":3,"groups":[],"enabled":false,"prefix":false}`).ok(201, nil)
	r.do("PUT", "agents/full", `{"name":"n","tools":["*"],"allowed":["a*"],"aliases":{"r":"echo"},"maxDepth":3,"maxSteps":4,"timeout":"5m",
		"visibility":"internal","flow":"loop","servers":["web"],"discovery":"search","memory":{"k":1},"fixed":true}`).ok(201, nil)
	export := r.do("GET", "export", nil)
	export.ok(200, nil)
	if err := check(export.body); err != nil {
		t.Errorf("an export: %v", err)
	}
	for _, bad := range []string{
		`{"quartermaster":"v1","tool":{}}`, `{"tools":{}}`, `{"quartermaster":"v1","tools":{"x":{"describe":"a"}}}`,
		`{"quartermaster":"v1","agents":{"a":{"tools":"*"}}}`, `{"quartermaster":"v1","servers":{"s":{"command":"x"}}}`,
	} {
		if check([]byte(bad)) == nil {
			t.Errorf("passes: %s", bad)
		}
	}
}

// REST-1, SEC-3: a browser takes every answer for what it is, frames no page
// and lets none reach beyond the server.
func TestPagesAreGuarded(t *testing.T) {
	r := newRest(t, "")
	for _, path := range []string{"/", "/docs/", "/docs/swagger-ui-bundle.js", "/api/v1/projects", "/openapi.json", "/schemas/project.json", "/healthz", "/metrics", "/nothing", "/docs/nothing"} {
		a := r.do("GET", path, nil)
		if a.header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s may be sniffed", path)
		}
		policy := a.header.Get("Content-Security-Policy")
		if strings.HasPrefix(a.header.Get("Content-Type"), "text/html") && (!strings.Contains(policy, "default-src 'none'") ||
			!strings.Contains(policy, "frame-ancestors 'none'") || strings.Contains(policy, "script-src 'unsafe")) {
			t.Errorf("%s: policy %q", path, policy)
		}
	}
	if policy := r.do("GET", "/docs/", nil).header.Get("Content-Security-Policy"); strings.Count(policy, "'sha256-") != 2 {
		t.Errorf("the scripts in the page are not allowed: %s", policy)
	}
	r.do("GET", "/docs/nothing", nil).fails(404, quartermaster.CodeNotFound, "")
	r.do("GET", "/docs/swagger-ui.css", nil).ok(200, nil)
}
