package server

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"

	"quartermaster"
)

type toolOutput struct{ Body quartermaster.Tool }

type toolsOutput struct {
	Body quartermaster.Page[quartermaster.Tool]
}

// ToolInput names a tool.
type ToolInput struct {
	ProjectInput
	Tool string `path:"tool" doc:"Id, name or @server/tool" example:"echo"`
}

// ToolFilter are the parameters that narrow a list of tools.
type ToolFilter struct {
	Query    string `query:"q" doc:"A part of name, displayName or description; ASCII case is ignored"`
	Category string `query:"category"`
}

func (f ToolFilter) filter() quartermaster.ToolFilter {
	return quartermaster.ToolFilter{Text: f.Query, Category: f.Category}
}

// view is a tool as a client sees it: with what only the running server knows.
func (s *Server) view(project string, t *quartermaster.Tool) quartermaster.Tool {
	v := *t
	if err := s.unavailable(project, t); err != nil {
		v.UnavailableReason = err.Error()
	} else {
		v.Available = true
	}
	return v
}

func (s *Server) unavailable(project string, t *quartermaster.Tool) error {
	p, ok := s.Providers[t.Provider]
	if !ok {
		return fmt.Errorf("this version does not call %s tools yet", t.Provider)
	}
	return p.Available(project, t)
}

func (s *Server) page(project string, all iter.Seq[*quartermaster.Tool], p PageInput) *toolsOutput {
	return &toolsOutput{quartermaster.MapPage(quartermaster.PageOf(all, p.Page, p.Size), func(t *quartermaster.Tool) quartermaster.Tool {
		return s.view(project, t)
	})}
}

func (s *Server) listTools(ctx context.Context, in *struct {
	ProjectInput
	ToolFilter
	PageInput
},
) (*toolsOutput, error) {
	c, err := s.Store.Catalog(ctx, in.Project)
	if err != nil {
		return nil, err
	}
	match := in.filter().Match()
	return s.page(in.Project, func(yield func(*quartermaster.Tool) bool) {
		for _, t := range c.Tools() {
			if match(t) && !yield(t) {
				return
			}
		}
	}, in.PageInput), nil
}

type createdToolOutput struct {
	Status   int
	Location string `header:"Location"`
	Body     quartermaster.Tool
}

func (s *Server) createTool(ctx context.Context, in *struct {
	ProjectInput
	Body quartermaster.Tool
},
) (*createdToolOutput, error) {
	if err := s.checkSchemas(&in.Body); err != nil {
		return nil, below("body", err)
	}
	var tool *quartermaster.Tool
	_, err := s.Store.Change(ctx, in.Project, func(d *quartermaster.Draft) (err error) {
		tool, err = d.CreateTool(in.Body)
		return err
	})
	if err != nil {
		return nil, below("body", err)
	}
	return &createdToolOutput{201, api + "/projects/" + in.Project + "/tools/" + tool.ID, s.view(in.Project, tool)}, nil
}

func (s *Server) getTool(ctx context.Context, in *ToolInput) (*toolOutput, error) {
	c, err := s.Store.Catalog(ctx, in.Project)
	if err != nil {
		return nil, err
	}
	t := c.Tool(in.Tool)
	if t == nil {
		return nil, quartermaster.Errorf(quartermaster.CodeToolNotFound, "there is no tool %q", in.Tool)
	}
	return &toolOutput{s.view(in.Project, t)}, nil
}

func (s *Server) patchTool(ctx context.Context, in *struct {
	ToolInput
	Body patchOf[quartermaster.Tool]
},
) (*toolOutput, error) {
	var tool *quartermaster.Tool
	_, err := s.Store.Change(ctx, in.Project, func(d *quartermaster.Draft) (err error) {
		tool, err = d.UpdateTool(in.Tool, func(t *quartermaster.Tool) error {
			next, err := in.Body.apply(*t)
			if err != nil {
				return err
			}
			*t = next
			return s.checkSchemas(t)
		})
		return err
	})
	if err != nil {
		return nil, below("body", err)
	}
	return &toolOutput{s.view(in.Project, tool)}, nil
}

// toolVersion is a definition, with what it changed.
type toolVersion struct {
	quartermaster.ToolVersion
	Pending bool                             `json:"pending,omitempty" doc:"It waits to be accepted"`
	Changes []quartermaster.DefinitionChange `json:"changes,omitempty" doc:"In what it differs from the one before it"`
}

type versionsOutput struct {
	Body struct {
		Versions []toolVersion `json:"versions" nullable:"false" doc:"The newest first"`
	}
}

// toolVersions lists the definitions that a server has given a tool (CAT-4).
func (s *Server) toolVersions(ctx context.Context, in *ToolInput) (*versionsOutput, error) {
	tool, err := s.getTool(ctx, in)
	if err != nil {
		return nil, err
	}
	versions, err := s.Historian.Versions(ctx, in.Project, tool.Body.ID)
	if err != nil {
		return nil, err
	}
	out := &versionsOutput{}
	out.Body.Versions = make([]toolVersion, len(versions))
	for i, v := range versions {
		out.Body.Versions[i] = toolVersion{ToolVersion: v, Pending: i == 0 && tool.Body.Pending != nil}
		if i+1 < len(versions) {
			out.Body.Versions[i].Changes = versions[i+1].Definition.ChangesTo(&v.Definition)
		}
	}
	return out, nil
}

func (s *Server) deleteTool(ctx context.Context, in *ToolInput) (*struct{}, error) {
	_, err := s.Store.Change(ctx, in.Project, func(d *quartermaster.Draft) error { return d.DeleteTool(in.Tool) })
	return nil, err
}

// checkSchemas refuses a tool whose schemas nobody could check arguments with.
func (s *Server) checkSchemas(t *quartermaster.Tool) error {
	faults := s.schemaFaults(t)
	if len(faults) == 0 {
		return nil
	}
	e := quartermaster.Errorf(quartermaster.CodeInvalidRequest, "tool %q is not valid", t.Name)
	e.Faults = faults
	return e
}

func (s *Server) schemaFaults(t *quartermaster.Tool) []quartermaster.Fault {
	var faults []quartermaster.Fault
	for field, schema := range map[string]json.RawMessage{"inputSchema": t.InputSchema, "outputSchema": t.OutputSchema} {
		if !isObject(schema) {
			continue // absent, or no object: said elsewhere
		}
		if err := s.CheckSchema(schema); err != nil {
			faults = append(faults, quartermaster.Fault{Location: field, Message: err.Error()})
		}
	}
	slices.SortFunc(faults, func(a, b quartermaster.Fault) int { return slices.Compare([]byte(a.Location), []byte(b.Location)) })
	return faults
}
