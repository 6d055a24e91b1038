package server

import (
	"context"
	"encoding/json"
	"slices"

	"quartermaster"
	"quartermaster/internal/server/workflow"
)

const (
	// inert keeps what a browser is shown from doing anything.
	inert = "default-src 'none'; style-src 'unsafe-inline'; " + unframed
	// unframed keeps other pages from putting theirs over or around ours.
	unframed = "frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
)

type workflowInput struct {
	ProjectInput
	Format string `query:"format" enum:"json,svg,mermaid,dot" default:"json" doc:"The graph with what is odd about it, or a picture"`
}

type workflowOutput struct {
	ContentType string `header:"Content-Type"`
	Policy      string `header:"Content-Security-Policy"`
	Body        []byte
}

// workflow shows the project's graph of states and tools, and what is odd
// about it (WF-2).
func (s *Server) workflow(ctx context.Context, in *workflowInput) (*workflowOutput, error) {
	c, err := s.Store.Catalog(ctx, in.Project)
	if err != nil {
		return nil, err
	}
	w := workflow.Of(c)
	switch in.Format {
	case "svg":
		return &workflowOutput{"image/svg+xml", inert, workflow.SVG(w)}, nil
	case "mermaid":
		return &workflowOutput{"text/plain; charset=utf-8", inert, []byte(workflow.Mermaid(w))}, nil
	case "dot":
		return &workflowOutput{"text/vnd.graphviz; charset=utf-8", inert, []byte(workflow.DOT(w))}, nil
	}
	body, err := json.Marshal(w)
	return &workflowOutput{"application/json", inert, body}, err
}

// workflowWarnings are those that a catalog has and the one before had not.
func workflowWarnings(before, after *quartermaster.Catalog) []string {
	old := workflow.Of(before).Warnings
	var fresh []string
	for _, f := range workflow.Of(after).Warnings {
		known := slices.ContainsFunc(old, func(o workflow.Finding) bool {
			return o.Kind == f.Kind && o.State == f.State && o.Tool == f.Tool
		})
		if !known {
			fresh = append(fresh, f.Message)
		}
	}
	return fresh
}
