package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"

	"quartermaster"
)

// Situation is the caller that an operator asks about.
type Situation struct {
	Agent  string   `json:"agent"`
	User   string   `json:"user,omitempty"`
	Groups []string `json:"groups,omitzero"` // nil: the implied default; empty: none
	State  string   `json:"state,omitempty"`
	Depth  int      `json:"depth,omitempty"`
}

// Resolved are the tools that an agent has.
type Resolved struct {
	Tools    []quartermaster.Tool `json:"tools"`
	State    string               `json:"state"`
	Revision int64                `json:"revision"`
	Warnings []string             `json:"warnings,omitempty"`
}

// Resolve lists the tools that an agent has in a situation.
func (p *Project) Resolve(ctx context.Context, s Situation) (Resolved, error) {
	var answer Resolved
	err := p.do(ctx, request{method: http.MethodPost, path: "/resolve", body: s}, &answer)
	return answer, err
}

// Explained says of tools why an agent has them or has not.
type Explained struct {
	Tools    []quartermaster.Explanation `json:"tools"`
	State    string                      `json:"state"`
	Revision int64                       `json:"revision"`
	Warnings []string                    `json:"warnings,omitempty"`
}

// Explain asks about one tool, or about all where tool is empty.
func (p *Project) Explain(ctx context.Context, s Situation, tool string) (Explained, error) {
	query := url.Values{"agent": {s.Agent}, "depth": {strconv.Itoa(s.Depth)}}
	for key, value := range map[string]string{"user": s.User, "state": s.State, "tool": tool} {
		if value != "" {
			query.Set(key, value)
		}
	}
	if s.Groups != nil {
		query["group"] = s.Groups
		if len(s.Groups) == 0 {
			query["group"] = []string{""}
		}
	}
	var answer Explained
	err := p.do(ctx, request{method: http.MethodGet, path: "/explain", query: query}, &answer)
	return answer, err
}

// WhatIf is what a document would change, and for whom.
type WhatIf struct {
	Changes []quartermaster.Difference `json:"changes"`
	quartermaster.Impact
	Warnings map[string][]string `json:"warnings,omitempty"`
}

// WhatIfFrom asks what a document, as a person has written it, would change. It may
// have revoke beside the sections of a project file: grants, as if they were gone.
func (p *Project) WhatIfFrom(ctx context.Context, written json.RawMessage, prune bool) (WhatIf, error) {
	var answer WhatIf
	query := url.Values{"prune": {strconv.FormatBool(prune)}}
	err := p.do(ctx, request{method: http.MethodPost, path: "/whatif", query: query, body: written}, &answer)
	return answer, err
}

// WhoCan lists who gets at a tool.
func (p *Project) WhoCan(ctx context.Context, tool string) (quartermaster.Reachers, error) {
	var answer quartermaster.Reachers
	err := p.do(ctx, request{method: http.MethodGet, path: "/who-can", query: url.Values{"tool": {tool}}}, &answer)
	return answer, err
}
