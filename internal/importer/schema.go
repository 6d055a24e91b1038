package importer

import (
	"slices"
	"strings"
)

// schemas turns the schemas of a document into JSON Schema 2020-12, which
// stands by itself: what it refers to is below its own $defs. A schema that
// contains itself stays one that does.
type schemas struct {
	*api
	old    bool   // as OpenAPI 3.0 writes them
	hidden string // the mark of fields that do not travel in this direction
	defs   map[string]*definition
	names  map[string]bool
}

// converted is a schema on its way, with the references in it.
type converted struct {
	*schemas
	refs []string
}

// convert makes JSON Schema of what stands at f.
func (c *converted) convert(f field, depth int) any {
	switch v := f.value.(type) {
	case bool:
		return v
	case Object:
		if depth > MaxDepth {
			c.fault(f.at, "is nested deeper than %d", MaxDepth)
			return Object{}
		}
		if c.nodes++; c.nodes > maxNodes {
			c.exhaust("its schemas are used too often")
			return Object{}
		}
		return c.object(f.at, v, depth)
	default:
		c.fault(f.at, "must be a schema")
		return Object{}
	}
}

func (c *converted) object(at spot, o Object, depth int) any {
	out := Object{}
	if ref, refAt, ok := reference(o, at); ok {
		if _, ok := c.lookup(ref, refAt); !ok {
			return out
		}
		c.refs = append(c.refs, ref)
		out = out.with("$ref", "#/$defs/"+c.define(ref).name)
		if c.old { // there, nothing beside a reference counts
			o = only(o, "description", "title", "deprecated", "nullable")
		}
	}
	for _, m := range o {
		below := field{at.below(m.Key, m.Line), m.Value}
		if k, ok := keywords[m.Key]; ok {
			if v, ok := c.keyword(k, below, depth); ok {
				out = append(out, Member{Key: m.Key, Value: v})
			} else if !c.isExclusive(m) {
				c.warnOnce("keyword "+below.at.path, below.at, "is not valid in a schema and is left out")
			}
		}
	}
	out = withType(out, o)
	out = withBounds(out, o)
	out = withExample(out, o)
	if c.hidden != "" {
		out = c.withoutHidden(out, o, at)
	}
	if nullable, _ := o.Get("nullable"); nullable == true {
		out = orNull(out)
	}
	return out
}

func only(o Object, keys ...string) Object {
	return slices.DeleteFunc(slices.Clone(o), func(m Member) bool { return !slices.Contains(keys, m.Key) })
}

// keyword converts one keyword; false: it cannot be meant so.
func (c *converted) keyword(k kind, f field, depth int) (any, bool) {
	switch k {
	case aSchema:
		return c.subschema(f, depth)
	case schemaMap:
		o, ok := f.value.(Object)
		if !ok {
			return nil, false
		}
		out := make(Object, 0, len(o))
		for _, m := range o {
			out = append(out, Member{Key: m.Key, Value: c.convert(field{f.at.below(m.Key, m.Line), m.Value}, depth+2)})
		}
		return out, true
	case schemaList:
		list, ok := f.value.([]any)
		if !ok || len(list) == 0 {
			return nil, false
		}
		return c.list(f.at, list, depth), true
	default:
		return f.value, fits(k, f.value)
	}
}

func (c *converted) subschema(f field, depth int) (any, bool) {
	switch f.value.(type) {
	case bool, Object:
		return c.convert(f, depth+1), true
	}
	return nil, false
}

func (c *converted) list(at spot, list []any, depth int) []any {
	out := make([]any, len(list))
	for i, v := range list {
		out[i] = c.convert(field{at.item(i, v), v}, depth+2)
	}
	return out
}

var jsonTypes = []string{"null", "boolean", "object", "array", "number", "string", "integer"}

// withType keeps the types that JSON Schema knows.
func withType(out, o Object) Object {
	v, _ := o.Get("type")
	switch v := v.(type) {
	case string:
		if v == "file" {
			v = "string"
		}
		if slices.Contains(jsonTypes, v) {
			return front(out, "type", v)
		}
	case []any:
		var types []any
		for _, t := range v {
			if word, ok := t.(string); ok && slices.Contains(jsonTypes, word) && !slices.Contains(types, t) {
				types = append(types, t)
			}
		}
		if len(types) > 0 {
			return front(out, "type", types)
		}
	}
	return out
}

