// Package provider reaches tools: those inside the server, and those of others.
package provider

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
	_ "time/tzdata" // zones also where the machine has none

	"quartermaster"
)

// Native runs the tools that are built into the server.
type Native struct{}

var _ quartermaster.Provider = Native{}

// builtin runs with the arguments of a call and the tool's own row, whose
// config holds its policy.
type builtin func(ctx context.Context, tool *quartermaster.Tool, arguments json.RawMessage) (*quartermaster.Result, error)

var builtins = map[string]builtin{
	"echo":     echo,
	"time_now": timeNow,
}

// Available implements quartermaster.Provider.
func (Native) Available(_ string, tool *quartermaster.Tool) error {
	_, err := find(tool)
	return err
}

// Call implements quartermaster.Provider.
func (Native) Call(ctx context.Context, _ quartermaster.Caller, tool *quartermaster.Tool, arguments json.RawMessage) (*quartermaster.Result, error) {
	run, err := find(tool)
	if err != nil {
		return nil, quartermaster.Errorf(quartermaster.CodeUnsupportedProvider, "%s: %v", tool.Name, err)
	}
	return run(ctx, tool, arguments)
}

func find(tool *quartermaster.Tool) (builtin, error) {
	name, err := tool.Builtin()
	if err != nil || name == "" {
		return nil, errors.New("its config names no built-in")
	}
	run, ok := builtins[name]
	if !ok {
		return nil, fmt.Errorf("this version has no built-in %q", name)
	}
	return run, nil
}

// echo answers its arguments (NAT-0).
func echo(_ context.Context, _ *quartermaster.Tool, arguments json.RawMessage) (*quartermaster.Result, error) {
	if len(arguments) == 0 {
		arguments = json.RawMessage(`{}`)
	}
	return structured(arguments)
}

// timeNow tells the time (NAT-0).
func timeNow(_ context.Context, _ *quartermaster.Tool, arguments json.RawMessage) (*quartermaster.Result, error) {
	var in struct {
		Zone string `json:"zone"`
	}
	if len(arguments) > 0 {
		if err := json.Unmarshal(arguments, &in); err != nil {
			return nil, err
		}
	}
	zone, err := time.LoadLocation(in.Zone) // "" is UTC
	if err != nil {
		return failed(fmt.Sprintf("there is no time zone %q; use an IANA name such as Europe/Vienna", in.Zone))
	}
	now := time.Now().In(zone)
	answer, err := json.Marshal(map[string]string{"time": now.Format(time.RFC3339Nano), "zone": zone.String()})
	if err != nil {
		return nil, err
	}
	return structured(answer)
}

// structured answers with JSON, also as text for clients that only read that.
func structured(answer json.RawMessage) (*quartermaster.Result, error) {
	content, err := text(string(answer))
	return &quartermaster.Result{Content: content, StructuredContent: answer}, err
}

// failed answers that the tool ran and could not do it.
func failed(reason string) (*quartermaster.Result, error) {
	content, err := text(reason)
	return &quartermaster.Result{Content: content, IsError: true}, err
}

func text(s string) ([]json.RawMessage, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}{"text", s})
	return []json.RawMessage{bytes.TrimSpace(b.Bytes())}, err
}
