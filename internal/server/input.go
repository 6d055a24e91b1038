package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
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
	if err := json.Unmarshal(data, plain); err != nil {
		return err
	}
	veil(*plain)
	return nil
}

// huma loses its way in paths whose keys hold a dot or a bracket, as agents'
// ids do. It is shown others in their place, and newProblem puts them back.
var (
	veiled   = strings.NewReplacer(".", "\uE000", "[", "\uE001")
	unveiled = strings.NewReplacer("\uE000", ".", "\uE001", "[")
)

func veil(v any) {
	switch v := v.(type) {
	case map[string]any:
		for k, inner := range v {
			veil(inner)
			if veiledKey := veiled.Replace(k); veiledKey != k {
				delete(v, k)
				v[veiledKey] = inner
			}
		}
	case []any:
		for _, inner := range v {
			veil(inner)
		}
	}
}

// checkJSON finds what encoding/json would let pass silently.
func checkJSON(data []byte) error {
	if !utf8.Valid(data) {
		return errors.New("the body is not valid UTF-8")
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if err := checkValue(d, "body", 0); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("the body goes on after its JSON value")
	}
	return nil
}

func checkValue(d *json.Decoder, path string, depth int) error {
	if depth > maxNesting {
		return fmt.Errorf("%s...: nested deeper than %d", path[:min(len(path), 100)], maxNesting)
	}
	token, err := d.Token()
	if err != nil {
		return fmt.Errorf("%s: not valid JSON: %w", path, err)
	}
	switch token {
	case json.Delim('{'):
		err = checkObject(d, path, depth)
	case json.Delim('['):
		for i := 0; d.More() && err == nil; i++ {
			err = checkValue(d, fmt.Sprintf("%s[%d]", path, i), depth+1)
		}
	default:
		return nil
	}
	if err != nil {
		return err
	}
	if _, err := d.Token(); err != nil { // the closing delimiter
		return fmt.Errorf("%s: not valid JSON: %w", path, err)
	}
	return nil
}

func checkObject(d *json.Decoder, path string, depth int) error {
	seen := map[string]bool{}
	for d.More() {
		token, err := d.Token()
		if err != nil {
			return fmt.Errorf("%s: not valid JSON: %w", path, err)
		}
		key, _ := token.(string)
		at := path + "." + key
		if seen[key] {
			return fmt.Errorf("%s: the key stands there twice", at)
		}
		seen[key] = true
		if err := checkValue(d, at, depth+1); err != nil {
			return err
		}
	}
	return nil
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

	caller quartermaster.Caller
}

// Resolve fills in the caller.
func (p *ProjectInput) Resolve(ctx huma.Context) []error {
	var err error
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

// details are the faults of err as huma reports them.
func details(err error) []error {
	e, ok := errors.AsType[*quartermaster.Error](err)
	if !ok {
		return nil
	}
	var all []error
	for _, f := range e.Faults {
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
