package importer

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// arguments gathers what a tool is called with: every parameter and every field
// of the body becomes one argument, and the config says where each one goes.
type arguments struct {
	*operation
	taken      map[string]bool
	properties Object
	required   []any
	refs       []string
	bodyAt     spot
	whole      string // the argument that is the whole body; "": none
}

// parameters are those of the path, but for what the operation says itself.
func (a *arguments) parameters() []any {
	var list []field
	index := map[string]int{}
	for _, e := range []*entry{a.path, a.entry} {
		for _, f := range e.list("parameters") {
			f, ok := a.resolve(f)
			o, isObject := f.value.(Object)
			if !ok || !isObject {
				if ok {
					a.fault(f.at, "must be an object")
				}
				continue
			}
			name, _ := text(o, "name")
			in, _ := text(o, "in")
			if i, ok := index[in+" "+name]; ok {
				list[i] = f
				continue
			}
			index[in+" "+name] = len(list)
			list = append(list, f)
		}
	}
	return a.place(list)
}

func (a *arguments) place(list []field) []any {
	missing := map[string]bool{}
	for _, m := range pathVariable.FindAllStringSubmatch(a.route, -1) {
		missing[m[1]] = true
		if m[1] == "" {
			a.fault(a.path.at, "has a parameter without a name")
		}
	}
	var placed []any
	for _, f := range list {
		e := a.entryOf(f)
		name, _ := e.text("name")
		in, inAt := e.text("in")
		switch {
		case name == "":
			a.fault(f.at, "has no name")
			continue
		case !slices.Contains([]string{"path", "query", "header", "cookie"}, in):
			a.fault(inAt.at, "must be one of path, query, header, cookie")
			continue
		case in == "path" && !missing[name]:
			a.warn(f.at, "the path has no {%s}; the parameter is left out", cut(name, 100))
			continue
		case in == "header" && slices.Contains([]string{"accept", "content-type", "authorization"}, strings.ToLower(name)):
			continue // said elsewhere in the document, which says so itself
		}
		if in == "path" {
			delete(missing, name)
		}
		placed = append(placed, a.parameter(e, name, in))
	}
	for _, m := range pathVariable.FindAllStringSubmatch(a.route, -1) {
		if name := m[1]; missing[name] {
			delete(missing, name)
			a.warn(a.entry.at, "does not describe the parameter {%s} of its path; it is taken for text", cut(name, 100))
			argument := a.add(name, "path", Object{{Key: "type", Value: "string"}}, true)
			placed = append(placed, Object{{Key: "name", Value: name}, {Key: "in", Value: "path"}, {Key: "argument", Value: argument}})
		}
	}
	return placed
}

func (a *arguments) parameter(e *entry, name, in string) Object {
	c := &converted{schemas: a.request}
	var schema any = Object{}
	contentType := ""
	if f, ok := e.field("schema"); ok {
		schema = c.convert(f, 0)
	} else if content := e.object("content"); content != nil {
		var f field
		if contentType, f, ok = a.chooseMedia(content); ok && f.value != nil {
			schema = c.convert(f, 0)
		}
	}
	a.refs = append(a.refs, c.refs...)
	required, _, _ := e.truth("required")
	old, _, _ := e.truth("deprecated")
	about, _ := e.text("description")
	argument := a.add(name, in, described(schema, about, old), required || in == "path")
	config := Object{{Key: "name", Value: name}, {Key: "in", Value: in}, {Key: "argument", Value: argument}}
	if contentType != "" {
		return config.with("contentType", contentType)
	}
	return a.withStyle(config, e, in)
}

func described(schema any, about string, deprecated bool) any {
	o, ok := schema.(Object)
	if !ok {
		return schema
	}
	if about != "" {
		o = o.with("description", about)
	}
	if deprecated {
		o = o.with("deprecated", true)
	}
	return o
}

// withStyle says how a value is written, where it is not as usual: simple in
// paths and headers, form in queries and cookies, exploded only as a form.
func (a *arguments) withStyle(config Object, e *entry, in string) Object {
	usual := "form"
	if in == "path" || in == "header" {
		usual = "simple"
	}
	style, _ := e.text("style")
	if style == "" {
		style = usual
	}
	if style != usual {
		config = config.with("style", style)
	}
	if explode, _, ok := e.truth("explode"); ok && explode != (style == "form") {
		config = config.with("explode", explode)
	}
	if reserved, _, _ := e.truth("allowReserved"); reserved {
		config = config.with("allowReserved", true)
	}
	return config
}

var (
	legalArgument = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`)
	notArgument   = regexp.MustCompile(`[^A-Za-z0-9_.-]+`)
)

// add makes an argument of a name that models take, and tells equal names of
// different places apart.
func (a *arguments) add(name, place string, schema any, required bool) string {
	argument := name
	if !legalArgument.MatchString(name) {
		argument = strings.Trim(notArgument.ReplaceAllString(name, "_"), "_.-")
		if argument == "" || len(argument) > 55 {
			argument = argument[:min(len(argument), 46)] + "_" + hash(name)
		}
	}
	free := argument
	for n := 1; a.taken[free]; n++ {
		free = fmt.Sprintf("%s_%s", argument[:min(len(argument), 40)], place)
		if n > 1 {
			free = fmt.Sprintf("%s_%d", free, n)
		}
	}
	a.taken[free] = true
	a.properties = append(a.properties, Member{Key: free, Value: schema})
	if required {
		a.required = append(a.required, free)
	}
	return free
}

// schema is that of all arguments. One that is too large says less of the body.
func (a *arguments) schema() Object {
	schema, ok := a.request.complete(a.plain(), a.refs)
	if !ok && a.whole != "" {
		a.warnOnce("large body "+a.bodyAt.path, a.bodyAt, "the schema of the body is larger than %d KiB; any object is taken for one", maxSchema>>10)
		a.properties[len(a.properties)-1].Value = Object{{Key: "type", Value: "object"}}
		withoutReferences(a.properties)
		schema, ok = a.request.complete(a.plain(), nil)
	}
	if !ok {
		a.warn(a.entry.at, "the schema of its arguments is larger than %d KiB; only their names are kept", maxSchema>>10)
		for i := range a.properties {
			a.properties[i].Value = Object{}
		}
		if schema, ok = a.request.complete(a.plain(), nil); !ok {
			a.fault(a.entry.at, "has more arguments than fit into a schema of %d KiB", maxSchema>>10)
		}
	}
	return schema
}

func (a *arguments) plain() Object {
	schema := Object{{Key: "type", Value: "object"}}
	if len(a.properties) > 0 {
		schema = schema.with("properties", a.properties)
	}
	if len(a.required) > 0 {
		schema = schema.with("required", a.required)
	}
	return schema.with("additionalProperties", false)
}
