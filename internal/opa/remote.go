package opa

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"

	"github.com/open-policy-agent/opa/v1/ast"
	"golang.org/x/sync/errgroup"

	"quartermaster"
)

// answerLimit bounds what a remote OPA may send back.
const answerLimit = 16 << 20

// remote is a house policy that another OPA evaluates. Every question goes
// there; nothing is kept. It is sent the input alone: the documents of the
// catalog (data.tools, data.groups, data.roles, data.project) are not there.
//
// It is asked for the set rule first; where that is undefined, for the rule
// itself, about all tools in one query. What is undefined allows nothing: a
// policy over there that offers the set must give allow a default of true if
// calls are to pass by the set alone.
type remote struct {
	engine  *Engine
	address *url.URL
	client  *http.Client
	words   atomic.Pointer[string] // why the last question had no answer
}

func (e *Engine) openRemote() (house, error) {
	address, err := parseAddress("the remote OPA", e.options.URL)
	if err != nil {
		return nil, err
	}
	address.RawQuery, address.Fragment = "", ""
	transport := newTransport()
	transport.MaxIdleConnsPerHost = 64
	return &remote{engine: e, address: address, client: &http.Client{
		Transport: transport,
		// Elsewhere might be anywhere: neither the token nor the question goes there.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

func (r *remote) close() { r.client.CloseIdleConnections() }

func (r *remote) name() string { return houseLayer }

func (r *remote) layer(context.Context, *desk, *quartermaster.Catalog) (layer, error) { return r, nil }

func (r *remote) status() quartermaster.EngineStatus {
	s := quartermaster.EngineStatus{Detail: fmt.Sprintf("%s: the OPA at %s", houseLayer, r.address.Host)}
	if words := r.words.Load(); words != nil {
		s.Trouble = *words
	}
	return s
}

// judge implements layer.
func (r *remote) judge(ctx context.Context, a *asked) error {
	limit := r.engine.limit(len(a.tools))
	ctx, stop := context.WithTimeoutCause(ctx, limit, &cut{limit})
	defer stop()
	err := r.narrow(ctx, a)
	r.heard(ctx, err)
	if err == nil {
		return nil
	}
	e := quartermaster.Errorf(quartermaster.CodeUnavailable, "the OPA of the house policy does not answer; try again")
	e.Cause = err
	return e
}

// heard notes how the last question went. One that was given up by its caller
// says nothing of the OPA.
func (r *remote) heard(ctx context.Context, err error) {
	if err == nil {
		r.words.Store(nil)
		return
	}
	if errors.Is(context.Cause(ctx), context.Canceled) {
		return
	}
	words := fmt.Sprintf("the OPA at %s does not answer: %v", r.address.Host, err)
	if before := r.words.Swap(&words); before == nil || *before != words {
		r.engine.options.Log.Warn("house policy cannot be asked", "reason", words)
	}
}

func (r *remote) narrow(ctx context.Context, a *asked) error {
	offered, err := r.askSet(ctx, a)
	if err != nil || offered && !a.call() {
		return err
	}
	left := a.positions()
	switch len(left) {
	case 0:
		return nil
	case 1:
		return r.askOne(ctx, a, left[0])
	}
	return r.askEach(ctx, a, left)
}

// askSet asks the set rule about all tools; false where it is not there.
func (r *remote) askSet(ctx context.Context, a *asked) (bool, error) {
	left := a.positions()
	names := namesAt(a, left)
	input := a.document()
	input["tools"] = names
	result, err := r.data(ctx, setRule(r.engine.query), input)
	if err != nil || result == nil {
		return false, err
	}
	var in []string
	if err := json.Unmarshal(result, &in); err != nil {
		return false, fmt.Errorf("%s is no set of names", setRule(r.engine.query))
	}
	among := make(map[string]bool, len(in))
	for _, name := range in {
		among[name] = true
	}
	for i, position := range left {
		if !among[names[i]] {
			a.answer[position] = quartermaster.Judgment{}
		}
	}
	return true, nil
}

// askOne asks the rule about one tool: a function that fails over there makes
// the question fail.
func (r *remote) askOne(ctx context.Context, a *asked, position int) error {
	input := a.document()
	input["tool_name"] = a.tools[position].Name
	result, err := r.data(ctx, r.engine.query, input)
	if err == nil && string(result) != "true" {
		a.answer[position] = quartermaster.Judgment{}
	}
	return err
}

// atOnce is how many questions the OPA is asked at a time where it offers no set
// rule.
const atOnce = 8

// askEach asks the rule about one tool after the other. OPA could answer for all
// in one query of its own making, but not with strict errors: a function that
// fails would make its rule undefined, and what is not blocked would be allowed.
func (r *remote) askEach(ctx context.Context, a *asked, left []int) error {
	asking, ctx := errgroup.WithContext(ctx)
	asking.SetLimit(atOnce)
	for _, position := range left {
		asking.Go(func() error { return r.askOne(ctx, a, position) })
	}
	return asking.Wait()
}

func namesAt(a *asked, positions []int) []string {
	names := make([]string, len(positions))
	for i, position := range positions {
		names[i] = a.tools[position].Name
	}
	return names
}

// document is the input as JSON has it.
func (a *asked) document() map[string]any {
	d := map[string]any{
		"user_id": a.caller.User, "agent_id": a.caller.Agent, "action": "execute", "phase": a.phase(),
		"groups": a.groups(), "state": a.state(), "depth": a.caller.Depth,
		"context": map[string]any{"tenant_id": a.catalog.Project().ID},
	}
	if a.call() {
		d["arguments"] = a.question.Arguments
	}
	return d
}

// data asks for the value of a rule; nil where it is undefined.
func (r *remote) data(ctx context.Context, ref ast.Ref, input map[string]any) (json.RawMessage, error) {
	path := "/v1/data"
	for _, term := range ref[1:] {
		path += "/" + url.PathEscape(string(term.Value.(ast.String)))
	}
	var answer struct {
		Result json.RawMessage `json:"result"`
	}
	err := r.post(ctx, path+"?strict-builtin-errors=true", map[string]any{"input": input}, &answer)
	return answer.Result, err
}

func (r *remote) post(ctx context.Context, path string, body, answer any) error {
	content, err := json.Marshal(body)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimSuffix(r.address.String(), "/")+path, bytes.NewReader(content))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	if r.engine.options.Token != "" {
		request.Header.Set("Authorization", "Bearer "+r.engine.options.Token)
	}
	response, err := r.client.Do(request)
	if err != nil {
		return causeOf(ctx, err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("it says %s", response.Status)
	}
	content, err = readAll(response.Body, answerLimit)
	if err != nil {
		return causeOf(ctx, err)
	}
	if err := json.Unmarshal(content, answer); err != nil {
		return errors.New("the answer is not JSON of the shape that was asked for")
	}
	return nil
}

// explain implements layer. How it came to its verdict, the other side knows.
func (r *remote) explain(_ context.Context, a *asked, position int) quartermaster.Why {
	if a.answer[position].Allowed {
		return quartermaster.Why{Reason: fmt.Sprintf("%s: the OPA at %s allows it", houseLayer, r.address.Host)}
	}
	return quartermaster.Why{
		Reason: fmt.Sprintf("%s: the OPA at %s refuses it", houseLayer, r.address.Host),
		Remedy: fmt.Sprintf("change the policy there, or what %s says of this input", r.engine.query),
	}
}
