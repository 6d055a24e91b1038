package client

import (
	"context"
	"net/http"
	"net/url"

	"quartermaster"
)

const pathGrants = "/grants"

// GrantFilter chooses grants; what is empty chooses all. Tool is a name or
// @server/tool, Resource the other things that grants are on: group:ops, project.
type GrantFilter struct{ Subject, Relation, Tool, Resource string }

func (f GrantFilter) query() url.Values {
	query := url.Values{}
	for key, value := range map[string]string{"subject": f.Subject, "relation": f.Relation, "tool": f.Tool, "resource": f.Resource} {
		if value != "" {
			query.Set(key, value)
		}
	}
	return query
}

// Grants lists the grants that a filter chooses: by what they are on, then by
// relation and subject.
func (p *Project) Grants(f GrantFilter) List[quartermaster.Grant] {
	return List[quartermaster.Grant]{get: p.getter(pathGrants), query: f.query()}
}

// Grant adds a grant. One that is there already stays as it is.
func (p *Project) Grant(ctx context.Context, g quartermaster.Grant) (quartermaster.Grant, error) {
	var answer quartermaster.Grant
	err := p.do(ctx, request{method: http.MethodPost, path: pathGrants, body: grantBodies(g)[0]}, &answer)
	return answer, err
}

// Revoke removes all grants that a filter chooses, which must choose some.
func (p *Project) Revoke(ctx context.Context, f GrantFilter) error {
	return p.do(ctx, request{method: http.MethodDelete, path: pathGrants, query: f.query()}, nil)
}

// GrantsChanged counts what was not as it was asked for.
type GrantsChanged struct {
	Added   int `json:"added"`
	Removed int `json:"removed"`
}

// ChangeGrants adds and removes grants, all or nothing. One to add that is there,
// and one to remove that is not, is no error.
func (p *Project) ChangeGrants(ctx context.Context, add, remove []quartermaster.Grant) (GrantsChanged, error) {
	body := map[string]any{}
	if len(add) > 0 {
		body["add"] = grantBodies(add...)
	}
	if len(remove) > 0 {
		body["remove"] = grantBodies(remove...)
	}
	var answer GrantsChanged
	err := p.do(ctx, request{method: http.MethodPatch, path: pathGrants, body: body}, &answer)
	return answer, err
}

// grantBodies leave out what only the server knows.
func grantBodies(grants ...quartermaster.Grant) []map[string]string {
	all := make([]map[string]string, len(grants))
	for i, g := range grants {
		all[i] = map[string]string{"subject": g.Subject, "relation": g.Relation}
		if g.Tool != "" {
			all[i]["tool"] = g.Tool
		}
		if g.Resource != "" {
			all[i]["resource"] = g.Resource
		}
	}
	return all
}

// Schema is the text that says which relations there are to grant, and what they
// permit.
func (c *Client) Schema(ctx context.Context) (string, error) {
	var answer struct {
		Schema string `json:"schema"`
	}
	err := c.do(ctx, request{method: http.MethodGet, path: "/api/v1/schema"}, &answer)
	return answer.Schema, err
}
