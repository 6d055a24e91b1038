package quartermaster

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// definitionFields are the fields of a definition, in order.
var definitionFields = []string{"name", "title", "description", "inputSchema", "outputSchema", "annotations"}

// decode returns the fields that an offer has.
func (o *Offer) decode() (map[string]any, error) {
	values := map[string]any{"name": o.Name}
	if o.Title != "" {
		values["title"] = o.Title
	}
	if o.Description != "" {
		values["description"] = o.Description
	}
	for field, raw := range o.objects() {
		v, err := readObject(*raw)
		if err != nil {
			return nil, fmt.Errorf("its %s %w", field, err)
		}
		if v != nil {
			values[field] = v
		}
	}
	return values, nil
}

// hash is the canonical hash of a definition: neither whitespace nor the order
// of keys nor the spelling of a number matters (CAT-4). It stands in databases
// and must never change for the same definition.
func (o *Offer) hash() string {
	values, _ := o.decode() // done before, when it was taken
	return hashOf(values)
}

func hashOf(values map[string]any) string {
	sum := sha256.Sum256(appendValue(nil, values))
	return hex.EncodeToString(sum[:])
}

// readObject decodes a JSON object and refuses what two readers could take for
// two different things.
func readObject(raw json.RawMessage) (any, error) {
	if raw == nil {
		return nil, nil
	}
	if !json.Valid(raw) {
		return nil, errors.New("is not valid JSON")
	}
	if tooDeep(raw) {
		return nil, fmt.Errorf("is nested more than %d deep", maxSchemaDepth)
	}
	var compact bytes.Buffer
	_ = json.Compact(&compact, raw) // it is valid
	r := valueReader{raw: compact.Bytes()}
	return r.value(), r.fault
}

func tooDeep(raw []byte) bool {
	depth, quoted := 0, false
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case quoted:
			quoted = c != '"'
			if c == '\\' {
				i++
			}
		case c == '"':
			quoted = true
		case c == '{' || c == '[':
			if depth++; depth > maxSchemaDepth {
				return true
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return false
}

// valueReader decodes JSON that is valid, compact and not deep. It is several
// times as fast as reading it token by token, and finds keys that stand twice in
// an object.
type valueReader struct {
	raw   []byte
	at    int
	fault error
}

func (r *valueReader) value() any {
	switch r.raw[r.at] {
	case '{':
		return r.object()
	case '[':
		list := []any{}
		for r.at++; r.raw[r.at] != ']'; {
			list = append(list, r.value())
			r.comma()
		}
		r.at++
		return list
	case '"':
		return r.text()
	}
	return r.literal()
}

func (r *valueReader) object() any {
	object := map[string]any{}
	for r.at++; r.raw[r.at] != '}'; {
		key := r.text()
		r.at++ // the colon
		if _, twice := object[key]; twice {
			r.fault = fmt.Errorf("has the key %q twice in one object", visible(key, 64))
		}
		object[key] = r.value()
		r.comma()
	}
	r.at++
	return object
}

func (r *valueReader) comma() {
	if r.raw[r.at] == ',' {
		r.at++
	}
}

func (r *valueReader) text() string {
	from := r.at
	plain := true
	for r.at++; r.raw[r.at] != '"'; r.at++ {
		if r.raw[r.at] == '\\' {
			plain = false
			r.at++
		}
	}
	r.at++
	if plain && utf8.Valid(r.raw[from:r.at]) {
		return string(r.raw[from+1 : r.at-1])
	}
	var text string
	_ = json.Unmarshal(r.raw[from:r.at], &text) // it is valid
	return text
}

func (r *valueReader) literal() any {
	from := r.at
	for r.at < len(r.raw) && strings.IndexByte(",]}", r.raw[r.at]) < 0 {
		r.at++
	}
	switch word := string(r.raw[from:r.at]); word {
	case "null":
		return nil
	case "true", "false":
		return word == "true"
	default:
		return json.Number(word)
	}
}

// appendValue writes a decoded value so that no two different ones look alike.
func appendValue(b []byte, v any) []byte {
	switch v := v.(type) {
	case map[string]any:
		b = appendCount(b, '{', len(v))
		for _, key := range slices.Sorted(maps.Keys(v)) {
			b = appendValue(appendString(b, key), v[key])
		}
	case []any:
		b = appendCount(b, '[', len(v))
		for _, item := range v {
			b = appendValue(b, item)
		}
	case string:
		b = appendString(b, v)
	case json.Number:
		number := plainNumber(v)
		b = append(appendCount(b, '#', len(number)), number...)
	case bool:
		b = strconv.AppendBool(b, v)
	default:
		b = append(b, "null"...)
	}
	return b
}

func appendString(b []byte, s string) []byte { return append(appendCount(b, '"', len(s)), s...) }

func appendCount(b []byte, kind byte, n int) []byte {
	return append(strconv.AppendInt(append(b, kind), int64(n), 10), ':')
}

// plainNumber spells numbers alike that sameNumber takes for the same.
func plainNumber(n json.Number) string {
	if i, err := n.Int64(); err == nil {
		return strconv.FormatInt(i, 10)
	}
	f, err := n.Float64()
	switch {
	case err != nil || f >= 1<<53 || f <= -1<<53:
		return n.String()
	case f == float64(int64(f)):
		return strconv.FormatInt(int64(f), 10)
	}
	return strconv.FormatFloat(f, 'e', -1, 64)
}
