package server

import (
	"encoding/json"
	"reflect"
	"slices"

	"github.com/danielgtaylor/huma/v2"
)

// patchOf is a JSON merge patch (RFC 7396) of a T: any of its fields, and null
// for those that shall be absent.
type patchOf[T any] json.RawMessage

// UnmarshalJSON keeps the patch as it came.
func (p *patchOf[T]) UnmarshalJSON(data []byte) error {
	*p = append((*p)[:0], data...)
	return nil
}

// Schema is that of T with nothing required and null for everything.
func (patchOf[T]) Schema(r huma.Registry) *huma.Schema {
	t := reflect.TypeFor[T]()
	whole := r.SchemaFromRef(r.Schema(t, true, "").Ref)
	name := t.Name() + "Patch"
	if r.Map()[name] == nil {
		properties := make(map[string]*huma.Schema, len(whole.Properties))
		for field, s := range whole.Properties {
			properties[field] = orNull(s)
		}
		s := &huma.Schema{
			Type: huma.TypeObject, Properties: properties, AdditionalProperties: false,
			Description: "A JSON merge patch: only what shall change; null removes.",
		}
		s.PrecomputeMessages()
		r.Map()[name] = s
	}
	return &huma.Schema{Ref: refPrefix + name}
}

// orNull is a schema that takes null too. Its words stay those of s.
func orNull(s *huma.Schema) *huma.Schema {
	null := *s
	null.Nullable = true
	if len(s.Enum) > 0 {
		null.Enum = append(slices.Clone(s.Enum), nil)
	}
	return &null
}

// apply returns what the patch makes of v.
func (p patchOf[T]) apply(v T) (T, error) {
	var next T
	before, err := json.Marshal(v)
	if err != nil {
		return next, err
	}
	after, err := mergePatch(before, json.RawMessage(p))
	if err != nil {
		return next, err
	}
	if err := json.Unmarshal(after, &next); err != nil {
		return next, fault("", err.Error())
	}
	return next, nil
}
