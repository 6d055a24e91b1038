package importer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"quartermaster"
)

// MaxDepth bounds how deep a file may be nested: no deeper than a server takes.
const MaxDepth = 100

// ParseJSON reads JSON as editors write it: with comments, and with a comma
// behind the last member.
func ParseJSON(name string, data []byte) (File, error) {
	plain := withoutComments(data)
	d := json.NewDecoder(bytes.NewReader(plain))
	d.UseNumber()
	r := &jsonReader{d: d, data: plain, line: 1}
	v, err := r.value(0)
	if err == nil {
		_, err = d.Token()
		switch {
		case errors.Is(err, io.EOF):
			return File{Name: name, Value: v}, nil
		case err == nil:
			err = errors.New("goes on after its value")
		}
	}
	r.advance()
	e := quartermaster.Errorf(quartermaster.CodeMalformedRequest, "%s is not valid JSON", name)
	e.Faults = []quartermaster.Fault{{Location: spot{file: name, line: r.line}.String(), Message: jsonReason(err)}}
	return File{}, e
}

func jsonReason(err error) string {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return "ends in the middle"
	}
	return err.Error() // repeats one character at most
}

// jsonReader reads ordered values and counts lines.
type jsonReader struct {
	d    *json.Decoder
	data []byte
	at   int64 // up to where lines are counted
	line int
}

func (r *jsonReader) advance() {
	to := min(r.d.InputOffset(), int64(len(r.data)))
	r.line += bytes.Count(r.data[r.at:to], []byte{'\n'})
	r.at = to
}

func (r *jsonReader) value(depth int) (any, error) {
	if depth > MaxDepth {
		return nil, fmt.Errorf("is nested deeper than %d", MaxDepth)
	}
	token, err := r.d.Token()
	if err != nil {
		return nil, err
	}
	switch token {
	case json.Delim('{'):
		return r.object(depth)
	case json.Delim('['):
		return r.list(depth)
	default:
		return token, nil
	}
}

func (r *jsonReader) list(depth int) (any, error) {
	list := []any{}
	for r.d.More() {
		v, err := r.value(depth + 1)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	_, err := r.d.Token()
	return list, err
}

func (r *jsonReader) object(depth int) (any, error) {
	o := Object{}
	lines := map[string]int{}
	for r.d.More() {
		token, err := r.d.Token()
		if err != nil {
			return nil, err
		}
		r.advance()
		key, _ := token.(string) // the decoder has checked it
		if line, ok := lines[key]; ok {
			return nil, fmt.Errorf("the key %q stands already in line %d", key, line)
		}
		lines[key] = r.line
		line := r.line
		v, err := r.value(depth + 1)
		if err != nil {
			return nil, err
		}
		o = append(o, Member{key, v, line})
	}
	_, err := r.d.Token()
	return o, err
}

// withoutComments blanks comments and needless commas, and leaves everything
// else where it is.
func withoutComments(data []byte) []byte {
	out := slices.Clone(data)
	comma := -1 // one with nothing but space behind it
	for i := 0; i < len(out); i++ {
		switch c := out[i]; {
		case c == '"':
			i = stringEnd(out, i)
			comma = -1
		case c == '/' && i+1 < len(out) && (out[i+1] == '/' || out[i+1] == '*'):
			i = blankComment(out, i)
		case c == ',':
			comma = i
		case (c == '}' || c == ']') && comma >= 0:
			out[comma] = ' '
			comma = -1
		case c > ' ':
			comma = -1
		}
	}
	return out
}

// stringEnd is the index of the quote that ends the string begun at i.
func stringEnd(data []byte, i int) int {
	for i++; i < len(data) && data[i] != '"'; i++ {
		if data[i] == '\\' {
			i++
		}
	}
	return i
}

// blankComment overwrites the comment that begins at i and returns its last index.
func blankComment(data []byte, i int) int {
	end := len(data)
	if data[i+1] == '/' {
		if n := bytes.IndexByte(data[i:], '\n'); n >= 0 {
			end = i + n
		}
	} else if n := bytes.Index(data[i+2:], []byte("*/")); n >= 0 {
		end = i + 2 + n + 2
	}
	for j := i; j < end; j++ {
		if data[j] != '\n' {
			data[j] = ' '
		}
	}
	return end - 1
}
