package importer

import (
	"fmt"
	"strings"
	"testing"
)

// operationOf is an OpenAPI document with one operation, whose body is a schema.
func operationOf(version, schema, components string) string {
	return fmt.Sprintf(`{"openapi": %q, "servers": [{"url": "https://x.example.com"}], "paths": {"/a": {"post": {"operationId": "a",
		"requestBody": {"required": true, "content": {"application/json": {"schema": %s}}}}}}, "components": {"schemas": {%s}}}`, version, schema, components)
}

// CAT-5: schemas of both versions become the one that tools have (CAT-1).
func TestSchemas(t *testing.T) {
	tests := map[string]struct{ version, schema, want string }{
		"nullable":              {"3.0.3", `{"type": "string", "nullable": true, "enum": ["a"]}`, `{"type":["string","null"],"enum":["a",null]}`},
		"nullable reference":    {"3.0.3", `{"$ref": "#/components/schemas/X", "nullable": true}`, `{"anyOf":[{"$ref":"#/$defs/X"},{"type":"null"}]}`},
		"nullable anything":     {"3.0.3", `{"nullable": true, "description": "d"}`, `{"description":"d"}`},
		"bounds":                {"3.0.3", `{"type": "integer", "minimum": 1, "exclusiveMinimum": true, "maximum": 9, "exclusiveMaximum": false}`, `{"type":"integer","exclusiveMinimum":1,"maximum":9}`},
		"bounds of 3.1":         {"3.1.0", `{"exclusiveMinimum": 1}`, `{"exclusiveMinimum":1}`},
		"beside a reference":    {"3.0.3", `{"$ref": "#/components/schemas/X", "description": "d", "maxLength": 1}`, `{"$ref":"#/$defs/X","description":"d"}`},
		"beside one in 3.1":     {"3.1.0", `{"$ref": "#/components/schemas/X", "maxLength": 1}`, `{"$ref":"#/$defs/X","maxLength":1}`},
		"what means nothing":    {"3.1.0", `{"xml": {}, "x-a": 1, "discriminator": {"propertyName": "t"}, "externalDocs": {}, "$schema": "s", "$id": "i", "$anchor": "a", "$comment": "c"}`, `{}`},
		"what cannot be":        {"3.1.0", `{"required": true, "type": "any", "maxLength": -1, "enum": [], "pattern": 1, "properties": [], "items": 7, "allOf": [], "multipleOf": 0}`, `{}`},
		"types":                 {"3.1.0", `{"type": ["string", "string", "any"]}`, `{"type":["string"]}`},
		"files":                 {"3.1.0", `{"type": "file"}`, `{"type":"string"}`},
		"examples":              {"3.0.3", `{"example": "a", "examples": ["b", {"c": 1}]}`, `{"examples":["a","b"]}`},
		"true":                  {"3.1.0", `true`, `true`},
		"everything below":      {"3.1.0", `{"if": {"x-a": 1}, "prefixItems": [{"xml": 1}], "patternProperties": {"a": {"x-b": 1}}, "not": false}`, `{"if":{},"prefixItems":[{}],"patternProperties":{"a":{}},"not":false}`},
		"null is a value":       {"3.1.0", `{"const": null, "default": null}`, `{"const":null,"default":null}`},
		"without what is read":  {"3.0.3", `{"type": "array", "items": {"type": "object", "required": ["a", "b"], "properties": {"a": {"readOnly": true}, "b": {}, "c": {"$ref": "#/components/schemas/R"}}}}`, `{"type":"array","items":{"type":"object","required":["b"],"properties":{"b":{}}}}`},
		"a reference to itself": {"3.1.0", `{"$ref": "#/components/schemas/Self"}`, `{"$ref":"#/$defs/Self"}`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, r := imported(t, "f.json", operationOf(tt.version, tt.schema, `"X": {"type": "string"}, "R": {"readOnly": true}, "Self": {"$ref": "#/components/schemas/Self"}`), Options{})
			if want := `"properties":{"body":` + tt.want + `}`; !strings.Contains(got, want) {
				t.Errorf("got %s, want %s", got, want)
			}
			if name != "a reference to itself" { // which nothing can satisfy
				checkTools(t, r)
			}
		})
	}
}

