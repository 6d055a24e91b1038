package server

import (
	"context"

	"quartermaster"
)

type bindingsInput struct {
	ProjectInput
	AgentID string `query:"agentId" required:"true" doc:"1 to 255 characters" example:"agent-001"`
	ToolFilter
	PageInput
}

// listBound is BIND-1.
func (s *Server) listBound(ctx context.Context, in *bindingsInput) (*toolsOutput, error) {
	c, err := s.bindingsOf(ctx, in)
	if err != nil {
		return nil, err
	}
	type pair struct {
		tool    *quartermaster.Tool
		binding quartermaster.Binding
	}
	pairs := func(yield func(pair) bool) {
		for t, b := range c.Bound(in.AgentID, in.filter()) {
			if !yield(pair{t, b}) {
				return
			}
		}
	}
	return &toolsOutput{quartermaster.MapPage(quartermaster.PageOf(pairs, in.Page, in.Size), func(p pair) quartermaster.Tool {
		v := s.view(in.Project, p.tool)
		v.BoundAt = p.binding.CreatedAt
		return v
	})}, nil
}

// listUnbound is BIND-2.
func (s *Server) listUnbound(ctx context.Context, in *bindingsInput) (*toolsOutput, error) {
	c, err := s.bindingsOf(ctx, in)
	if err != nil {
		return nil, err
	}
	return s.page(in.Project, c.Unbound(in.AgentID, in.filter()), in.PageInput), nil
}

func (s *Server) bindingsOf(ctx context.Context, in *bindingsInput) (*quartermaster.Catalog, error) {
	if err := quartermaster.CheckAgentID("query.agentId", in.AgentID); err != nil {
		return nil, err
	}
	return s.Store.Catalog(ctx, in.Project)
}

type boundOutput struct {
	Body struct {
		AgentID        string   `json:"agentId"`
		BoundToolCount int      `json:"boundToolCount"`
		ToolIDs        []string `json:"toolIds"`
	}
}

// replaceBindings is BIND-3.
func (s *Server) replaceBindings(ctx context.Context, in *struct {
	ProjectInput
	Body struct {
		AgentID string   `json:"agentId" example:"agent-001"`
		ToolIDs []string `json:"toolIds" doc:"All tools the agent shall have; [] unbinds all"`
	}
},
) (*boundOutput, error) {
	out := &boundOutput{}
	out.Body.AgentID = in.Body.AgentID
	_, err := s.Store.Change(ctx, in.Project, func(d *quartermaster.Draft) (err error) {
		out.Body.ToolIDs, err = d.ReplaceBindings(in.Body.AgentID, in.Body.ToolIDs)
		return err
	})
	if err != nil {
		return nil, below("body", err)
	}
	out.Body.BoundToolCount = len(out.Body.ToolIDs)
	return out, nil
}

// changeBindings leaves alone what it does not name, so that two people can
// work on one agent.
func (s *Server) changeBindings(ctx context.Context, in *struct {
	ProjectInput
	Body struct {
		AgentID string   `json:"agentId" example:"agent-001"`
		Add     []string `json:"add,omitempty" doc:"Ids of tools to bind"`
		Remove  []string `json:"remove,omitempty" doc:"Ids of tools to unbind"`
	}
},
) (*boundOutput, error) {
	out := &boundOutput{}
	out.Body.AgentID = in.Body.AgentID
	_, err := s.Store.Change(ctx, in.Project, func(d *quartermaster.Draft) error {
		bindings, err := d.ChangeBindings(in.Body.AgentID, in.Body.Add, in.Body.Remove)
		if err != nil {
			return err
		}
		out.Body.ToolIDs = make([]string, len(bindings.Tools))
		for i, b := range bindings.Tools {
			out.Body.ToolIDs[i] = b.ToolID
		}
		return nil
	})
	if err != nil {
		return nil, below("body", err)
	}
	out.Body.BoundToolCount = len(out.Body.ToolIDs)
	return out, nil
}
