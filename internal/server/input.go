package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"

	"quartermaster"
)

// maxNesting bounds how deep JSON may go.
const maxNesting = 100

// unmarshal reads JSON as people mean it: no key twice, no broken text. huma
// reads each body twice, first as plain values: that is when it is checked.
func unmarshal(data []byte, v any) error {
	plain, ok := v.(*any)
	if !ok {
		return json.Unmarshal(data, v)
	}
	if err := checkJSON(data); err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var read any
	if err := d.Decode(&read); err != nil {
		return err
	}
	*plain = veil(read)
	return nil
}

// huma loses its way in paths whose keys hold a dot or a bracket, as agents'
// ids do. It is shown others in their place, and newProblem puts them back.
var (
	veiled   = strings.NewReplacer(".", "\uE000", "[", "\uE001")
	unveiled = strings.NewReplacer("\uE000", ".", "\uE001", "[")
)

// veil makes of v what huma can check.
func veil(v any) any {
	switch v := v.(type) {
	case map[string]any:
		shown := make(map[string]any, len(v))
		for k, inner := range v {
			shown[veiled.Replace(k)] = veil(inner)
		}
		return shown
	case []any:
		for i, inner := range v {
			v[i] = veil(inner)
		}
	case json.Number:
		// huma takes 1e2 for an integer, but encoding/json does not read it into
		// one. Left as it is it counts as none, and is refused with its place.
		f, err := v.Float64()
		if _, notInt := v.Int64(); err == nil && (notInt == nil || f != math.Trunc(f)) {
			return f
		}
	}
	return v
}

// checkJSON finds what encoding/json would let pass silently.
func checkJSON(data []byte) error {
	if !utf8.Valid(data) {
		return errors.New("the body is not valid UTF-8")
	}
	c := checker{json.NewDecoder(bytes.NewReader(data)), data}
	c.UseNumber()
	if err := c.value("body", 0); err != nil {
		return err
	}
	if _, err := c.Token(); !errors.Is(err, io.EOF) {
		return errors.New("the body goes on after its JSON value")
	}
	return nil
}

// checker reads data token by token.
type checker struct {
	*json.Decoder
	data []byte
}

// token is the next token, which stands at path.
func (c checker) token(path string) (json.Token, error) {
	begin := c.InputOffset()
	token, err := c.Token()
	if err != nil {
		return nil, fmt.Errorf("%s: not valid JSON: %w", path, err)
	}
	// A replacement character is there because somebody wrote one, or because
	// half a pair became one.
	if text, ok := token.(string); ok && strings.ContainsRune(text, utf8.RuneError) && halfPair(c.data[begin:c.InputOffset()]) {
		return nil, fmt.Errorf("%s: the text holds half of a surrogate pair (\\ud800 to \\udfff), which is no character", path)
	}
	return token, nil
}

func (c checker) value(path string, depth int) error {
	if depth > maxNesting {
		return fmt.Errorf("%s...: nested deeper than %d", path[:min(len(path), 100)], maxNesting)
	}
	token, err := c.token(path)
	if err != nil {
		return err
	}
	switch token := token.(type) {
	case json.Delim:
		if token == '{' {
			err = c.object(path, depth)
		} else {
			err = c.list(path, depth)
		}
		if err == nil {
			_, err = c.token(path) // the closing delimiter
		}
		return err
	case json.Number:
		if _, err := token.Float64(); err != nil {
			return fmt.Errorf("%s: the number is too large", path)
		}
	}
	return nil
}

func (c checker) list(path string, depth int) error {
	for i := 0; c.More(); i++ {
		if err := c.value(fmt.Sprintf("%s[%d]", path, i), depth+1); err != nil {
			return err
		}
	}
	return nil
}

