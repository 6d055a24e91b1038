package importer

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"quartermaster"
)

// spot is a place in a file that a person has written.
type spot struct {
	file string
	path string // mcpServers.files.env, as people write it; "": the whole file
	line int    // 0: not known
}

func (s spot) String() string {
	text := s.file
	if s.line > 0 {
		text += ":" + strconv.Itoa(s.line)
	}
	if s.path != "" {
		text += ": " + s.path
	}
	return text
}

// below is the spot of a member.
func (s spot) below(key string, line int) spot {
	s.path = join(s.path, key)
	if line > 0 {
		s.line = line
	}
	return s
}

// item is the spot of an item of a list.
func (s spot) item(i int, v any) spot {
	s.path += "[" + strconv.Itoa(i) + "]"
	if line := lineOf(v); line > 0 {
		s.line = line
	}
	return s
}

func join(at, key string) string {
	if at == "" {
		return key
	}
	return at + "." + key
}

// field is a value and where it stands.
type field struct {
	at    spot
	value any
}

// build is a document in the making. What is wrong is gathered, so that one
// import tells all of it.
type build struct {
	options    Options
	recognized []Recognized
	skipped    []string
	faults     []quartermaster.Fault
	warnings   []string
	told       map[string]bool   // what needs no saying twice
	secrets    map[string]string // by name: where each one is needed first

	rows    map[string][]*row // by section
	index   map[string]*row   // by section and name
	origins map[string]field  // of the document's paths

	groups  []membership      // what lists of groups say of tools
	agents  []*row            // their patterns name tools by the names of their files
	servers map[string]string // what files call a server, and what it is called here
	offered map[string]bool   // servers that a tool.json offers as one tool
	tools   map[string]string // what files call a tool, where that is another name
	remotes map[string]string // what a server of 003 calls its tool
}

func newBuild(o Options) *build {
	b := &build{
		options: o, told: map[string]bool{}, secrets: map[string]string{},
		rows: map[string][]*row{}, index: map[string]*row{}, origins: map[string]field{},
		servers: map[string]string{}, offered: map[string]bool{}, tools: map[string]string{}, remotes: map[string]string{},
	}
	if v, _ := o.Existing.Get("servers"); v != nil {
		servers, _ := v.(Object)
		for _, name := range keys(servers) {
			b.servers[name] = name
		}
	}
	return b
}

// maxFaults and maxWarnings are as many as a person would read.
const (
	maxFaults   = 100
	maxWarnings = 200
)

// fault notes what is wrong; what is shared by many is wrong once.
func (b *build) fault(at spot, format string, args ...any) {
	f := quartermaster.Fault{Location: at.String(), Message: fmt.Sprintf(format, args...)}
	if key := "fault " + f.Location + "\x00" + f.Message; !b.told[key] {
		b.told[key] = true
		b.faults = append(b.faults, f)
	}
}

func (b *build) warn(at spot, format string, args ...any) {
	b.warnings = append(b.warnings, at.String()+": "+fmt.Sprintf(format, args...))
}

// warnOnce says a thing at the first place only.
func (b *build) warnOnce(key string, at spot, format string, args ...any) {
	if !b.told[key] {
		b.told[key] = true
		b.warn(at, format, args...)
	}
}

func (b *build) err() error {
	if len(b.faults) == 0 {
		return nil
	}
	e := quartermaster.Errorf(quartermaster.CodeInvalidRequest, "the import is not valid; nothing was changed")
	e.Faults = b.faults
	if more := len(b.faults) - maxFaults; more > 0 {
		e.Message += fmt.Sprintf(" (the first %d faults, and %d more)", maxFaults, more)
		e.Faults = b.faults[:maxFaults]
	}
	return e
}

// row is an entry of the document in the making.
type row struct {
	section, name string
	at            spot
	value         any // an Object, but for what a project file holds
	origins       map[string]field
	whole         bool // says everything about its entry, as project files do
}

func (b *build) newRow(section, name string, at spot) *row {
	return &row{section: section, name: name, at: at, value: Object{}, origins: map[string]field{}}
}

