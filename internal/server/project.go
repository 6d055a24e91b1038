package server

import (
	"context"
	"encoding/json"
	"errors"
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
		Warnings []string                   `json:"warnings,omitempty" doc:"What the change makes odd about the workflow, and what has no effect in the file's definitions"`
	}
}

// apply puts a whole project file into force, or nothing of it.
func (s *Server) apply(ctx context.Context, in *documentInput) (*applyOutput, error) {
	faults := s.documentFaults(in.Body) // here: it takes long, and needs no draft
	out := &applyOutput{}
	out.Body.DryRun = in.DryRun
	edit := func(d *quartermaster.Draft) error {
		if err := s.applyTo(d, in.Body, in.Prune, faults); err != nil {
			return err
		}
		if out.Body.Changes = d.Diff(); len(out.Body.Changes) > 0 {
			out.Body.Warnings = s.applyWarnings(d, in.Body)
		}
		return nil
	}
	c, err := s.change(ctx, in.Project, in.DryRun, edit)
	if err != nil {
		return nil, below("body", err)
	}
	out.Body.Revision = c.Revision()
	return out, nil
}

// applyTo puts a project file into a draft, or says why it cannot be: by all
// its faults, those that are known already too.
func (s *Server) applyTo(d *quartermaster.Draft, doc quartermaster.Document, prune bool, known []quartermaster.Fault) error {
	err := d.Apply(doc, prune)
	if len(known) > 0 {
		all := quartermaster.Errorf(quartermaster.CodeInvalidRequest, "the project file is not valid; nothing was changed")
		if e, ok := errors.AsType[*quartermaster.Error](err); ok {
			all.Faults = e.Faults
		}
		all.Faults = slices.Concat(all.Faults, known)
		return all
	}
	if err != nil {
		return err
	}
	at := make(map[string]string, len(doc.Agents))
	for id := range doc.Agents {
		at[id] = "agents." + id + "."
	}
	return s.checkAliases(d, at)
}

// applyWarnings are what whoever applies a file should know.
func (s *Server) applyWarnings(d *quartermaster.Draft, doc quartermaster.Document) []string {
	next := d.Catalog()
	all := workflowWarnings(d.Base(), next)
	byAgent := s.definitionWarnings(d, next, doc)
	for _, id := range slices.Sorted(maps.Keys(byAgent)) {
		for _, w := range byAgent[id] {
			all = append(all, "agent "+id+": "+w)
		}
	}
	return all
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

// documentFaults are those of the schemas in a project file.
func (s *Server) documentFaults(doc quartermaster.Document) []quartermaster.Fault {
	var faults []quartermaster.Fault
	for _, name := range slices.Sorted(maps.Keys(doc.Tools)) {
		t := doc.Tools[name]
		for _, f := range s.schemaFaults(&t) {
			f.Location = "tools." + name + "." + f.Location
			faults = append(faults, f)
		}
	}
	return faults
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
