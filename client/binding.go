package client

import (
	"context"
	"net/http"

	"quartermaster"
)

const pathBindings = "/bindings"

// Bound is what an agent is bound to after a change.
type Bound struct {
	AgentID        string   `json:"agentId"`
	BoundToolCount int      `json:"boundToolCount"`
	ToolIDs        []string `json:"toolIds"`
}

// Bound lists the active tools bound to an agent, by name.
func (p *Project) Bound(agent string, filter quartermaster.ToolFilter) List[quartermaster.Tool] {
	return p.bindings("/bound", agent, filter)
}

// Unbound lists the active tools that are not bound to an agent, by name.
func (p *Project) Unbound(agent string, filter quartermaster.ToolFilter) List[quartermaster.Tool] {
	return p.bindings("/unbound", agent, filter)
}

func (p *Project) bindings(which, agent string, filter quartermaster.ToolFilter) List[quartermaster.Tool] {
	query := filterQuery(filter)
	query.Set("agentId", agent)
	return List[quartermaster.Tool]{get: p.getter(pathBindings + which), query: query}
}

// ReplaceBindings makes toolIDs the whole set of an agent's bindings; none
// unbinds all.
func (p *Project) ReplaceBindings(ctx context.Context, agent string, toolIDs []string) (Bound, error) {
	if toolIDs == nil {
		toolIDs = []string{} // null is no set, and refused
	}
	body := map[string]any{"agentId": agent, "toolIds": toolIDs}
	var answer Bound
	err := p.do(ctx, request{method: http.MethodPut, path: pathBindings, body: body}, &answer)
	return answer, err
}

// ChangeBindings adds to and takes from an agent's bindings, and leaves the
// others as they are.
func (p *Project) ChangeBindings(ctx context.Context, agent string, add, remove []string) (Bound, error) {
	body := map[string]any{"agentId": agent}
	if len(add) > 0 {
		body["add"] = add
	}
	if len(remove) > 0 {
		body["remove"] = remove
	}
	var answer Bound
	err := p.do(ctx, request{method: http.MethodPatch, path: pathBindings, body: body}, &answer)
	return answer, err
}
