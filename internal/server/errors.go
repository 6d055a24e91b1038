package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"quartermaster"
)

// statuses maps every code to its REST status (EXE-2).
var statuses = map[quartermaster.Code]int{
	quartermaster.CodeToolNotFound:        http.StatusNotFound,
	quartermaster.CodePermissionDenied:    http.StatusForbidden,
	quartermaster.CodeInvalidArguments:    http.StatusUnprocessableEntity,
	quartermaster.CodeBudgetExhausted:     http.StatusPaymentRequired,
	quartermaster.CodeExecutionFailed:     http.StatusBadGateway,
	quartermaster.CodeTimeout:             http.StatusGatewayTimeout,
	quartermaster.CodeCircuitOpen:         http.StatusServiceUnavailable,
	quartermaster.CodeUnavailable:         http.StatusServiceUnavailable,
	quartermaster.CodeUnsupportedProvider: http.StatusNotImplemented,
	quartermaster.CodeGroupsNotGranted:    http.StatusForbidden,
	quartermaster.CodeStateConflict:       http.StatusConflict,
	quartermaster.CodeInvalidToolIDs:      http.StatusBadRequest,
	quartermaster.CodeNotFound:            http.StatusNotFound,
	quartermaster.CodeAlreadyExists:       http.StatusConflict,
	quartermaster.CodeNotDeletable:        http.StatusConflict,
	quartermaster.CodeInvalidRequest:      http.StatusUnprocessableEntity,
	quartermaster.CodeMalformedRequest:    http.StatusBadRequest,
	quartermaster.CodeTooLarge:            http.StatusRequestEntityTooLarge,
	quartermaster.CodeUnsupportedMedia:    http.StatusUnsupportedMediaType,
	quartermaster.CodeNotAllowed:          http.StatusMethodNotAllowed,
	quartermaster.CodeForbiddenOrigin:     http.StatusForbidden,
	quartermaster.CodeInternal:            http.StatusInternalServerError,
}

// codes maps the statuses that huma and net/http choose by themselves.
var codes = map[int]quartermaster.Code{
	http.StatusBadRequest:            quartermaster.CodeMalformedRequest,
	http.StatusNotFound:              quartermaster.CodeNotFound,
	http.StatusMethodNotAllowed:      quartermaster.CodeNotAllowed,
	http.StatusRequestEntityTooLarge: quartermaster.CodeTooLarge,
	http.StatusUnsupportedMediaType:  quartermaster.CodeUnsupportedMedia,
	http.StatusUnprocessableEntity:   quartermaster.CodeInvalidRequest,
	http.StatusRequestTimeout:        quartermaster.CodeTimeout,
}

// Problem is an error as RFC 9457 writes it.
type Problem struct {
	Type       string                `json:"type" doc:"Always about:blank: code says what kind it is"`
	Title      string                `json:"title"`
	Status     int                   `json:"status"`
	Detail     string                `json:"detail"`
	Code       quartermaster.Code    `json:"code" doc:"Stable word for this kind of failure" example:"invalid_request"`
	Errors     []quartermaster.Fault `json:"errors,omitempty" doc:"Which fields are wrong, and how"`
	InvalidIDs []string              `json:"invalidIds,omitempty" doc:"With code INVALID_TOOL_IDS: every id that is unknown, malformed or not active"`

	details map[string]any
}

func (p *Problem) Error() string { return p.Detail }

// GetStatus tells huma the status to answer with.
func (p *Problem) GetStatus() int { return p.Status }

// ContentType tells huma the type to answer with.
func (p *Problem) ContentType(string) string { return "application/problem+json" }

// MarshalJSON adds the members that only this kind of problem has.
func (p *Problem) MarshalJSON() ([]byte, error) {
	type plain Problem
	body, err := json.Marshal((*plain)(p))
	if err != nil || len(p.details) == 0 {
		return body, err
	}
	more, err := json.Marshal(p.details)
	if err != nil {
		return nil, err
	}
	return slices.Concat(body[:len(body)-1], []byte(","), more[1:]), nil
}

// problem turns any error into a Problem. What only the log may know stays in
// the log.
func (s *Server) problem(ctx context.Context, err error) *Problem {
	e, ok := errors.AsType[*quartermaster.Error](err)
	switch {
	case !ok && ctx.Err() != nil:
		e = quartermaster.Errorf(quartermaster.CodeTimeout, "the request was given up")
	case !ok:
		s.Log.ErrorContext(ctx, "request failed", "error", err)
		e = quartermaster.Errorf(quartermaster.CodeInternal, "something went wrong here; the server's log says what")
	case e.Cause != nil:
		s.Log.WarnContext(ctx, "request failed", "code", e.Code, "error", e.Message, "cause", causes(e.Cause))
	}
	p := problemOf(statuses[e.Code], e.Code, e.Message)
	p.Errors = e.Faults
	p.details = maps.Clone(e.Details)
	if ids, ok := p.details["invalidIds"].([]string); ok {
		p.InvalidIDs = ids
		delete(p.details, "invalidIds")
	}
	return p
}

func problemOf(status int, code quartermaster.Code, detail string) *Problem {
	return &Problem{Type: "about:blank", Title: http.StatusText(status), Status: status, Detail: detail, Code: code}
}