// set gives the row a field, which comes from a place in a file.
func (r *row) set(name string, v any, from spot) {
	fields, _ := r.value.(Object)
	r.value = fields.with(name, v)
	r.origins[name] = field{from, v}
}

// get is a field of the row.
func (r *row) get(name string) any {
	fields, _ := r.value.(Object)
	v, _ := fields.Get(name)
	return v
}

// put adds a row. The same one twice is one; another of its name is a fault,
// because which one is meant is anybody's guess.
func (b *build) put(r *row) {
	key := r.section + "." + r.name
	if old, ok := b.index[key]; ok {
		if !sameValue(old.value, r.value) {
			b.fault(r.at, "%s stands in %s too, with other content", r.label(), old.at)
		}
		return
	}
	b.index[key] = r
	b.rows[r.section] = append(b.rows[r.section], r)
}

// nouns are what an entry of a section is called.
var nouns = map[string]string{
	"servers": "server ", "tools": "tool ", "agents": "agent ", "bindings": "the bindings of ", "users": "user ", "policies": "policy ",
}

func (r *row) label() string { return nouns[r.section] + r.name }

// sections are the parts of a document, in the order of an export.
var sections = []string{"servers", "tools", "agents", "bindings", "users", "policies"}

func (b *build) result() *Result {
	r := &Result{
		Document: b.document(), Files: b.recognized, Skipped: b.skipped, Warnings: b.warnings,
		origins: b.origins,
	}
	for _, name := range slices.Sorted(maps.Keys(b.secrets)) {
		r.Secrets = append(r.Secrets, Secret{name, b.secrets[name]})
	}
	if more := len(r.Warnings) - maxWarnings; more > 0 {
		r.Warnings = append(r.Warnings[:maxWarnings:maxWarnings], fmt.Sprintf("and %d warnings more", more))
	}
	return r
}

func (b *build) document() Object {
	doc := Object{{Key: "quartermaster", Value: quartermaster.DocumentVersion}}
	for _, r := range b.rows[""] { // what stands beside the sections of project files
		doc = doc.with(r.name, r.value)
		b.origins[r.name] = field{r.at, r.value}
	}
	for _, name := range sections {
		entries := Object{}
		for _, r := range b.rows[name] {
			entries = append(entries, Member{Key: r.name, Value: r.value})
			b.remember(r)
		}
		if len(entries) > 0 {
			doc = append(doc, Member{Key: name, Value: entries})
		}
	}
	return doc
}

func (b *build) remember(r *row) {
	at := r.section + "." + r.name
	b.origins[at] = field{r.at, r.value}
	for name, f := range r.origins {
		b.origins[at+"."+name] = f
	}
}

// Locate says where in the files a place of the document comes from:
// body.servers.files.url becomes FILE:LINE: mcpServers.files.url. A place that
// comes from no file stays as it is.
func (r *Result) Locate(location string) string {
	path, ok := strings.CutPrefix(location, "body.")
	if !ok && !strings.HasPrefix(location, "policies.") { // which are compiled apart
		return location
	}
	for at := path; at != ""; at = at[:max(0, strings.LastIndexAny(at, ".[:"))] {
		if f, ok := r.origins[at]; ok {
			return f.walk(path[len(at):]).String()
		}
	}
	return location
}

// walk follows a path such as .env.TOKEN or [2].name below a field, as far as
// the field goes.
func (f field) walk(path string) spot {
	at := f.at
	if path == "" {
		return at
	}
	if o, ok := f.value.(Object); ok && path[0] == '.' {
		for _, m := range o {
			rest, ok := strings.CutPrefix(path[1:], m.Key)
			if ok && (rest == "" || rest[0] == '.' || rest[0] == '[') {
				return field{at.below(m.Key, m.Line), m.Value}.walk(rest)
			}
		}
	}
	at.path += path
	if f.at.path == "" {
		at.path = strings.TrimPrefix(path, ".")
	}
	return at
}
