package spicedb

import (
	"context"

	v1 "github.com/authzed/authzed-go/proto/authzed/api/v1"

	"quartermaster"
	"quartermaster/internal/spicedb/id"
)

// follow brings SpiceDB up to a catalog, unless it is there already. waiting is
// how long to wait for one's turn; working ends what is then done, which it
// should not do lightly: half a change may stay until it is finished.
func (p *project) follow(waiting, working context.Context, c *quartermaster.Catalog) error {
	if st := p.state.Load(); st != nil && st.catalog.Revision() >= c.Revision() {
		return nil
	}
	if err := p.turn.Acquire(waiting, everyTurn); err != nil {
		return err
	}
	defer p.turn.Release(everyTurn)
	st := p.state.Load()
	if st != nil && st.catalog.Revision() >= c.Revision() {
		return nil
	}
	err := p.apply(working, st, c)
	p.note(err)
	return err
}

func (p *project) note(err error) {
	if err == nil {
		p.trouble.Store(nil)
		return
	}
	words := "project " + p.id + ": " + err.Error()
	p.trouble.Store(&words)
}

func (p *project) apply(ctx context.Context, st *state, c *quartermaster.Catalog) error {
	if p.world.watch != nil {
		return p.applyRemote(ctx, st, c)
	}
	return p.applyEmbedded(ctx, st, c)
}

// applyEmbedded writes what is different since the last catalog. If a write has
// failed and may be there in part, it is finished first: the difference to where
// it began would not show what has to go again.
func (p *project) applyEmbedded(ctx context.Context, st *state, c *quartermaster.Catalog) error {
	w := p.world
	if st == nil && p.pending == nil {
		return p.loadAll(ctx, c)
	}
	var was *quartermaster.Catalog
	if st != nil {
		was = st.catalog
	}
	for _, is := range []*quartermaster.Catalog{p.pending, c} {
		if is == nil || is == was {
			continue
		}
		d := w.difference(was, is)
		if err := d.misfit(p.id); err != nil {
			return err
		}
		p.pending = is
		if _, err := w.write(ctx, d.updates); err != nil {
			return err
		}
		w.rows.Add(int64(d.more))
		p.pending = nil
		p.become(is, d)
		was = is
	}
	w.engine.renewSoon(w)
	return nil
}

// loadAll writes a project that SpiceDB has nothing of.
func (p *project) loadAll(ctx context.Context, c *quartermaster.Catalog) error {
	var d difference
	for _, g := range c.AllGrants() {
		if !derived(g) {
			d.check(p.world.schema.Load(), g)
		}
	}
	if err := d.misfit(p.id); err != nil {
		return err
	}
	p.pending = c
	if err := p.world.load(ctx, p.world.rowsIn(c)); err != nil {
		return err
	}
	p.pending = nil
	p.become(c, difference{concerns: everyone})
	return nil
}

// applyRemote lets a cluster know a catalog's tools. Its grants are its own.
//
// Rows are only added here: what goes, goes with the change that removes it
// (Keep). Another replica may be ahead of this one, and what it has just made
// must not be taken away from it.
func (p *project) applyRemote(ctx context.Context, st *state, c *quartermaster.Catalog) error {
	var (
		d       difference
		updates []*v1.RelationshipUpdate
		err     error
	)
	if st == nil {
		updates, err = p.missing(ctx, c)
		d.concerns = everyone
	} else {
		d = toolDifference(st.catalog, c)
		d.added = made(st.catalog, c)
		for _, name := range d.added {
			updates = append(updates, touch(toolRow(p.id, name)))
		}
		d.concerns.all = len(d.added)+len(d.gone) > 0 || st.catalog.Project().GrantsToken != c.Project().GrantsToken
	}
	if err == nil {
		_, err = p.world.write(ctx, updates)
	}
	if err != nil {
		return err
	}
	p.world.fresh.learn()
	p.become(c, d)
	return nil
}

// made lists the tools that were not there before, or not by that name: the row
// of another that bore it has gone with it.
func made(was, is *quartermaster.Catalog) []string {
	if same(was.Tools(), is.Tools()) {
		return nil
	}
	var names []string
	for _, t := range is.Tools() {
		if old := was.ToolByID(t.ID); old == nil || old.Name != t.Name {
			names = append(names, t.Name)
		}
	}
	return names
}

// missing lists what a cluster lacks for a catalog.
func (p *project) missing(ctx context.Context, c *quartermaster.Catalog) ([]*v1.RelationshipUpdate, error) {
	var updates []*v1.RelationshipUpdate
	has := map[string]bool{}
	err := p.world.read(ctx, &v1.RelationshipFilter{
		ResourceType: quartermaster.TypeTool, OptionalResourceIdPrefix: p.id + "/", OptionalRelation: relationProject,
	}, func(r *v1.Relationship) {
		if _, tool, ok := id.Object(quartermaster.TypeTool, r.GetResource().GetObjectId()); ok {
			has[tool.ID] = true
		}
	})
	if err != nil {
		return nil, err
	}
	for _, t := range c.Tools() {
		if !has[t.Name] {
			updates = append(updates, touch(toolRow(p.id, t.Name)))
		}
	}
	operator, err := p.operator(ctx)
	if err == nil && operator != nil {
		updates = append(updates, operator)
	}
	return updates, err
}

// operator says what to write about the local operator: a cluster that has
// served a server without authentication must not let somebody in who calls
// themselves local on one with it.
func (p *project) operator(ctx context.Context) (*v1.RelationshipUpdate, error) {
	row, wanted, has := operatorRow(p.id), p.world.engine.options.LocalOperator, false
	err := p.world.read(ctx, &v1.RelationshipFilter{
		ResourceType: quartermaster.TypeProject, OptionalResourceId: p.id, OptionalRelation: relationAdmin,
		OptionalSubjectFilter: &v1.SubjectFilter{SubjectType: quartermaster.TypeUser, OptionalSubjectId: row.GetSubject().GetObject().GetObjectId()},
	}, func(*v1.Relationship) { has = true })
	switch {
	case err != nil || has == wanted:
		return nil, err
	case wanted:
		return touch(row), nil
	}
	return remove(row), nil
}
