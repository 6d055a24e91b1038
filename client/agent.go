package client

import (
	"context"
	"encoding/json"
	"net/http"

	"quartermaster"
)

const nounAgents = "agents"

// AgentEntry is an agent in the list: one that has a definition, bindings or
// both.
type AgentEntry struct {
	ID         string               `json:"id"`
	Definition *quartermaster.Agent `json:"definition,omitempty"`
	BoundTools int                  `json:"boundTools"`
}

// Agents lists the agents that the project knows of, by id.
func (p *Project) Agents() List[AgentEntry] {
	return List[AgentEntry]{get: p.getter("/" + nounAgents)}
}

// Agent reads an agent's definition.
func (p *Project) Agent(ctx context.Context, id string) (quartermaster.Agent, error) {
	var answer quartermaster.Agent
	err := p.at(ctx, nounAgents, id, request{method: http.MethodGet}, &answer)
	return answer, err
}

// PutAgent adds or replaces a definition.
func (p *Project) PutAgent(ctx context.Context, a quartermaster.Agent) (quartermaster.Agent, error) {
	return p.putAgent(ctx, a.ID, a)
}

// PutAgentFrom is PutAgent with the definition as a person has written it.
func (p *Project) PutAgentFrom(ctx context.Context, id string, written json.RawMessage) (quartermaster.Agent, error) {
	return p.putAgent(ctx, id, written)
}

func (p *Project) putAgent(ctx context.Context, id string, body any) (quartermaster.Agent, error) {
	var answer quartermaster.Agent
	err := p.at(ctx, nounAgents, id, request{method: http.MethodPut, body: body}, &answer)
	return answer, err
}

// DeleteAgent removes a definition; the agent's bindings stay.
func (p *Project) DeleteAgent(ctx context.Context, id string) error {
	return p.at(ctx, nounAgents, id, request{method: http.MethodDelete}, nil)
}
