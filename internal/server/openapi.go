package server

import (
	"encoding/json"
	"net/http"
	"reflect"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
	"github.com/swaggest/swgui"
	"github.com/swaggest/swgui/v5emb"

	"quartermaster"
)

// These are huma's switches for the whole process; it offers no other place.
func init() {
	huma.ValidateStrictCasing = true  // a key in another case is another key
	huma.DefaultArrayNullable = false // null is no list
	huma.NewError = newProblem
}

// newAPI makes the REST API on mux: OpenAPI 3.1 is generated from the handlers'
// types, and the same types check what comes in.
func newAPI(mux *http.ServeMux, version string) huma.API {
	registry := huma.NewMapRegistry("#/components/schemas/", huma.DefaultSchemaNamer)
	strict := huma.Format{Marshal: huma.DefaultJSONFormat.Marshal, Unmarshal: unmarshal}
	rest := humago.New(mux, huma.Config{
		OpenAPI: &huma.OpenAPI{
			OpenAPI: "3.1.0",
			Info: &huma.Info{
				Title: "Quartermaster", Version: version,
				Description: "Hands AI agents their tools. Every error is a problem document (RFC 9457) with a stable `code`; every list is a page.",
			},
			Components: &huma.Components{Schemas: registry},
			Tags:       tags(),
		},
		OpenAPIPath:                  "/openapi",
		Formats:                      map[string]huma.Format{"application/json": strict, "json": strict},
		DefaultFormat:                "application/json",
		RejectUnknownQueryParameters: true,
	})
	rest.UseMiddleware(singleParameters(rest))
	describeObjects(registry)
	return rest
}

// tags puts the parts of the API into the order in which they are read.
func tags() []*huma.Tag {
	var all []*huma.Tag
	for _, name := range []string{"tools", "agents", "bindings", "decision", "workflow", "users", "servers", "secrets", "project file", "projects", "status"} {
		all = append(all, &huma.Tag{Name: name})
	}
	return all
}

// describeObjects says of fields that hold JSON as it came that it must be an
// object, which their Go type cannot say.
func describeObjects(registry huma.Registry) {
	for t, fields := range map[reflect.Type][]string{
		reflect.TypeFor[quartermaster.Tool]():  {"inputSchema", "outputSchema", "annotations", "config"},
		reflect.TypeFor[quartermaster.Agent](): {"memory"},
	} {
		s := registry.SchemaFromRef(registry.Schema(t, true, "").Ref)
		for _, f := range fields {
			s.Properties[f].Type = huma.TypeObject
			s.Properties[f].AdditionalProperties = true
			s.Properties[f].PrecomputeMessages()
		}
	}
}

// operationID turns GET /api/v1/projects/{project}/tools into get-tools.
func operationID(method, path string) string {
	path = strings.TrimPrefix(strings.TrimPrefix(path, project), api)
	words := []string{strings.ToLower(method)}
	for _, step := range strings.Split(path, "/") {
		if step = strings.Trim(step, "{}"); step != "" {
			words = append(words, step)
		}
	}
	if len(words) == 1 {
		words = append(words, "project")
	}
	return strings.Join(words, "-")
}

// docs is a page to read and try the API, served from inside the binary.
func docs() http.Handler {
	return v5emb.NewHandlerWithConfig(swgui.Config{
		Title: "Quartermaster API", SwaggerJSON: "/openapi.json", BasePath: "/docs/",
		SettingsUI: map[string]string{"validatorUrl": "null", "defaultModelsExpandDepth": "0", "tryItOutEnabled": "true"},
	})
}

// projectSchema serves the JSON Schema of project files, for editors.
func projectSchema(rest huma.API) http.HandlerFunc {
	schema, err := ProjectSchema(rest.OpenAPI().Components.Schemas)
	return func(w http.ResponseWriter, _ *http.Request) {
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/schema+json")
		_, _ = w.Write(schema)
	}
}

// ProjectSchema is the JSON Schema of quartermaster.Document with all it
// refers to.
func ProjectSchema(registry huma.Registry) ([]byte, error) {
	root := registry.Schema(reflect.TypeFor[quartermaster.Document](), true, "")
	all, err := json.Marshal(registry.Map())
	if err != nil {
		return nil, err
	}
	var defs map[string]json.RawMessage
	if err := json.Unmarshal(all, &defs); err != nil {
		return nil, err
	}
	needed := map[string]json.RawMessage{}
	var need func(ref string)
	need = func(ref string) {
		name := strings.TrimPrefix(ref, "#/components/schemas/")
		if needed[name] != nil {
			return
		}
		needed[name] = defs[name]
		for _, part := range strings.Split(string(defs[name]), `"$ref":"`)[1:] {
			need(part[:strings.IndexByte(part, '"')])
		}
	}
	need(root.Ref)
	doc, err := json.MarshalIndent(map[string]any{
		"$schema": "https://json-schema.org/draft/2020-12/schema",
		"title":   "Quartermaster project file",
		"$ref":    root.Ref,
		"$defs":   needed,
	}, "", "  ")
	return []byte(strings.ReplaceAll(string(doc), "#/components/schemas/", "#/$defs/") + "\n"), err
}
