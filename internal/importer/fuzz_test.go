package importer

import (
	"encoding/json"
	"strings"
	"testing"

	"quartermaster"
)

// seeds are one small file of every format.
var seeds = []string{
	`{"mcpServers": {"a b": {"command": ["x", "${A:-b}"], "env": {"T": "${input:x}", "N": 1}, "timeout": 5e3, "healthCheck": true}}, "projects": {"p": {"mcpServers": {"x": {}}}}}`,
	`{"inputs": [{"id": "x", "password": true}], "servers": {"x": {"type": "http", "url": "https://x/sse", "headers": {"A": "Bearer ${input:x}"}}}}`,
	`{"tool": {"a": {"type": "mcp-tool", "mcp-tool": "@s/t", "arguments": [{"name": "n", "type": "number"}]}}, "groups": {"g": ["a"]}, "mcp": {"s": {"url": "u", "auth-token": "t"}}}`,
	`{"id": "w", "instructions": "x", "model": {"name": "m"}, "tools": {"use": ["a"], "aliases": {"b": "@c/d"}}, "memory": true, "flow": {"type": "loop"}, "mcpServers": {"c": {"command": "x"}}}`,
	`{"kind": "builtin", "id": "x", "builtinPolicy": {"name": "shell_exec", "commands": ["a"], "timeout": 5}}`,
	`{"kind": "mcp", "name": "x", "mcp": {"transport": "tcp", "endpoint": "h:1"}, "lazy": true}`,
	`{"openapi": "3.0.0", "servers": [{"url": "https://{v}.x", "variables": {"v": {"default": 1}}}], "security": [{"k": []}], "paths": {"/a/{b}": {"parameters": [{"$ref": "#/components/parameters/P"}], "post": {"requestBody": {"required": true, "content": {"application/json": {"schema": {"$ref": "#/components/schemas/S"}}}}, "responses": {"200": {"content": {"a/b+json": {"schema": {"$ref": "#/components/schemas/S"}}}}}}}}, "components": {"parameters": {"P": {"name": "b", "in": "path", "style": "label", "schema": {"nullable": true, "type": "string"}}}, "schemas": {"S": {"type": "object", "required": ["s"], "properties": {"s": {"$ref": "#/components/schemas/S"}, "t": {"readOnly": true}}}}, "securitySchemes": {"k": {"type": "apiKey", "in": "query", "name": "n"}}}}`,
	`{"quartermaster": "v1", "project": {"plan": "team"}, "tools": {"a": {}}, "grants": [{"subject": "user:a"}]}`,
	`[{"name": "x", "provider": "external", "schema": {}}]`,
}

func addSeeds(f *testing.F) {
	for _, s := range seeds {
		f.Add([]byte(s))
	}
}

// FuzzParseJSON: what is read is what encoding/json reads, if that reads it.
func FuzzParseJSON(f *testing.F) {
	addSeeds(f)
	f.Add([]byte("// a\n{\"b\": [1, /* c */ 2,], \"//\": \"*/\",}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := ParseJSON("f", data)
		if err != nil {
			if quartermaster.CodeOf(err) != quartermaster.CodeMalformedRequest {
				t.Fatal(err)
			}
			return
		}
		var want any
		if json.Unmarshal(data, &want) != nil {
			return // comments
		}
		got := compact(t, file.Value)
		var back any
		if err := json.Unmarshal([]byte(got), &back); err != nil || compact(t, back) != compact(t, want) {
			t.Fatalf("%q was read as %s (%v)", data, got, err)
		}
	})
}

// fuzzFormat feeds anything to the reader of one format.
func fuzzFormat(f *testing.F, format Format) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 1<<15 {
			return
		}
		file, err := ParseJSON("folder/f.json", data)
		if err != nil {
			return
		}
		if _, known := Detect(file); format == "" && !known {
			return
		}
		before := compact(t, file.Value)
		r, err := Import([]File{file}, Options{Format: format, BaseURL: "https://x.example.com"})
		if compact(t, file.Value) != before {
			t.Fatalf("%s was changed to %s", before, compact(t, file.Value))
		}
		if err != nil {
			if quartermaster.CodeOf(err) != quartermaster.CodeInvalidRequest || !strings.Contains(err.Error(), "folder/f.json") && !strings.Contains(err.Error(), "nothing was found") {
				t.Fatal(err)
			}
			return
		}
		if body := compact(t, r.Document); !json.Valid([]byte(body)) || len(body) > 100*len(data)+maxSchema {
			t.Fatalf("%d bytes became %d", len(data), len(body))
		}
		if format == FormatOpenAPI {
			checkTools(t, r)
		}
	})
}

func FuzzDetect(f *testing.F)  { fuzzFormat(f, "") }
func FuzzMCP(f *testing.F)     { fuzzFormat(f, FormatMCP) }
func FuzzVSCode(f *testing.F)  { fuzzFormat(f, FormatVSCode) }
func FuzzTools(f *testing.F)   { fuzzFormat(f, FormatTools) }
func FuzzAgents(f *testing.F)  { fuzzFormat(f, FormatAgents) }
func FuzzOpenAPI(f *testing.F) { fuzzFormat(f, FormatOpenAPI) }
func FuzzProject(f *testing.F) { fuzzFormat(f, FormatProject) }
