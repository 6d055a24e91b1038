package importer

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"quartermaster"
)

// What one OpenAPI document may bring at most.
const (
	maxOperations = 5_000
	maxSchema     = 256 << 10 // bytes of one schema of one tool
	maxSchemas    = 48 << 20  // bytes of all of them
	maxNodes      = 1_000_000 // schemas in schemas, as often as they are used
)

// api is an OpenAPI document that is being read. Every operation becomes a tool
// whose config says all that is needed to call it.
type api struct {
	*build
	root       *entry
	request    *schemas // of arguments
	answer     *schemas // of results
	title      string   // begins the names of its secrets
	operations []*operation
	found      map[string]*field // by reference; nil: it leads nowhere
	objects    map[string]bool   // references to schemas of objects
	nodes      int               // schemas converted so far
	size       int               // of all schemas of all tools
	exhausted  bool              // enough was read to know that it is too much
}

// operation is one method of one path.
type operation struct {
	*api
	entry  *entry
	path   *entry
	method string
	route  string
	row    *row
	named  bool // by the document, not by its method and path
}

func (b *build) readOpenAPI(e *entry) {
	at, _ := e.field("openapi")
	version, _ := scalarText(at.value)
	if contains(e.value, "swagger") {
		b.fault(e.at, "is Swagger 2; convert it to OpenAPI 3 first")
		return
	}
	if !strings.HasPrefix(version, "3.") {
		b.fault(at.at, "must be OpenAPI 3, such as \"3.1.0\"")
		return
	}
	a := &api{build: b, root: e, found: map[string]*field{}, objects: map[string]bool{}}
	old := strings.HasPrefix(version, "3.0")
	a.request = &schemas{api: a, old: old, hidden: "readOnly", defs: map[string]*definition{}, names: map[string]bool{}}
	a.answer = &schemas{api: a, old: old, hidden: "writeOnly", defs: map[string]*definition{}, names: map[string]bool{}}
	a.title = b.options.Prefix
	if info := e.object("info"); info != nil && a.title == "" {
		a.title, _ = info.text("title")
	}
	if b.options.BaseURL != "" {
		a.checkURL(spot{file: "--base-url"}, b.options.BaseURL)
	}
	a.readPaths()
	a.tellApart()
	for _, o := range a.operations {
		b.put(o.row)
	}
}

var methods = []string{"get", "put", "post", "delete", "options", "head", "patch", "trace"}

func (a *api) readPaths() {
	paths := a.root.object("paths")
	if paths == nil || len(paths.value) == 0 {
		a.fault(a.root.at, "has no paths: there is nothing to call")
		return
	}
	for _, m := range paths.value {
		at := paths.at.below(m.Key, m.Line)
		if strings.HasPrefix(m.Key, "x-") || m.Value == nil {
			continue
		}
		if !strings.HasPrefix(m.Key, "/") {
			a.fault(at, "a path must begin with /")
			continue
		}
		item, ok := a.resolve(field{at, m.Value})
		if !ok {
			continue
		}
		if e := a.entryOf(item); e != nil {
			a.readPath(m.Key, e)
		}
	}
}

func (a *api) readPath(route string, path *entry) {
	for _, method := range methods {
		f, ok := path.field(method)
		if !ok {
			continue
		}
		if f, ok = a.resolve(f); !ok {
			continue
		}
		e := a.entryOf(f)
		if e == nil {
			continue
		}
		if len(a.operations) == maxOperations {
			a.exhaust(fmt.Sprintf("it has more than %d operations", maxOperations))
		}
		if a.exhausted {
			return
		}
		o := &operation{api: a, entry: e, path: path, method: method, route: route}
		o.read()
		a.operations = append(a.operations, o)
	}
}

// exhaust refuses a document that asks for more than any server would take.
func (a *api) exhaust(why string) {
	a.exhausted = true
	a.fault(a.root.at, "%s; cut it into several documents", why)
}

func (o *operation) read() {
	id, _ := o.entry.text("operationId")
	o.named = id != ""
	if !o.named {
		id = routeName(o.method, o.route)
	}
	if o.options.Prefix != "" {
		id = o.options.Prefix + "_" + id
	}
	o.row = o.newRow("tools", toolName(id), o.entry.at)
	o.describe()
	o.row.set("provider", string(quartermaster.ProviderHTTP), o.entry.at)
	config := Object{{Key: "method", Value: strings.ToUpper(o.method)}, {Key: "url", Value: o.address()}}
	arguments := &arguments{operation: o, taken: map[string]bool{}}
	if list := arguments.parameters(); len(list) > 0 {
		config = config.with("parameters", list)
	}
	if body := arguments.body(); body != nil {
		config = config.with("body", body)
	}
	o.row.set("inputSchema", arguments.schema(), o.entry.at)
	if accept := o.answers(); accept != "" {
		config = config.with("accept", accept)
	}
	if auth := o.auth(); len(auth) > 0 {
		config = config.with("auth", auth)
	}
	o.row.set("annotations", annotations(o.method), o.entry.at)
	o.row.set("config", config, o.entry.at)
}

