package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"

	"quartermaster"
)

const nounTools = "tools"

// Tools lists the project's tools, by name, those that are not active too.
func (p *Project) Tools(filter quartermaster.ToolFilter) List[quartermaster.Tool] {
	return List[quartermaster.Tool]{get: p.getter("/" + nounTools), query: filterQuery(filter)}
}

func filterQuery(f quartermaster.ToolFilter) url.Values {
	query := url.Values{}
	if f.Text != "" {
		query.Set("q", f.Text)
	}
	if f.Category != "" {
		query.Set("category", f.Category)
	}
	return query
}

// Tool reads one tool by id, name or @server/tool.
func (p *Project) Tool(ctx context.Context, ref string) (quartermaster.Tool, error) {
	var answer quartermaster.Tool
	err := p.at(ctx, nounTools, ref, request{method: http.MethodGet}, &answer)
	return answer, err
}

// ToolVersion is a definition that a server has given a tool.
type ToolVersion struct {
	quartermaster.ToolVersion
	Pending bool                             `json:"pending,omitempty"` // it waits to be accepted
	Changes []quartermaster.DefinitionChange `json:"changes,omitempty"` // to the one before it
}

// ToolVersions lists the definitions that a server has given a tool, the newest
// first.
func (p *Project) ToolVersions(ctx context.Context, ref string) ([]ToolVersion, error) {
	var answer struct{ Versions []ToolVersion }
	err := p.at(ctx, nounTools, ref, request{method: http.MethodGet, path: "/versions"}, &answer)
	return answer.Versions, err
}

// CreateTool adds a tool. What only the server can know is ignored.
func (p *Project) CreateTool(ctx context.Context, t quartermaster.Tool) (quartermaster.Tool, error) {
	return p.createTool(ctx, t)
}

// CreateToolFrom adds a tool as a person has written it, so that the server
// judges every field, those that it does not know too.
func (p *Project) CreateToolFrom(ctx context.Context, written json.RawMessage) (quartermaster.Tool, error) {
	return p.createTool(ctx, written)
}

func (p *Project) createTool(ctx context.Context, body any) (quartermaster.Tool, error) {
	var made quartermaster.Tool
	err := p.do(ctx, request{method: http.MethodPost, path: "/" + nounTools, body: body}, &made)
	return made, err
}

// UpdateTool changes a tool by a JSON merge patch: a nil value makes the field
// absent.
func (p *Project) UpdateTool(ctx context.Context, ref string, patch map[string]any) (quartermaster.Tool, error) {
	var answer quartermaster.Tool
	r := request{method: http.MethodPatch, contentType: typeMergePatch, body: patch}
	err := p.at(ctx, nounTools, ref, r, &answer)
	return answer, err
}

// DeleteTool removes a tool and its bindings.
func (p *Project) DeleteTool(ctx context.Context, ref string) error {
	return p.at(ctx, nounTools, ref, request{method: http.MethodDelete}, nil)
}
