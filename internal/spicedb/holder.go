package spicedb

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"

	v1 "github.com/authzed/authzed-go/proto/authzed/api/v1"

	"quartermaster"
	"quartermaster/internal/spicedb/id"
)

// Holders implements quartermaster.Permission.
func (e *Engine) Holders(ctx context.Context, c *quartermaster.Catalog, tool *quartermaster.Tool) ([]quartermaster.Holder, error) {
	w, err := e.enter()
	if err != nil {
		return nil, err
	}
	defer w.leave()
	if err := w.reached(); err != nil {
		return nil, err
	}
	project := c.Project().ID
	if err := w.project(project).follow(ctx, e.closed, c); err != nil {
		return nil, err
	}
	users, err := w.subjects(ctx, toolID(project, tool.Name))
	if err != nil {
		return nil, err
	}
	ways, err := newRelations(ctx, w, project).waysFrom(tool.Name)
	if err != nil {
		return nil, err
	}
	holders := make([]quartermaster.Holder, 0, len(users))
	for _, user := range users {
		via := "by the schema"
		if way := ways[user]; way != nil {
			via = way.via()
		}
		holders = append(holders, quartermaster.Holder{User: user, Via: via})
	}
	return holders, nil
}

// subjects lists the users that may execute a tool, by id.
func (w *world) subjects(ctx context.Context, tool string) ([]string, error) {
	ctx, goOn, cancel := patient(ctx)
	defer cancel()
	stream, err := w.client.LookupSubjects(ctx, &v1.LookupSubjectsRequest{
		Consistency: fullyConsistent, Resource: object(quartermaster.TypeTool, tool), Permission: permissionToUse, SubjectObjectType: quartermaster.TypeUser,
	})
	var users []string
	for err == nil {
		var r *v1.LookupSubjectsResponse
		if r, err = stream.Recv(); err != nil {
			break
		}
		goOn()
		if r.GetSubject().GetPermissionship() != v1.LookupPermissionship_LOOKUP_PERMISSIONSHIP_HAS_PERMISSION {
			continue
		}
		if _, user, ok := id.Object(quartermaster.TypeUser, r.GetSubject().GetSubjectObjectId()); ok {
			users = append(users, user.ID)
		}
	}
	if !errors.Is(err, io.EOF) {
		return nil, unavailable(err)
	}
	slices.Sort(users)
	return slices.Compact(users), nil
}

// waysFrom finds how users come to execute a tool by the relations of the base
// schema, by user.
func (r *relations) waysFrom(tool string) (map[string]*way, error) {
	ways := map[string]*way{}
	for _, o := range []quartermaster.Object{{Type: quartermaster.TypeTool, ID: tool}, {Type: quartermaster.TypeProject, ID: r.project}} {
		grants, err := r.grantsOn(o)
		if err != nil {
			return nil, err
		}
		// Owners first: that is the most that somebody can be.
		slices.SortStableFunc(grants, func(a, b *quartermaster.Grant) int { return strings.Compare(b.Relation, a.Relation) })
		for _, g := range grants {
			if !gives(g) {
				continue
			}
			if err := r.members(ways, way{relation: g.Relation, on: o}, g, map[string]bool{}); err != nil {
				return nil, err
			}
		}
	}
	return ways, nil
}

// members notes a way for everybody whom something is granted to.
func (r *relations) members(ways map[string]*way, so way, g *quartermaster.Grant, seen map[string]bool) error {
	if user, ok := g.User(); ok {
		if ways[user] == nil {
			ways[user] = &so
		}
		return nil
	}
	to, relation := g.To()
	if seen[g.Subject] {
		return nil
	}
	seen[g.Subject] = true
	grants, err := r.grantsOn(to)
	if err != nil {
		return err
	}
	so.through = slices.Concat(so.through, []step{{relation, to}})
	for _, inner := range grants {
		if inner.Relation == relation {
			if err := r.members(ways, so, inner, seen); err != nil {
				return err
			}
		}
	}
	return nil
}
