package client

import (
	"context"
	"net/http"
	"net/url"
)

// Workflow is a project's graph of states and tools.
type Workflow struct {
	Start      string            `json:"start"`
	States     []WorkflowState   `json:"states"`
	EveryState []string          `json:"everyState"`
	Edges      []WorkflowEdge    `json:"edges"`
	Warnings   []WorkflowFinding `json:"warnings"`
	Notes      []WorkflowFinding `json:"notes"`
}

// WorkflowState is a state of it.
type WorkflowState struct {
	Name      string   `json:"name"`
	Tools     []string `json:"tools"`
	ToolCount int      `json:"toolCount"`
	Reachable bool     `json:"reachable"`
	DeadEnd   bool     `json:"deadEnd"`
}

// WorkflowEdge is all tools that move a session from one state to another.
type WorkflowEdge struct {
	From  string   `json:"from"`
	To    string   `json:"to"`
	Tools []string `json:"tools"`
}

// WorkflowFinding is something odd about it, or good to know.
type WorkflowFinding struct {
	Kind    string   `json:"kind"`
	State   string   `json:"state,omitempty"`
	Tool    string   `json:"tool,omitempty"`
	States  []string `json:"states,omitempty"`
	Message string   `json:"message"`
}

// Workflow reads the project's workflow.
func (p *Project) Workflow(ctx context.Context) (Workflow, error) {
	var answer Workflow
	err := p.do(ctx, request{method: http.MethodGet, path: "/workflow"}, &answer)
	return answer, err
}

// WorkflowPicture reads the workflow as svg, mermaid or dot.
func (p *Project) WorkflowPicture(ctx context.Context, format string) ([]byte, error) {
	var answer []byte
	err := p.do(ctx, request{method: http.MethodGet, path: "/workflow", query: url.Values{"format": {format}}}, &answer)
	return answer, err
}
