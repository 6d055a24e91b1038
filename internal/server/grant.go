package server

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"quartermaster"
)

type grantOutput struct {
	Status int
	Body   quartermaster.Grant
}

type grantsOutput struct {
	Body quartermaster.Page[*quartermaster.Grant]
}

// GrantFilterInput are the parameters that choose grants.
type GrantFilterInput struct {
	Subject  string `query:"subject" doc:"user:ID or group:NAME#member"`
	Relation string `query:"relation"`
	Tool     string `query:"tool" doc:"Name or @server/tool"`
	Resource string `query:"resource" doc:"tool:NAME, group:NAME or project"`
}

func (f GrantFilterInput) filter(c *quartermaster.Catalog) (quartermaster.GrantFilter, error) {
	if f.Tool != "" && f.Resource != "" {
		return quartermaster.GrantFilter{}, fault("query.resource", "must not be given beside a tool")
	}
	return quartermaster.GrantFilter{Subject: f.Subject, Relation: f.Relation, Resource: resourceOf(c, f.Tool, f.Resource)}, nil
}

// resourceOf is what a grant is on: a tool under the name that it is kept by, or
// something else. A server of the catalog or draft may have yet to offer the tool.
func resourceOf(in interface {
	Tool(ref string) *quartermaster.Tool
	Server(name string) *quartermaster.Server
}, tool, resource string,
) string {
	if tool == "" {
		return resource
	}
	server, upstream, _ := strings.Cut(tool, "/")
	if t := in.Tool(tool); t != nil {
		tool = t.Name
	} else if s := in.Server(strings.TrimPrefix(server, "@")); s != nil && server[0] == '@' && upstream != "" {
		tool = quartermaster.ToolName(s, upstream)
	}
	return quartermaster.TypeTool + ":" + tool
}

func (s *Server) listGrants(ctx context.Context, in *struct {
	ProjectInput
	GrantFilterInput
	PageInput
},
) (*grantsOutput, error) {
	c, err := s.Store.Catalog(ctx, in.Project)
	if err != nil {
		return nil, err
	}
	filter, err := in.filter(c)
	if err != nil {
		return nil, err
	}
	all, err := s.grants(ctx, c, filter)
	if err != nil {
		return nil, err
	}
	return &grantsOutput{quartermaster.PageOf(slices.Values(all), in.Page, in.Size)}, nil
}

// grants asks who keeps them.
func (s *Server) grants(ctx context.Context, c *quartermaster.Catalog, filter quartermaster.GrantFilter) ([]*quartermaster.Grant, error) {
	if s.Permission == nil {
		return c.Grants(filter), nil
	}
	return s.Permission.Grants(ctx, c, filter)
}

func (s *Server) createGrant(ctx context.Context, in *struct {
	ProjectInput
	Body quartermaster.Grant
},
) (*grantOutput, error) {
	c, err := s.Store.Catalog(ctx, in.Project)
	if err != nil {
		return nil, err
	}
	// Our own words for what is malformed go before the engine's.
	if _, _, err := c.Draft(time.Now()).Grant(in.Body); quartermaster.CodeOf(err) == quartermaster.CodeInvalidRequest {
		return nil, below("body", err)
	}
	if err := s.fitsSchema(ctx, c, []quartermaster.Grant{in.Body}); err != nil {
		return nil, moved(err, "grants[0]", "body")
	}
	var (
		grant   *quartermaster.Grant
		created bool
	)
	_, err = s.Store.Change(ctx, in.Project, func(d *quartermaster.Draft) (err error) {
		grant, created, err = d.Grant(in.Body)
		return err
	})
	if err != nil {
		return nil, below("body", err)
	}
	return &grantOutput{createdOrOK(created), *grant}, nil
}

// fitsSchema asks the engine whether its schema has a place for grants. It may
// ask a cluster, so it must not be asked while others wait for the project; what
// it says hangs on the grants alone.
func (s *Server) fitsSchema(ctx context.Context, c *quartermaster.Catalog, grants []quartermaster.Grant) error {
	if s.Permission == nil || len(grants) == 0 {
		return nil
	}
	kept := make([]*quartermaster.Grant, len(grants))
	for i, g := range grants {
		kept[i] = quartermaster.NewGrant(resourceOf(c, g.Tool, g.Resource), g.Relation, g.Subject, time.Time{})
	}
	return s.Permission.CheckGrants(ctx, kept)
}

type grantsChangedOutput struct {
	Body struct {
		Added   int `json:"added" doc:"How many were not there before"`
		Removed int `json:"removed" doc:"How many were there before"`
	}
}

