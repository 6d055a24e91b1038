package client

import (
	"context"
	"net/http"

	"quartermaster"
)

const pathProjects = "/api/v1/projects"

// Projects lists all projects, by id.
func (c *Client) Projects() List[quartermaster.Project] {
	return List[quartermaster.Project]{get: c.getter(pathProjects)}
}

// CreateProject makes a project. The server fills in what is absent.
func (c *Client) CreateProject(ctx context.Context, p quartermaster.Project) (quartermaster.Project, error) {
	body := map[string]any{"id": p.ID}
	if p.Name != "" {
		body["name"] = p.Name
	}
	if p.Plan != "" {
		body["plan"] = p.Plan
	}
	if p.PolicyQuery != "" {
		body["policyQuery"] = p.PolicyQuery
	}
	var made quartermaster.Project
	err := c.do(ctx, request{method: http.MethodPost, path: pathProjects, body: body}, &made)
	return made, err
}

// Project is the door to everything in one project. It does no I/O: a project
// that does not exist shows when it is used.
type Project struct {
	client *Client
	id     string
}

// Project opens the door to the project with this id.
func (c *Client) Project(id string) *Project { return &Project{client: c, id: id} }

// Get reads the project itself.
func (p *Project) Get(ctx context.Context) (quartermaster.Project, error) {
	var answer quartermaster.Project
	err := p.do(ctx, request{method: http.MethodGet}, &answer)
	return answer, err
}

// Updated is a project after a change, and what is odd about its policies now.
type Updated struct {
	quartermaster.Project
	Warnings []string `json:"warnings,omitempty"`
}

// Update changes the project by a JSON merge patch.
func (p *Project) Update(ctx context.Context, patch map[string]any) (Updated, error) {
	var answer Updated
	err := p.do(ctx, request{method: http.MethodPatch, contentType: typeMergePatch, body: patch}, &answer)
	return answer, err
}

// do sends r, whose path goes on from the project's.
func (p *Project) do(ctx context.Context, r request, answer any) error {
	id, err := segment("project", p.id)
	if err != nil {
		return err
	}
	r.path = pathProjects + "/" + id + r.path
	return p.client.do(ctx, r, answer)
}

// at does a request on the one thing below noun that key names.
func (p *Project) at(ctx context.Context, noun, key string, r request, answer any) error {
	word, err := segment(noun, key)
	if err != nil {
		return err
	}
	r.path = "/" + noun + "/" + word + r.path
	return p.do(ctx, r, answer)
}