func (c checker) object(path string, depth int) error {
	seen := map[string]bool{}
	for c.More() {
		token, err := c.token(path)
		if err != nil {
			return err
		}
		key, _ := token.(string)
		at := path + "." + key
		if seen[key] {
			return fmt.Errorf("%s: the key stands there twice", at)
		}
		seen[key] = true
		if err := c.value(at, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// halfPair reports whether a valid string of JSON has an escape for half of a
// surrogate pair without its other half.
func halfPair(raw []byte) bool {
	for {
		at := bytes.IndexByte(raw, '\\')
		if at < 0 {
			return false
		}
		raw = raw[at:]
		half := surrogate(raw)
		if half == 0 {
			raw = raw[2:]
			continue
		}
		raw = raw[6:]
		if utf16.DecodeRune(half, surrogate(raw)) == utf8.RuneError {
			return true
		}
		raw = raw[6:]
	}
}

// surrogate is the half of a pair that raw begins with as \uXXXX, or 0.
func surrogate(raw []byte) rune {
	if len(raw) < 6 || raw[0] != '\\' || raw[1] != 'u' {
		return 0
	}
	r, err := strconv.ParseUint(string(raw[2:6]), 16, 16)
	if err != nil || !utf16.IsSurrogate(rune(r)) {
		return 0
	}
	return rune(r)
}

// singleParameters refuses a query that leaves open which value is meant.
func singleParameters(rest huma.API) func(huma.Context, func(huma.Context)) {
	return func(ctx huma.Context, next func(huma.Context)) {
		u := ctx.URL()
		query, err := url.ParseQuery(u.RawQuery)
		if err != nil {
			_ = huma.WriteErr(rest, ctx, http.StatusBadRequest, "the query is malformed: "+err.Error())
			return
		}
		var faults []error
		for _, p := range ctx.Operation().Parameters {
			values := query[p.Name]
			if p.In != "query" || p.Schema.Type == huma.TypeArray || len(values) == 0 {
				continue
			}
			if len(values) > 1 {
				faults = append(faults, &huma.ErrorDetail{Location: "query." + p.Name, Message: "must be given once"})
			} else if values[0] == "" && p.Schema.Type != huma.TypeString {
				faults = append(faults, &huma.ErrorDetail{Location: "query." + p.Name, Message: "must not be empty"})
			}
		}
		if len(faults) > 0 {
			_ = huma.WriteErr(rest, ctx, http.StatusUnprocessableEntity, "validation failed", faults...)
			return
		}
		next(ctx)
	}
}

// Inputs that others embed are exported: huma fills them by reflection.

// PageInput are the parameters of every list (BIND-5).
type PageInput struct {
	Page int `query:"page" default:"1" minimum:"1" doc:"From 1"`
	Size int `query:"size" default:"20" minimum:"1" maximum:"100"`
}

// ProjectInput is the project in the path of nearly everything, and who asks.
type ProjectInput struct {
	Project string `path:"project" example:"default"`

	caller  quartermaster.Caller
	request string // its id, as in the log
}

// Resolve fills in the caller.
func (p *ProjectInput) Resolve(ctx huma.Context) []error {
	var err error
	p.request = ctx.Header(requestIDHeader)
	p.caller, err = callerOf(ctx.Header, p.Project)
	return details(err)
}

// WhoInput is who asks, where no project is in the path.
type WhoInput struct{ caller quartermaster.Caller }

// Resolve fills in the caller.
func (w *WhoInput) Resolve(ctx huma.Context) []error {
	var err error
	w.caller, err = callerOf(ctx.Header, "")
	return details(err)
}

// asInPath lets a body repeat the name that is in the path, but not contradict
// it.
func asInPath(field string, inBody *string, inPath string) error {
	if *inBody != "" && *inBody != inPath {
		return fault("body."+field, "is not the "+field+" in the URL")
	}
	*inBody = inPath
	return nil
}

// details are the faults of err as huma reports them.
func details(err error) []error {
	var all []error
	for _, f := range faultsOf(err) {
		all = append(all, &huma.ErrorDetail{Location: f.Location, Message: f.Message})
	}
	return all
}

// mergePatch applies a JSON merge patch (RFC 7396).
func mergePatch(target, patch json.RawMessage) (json.RawMessage, error) {
	var changes map[string]json.RawMessage
	if !isObject(patch) {
		return patch, nil
	}
	if err := json.Unmarshal(patch, &changes); err != nil {
		return nil, err
	}
	merged := map[string]json.RawMessage{}
	if isObject(target) {
		if err := json.Unmarshal(target, &merged); err != nil {
			return nil, err
		}
	}
	for k, v := range changes {
		if string(bytes.TrimSpace(v)) == "null" {
			delete(merged, k)
			continue
		}
		next, err := mergePatch(merged[k], v)
		if err != nil {
			return nil, err
		}
		merged[k] = next
	}
	return json.Marshal(merged)
}

func isObject(raw json.RawMessage) bool {
	return strings.HasPrefix(string(bytes.TrimSpace(raw)), "{")
}
