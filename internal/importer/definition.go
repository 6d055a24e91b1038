package importer

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// definition is a schema that others refer to.
type definition struct {
	name  string
	value any
	size  int      // as JSON
	refs  []string // what it refers to itself
}

var notDefinition = regexp.MustCompile(`[^A-Za-z0-9_.-]+`)

// define gives a reference its name below $defs.
func (s *schemas) define(ref string) *definition {
	if d, ok := s.defs[ref]; ok {
		return d
	}
	last := unescape(ref[strings.LastIndexByte(ref, '/')+1:])
	name := notDefinition.ReplaceAllString(last, "_")
	if name == "" || len(name) > 100 || s.names[name] {
		name = name[:min(len(name), 90)] + "_" + hash(ref)
	}
	s.names[name] = true
	d := &definition{name: name}
	s.defs[ref] = d
	return d
}

// definitions are all that refs refer to, directly or not, in a stable order.
// It walks a list and not the references themselves: those may go in circles,
// and be longer than any stack.
func (s *schemas) definitions(refs []string, most int) (Object, bool) {
	out := Object{}
	seen := map[string]bool{}
	size := 0
	for todo := slices.Clone(refs); len(todo) > 0; todo = todo[1:] {
		ref := todo[0]
		if seen[ref] {
			continue
		}
		seen[ref] = true
		d := s.define(ref)
		if d.value == nil {
			f, _ := s.lookup(ref, spot{}) // it was found before
			c := &converted{schemas: s}
			d.value, d.refs = c.convert(f, 0), c.refs
			d.size = sizeOf(d.value)
		}
		if size += d.size; size > most {
			return nil, false
		}
		out = append(out, Member{Key: d.name, Value: d.value})
		todo = append(todo, d.refs...)
	}
	return out, true
}

// sizeOf is how long a value is as JSON, but for what has to be escaped.
func sizeOf(v any) int {
	size := 2
	switch v := v.(type) {
	case Object:
		for _, m := range v {
			size += len(m.Key) + 4 + sizeOf(m.Value)
		}
	case []any:
		for _, item := range v {
			size += 1 + sizeOf(item)
		}
	case string:
		size += len(v)
	default:
		size += 8 // a number, a word
	}
	return size
}

// complete adds $defs to a schema; false: it would be larger than one may be.
func (s *schemas) complete(schema Object, refs []string) (Object, bool) {
	defs, ok := s.definitions(refs, maxSchema)
	if !ok {
		return nil, false
	}
	if len(defs) > 0 {
		schema = append(slices.Clone(schema), Member{Key: "$defs", Value: defs})
	}
	size := sizeOf(schema)
	if size > maxSchema {
		return nil, false
	}
	if s.size += size; s.size > maxSchemas {
		s.exhaust(fmt.Sprintf("the schemas of all its tools are larger than %d MiB together", maxSchemas>>20))
	}
	return schema, true
}