// The fields of a body are arguments of their own where that says the same.
func TestBodyFields(t *testing.T) {
	const required = `"requestBody": {"required": true, "content": {"application/json": {"schema": %s}}}`
	const optional = `"requestBody": {"content": {"application/json": {"schema": %s}}}`
	tests := map[string]struct {
		body, schema string
		want         string
	}{
		"fields":            {required, `{"type": "object", "required": ["a"], "properties": {"a": {"type": "string"}, "id": {}}}`, `"fields":[{"name":"a","argument":"a"},{"name":"id","argument":"id_body"}]`},
		"closed":            {required, `{"properties": {"a": {}}, "additionalProperties": false}`, `"fields":[{"name":"a","argument":"a"}]`},
		"open":              {required, `{"properties": {"a": {}}, "additionalProperties": true}`, `"argument":"body"`},
		"may be left out":   {optional, `{"properties": {"a": {}}}`, `"fields":[{"name":"a","argument":"a"}]`},
		"all or nothing":    {optional, `{"properties": {"a": {}}, "required": ["a"]}`, `"argument":"body"`},
		"no object":         {required, `{"type": "array", "items": {}}`, `"argument":"body"`},
		"several":           {required, `{"oneOf": [{"properties": {"a": {}}}]}`, `"argument":"body"`},
		"needs what is not": {required, `{"properties": {"a": {}}, "required": ["b"]}`, `"argument":"body"`},
		"no fields":         {required, `{"type": "object"}`, `"argument":"body"`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			text := `{"openapi": "3.1.0", "servers": [{"url": "https://x.example.com"}], "paths": {"/a/{id}": {"patch": {"operationId": "a", "parameters": [{"name": "id", "in": "path"}], ` +
				fmt.Sprintf(tt.body, tt.schema) + `}}}}`
			got, r := imported(t, "f.json", text, Options{})
			if !strings.Contains(got, tt.want) {
				t.Errorf("got %s, want %s", got, tt.want)
			}
			checkTools(t, r)
		})
	}
}

