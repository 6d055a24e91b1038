package spicedb

import (
	"context"
	"errors"
	"maps"
	"slices"

	v1 "github.com/authzed/authzed-go/proto/authzed/api/v1"

	"quartermaster"
	"quartermaster/internal/spicedb/id"
)

// Keep returns a store whose grants are kept where they belong: in the store
// itself, or by the cluster.
func (e *Engine) Keep(store quartermaster.Store) quartermaster.Store {
	if !e.remote() {
		return store
	}
	return keeper{store, e}
}

// keeper is a store beside a cluster that keeps the grants.
type keeper struct {
	quartermaster.Store
	engine *Engine
}

// Change implements quartermaster.Store. What edit does to grants is written into
// the cluster, as the last thing before the rest is committed; the token of that
// write is committed with it, so that every replica reads at least as fresh.
// If the commit fails, the write is taken back.
func (k keeper) Change(ctx context.Context, project string, edit func(*quartermaster.Draft) error) (*quartermaster.Catalog, error) {
	w, err := k.engine.enter()
	if err != nil {
		return nil, err
	}
	defer w.leave()
	var written updates
	c, err := k.Store.Change(ctx, project, func(d *quartermaster.Draft) error {
		cluster := &clusterReader{ctx: ctx, world: w, project: project, conditional: map[string][]*v1.Relationship{}}
		d.ReadGrants(cluster.read)
		if err := edit(d); err != nil {
			return err
		}
		changes, err := cluster.changes(d)
		if err != nil || len(changes) == 0 {
			return err
		}
		written = changes
		token, err := w.write(context.WithoutCancel(ctx), changes.list())
		w.fresh.learn()
		for _, u := range changes {
			w.forgetFor(u.GetRelationship())
		}
		if err == nil {
			d.SetGrantsToken(token.GetToken())
		}
		return err
	})
	if err != nil && len(written) > 0 {
		err = errors.Join(err, k.undo(ctx, w, written))
	}
	return c, err
}

// undo takes back what was written, or may have been.
func (k keeper) undo(ctx context.Context, w *world, written updates) error {
	_, err := w.write(context.WithoutCancel(ctx), written.inverse().list())
	w.fresh.learn()
	for _, u := range written {
		w.forgetFor(u.GetRelationship())
	}
	if err != nil {
		k.engine.log.Error("grants were written to SpiceDB, the change that they belong to was not, and they could not be taken back", "error", err)
	}
	return err
}

// updates are changes of relationships by the relationship that they change. A
// write cannot hold two of one: what is there afterwards counts.
type updates map[string]*v1.RelationshipUpdate

func (u updates) touch(r *v1.Relationship) { u[keyOf(r)] = touch(r) }

func (u updates) remove(r *v1.Relationship) {
	if u[keyOf(r)] == nil {
		u[keyOf(r)] = remove(r)
	}
}

func (u updates) inverse() updates {
	inverse := updates{}
	for _, one := range u {
		if one.GetOperation() == v1.RelationshipUpdate_OPERATION_TOUCH {
			inverse.remove(one.GetRelationship())
		} else {
			inverse.touch(one.GetRelationship())
		}
	}
	return inverse
}

func (u updates) list() []*v1.RelationshipUpdate {
	list := make([]*v1.RelationshipUpdate, 0, len(u))
	for _, k := range slices.Sorted(maps.Keys(u)) {
		list = append(list, u[k])
	}
	return list
}

func keyOf(r *v1.Relationship) string {
	on, to := r.GetResource(), r.GetSubject()
	return on.GetObjectType() + ":" + on.GetObjectId() + "#" + r.GetRelation() +
		"@" + to.GetObject().GetObjectType() + ":" + to.GetObject().GetObjectId() + "#" + to.GetOptionalRelation()
}

// clusterReader reads a project's grants for a draft. What stands beside them
// and is no grant, because it depends on a condition or ends by itself, it
// keeps: where a tool goes, that has to go too.
type clusterReader struct {
	ctx         context.Context
	world       *world
	project     string
	conditional map[string][]*v1.Relationship // by resource
}

func (c *clusterReader) read(resource string) ([]*quartermaster.Grant, error) {
	return c.world.relationships(c.ctx, c.project, quartermaster.GrantFilter{Resource: resource}, func(r *v1.Relationship) {
		_, on, _ := id.Object(r.GetResource().GetObjectType(), r.GetResource().GetObjectId())
		c.conditional[resourceText(on)] = append(c.conditional[resourceText(on)], r)
	})
}

// changes takes out of a draft what the cluster has to be told: its grants, and
// the tools that go or get another name. New tools can wait until they are asked
// about.
func (c *clusterReader) changes(d *quartermaster.Draft) (updates, error) {
	add, gone, err := d.TakeGrants()
	if err != nil {
		return nil, err
	}
	all := updates{}
	for _, g := range add {
		if !derived(g) {
			all.touch(relationship(c.project, g))
		}
	}
	for _, g := range gone {
		all.remove(relationship(c.project, g))
	}
	after := d.Catalog()
	for _, ch := range d.Changes() {
		was := d.Base().ToolByID(ch.Key)
		if ch.Noun != quartermaster.NounTool || was == nil || ch.Tool != nil && ch.Tool.Name == was.Name {
			continue
		}
		c.move(all, was.Name, ch.Tool)
		if after.ToolByName(was.Name) == nil {
			all.remove(toolRow(c.project, was.Name))
		}
	}
	return all, nil
}

// move lets what is conditional go with its tool.
func (c *clusterReader) move(all updates, from string, to *quartermaster.Tool) {
	for _, r := range c.conditional[quartermaster.TypeTool+":"+from] {
		all.remove(r)
		if to != nil {
			moved := &v1.Relationship{
				Resource: object(quartermaster.TypeTool, toolID(c.project, to.Name)), Relation: r.GetRelation(), Subject: r.GetSubject(),
				OptionalCaveat: r.GetOptionalCaveat(), OptionalExpiresAt: r.GetOptionalExpiresAt(),
			}
			all.touch(moved)
		}
	}
}
