package spicedb

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	v1 "github.com/authzed/authzed-go/proto/authzed/api/v1"

	"quartermaster"
	"quartermaster/internal/spicedb/id"
)

// CheckGrants implements quartermaster.Permission.
func (e *Engine) CheckGrants(_ context.Context, grants []*quartermaster.Grant) error {
	w := e.world.Load()
	if err := w.reached(); err != nil {
		return err
	}
	return w.schema.Load().checkGrants(grants)
}

// Grants implements quartermaster.Permission.
func (e *Engine) Grants(ctx context.Context, c *quartermaster.Catalog, f quartermaster.GrantFilter) ([]*quartermaster.Grant, error) {
	if !e.remote() || c.Informed() {
		return c.Grants(f), nil
	}
	w, err := e.enter()
	if err != nil {
		return nil, err
	}
	defer w.leave()
	return w.grants(ctx, c.Project().ID, f)
}

// Users implements quartermaster.Permission.
func (e *Engine) Users(ctx context.Context, c *quartermaster.Catalog) ([]string, error) {
	grants, err := e.Grants(ctx, c, quartermaster.GrantFilter{})
	if err != nil {
		return nil, err
	}
	users := map[string]bool{}
	for _, g := range grants {
		if user, ok := g.User(); ok {
			users[user] = true
		}
	}
	return slices.Sorted(maps.Keys(users)), nil
}

// grants reads the grants of a project from SpiceDB, by key.
func (w *world) grants(ctx context.Context, project string, f quartermaster.GrantFilter) ([]*quartermaster.Grant, error) {
	return w.relationships(ctx, project, f, func(*v1.Relationship) {})
}

// relationships reads the grants of a project, by key, and gives other what
// stands beside them and is no grant.
func (w *world) relationships(ctx context.Context, project string, f quartermaster.GrantFilter, other func(*v1.Relationship)) ([]*quartermaster.Grant, error) {
	if err := w.reached(); err != nil {
		return nil, err
	}
	var all []*quartermaster.Grant
	for _, filter := range w.schema.Load().filters(project, f) {
		err := w.read(ctx, filter, func(r *v1.Relationship) {
			switch g, ok := grantOf(project, r); {
			case !ok:
				other(r)
			case !derived(g) && f.Match(g):
				all = append(all, g)
			}
		})
		if err != nil {
			return nil, err
		}
	}
	slices.SortFunc(all, func(a, b *quartermaster.Grant) int { return strings.Compare(a.Key(), b.Key()) })
	return all, nil
}

// filters say which relationships to read: one for each type of things that a
// project can have, unless one thing is asked for. What narrows them further is
// for the reader: SpiceDB calls a filter that nothing can match an error.
func (s *schema) filters(project string, f quartermaster.GrantFilter) []*v1.RelationshipFilter {
	wanted := quartermaster.NewGrant(f.Resource, f.Relation, f.Subject, time.Time{})
	var subject *v1.SubjectFilter
	if f.Subject != "" {
		to, _ := wanted.To()
		if s.types[to.Type] == nil {
			return nil
		}
		subject = &v1.SubjectFilter{SubjectType: to.Type, OptionalSubjectId: id.Of(project, to)}
	}
	var filters []*v1.RelationshipFilter
	for kind := range s.types {
		filter := &v1.RelationshipFilter{ResourceType: kind, OptionalSubjectFilter: subject}
		switch on := wanted.On(); {
		case kind == quartermaster.TypeUser, f.Resource != "" && on.Type != kind:
			continue
		case f.Resource != "":
			filter.OptionalResourceId = id.Of(project, on)
		case kind == quartermaster.TypeProject:
			filter.OptionalResourceId = project
		default:
			filter.OptionalResourceIdPrefix = project + "/"
		}
		filters = append(filters, filter)
	}
	return filters
}
