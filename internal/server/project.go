package server

import (
	"context"
	"encoding/json"
	"maps"
	"slices"

	"quartermaster"
)

type projectOutput struct{ Body quartermaster.Project }

type projectsOutput struct {
	Body quartermaster.Page[quartermaster.Project]
}

func (s *Server) listProjects(ctx context.Context, in *PageInput) (*projectsOutput, error) {
	all, err := s.Store.Projects(ctx)
	if err != nil {
		return nil, err
	}
	return &projectsOutput{quartermaster.PageOf(slices.Values(all), in.Page, in.Size)}, nil
}

type createdProjectOutput struct {
	Status int
	Body   quartermaster.Project
}

func (s *Server) createProject(ctx context.Context, in *struct{ Body quartermaster.Project }) (*createdProjectOutput, error) {
	p, err := s.Store.CreateProject(ctx, in.Body)
	if err != nil {
		return nil, below("body", err)
	}
	return &createdProjectOutput{Status: 201, Body: p}, nil
}

func (s *Server) getProject(ctx context.Context, in *ProjectInput) (*projectOutput, error) {
	c, err := s.Store.Catalog(ctx, in.Project)
	if err != nil {
		return nil, err
	}
	return &projectOutput{c.Project()}, nil
}

type projectPatch struct {
	ProjectInput
	Body patchOf[quartermaster.Project]
}

func (s *Server) patchProject(ctx context.Context, in *projectPatch) (*projectOutput, error) {
	c, err := s.Store.Change(ctx, in.Project, func(d *quartermaster.Draft) error {
		p, err := in.Body.apply(d.Project())
		if err != nil {
			return err
		}
		if p.ID != in.Project {
			return fault("id", "a project's id cannot be changed")
		}
		return d.SetProject(p)
	})
	if err != nil {
		return nil, below("body", err)
	}
	return &projectOutput{c.Project()}, nil
}

type documentInput struct {
	ProjectInput
	DryRun bool `query:"dryRun" doc:"Only say what would change"`
	Prune  bool `query:"prune" doc:"Also remove what the file does not hold"`
	Body   quartermaster.Document
}

type applyOutput struct {
	Body struct {
		DryRun   bool                       `json:"dryRun"`
		Revision int64                      `json:"revision" doc:"Of the project, after the change if there was one"`
		Changes  []quartermaster.Difference `json:"changes"`
		Warnings []string                   `json:"warnings,omitempty" doc:"What the change makes odd about the workflow"`
	}
}

// apply puts a whole project file into force, or nothing of it.
func (s *Server) apply(ctx context.Context, in *documentInput) (*applyOutput, error) {
	if err := s.checkDocument(in.Body); err != nil {
		return nil, err
	}
	out := &applyOutput{}
	out.Body.DryRun = in.DryRun
	edit := func(d *quartermaster.Draft) error {
		if err := d.Apply(in.Body, in.Prune); err != nil {
			return err
		}
		if out.Body.Changes = d.Diff(); len(out.Body.Changes) > 0 {
			out.Body.Warnings = workflowWarnings(d.Base(), d.Catalog())
		}
		at := make(map[string]string, len(in.Body.Agents))
		for id := range in.Body.Agents {
			at[id] = "agents." + id + "."
		}
		return s.checkAliases(d, at)
	}
	c, err := s.change(ctx, in.Project, in.DryRun, edit)
	if err != nil {
		return nil, below("body", err)
	}
	out.Body.Revision = c.Revision()
	return out, nil
}

// change runs edit for good, or on a draft that is thrown away.
func (s *Server) change(ctx context.Context, project string, dryRun bool, edit func(*quartermaster.Draft) error) (*quartermaster.Catalog, error) {
	if !dryRun {
		return s.Store.Change(ctx, project, edit)
	}
	c, err := s.Store.Catalog(ctx, project)
	if err != nil {
		return nil, err
	}
	return c, edit(c.Draft(s.started))
}

func (s *Server) checkDocument(doc quartermaster.Document) error {
	e := quartermaster.Errorf(quartermaster.CodeInvalidRequest, "the project file is not valid; nothing was changed")
	for _, name := range slices.Sorted(maps.Keys(doc.Tools)) {
		t := doc.Tools[name]
		for _, f := range s.schemaFaults(&t) {
			f.Location = "body.tools." + name + "." + f.Location
			e.Faults = append(e.Faults, f)
		}
	}
	if len(e.Faults) == 0 {
		return nil
	}
	return e
}

type exportOutput struct{ Body json.RawMessage }

func (s *Server) export(ctx context.Context, in *ProjectInput) (*exportOutput, error) {
	c, err := s.Store.Catalog(ctx, in.Project)
	if err != nil {
		return nil, err
	}
	body, err := json.Marshal(c.Export())
	return &exportOutput{body}, err
}
