package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"mime"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"syscall"

	"quartermaster"
)

// unreachable says why no answer came.
func (c *Client) unreachable(ctx context.Context, err error) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return ctx.Err() // the caller's own doing
	}
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
		e := quartermaster.Errorf(quartermaster.CodeTimeout, "%s did not answer in time", c.base)
		e.Cause = err
		return e
	}
	const remedy = "is it running? start it with: quartermaster serve"
	e := quartermaster.Errorf(quartermaster.CodeUnavailable, "no server answers at %s: %s", c.base, remedy)
	if !errors.Is(err, syscall.ECONNREFUSED) {
		e.Message = fmt.Sprintf("%s cannot be reached (%v): %s", c.base, reason(err), remedy)
	}
	e.Cause = err
	return e
}

// reason leaves out method and URL, which the message has already.
func reason(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		return u.Err
	}
	return err
}

// failure rebuilds the error that the server meant. An answer without a
// problem document comes from something else, such as a proxy in between.
func (c *Client) failure(resp *http.Response, body []byte) error {
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if kind == typeProblem {
		if e := problem(resp.StatusCode, body); e != nil {
			return e
		}
	}
	if state := health(body); kind == typeJSON && state != "" {
		return quartermaster.Errorf(codeOf(resp.StatusCode), "%s is not ready: %s", c.base, state)
	}
	code := codeOf(resp.StatusCode)
	return quartermaster.Errorf(code, "%s answered %d %s, but not as a Quartermaster does: is the address right?",
		c.base, resp.StatusCode, http.StatusText(resp.StatusCode))
}

// health reads what /readyz says of a server that is not; "" if body is nothing
// of that kind.
func health(body []byte) string {
	var said map[string]string
	if json.Unmarshal(body, &said) != nil || said["status"] == "" {
		return ""
	}
	words := []string{said["status"]}
	for _, part := range slices.Sorted(maps.Keys(said)) {
		if part != "status" {
			words = append(words, part+" "+said[part])
		}
	}
	return strings.Join(words, ", ")
}

// known are the members of a problem document that have a place of their own.
var known = []string{"type", "title", "status", "detail", "instance", "code", "errors", "$schema"}

// problem reads an RFC 9457 document; nil if body is none.
func problem(status int, body []byte) *quartermaster.Error {
	var p struct {
		Title  string                `json:"title"`
		Detail string                `json:"detail"`
		Code   quartermaster.Code    `json:"code"`
		Errors []quartermaster.Fault `json:"errors"`
	}
	var all map[string]any
	if json.Unmarshal(body, &p) != nil || json.Unmarshal(body, &all) != nil {
		return nil
	}
	e := &quartermaster.Error{Code: p.Code, Message: p.Detail, Faults: p.Errors}
	if e.Message == "" {
		e.Message = p.Title
	}
	if e.Message == "" {
		e.Message = http.StatusText(status)
	}
	if e.Code == "" {
		e.Code = codeOf(status)
	}
	for k, v := range all {
		if slices.Contains(known, k) {
			continue
		}
		if e.Details == nil {
			e.Details = map[string]any{}
		}
		e.Details[k] = v
	}
	return e
}

// codeOf is the nearest code of an answer that has none.
func codeOf(status int) quartermaster.Code {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return quartermaster.CodePermissionDenied
	case http.StatusNotFound:
		return quartermaster.CodeNotFound
	case http.StatusRequestEntityTooLarge:
		return quartermaster.CodeTooLarge
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusTooManyRequests:
		return quartermaster.CodeUnavailable
	case http.StatusGatewayTimeout:
		return quartermaster.CodeTimeout
	default:
		return quartermaster.CodeInternal
	}
}