// The address comes from the operation, its path, the document or the flag.
func TestAddresses(t *testing.T) {
	const file = `{"openapi": "3.1.0", %s "paths": {"/a": {%s "get": {%s "operationId": "a"}}}}`
	server := func(url string) string { return `"servers": [{"url": "` + url + `"}],` }
	tests := map[string]struct {
		root, path, operation string
		o                     Options
		want                  string
	}{
		"document":  {root: server("https://a.example.com/v1/"), want: "https://a.example.com/v1/a"},
		"path":      {root: server("https://a.example.com"), path: server("https://b.example.com"), want: "https://b.example.com/a"},
		"operation": {root: server("https://a.example.com"), path: server("https://b.example.com"), operation: server("https://c.example.com"), want: "https://c.example.com/a"},
		"flag":      {root: server("/v1"), operation: server("https://c.example.com"), o: Options{BaseURL: "http://localhost:1/x"}, want: "http://localhost:1/x/a"},
		"variable":  {root: server("https://{r}.example.com"), o: Options{Values: map[string]string{"r": "eu"}}, want: "https://eu.example.com/a"},
		"none":      {want: "!names no server; say where the API is with --base-url URL"},
		"relative":  {root: server("/v1"), want: "!--base-url https://HOST/v1"},
		"other":     {root: server("ftp://a.example.com"), want: "!starts with http:// or https://"},
		"user":      {root: server("https://u:hunter2@a.example.com"), want: "!no user, password"},
		"query":     {root: server("https://a.example.com?key=hunter2"), want: "!no user, password"},
		"bad":       {root: server("https://a b:x/"), want: "!must be a URL"},
		"open":      {root: server("https://{r}.example.com"), want: "!--set r=VALUE"},
		"bad flag":  {o: Options{BaseURL: "hunter2"}, want: "!--base-url: is relative"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			text := fmt.Sprintf(file, tt.root, tt.path, tt.operation)
			if want, ok := strings.CutPrefix(tt.want, "!"); ok {
				if got := refused(t, text, tt.o); !strings.Contains(got, want) || strings.Contains(got, "hunter2") {
					t.Errorf("got %s, want %s", got, want)
				}
				return
			}
			if got, _ := imported(t, "f.json", text, tt.o); !strings.Contains(got, `"url":"`+tt.want+`"`) {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

// What is made to be large stays small, and what goes in circles ends.
func TestOpenAPIIsBounded(t *testing.T) {
	ref := func(name string, i int) string { return fmt.Sprintf(`{"$ref": "#/components/schemas/%s%d"}`, name, i) }
	many := func(n int, entry func(int) string) string {
		parts := make([]string, n)
		for i := range parts {
			parts[i] = entry(i)
		}
		return strings.Join(parts, ",")
	}
	t.Run("twice in each other", func(t *testing.T) {
		components := many(60, func(i int) string {
			return fmt.Sprintf(`"D%d": {"allOf": [%s, %s]}`, i, ref("D", (i+1)%60), ref("D", (i+1)%60))
		})
		_, r := imported(t, "f.json", operationOf("3.1.0", ref("D", 0), components), Options{})
		if got := compact(t, r.Document); len(got) > 20_000 {
			t.Errorf("%d bytes", len(got))
		}
	})
	t.Run("a long chain", func(t *testing.T) {
		const n = 20_000
		components := many(n, func(i int) string { return fmt.Sprintf(`"C%d": %s`, i, ref("C", min(i+1, n-1))) })
		_, r := imported(t, "f.json", operationOf("3.1.0", ref("C", 0), components), Options{})
		if len(r.Warnings) != 1 || !strings.Contains(r.Warnings[0], "any object is taken for one") {
			t.Errorf("%q", r.Warnings)
		}
		checkTools(t, r)
	})
	t.Run("a large schema", func(t *testing.T) {
		text := strings.Repeat("x", maxSchema)
		_, r := imported(t, "f.json", operationOf("3.1.0", `{"type": "object", "properties": {"a": {"description": "`+text+`"}}}`, ""), Options{})
		if len(r.Warnings) != 1 || !strings.Contains(r.Warnings[0], "only their names are kept") {
			t.Errorf("%.300q", r.Warnings)
		}
		checkTools(t, r)
	})
	t.Run("many operations", func(t *testing.T) {
		paths := many(maxOperations+1, func(i int) string { return fmt.Sprintf(`"/p%d": {"get": {}}`, i) })
		text := `{"openapi": "3.1.0", "servers": [{"url": "https://x.example.com"}], "paths": {` + paths + `}}`
		if got := refused(t, text, Options{}); !strings.Contains(got, "more than 5000 operations; cut") {
			t.Error(got)
		}
	})
	t.Run("large schemas everywhere", func(t *testing.T) {
		big := `{"type": "array", "items": {"description": "` + strings.Repeat("x", 200_000) + `"}}`
		paths := many(400, func(i int) string {
			return fmt.Sprintf(`"/p%d": {"post": {"requestBody": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Big"}}}}}}`, i)
		})
		text := `{"openapi": "3.1.0", "servers": [{"url": "https://x.example.com"}], "paths": {` + paths + `}, "components": {"schemas": {"Big": ` + big + `}}}`
		if got := refused(t, text, Options{}); !strings.Contains(got, "cut it into several documents") {
			t.Error(got)
		}
	})
	t.Run("a large schema, often", func(t *testing.T) {
		properties := many(10_000, func(i int) string { return fmt.Sprintf(`"p%d": {}`, i) })
		paths := many(400, func(i int) string {
			return fmt.Sprintf(`"/p%d": {"post": {"requestBody": {"required": true, "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Big"}}}}}}`, i)
		})
		text := `{"openapi": "3.1.0", "servers": [{"url": "https://x.example.com"}], "paths": {` + paths + `}, "components": {"schemas": {"Big": {"properties": {` + properties + `}}}}}`
		if got := refused(t, text, Options{}); !strings.Contains(got, "cut it into several documents") {
			t.Error(got)
		}
	})
}

// What is no text comes as base64, and the config says so.
func TestBytes(t *testing.T) {
	const file = `{"openapi": 3.1, "servers": [{"url": "https://x.example.com"}], "paths": {"/a": {"post": {"$ref": "#/components/x-operations/a"}}},
		"components": {"x-operations": {"a": {"operationId": "a", "requestBody": {"content": {%s}}}}}}`
	for content, want := range map[string]string{
		`"image/png": {}, "application/pdf": {}`:                                                                      `{"contentType":"image/png","argument":"body","encoding":"base64"}`,
		`"application/zip": {}, "text/csv": {"schema": {"type": "string"}}`:                                           `{"contentType":"text/csv","argument":"body"}`,
		`"multipart/form-data": {"schema": {"properties": {"f": {"type": "string", "format": "binary"}, "n": {}}}}`:   `{"contentType":"multipart/form-data","fields":[{"name":"f","argument":"f","encoding":"base64"},{"name":"n","argument":"n"}]}`,
		`"application/x-www-form-urlencoded": {"schema": {"properties": {"f": {"type": "string"}}}}, "image/png": {}`: `{"contentType":"application/x-www-form-urlencoded","fields":[{"name":"f","argument":"f"}]}`,
		`"*/*": {"$ref": "#/components/x-operations/a/requestBody/content/*~1*/x"}`:                                   `!which is not in the document`,
	} {
		text := fmt.Sprintf(file, content)
		if says, ok := strings.CutPrefix(want, "!"); ok {
			if got := refused(t, text, Options{}); !strings.Contains(got, says) {
				t.Errorf("%s: got %s", content, got)
			}
			continue
		}
		got, r := imported(t, "f.json", text, Options{})
		if !strings.Contains(got, `"body":`+want) {
			t.Errorf("%s: got %s, want %s", content, got, want)
		}
		checkTools(t, r)
	}
}
