package resolve

import (
	"context"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"quartermaster"
)

// supposed is an engine as it is and as it would be; nil: it would not change.
type supposed struct {
	name    quartermaster.Gate
	was, is quartermaster.Judge
}

// suppose finds out whom to ask, about whom.
func (c *comparison) suppose(r *Resolver) error {
	before, after := c.was.catalog, c.is.catalog
	c.users = usersOf(before, after)
	for name, judge := range r.judges {
		e := supposed{name: name, was: judge}
		if c.moves(name) {
			is, done, err := judge.Suppose(c.ctx, after)
			if err != nil {
				return failedBecause(name, err)
			}
			c.closers = append(c.closers, done)
			e.is = is
		}
		c.engines = append(c.engines, e)
	}
	if r.permission == nil || len(c.closers) == 0 {
		return nil
	}
	named, err := r.permission.Users(c.ctx, before)
	if err != nil {
		return failedBecause(quartermaster.GatePermission, err)
	}
	c.users = append(c.users, named...)
	for _, g := range after.AllGrants() {
		if user, ok := g.User(); ok {
			c.users = append(c.users, user)
		}
	}
	c.users = append(c.users, quartermaster.LocalUser)
	slices.Sort(c.users)
	c.users = slices.Compact(c.users)
	return nil
}

// moves reports whether the change can make an engine answer otherwise.
func (c *comparison) moves(name quartermaster.Gate) bool {
	before, after := c.was.catalog, c.is.catalog
	if name == quartermaster.GatePermission {
		return !same(before.AllGrants(), after.AllGrants())
	}
	return !same(before.Policies(), after.Policies()) || !same(before.Users(), after.Users()) ||
		!same(before.Tools(), after.Tools()) || before.Project().PolicyQuery != after.Project().PolicyQuery
}

func (c *comparison) close() {
	for _, done := range c.closers {
		done()
	}
}

func usersOf(catalogs ...*quartermaster.Catalog) []string {
	var all []string
	for _, c := range catalogs {
		for _, u := range c.Users() {
			all = append(all, u.ID)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// user says what a user gains and loses: groups to ask for, and tools that
// their agents can have for them. What an agent itself gains or loses is not
// repeated for every user.
func (c *comparison) user(user string) (quartermaster.UserImpact, error) {
	was, is := grantedTo(c.was.catalog, user), grantedTo(c.is.catalog, user)
	impact := quartermaster.UserImpact{User: user, Gained: without(is, was), Lost: without(was, is)}
	regrouped := len(impact.Gained)+len(impact.Lost) > 0
	if !regrouped && len(c.closers) == 0 {
		return impact, nil
	}
	had, has := c.was.inGroups(was), c.is.inGroups(is)
	for _, a := range c.agents {
		caller := quartermaster.Caller{Project: c.was.catalog.Project().ID, Agent: a.agent, User: user, State: quartermaster.StateUndefined}
		var may [2]*roaring.Bitmap
		for side, x := range []struct {
			ix     *index
			groups []string
			tools  *roaring.Bitmap
		}{{c.was, was, roaring.And(a.was, had)}, {c.is, is, roaring.And(a.is, has)}} {
			caller.Groups = x.groups
			left, err := c.judged(side, x.ix, caller, x.tools)
			if err != nil {
				return impact, err
			}
			may[side] = left
		}
		change := c.change(a, may[0], may[1], regrouped)
		if len(change.Gained)+len(change.Lost) > 0 {
			impact.Agents = append(impact.Agents, change)
		}
	}
	return impact, nil
}

// change is what an agent can do more and less for a user; unless the user has
// other groups, only where the agent reaches the tool before and after.
func (c *comparison) change(a compared, before, after *roaring.Bitmap, all bool) quartermaster.AgentChange {
	gained, lost := roaring.AndNot(after, before), roaring.AndNot(before, after)
	if !all {
		both := roaring.And(roaring.And(a.was, c.was.live), roaring.And(a.is, c.is.live))
		gained.And(both)
		lost.And(both)
	}
	return quartermaster.AgentChange{Agent: a.agent, Gained: names(c.is, gained), Lost: names(c.was, lost)}
}

// judged are those of tools that the engines of one side, 0 before and 1 after,
// let the caller have.
func (c *comparison) judged(side int, ix *index, caller quartermaster.Caller, tools *roaring.Bitmap) (*roaring.Bitmap, error) {
	for _, e := range c.engines {
		judge, catalog := e.was, c.was.catalog
		if side == 1 && e.is != nil {
			judge, catalog = e.is, c.is.catalog
		}
		left, err := judgedOf(c.ctx, judge, catalog, ix, caller, tools)
		if err != nil {
			return nil, failedBecause(e.name, err)
		}
		tools = left
	}
	return tools, nil
}

func judgedOf(ctx context.Context, judge quartermaster.Judge, catalog *quartermaster.Catalog, ix *index, caller quartermaster.Caller, tools *roaring.Bitmap) (*roaring.Bitmap, error) {
	slots := tools.ToArray()
	asked := make([]*quartermaster.Tool, len(slots))
	for i, slot := range slots {
		asked[i] = ix.tool(slot)
	}
	said, err := consult(ctx, judge, catalog, caller, quartermaster.Question{}, asked)
	if err != nil {
		return nil, err
	}
	left := tools.Clone()
	allowed(slots, said).narrow(left)
	return left, nil
}

// grantedTo are the groups that a user may ask for.
func grantedTo(c *quartermaster.Catalog, user string) []string {
	if user == quartermaster.LocalUser {
		return []string{anyGroup} // SEC-1
	}
	if u := c.User(user); u != nil {
		return u.Groups
	}
	return impliedGroups
}