func (o *operation) describe() {
	summary, at := o.entry.text("summary")
	about, aboutAt := o.entry.text("description")
	if summary != "" {
		o.row.set("displayName", cut(summary, 255), at.at)
	}
	if about == "" {
		about, aboutAt = summary, at
	} else if summary != "" && !strings.HasPrefix(about, summary) {
		about = summary + "\n\n" + about
	}
	if old, _, _ := o.entry.truth("deprecated"); old {
		about = strings.TrimSpace("Deprecated. " + about)
	}
	if about != "" {
		o.row.set("description", cut(about, 100_000), aboutAt.at)
	}
	if tags := o.entry.list("tags"); len(tags) > 0 {
		if tag, ok := tags[0].value.(string); ok && tag != "" {
			o.row.set("category", cut(tag, 255), tags[0].at)
		}
	}
}

// cut shortens text to so many characters.
func cut(s string, most int) string {
	if runes := []rune(s); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return s
}

var (
	pathVariable = regexp.MustCompile(`\{([^{}]*)\}`)
	notName      = regexp.MustCompile(`[^A-Za-z0-9]+`)
)

// routeName is get_pets_by_id for GET /pets/{id}.
func routeName(method, route string) string {
	named := pathVariable.ReplaceAllString(route, "by_$1")
	return strings.Trim(method+"_"+strings.Trim(notName.ReplaceAllString(named, "_"), "_"), "_")
}

// tellApart gives operations of one name a hash of what they are. All of them:
// what an operation is called must not depend on which one comes first.
func (a *api) tellApart() {
	same := map[string][]*operation{}
	for _, o := range a.operations {
		same[o.row.name] = append(same[o.row.name], o)
	}
	for _, o := range a.operations {
		name := o.row.name
		if len(same[name]) < 2 {
			continue
		}
		o.row.name = toolName(name[:min(len(name), 119)] + "_" + hash(strings.ToUpper(o.method)+" "+o.route))
		if o.named {
			o.warn(o.entry.at, "several operations are called %s; this one is called %s here", name, o.row.name)
		}
	}
}

// annotations are what the method promises (RFC 9110).
func annotations(method string) Object {
	safe := slices.Contains([]string{"get", "head", "options", "trace"}, method)
	hints := Object{{Key: "readOnlyHint", Value: safe}}
	if method == "put" || method == "delete" || method == "patch" {
		hints = hints.with("destructiveHint", true)
	}
	idempotent := safe || method == "put" || method == "delete"
	return hints.with("idempotentHint", idempotent).with("openWorldHint", true)
}

// address is the URL of the operation, with {name} for parameters of the path.
func (o *operation) address() string {
	return strings.TrimRight(o.server(), "/") + o.route
}

// server is the first server of the operation, its path or the document.
func (o *operation) server() string {
	if o.options.BaseURL != "" {
		return o.options.BaseURL
	}
	for _, e := range []*entry{o.entry, o.path, o.root} {
		list := e.list("servers")
		if len(list) == 0 {
			continue
		}
		if s := o.entryOf(list[0]); s != nil {
			return o.serverURL(s)
		}
		return ""
	}
	o.fault(o.root.at, "names no server; say where the API is with --base-url URL")
	return ""
}

func (o *operation) serverURL(s *entry) string {
	address, f := s.text("url")
	variables := s.object("variables")
	address = pathVariable.ReplaceAllStringFunc(address, func(found string) string {
		name := found[1 : len(found)-1]
		if v, ok := o.options.Values[name]; ok {
			return v
		}
		if variables != nil {
			if v := variables.object(name); v != nil {
				if value, ok := v.field("default"); ok {
					word, _ := scalarText(value.value)
					return word
				}
			}
		}
		o.fault(f.at, "{%s} has no default; give its value with --set %s", name, shellPair(name))
		return ""
	})
	o.checkURL(f.at, address)
	return address
}

// checkURL never repeats the address: it may hold a password.
func (a *api) checkURL(at spot, address string) {
	u, err := url.Parse(address)
	switch {
	case err != nil:
		a.fault(at, "must be a URL")
	case !u.IsAbs() && u.Host == "":
		a.fault(at, "is relative to where the document came from; give the whole address with --base-url https://HOST%s", quotedPath(u.Path))
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		a.fault(at, "must be a URL that starts with http:// or https://")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		a.fault(at, "must have no user, password, query or fragment")
	}
}

var plainPath = regexp.MustCompile(`^/[A-Za-z0-9/._-]{0,100}$`)

func quotedPath(path string) string {
	if plainPath.MatchString(path) {
		return path
	}
	return "/PATH"
}