func front(o Object, key string, v any) Object {
	return append(Object{{Key: key, Value: v}}, o...)
}

// isExclusive tells OpenAPI 3.0's own form of two keywords.
func (c *converted) isExclusive(m Member) bool {
	_, isFlag := m.Value.(bool)
	return c.old && isFlag && strings.HasPrefix(m.Key, "exclusive")
}

// withBounds turns OpenAPI 3.0's exclusiveMinimum: true into a number.
func withBounds(out, o Object) Object {
	for bound, exclusive := range map[string]string{"minimum": "exclusiveMinimum", "maximum": "exclusiveMaximum"} {
		if v, _ := o.Get(exclusive); v == true {
			if limit, ok := out.Get(bound); ok {
				out[out.index(bound)] = Member{Key: exclusive, Value: limit}
			}
		}
	}
	return out
}

// withExample keeps examples that are short enough to help.
func withExample(out, o Object) Object {
	examples := []any{}
	if v, ok := o.Get("example"); ok {
		examples = append(examples, v)
	}
	if list, _ := o.Get("examples"); list != nil {
		if more, ok := list.([]any); ok {
			examples = append(examples, more...)
		}
	}
	short := slices.DeleteFunc(examples, func(v any) bool {
		s, ok := scalarText(v)
		return !ok || len(s) > 200
	})
	if len(short) == 0 {
		return out
	}
	return out.with("examples", short)
}

// withoutHidden drops the fields that do not travel in this direction.
func (c *converted) withoutHidden(out, o Object, at spot) Object {
	v, _ := o.Get("properties")
	properties, ok := v.(Object)
	if !ok {
		return out
	}
	hidden := map[string]bool{}
	for _, m := range properties {
		if c.isHidden(field{at.below("properties", 0).below(m.Key, m.Line), m.Value}) {
			hidden[m.Key] = true
		}
	}
	if len(hidden) == 0 {
		return out
	}
	shown, _ := out.Get("properties")
	kept, _ := shown.(Object)
	out = out.with("properties", slices.DeleteFunc(slices.Clone(kept), func(m Member) bool { return hidden[m.Key] }))
	if v, ok := out.Get("required"); ok {
		list, _ := v.([]any)
		list = slices.DeleteFunc(slices.Clone(list), func(v any) bool {
			name, _ := v.(string)
			return hidden[name]
		})
		out = out.with("required", list)
	}
	return out
}

func (c *converted) isHidden(f field) bool {
	if c.marked(f.value) {
		return true
	}
	o, ok := f.value.(Object)
	if !ok {
		return false
	}
	ref, at, ok := reference(o, f.at)
	if !ok {
		return false
	}
	target, ok := c.lookup(ref, at)
	return ok && c.marked(target.value)
}

func (c *converted) marked(v any) bool {
	o, _ := v.(Object)
	mark, _ := o.Get(c.hidden)
	return mark == true
}

// orNull is OpenAPI 3.0's nullable.
func orNull(out Object) Object {
	v, ok := out.Get("type")
	if word, isWord := v.(string); isWord {
		out = out.with("type", []any{word, "null"})
	} else if !ok && contains(out, "$ref", "allOf", "anyOf", "oneOf", "enum") {
		return Object{{Key: "anyOf", Value: []any{out, Object{{Key: "type", Value: "null"}}}}}
	}
	if v, ok := out.Get("enum"); ok {
		if list, _ := v.([]any); !slices.Contains(list, nil) {
			out = out.with("enum", append(slices.Clone(list), nil))
		}
	}
	return out
}

// isObject reports whether whatever fits a schema is an object.
func (a *api) isObject(f field, hops int) bool {
	o, ok := f.value.(Object)
	if !ok || hops > maxHops {
		return false
	}
	if ref, at, ok := reference(o, f.at); ok {
		if _, asked := a.objects[ref]; !asked {
			a.objects[ref] = false // of a schema that is only itself
			target, ok := a.lookup(ref, at)
			a.objects[ref] = ok && a.isObject(target, hops+1)
		}
		return a.objects[ref]
	}
	if nullable, _ := o.Get("nullable"); nullable == true {
		return false
	}
	if v, ok := o.Get("type"); ok {
		return v == "object"
	}
	if contains(o, "properties") {
		return true
	}
	all, _ := o.Get("allOf")
	list, _ := all.([]any)
	return slices.ContainsFunc(list, func(v any) bool { return a.isObject(field{f.at, v}, hops) })
}
