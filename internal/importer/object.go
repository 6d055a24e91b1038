package importer

import (
	"bytes"
	"encoding/json"
	"slices"
)

// Object is a JSON object that keeps the order of its members: people write
// schemas in an order, and a document that is written twice must be the same.
type Object []Member

// Member is a key with its value, and the line on which the key stands; 0 where
// that is not known.
type Member struct {
	Key   string
	Value any
	Line  int
}

// Get finds the value of a key.
func (o Object) Get(key string) (any, bool) {
	i := o.index(key)
	if i < 0 {
		return nil, false
	}
	return o[i].Value, true
}

func (o Object) index(key string) int {
	return slices.IndexFunc(o, func(m Member) bool { return m.Key == key })
}

// with is o with a key set to a value: in its place, or at the end. o itself
// stays as it is.
func (o Object) with(key string, v any) Object {
	if i := o.index(key); i >= 0 {
		o = slices.Clone(o)
		o[i].Value = v
		return o
	}
	return append(o[:len(o):len(o)], Member{Key: key, Value: v})
}

// MarshalJSON writes the members in their order.
func (o Object) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, m := range o {
		if i > 0 {
			b.WriteByte(',')
		}
		if err := appendJSON(&b, m.Key); err != nil {
			return nil, err
		}
		b.WriteByte(':')
		if err := appendJSON(&b, m.Value); err != nil {
			return nil, err
		}
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

func appendJSON(b *bytes.Buffer, v any) error {
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return err
	}
	b.Truncate(b.Len() - 1) // the line break
	return nil
}

// sameValue compares values without the order of keys and without lines.
func sameValue(a, b any) bool {
	switch a := a.(type) {
	case Object:
		b, ok := b.(Object)
		return ok && len(a) == len(b) && !slices.ContainsFunc(a, func(m Member) bool {
			other, ok := b.Get(m.Key)
			return !ok || !sameValue(m.Value, other)
		})
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, sameValue)
	default:
		_, isObject := b.(Object)
		_, isList := b.([]any)
		return !isObject && !isList && a == b
	}
}

// lineOf is the line on which a value begins, as far as that is known.
func lineOf(v any) int {
	switch v := v.(type) {
	case Object:
		if len(v) > 0 {
			return v[0].Line
		}
	case []any:
		if len(v) > 0 {
			return lineOf(v[0])
		}
	}
	return 0
}

// words is a list of text as a value.
func words(list []string) []any {
	values := make([]any, len(list))
	for i, s := range list {
		values[i] = s
	}
	return values
}
