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

// PatchedProject is a project with what whoever changes it should know.
type PatchedProject struct {
	quartermaster.Project
	Warnings []string `json:"warnings,omitempty" readOnly:"true" doc:"What is odd about the project's policies, if another rule decides now"`
}

type patchedProjectOutput struct{ Body PatchedProject }

func (s *Server) patchProject(ctx context.Context, in *projectPatch) (*patchedProjectOutput, error) {
	rules := &ruleCheck{server: s}
	c, err := rules.change(ctx, in.Project, func(d *quartermaster.Draft) error {
		p, err := in.Body.apply(d.Project())
		if err != nil {
			return below("body", err)
		}
		if p.ID != in.Project {
			return fault("body.id", "a project's id cannot be changed")
		}
		return below("body", d.SetProject(p))
	})
	if err != nil {
		return nil, err
	}
	return &patchedProjectOutput{PatchedProject{c.Project(), rules.report.Warnings}}, nil
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
		Warnings []string                   `json:"warnings,omitempty" doc:"What the change makes odd about the workflow and the policies, and what has no effect in the file's definitions"`
	}
}

// apply puts a whole project file into force, or nothing of it.
func (s *Server) apply(ctx context.Context, in *documentInput) (*applyOutput, error) {
	faults, err := s.documentFaults(ctx, in.Project, in.Body)
	if err != nil {
		return nil, err
	}
	out := &applyOutput{}
	out.Body.DryRun = in.DryRun
	rules := &ruleCheck{server: s, dryRun: in.DryRun}
	edit := func(d *quartermaster.Draft) error {
		if err := rules.check(d, s.applyTo(d, in.Body, in.Prune, faults)); err != nil {
			return err
		}
		if out.Body.Changes = d.Diff(); len(out.Body.Changes) > 0 {
			out.Body.Warnings = s.applyWarnings(d, in.Body, rules)
		}
		return nil
	}
	c, err := rules.run(ctx, in.Project, edit)
	if err != nil {
		return nil, below("body", err)
	}
	out.Body.Revision = c.Revision()
	return out, nil
}

// applyTo puts a project file into a draft, or says why it cannot be: by all
// its faults, those that are known already too.
func (s *Server) applyTo(d *quartermaster.Draft, doc quartermaster.Document, prune bool, known []quartermaster.Fault) error {
	err := joined(d.Apply(doc, prune), invalid(known, "the project file is not valid; nothing was changed"))
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
func (s *Server) applyWarnings(d *quartermaster.Draft, doc quartermaster.Document, rules *ruleCheck) []string {
	next := d.Catalog()
	all := workflowWarnings(d.Base(), next)
	byAgent := s.definitionWarnings(d, next, doc)
	for _, id := range slices.Sorted(maps.Keys(byAgent)) {
		for _, w := range byAgent[id] {
			all = append(all, "agent "+id+": "+w)
		}
	}
	if len(doc.Policies) > 0 {
		all = append(all, rules.warnings()...)
	}
	return all
}

// change runs edit for good, or on a draft that is thrown away.
func (s *Server) change(ctx context.Context, project string, dryRun bool, edit func(*quartermaster.Draft) error) (*quartermaster.Catalog, error) {
	if !dryRun {
		return s.Store.Change(ctx, project, edit)
	}
	c, err := s.wholeCatalog(ctx, project)
	if err != nil {
		return nil, err
	}
	return c, edit(c.Draft(s.started))
}

// documentFaults are those of a project file that take long to find and need no
// draft: of the schemas in it, and of the grants that the permission engine's
// schema has no place for.
func (s *Server) documentFaults(ctx context.Context, project string, doc quartermaster.Document) ([]quartermaster.Fault, error) {
	var faults []quartermaster.Fault
	for _, name := range slices.Sorted(maps.Keys(doc.Tools)) {
		t := doc.Tools[name]
		for _, f := range s.schemaFaults(&t) {
			f.Location = "tools." + name + "." + f.Location
			faults = append(faults, f)
		}
	}
	c, err := s.Store.Catalog(ctx, project)
	if err != nil {
		return nil, err
	}
	if err := s.fitsSchema(ctx, c, doc.Grants); err != nil {
		if len(faultsOf(err)) == 0 {
			return nil, err
		}
		faults = append(faults, faultsOf(err)...)
	}
	return faults, nil
}

type exportOutput struct{ Body json.RawMessage }

func (s *Server) export(ctx context.Context, in *ProjectInput) (*exportOutput, error) {
	c, err := s.wholeCatalog(ctx, in.Project)
	if err != nil {
		return nil, err
	}
	body, err := json.Marshal(c.Export())
	return &exportOutput{body}, err
}

// wholeCatalog is the newest catalog, with the grants that a cluster keeps in its
// place: what is compared with it must not look new.
func (s *Server) wholeCatalog(ctx context.Context, project string) (*quartermaster.Catalog, error) {
	c, err := s.Store.Catalog(ctx, project)
	if err != nil || s.Permission == nil || len(c.AllGrants()) > 0 {
		return c, err
	}
	all, err := s.Permission.Grants(ctx, c, quartermaster.GrantFilter{})
	if err != nil {
		return nil, err
	}
	return c.WithGrants(all), nil
}
