package server

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"strings"

	"quartermaster"
)

type agentOutput struct {
	Status int
	Body   quartermaster.Agent
}

// agentSummary is an agent that somebody has said something about.
type agentSummary struct {
	ID         string               `json:"id"`
	Definition *quartermaster.Agent `json:"definition,omitempty"`
	BoundTools int                  `json:"boundTools" doc:"How many tools are bound to it, active or not"`
}

type agentsOutput struct {
	Body quartermaster.Page[agentSummary]
}

// AgentInput names an agent.
type AgentInput struct {
	ProjectInput
	Agent string `path:"agent" doc:"Agent id, percent-encoded" example:"writer"`
}

func (s *Server) listAgents(ctx context.Context, in *struct {
	ProjectInput
	PageInput
},
) (*agentsOutput, error) {
	c, err := s.Store.Catalog(ctx, in.Project)
	if err != nil {
		return nil, err
	}
	return &agentsOutput{quartermaster.PageOf(slices.Values(agents(c)), in.Page, in.Size)}, nil
}

// agents joins those with a definition and those with bindings, by id.
func agents(c *quartermaster.Catalog) []agentSummary {
	all := make([]agentSummary, 0, len(c.Agents()))
	for _, a := range c.Agents() {
		all = append(all, agentSummary{ID: a.ID, Definition: a, BoundTools: len(c.Bindings(a.ID).Tools)})
	}
	for _, b := range c.AllBindings() {
		if c.Agent(b.Agent) == nil {
			all = append(all, agentSummary{ID: b.Agent, BoundTools: len(b.Tools)})
		}
	}
	slices.SortFunc(all, func(a, b agentSummary) int { return strings.Compare(a.ID, b.ID) })
	return all
}

func (s *Server) getAgent(ctx context.Context, in *AgentInput) (*agentOutput, error) {
	c, err := s.Store.Catalog(ctx, in.Project)
	if err != nil {
		return nil, err
	}
	a := c.Agent(in.Agent)
	if a == nil {
		return nil, quartermaster.Errorf(quartermaster.CodeNotFound, "agent %q has no definition", in.Agent)
	}
	return &agentOutput{http.StatusOK, s.viewAgent(c, a)}, nil
}

func (s *Server) putAgent(ctx context.Context, in *struct {
	AgentInput
	Body quartermaster.Agent
},
) (*agentOutput, error) {
	if err := quartermaster.CheckAgentID("path.agent", in.Agent); err != nil {
		return nil, err
	}
	if err := asInPath("id", &in.Body.ID, in.Agent); err != nil {
		return nil, err
	}
	var (
		agent   *quartermaster.Agent
		created bool
	)
	c, err := s.Store.Change(ctx, in.Project, func(d *quartermaster.Draft) (err error) {
		if agent, created, err = d.PutAgent(in.Body); err != nil {
			return err
		}
		return s.checkAliases(d, map[string]string{agent.ID: ""})
	})
	if err != nil {
		return nil, below("body", err)
	}
	return &agentOutput{createdOrOK(created), s.viewAgent(c, agent)}, nil
}

// viewAgent is a definition with what its editor should know.
func (s *Server) viewAgent(c *quartermaster.Catalog, a *quartermaster.Agent) quartermaster.Agent {
	v := *a
	_, v.Warnings = s.Advisor.Check(c, c, a.ID)
	return v
}

// checkAliases refuses definitions with an alias that is also the name of a
// tool they reach (AGT-5). agents maps their ids to where the client has them.
func (s *Server) checkAliases(d *quartermaster.Draft, agents map[string]string) error {
	e := quartermaster.Errorf(quartermaster.CodeInvalidRequest, "an alias hides another tool")
	var next *quartermaster.Catalog
	for _, id := range slices.Sorted(maps.Keys(agents)) {
		if a := d.Agent(id); a == nil || len(a.Aliases) == 0 {
			continue
		}
		if next == nil {
			next = d.Catalog()
		}
		conflicts, _ := s.Advisor.Check(d.Base(), next, id)
		for _, f := range conflicts {
			f.Location = agents[id] + f.Location
			e.Faults = append(e.Faults, f)
		}
	}
	if len(e.Faults) == 0 {
		return nil
	}
	return e
}

// definitionWarnings are what the editor of a project file should know of the
// definitions in it (AGT-2), by agent: everything about one that changes, of
// the others what the rest of the change brings.
func (s *Server) definitionWarnings(d *quartermaster.Draft, next *quartermaster.Catalog, doc quartermaster.Document) map[string][]string {
	changed, reach := map[string]bool{}, false
	for _, ch := range d.Changes() {
		switch ch.Noun {
		case quartermaster.NounAgent:
			changed[ch.Key] = true
		case quartermaster.NounTool, quartermaster.NounServer, quartermaster.NounBindings:
			reach = true
		}
	}
	var all map[string][]string
	for id := range doc.Agents {
		if !changed[id] && !reach {
			continue
		}
		_, warnings := s.Advisor.Check(d.Base(), next, id)
		if !changed[id] && len(warnings) > 0 {
			_, known := s.Advisor.Check(d.Base(), d.Base(), id)
			warnings = slices.DeleteFunc(warnings, func(w string) bool { return slices.Contains(known, w) })
		}
		if len(warnings) == 0 {
			continue
		}
		if all == nil {
			all = map[string][]string{}
		}
		all[id] = warnings
	}
	return all
}

func (s *Server) deleteAgent(ctx context.Context, in *AgentInput) (*struct{}, error) {
	_, err := s.Store.Change(ctx, in.Project, func(d *quartermaster.Draft) error { return d.DeleteAgent(in.Agent) })
	return nil, err
}