// newProblem makes a Problem of what huma finds wrong. The value that is wrong
// is not repeated: it may be a secret.
func newProblem(status int, message string, errs ...error) huma.StatusError {
	code, ok := codes[status]
	if !ok {
		code = quartermaster.CodeInternal
	}
	p := problemOf(status, code, message)
	for _, err := range errs {
		d, ok := err.(huma.ErrorDetailer)
		if !ok {
			continue
		}
		detail := d.ErrorDetail()
		location, text := unveiled.Replace(detail.Location), unveiled.Replace(detail.Message)
		if at, why, ok := strings.Cut(text, ": "); ok && location == "body" && strings.HasPrefix(at, "body") {
			location, text = at, why // checkJSON says exactly where
		}
		if field, ok := strings.CutPrefix(text, "expected required property "); ok {
			location, text = location+"."+strings.TrimSuffix(field, " to be present"), "is required"
		}
		p.Errors = append(p.Errors, quartermaster.Fault{Location: location, Message: text})
	}
	if len(p.Errors) > 0 {
		p.Detail = message + ": " + p.Errors[0].Location + ": " + p.Errors[0].Message
	}
	return p
}

// below moves an error's faults to where the client has put the value.
func below(location string, err error) error {
	e, ok := errors.AsType[*quartermaster.Error](err)
	if !ok || len(e.Faults) == 0 {
		return err
	}
	moved := *e
	moved.Faults = slices.Clone(e.Faults)
	for i := range moved.Faults {
		moved.Faults[i].Location = strings.TrimSuffix(location+"."+moved.Faults[i].Location, ".")
	}
	return &moved
}

// moved is err with the faults below one place told of another.
func moved(err error, from, to string) error {
	e, ok := errors.AsType[*quartermaster.Error](err)
	if !ok || len(e.Faults) == 0 {
		return err
	}
	next := *e
	next.Faults = slices.Clone(e.Faults)
	for i, f := range next.Faults {
		if rest, ok := strings.CutPrefix(f.Location, from); ok {
			next.Faults[i].Location = to + rest
		}
	}
	return &next
}

// joined is one error with the faults of both, in the words of the first. What
// has no faults to tell stands alone, and a place is told of once.
func joined(err, other error) error {
	a, ok := errors.AsType[*quartermaster.Error](err)
	b, ok2 := errors.AsType[*quartermaster.Error](other)
	switch {
	case err == nil:
		return other
	case !ok || !ok2 || len(a.Faults) == 0:
		return err
	}
	both := *a
	both.Faults = slices.Clone(a.Faults)
	said := make(map[string]bool, len(a.Faults))
	for _, f := range a.Faults {
		said[f.Location] = true
	}
	for _, f := range b.Faults {
		if !said[f.Location] {
			both.Faults = append(both.Faults, f)
		}
	}
	return &both
}

// faultsOf are those that err tells of.
func faultsOf(err error) []quartermaster.Fault {
	e, ok := errors.AsType[*quartermaster.Error](err)
	if !ok {
		return nil
	}
	return e.Faults
}

// invalid is an error about several places; nil if there are none.
func invalid(faults []quartermaster.Fault, format string, args ...any) error {
	if len(faults) == 0 {
		return nil
	}
	e := quartermaster.Errorf(quartermaster.CodeInvalidRequest, format, args...)
	e.Faults = faults
	return e
}

// fault is an invalid_request about one place.
func fault(location, message string) error {
	e := quartermaster.Errorf(quartermaster.CodeInvalidRequest, "validation failed: %s", message)
	e.Faults = []quartermaster.Fault{{Location: location, Message: message}}
	return e
}

// problemsForUnrouted answers what no route matches with a problem document
// too, where net/http would answer with plain text.
func problemsForUnrouted(mux *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h, pattern := mux.Handler(r)
		if pattern != "" {
			mux.ServeHTTP(w, r)
			return
		}
		said := &overheard{header: http.Header{}}
		h.ServeHTTP(said, r)
		switch said.status {
		case http.StatusNotFound:
			writeProblem(w, nothingAt(r))
		case http.StatusMethodNotAllowed:
			w.Header().Set("Allow", said.header.Get("Allow"))
			writeProblem(w, problemOf(said.status, quartermaster.CodeNotAllowed, r.Method+" is not possible here; possible: "+said.header.Get("Allow")))
		default:
			h.ServeHTTP(w, r) // a redirect to the clean path
		}
	})
}

func nothingAt(r *http.Request) *Problem {
	return problemOf(http.StatusNotFound, quartermaster.CodeNotFound, "there is nothing at "+r.URL.Path+"; /docs lists what there is")
}

// overheard is what a handler would have answered.
type overheard struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (o *overheard) Header() http.Header         { return o.header }
func (o *overheard) WriteHeader(status int)      { o.status = status }
func (o *overheard) Write(b []byte) (int, error) { return o.body.Write(b) }

func writeProblem(w http.ResponseWriter, p *Problem) {
	var body bytes.Buffer
	if err := json.NewEncoder(&body).Encode(p); err != nil {
		http.Error(w, "internal error", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(p.Status)
	_, _ = w.Write(body.Bytes())
}

// causes are the words of all that led to an error: what an engine says to an
// agent leaves out what it knows.
func causes(err error) string {
	words := err.Error()
	for e, ok := errors.AsType[*quartermaster.Error](err); ok && e.Cause != nil; e, ok = errors.AsType[*quartermaster.Error](e.Cause) {
		words += ": " + e.Cause.Error()
	}
	return words
}
