package client

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"quartermaster"
)

const (
	typeJSON       = "application/json"
	typeMergePatch = "application/merge-patch+json"
	typeProblem    = "application/problem+json"
)

// request is one question to the server.
type request struct {
	method      string
	path        string // escaped
	query       url.Values
	contentType string // typeJSON where absent
	body        any    // none where nil; a json.RawMessage goes out as it is
}

// do sends r and decodes the answer into answer, unless that is nil; a *[]byte
// takes it as it is.
func (c *Client) do(ctx context.Context, r request, answer any) error {
	req, err := c.build(ctx, r)
	if err != nil {
		return err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return c.unreachable(ctx, err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := c.read(ctx, resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return c.failure(resp, body)
	}
	switch answer := answer.(type) {
	case nil:
		return nil
	case *[]byte: // a picture, not JSON
		*answer = body
		return nil
	}
	if err := json.Unmarshal(body, answer); err != nil {
		e := quartermaster.Errorf(quartermaster.CodeInternal, "%s gave an answer that is not understood: is it a Quartermaster of this version?", c.base)
		e.Cause = err
		return e
	}
	return nil
}

func (c *Client) build(ctx context.Context, r request) (*http.Request, error) {
	var body io.Reader
	if r.body != nil {
		encoded, err := encode(r.body)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(encoded)
	}
	target := c.base + r.path
	if len(r.query) > 0 {
		target += "?" + r.query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, r.method, target, body)
	if err != nil {
		return nil, fmt.Errorf("the request cannot be made: %w", err)
	}
	req.Header.Set("Accept", typeJSON+", "+typeProblem)
	req.Header.Set("User-Agent", c.agent)
	if body != nil {
		req.Header.Set("Content-Type", typeJSON)
		if r.contentType != "" {
			req.Header.Set("Content-Type", r.contentType)
		}
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	if c.user != "" {
		req.Header.Set("Quartermaster-User", c.user)
	}
	return req, nil
}

// encode leaves <, > and & as they are: they may stand in a schema, which the
// server keeps as it is written.
func encode(v any) ([]byte, error) {
	if raw, ok := v.(json.RawMessage); ok {
		return raw, nil
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, fmt.Errorf("the request cannot be written as JSON: %w", err)
	}
	return b.Bytes(), nil
}

func (c *Client) read(ctx context.Context, r io.Reader) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(r, c.most+1))
	switch {
	case err != nil:
		return nil, c.unreachable(ctx, err)
	case int64(len(body)) > c.most:
		return nil, quartermaster.Errorf(quartermaster.CodeTooLarge, "the answer of %s is larger than %d MiB", c.base, c.most>>20)
	}
	return body, nil
}

// segment writes one part of a path. It refuses the empty word, which no URL
// can carry there.
func segment(field, word string) (string, error) {
	switch word {
	case "":
		e := quartermaster.Errorf(quartermaster.CodeInvalidRequest, "no URL can name %q", word)
		e.Faults = []quartermaster.Fault{{Location: field, Message: "must not be empty"}}
		return "", e
	case ".", "..": // as they are they would mean a step in the path
		return strings.ReplaceAll(word, ".", "%2E"), nil
	}
	return url.PathEscape(word), nil
}