// changeGrants adds and removes many at once, or none if one of them is wrong.
func (s *Server) changeGrants(ctx context.Context, in *struct {
	ProjectInput
	Body struct {
		Add    []quartermaster.Grant `json:"add,omitempty"`
		Remove []quartermaster.Grant `json:"remove,omitempty" doc:"One that is not there is no error"`
	}
},
) (*grantsChangedOutput, error) {
	c, err := s.Store.Catalog(ctx, in.Project)
	if err != nil {
		return nil, err
	}
	if err := grantAll(c.Draft(time.Now()), in.Body.Add); quartermaster.CodeOf(err) == quartermaster.CodeInvalidRequest {
		return nil, below("body", err)
	}
	if err := s.fitsSchema(ctx, c, in.Body.Add); err != nil {
		return nil, moved(err, "grants[", "body.add[")
	}
	out := &grantsChangedOutput{}
	_, err = s.Store.Change(ctx, in.Project, func(d *quartermaster.Draft) error {
		if err := revokeAll(d, in.Body.Remove); err != nil {
			return moved(err, "revoke[", "remove[")
		}
		if err := grantAll(d, in.Body.Add); err != nil {
			return err
		}
		out.Body.Added, out.Body.Removed = grantsChanged(d)
		return nil
	})
	if err != nil {
		return nil, below("body", err)
	}
	return out, nil
}

// grantAll adds grants to a draft, or says of each that is wrong what is.
func grantAll(d *quartermaster.Draft, grants []quartermaster.Grant) error {
	var (
		faults  []quartermaster.Fault
		missing []string
	)
	for i, g := range grants {
		_, _, err := d.Grant(g)
		if err == nil {
			continue
		}
		at := fmt.Sprintf("add[%d]", i)
		switch quartermaster.CodeOf(err) {
		case quartermaster.CodeToolNotFound:
			missing = append(missing, strings.TrimPrefix(resourceOf(d, g.Tool, g.Resource), quartermaster.TypeTool+":"))
			faults = append(faults, quartermaster.Fault{Location: at + ".tool", Message: err.Error()})
		case quartermaster.CodeInvalidRequest:
			faults = append(faults, faultsOf(below(at, err))...)
		default:
			return err
		}
	}
	if len(missing) > 0 && len(missing) == len(faults) {
		e := quartermaster.Errorf(quartermaster.CodeToolNotFound, "there is no tool %s; nothing was changed", strings.Join(missing, ", "))
		e.Faults = faults
		return e
	}
	return invalid(faults, "the grants are not valid; nothing was changed")
}

// revokeAll removes grants from a draft. Each must be named in full: a filter
// chooses all where something is left out.
func revokeAll(d *quartermaster.Draft, grants []quartermaster.Grant) error {
	var faults []quartermaster.Fault
	for i, g := range grants {
		resource := resourceOf(d, g.Tool, g.Resource)
		bad := func(field, message string) {
			faults = append(faults, quartermaster.Fault{Location: fmt.Sprintf("revoke[%d].%s", i, field), Message: message})
		}
		switch {
		case g.Subject == "":
			bad("subject", "must not be empty")
		case g.Relation == "":
			bad("relation", "must not be empty")
		case resource == "":
			bad("tool", "must be the name of a tool, or resource something else")
		case g.Resource != "" && g.Resource != resource && g.Resource != quartermaster.TypeTool+":"+g.Tool:
			bad("resource", fmt.Sprintf("is %q, but tool is %q", g.Resource, g.Tool))
		default:
			d.Revoke(quartermaster.GrantFilter{Subject: g.Subject, Relation: g.Relation, Resource: resource})
		}
	}
	return invalid(faults, "the grants are not valid; nothing was changed")
}

// grantsChanged counts what a draft really changes.
func grantsChanged(d *quartermaster.Draft) (added, removed int) {
	for _, ch := range d.Changes() {
		switch {
		case ch.Noun != quartermaster.NounGrant:
		case ch.Grant != nil:
			added++
		default:
			removed++
		}
	}
	return added, removed
}

func (s *Server) deleteGrants(ctx context.Context, in *struct {
	ProjectInput
	GrantFilterInput
},
) (*struct{}, error) {
	if in.GrantFilterInput == (GrantFilterInput{}) {
		return nil, fault("query", "must have subject, relation, tool or resource: without any of them everything would be revoked")
	}
	var gone []*quartermaster.Grant
	_, err := s.Store.Change(ctx, in.Project, func(d *quartermaster.Draft) error {
		filter, err := in.filter(d.Base())
		if err == nil {
			gone = d.Revoke(filter)
		}
		return err
	})
	// Not before the change has succeeded: whoever keeps the grants may not have
	// answered, and then nobody knows that there are none.
	if err == nil && len(gone) == 0 {
		err = quartermaster.Errorf(quartermaster.CodeNotFound, "there is no such grant; nothing was revoked")
	}
	return nil, err
}

type schemaOutput struct {
	Body struct {
		Schema string `json:"schema" doc:"Types, their relations and what these permit, in SpiceDB's schema language"`
	}
}

// schema shows which relations there are to grant.
func (s *Server) schema(ctx context.Context, _ *WhoInput) (*schemaOutput, error) {
	if s.Permission == nil {
		return nil, quartermaster.Errorf(quartermaster.CodeUnsupportedProvider, "this server has no permission engine, so there is no schema")
	}
	text, err := s.Permission.Schema(ctx)
	out := &schemaOutput{}
	out.Body.Schema = text
	return out, err
}
