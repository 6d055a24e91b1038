package server

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
	"github.com/swaggest/swgui"
	"github.com/swaggest/swgui/v5emb"

	"quartermaster"
	"quartermaster/internal/server/workflow"
)

const refPrefix = "#/components/schemas/"

// These are huma's switches for the whole process; it offers no other place.
func init() {
	huma.ValidateStrictCasing = true  // a key in another case is another key
	huma.DefaultArrayNullable = false // null is no list
	huma.NewError = newProblem
}

// newAPI makes the REST API on mux: OpenAPI 3.1 is generated from the handlers'
// types, and the same types check what comes in.
func newAPI(mux *http.ServeMux, version string) huma.API {
	registry := huma.NewMapRegistry(refPrefix, huma.DefaultSchemaNamer)
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
	for _, name := range []string{"tools", "agents", "bindings", "decision", "workflow", "users", "grants", "policies", "servers", "secrets", "project file", "projects", "status"} {
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

// errorsOf lists the statuses besides success that an operation can answer
// with.
func errorsOf(op huma.Operation, input reflect.Type) []int {
	all := []int{
		http.StatusBadRequest, http.StatusForbidden, http.StatusUnprocessableEntity,
		http.StatusInternalServerError, http.StatusServiceUnavailable,
	}
	if strings.Contains(op.Path, "{") {
		all = append(all, http.StatusNotFound)
	}
	if _, ok := input.FieldByName("Body"); ok {
		all = append(all, http.StatusRequestTimeout, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType)
	}
	creates := op.DefaultStatus == http.StatusCreated
	if creates || op.Method == http.MethodPatch || op.Method == http.MethodDelete {
		all = append(all, http.StatusConflict)
	}
	if slices.ContainsFunc([]string{"/restart", "/schema", "/policies/test"}, func(end string) bool { return strings.HasSuffix(op.Path, end) }) {
		all = append(all, http.StatusNotImplemented)
	}
	return all
}

// describe completes what the handlers' types cannot say.
func describe(doc *huma.OpenAPI) {
	schemas := doc.Components.Schemas
	for _, s := range schemas.Map() {
		// One schema serves both ways, and nobody has to send what only the
		// server knows.
		s.Required = slices.DeleteFunc(s.Required, func(name string) bool { return s.Properties[name].ReadOnly })
	}
	ok := func(path string) map[string]*huma.MediaType {
		return doc.Paths[project+path].Get.Responses["200"].Content
	}
	ok("/export")["application/json"].Schema = schemas.Schema(reflect.TypeFor[quartermaster.Document](), true, "")
	picture := &huma.MediaType{Schema: &huma.Schema{Type: huma.TypeString}}
	graph := ok("/workflow")
	graph["application/json"].Schema = schemas.Schema(reflect.TypeFor[workflow.Workflow](), true, "")
	graph["image/svg+xml"], graph["text/plain"], graph["text/vnd.graphviz"] = picture, picture, picture
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
	ui := v5emb.NewHandlerWithConfig(swgui.Config{
		Title: "Quartermaster API", SwaggerJSON: "/openapi.json", BasePath: "/docs/",
		SettingsUI: map[string]string{"validatorUrl": "null", "defaultModelsExpandDepth": "0", "tryItOutEnabled": "true"},
	})
	policy := docsPolicy(ui)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Security-Policy", policy)
		answer := &withoutText{ResponseWriter: w}
		ui.ServeHTTP(answer, r)
		if answer.missing {
			writeProblem(w, nothingAt(r))
		}
	})
}

var inlineScript = regexp.MustCompile(`(?s)<script>(.*?)</script>`)

// docsPolicy lets the page run its own scripts, those in the page by their
// hashes, and speak to this server only.
func docsPolicy(ui http.Handler) string {
	page := &overheard{header: http.Header{}}
	ui.ServeHTTP(page, &http.Request{Method: http.MethodGet, URL: &url.URL{Path: "/docs/"}})
	scripts := "'self'"
	for _, script := range inlineScript.FindAllSubmatch(page.body.Bytes(), -1) {
		sum := sha256.Sum256(script[1])
		scripts += " 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
	}
	return "default-src 'none'; script-src " + scripts + "; style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; " + unframed
}

// withoutText holds back what a file server says of a file that is missing.
type withoutText struct {
	http.ResponseWriter
	missing bool
}

// WriteHeader passes every status on but that of a missing file.
func (w *withoutText) WriteHeader(status int) {
	if w.missing = status == http.StatusNotFound; !w.missing {
		w.ResponseWriter.WriteHeader(status)
	}
}

func (w *withoutText) Write(b []byte) (int, error) {
	if w.missing {
		return len(b), nil
	}
	return w.ResponseWriter.Write(b)
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
// refers to, without what only the server can know.
func ProjectSchema(registry huma.Registry) ([]byte, error) {
	root := registry.Schema(reflect.TypeFor[quartermaster.Document](), true, "")
	needed := map[string]json.RawMessage{}
	var need func(ref string) error
	need = func(ref string) error {
		name := strings.TrimPrefix(ref, refPrefix)
		if needed[name] != nil {
			return nil
		}
		written := *registry.SchemaFromRef(ref)
		written.Properties = maps.Clone(written.Properties)
		maps.DeleteFunc(written.Properties, func(_ string, s *huma.Schema) bool { return s.ReadOnly })
		def, err := json.Marshal(&written)
		if err != nil {
			return err
		}
		needed[name] = def
		for _, part := range strings.Split(string(def), `"$ref":"`)[1:] {
			if err := need(part[:strings.IndexByte(part, '"')]); err != nil {
				return err
			}
		}
		return nil
	}
	if err := need(root.Ref); err != nil {
		return nil, err
	}
	doc, err := json.MarshalIndent(map[string]any{
		"$schema": "https://json-schema.org/draft/2020-12/schema",
		"title":   "Quartermaster project file",
		"$ref":    root.Ref,
		"$defs":   needed,
	}, "", "  ")
	return []byte(strings.ReplaceAll(string(doc), refPrefix, "#/$defs/") + "\n"), err
}
