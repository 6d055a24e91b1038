package resolve

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/RoaringBitmap/roaring/v2"

	"quartermaster"
)

// ImpactOf compares two catalogs of a project. It speaks of agents that nobody
// else has started. Policies are asked as a list asks them, in no state, with
// the groups that the user is granted.
func (r *Resolver) ImpactOf(ctx context.Context, before, after *quartermaster.Catalog) (quartermaster.Impact, error) {
	was := r.indexOf(before)
	is := was.aside(after)
	c := &comparison{ctx: ctx, was: was, is: is, states: statesOf(was, is), touched: roaring.New()}
	for _, t := range is.touchedSince(was.number) {
		c.touched.Add(t.slot)
	}
	for _, agent := range agentsOf(before, after) {
		reach := was.reachOf(agent)
		c.agents = append(c.agents, compared{agent, reach.set, is.reachAfter(reach, agent).set})
	}
	defer c.close()
	if err := c.suppose(r); err != nil {
		return quartermaster.Impact{}, err
	}
	impact := quartermaster.Impact{Agents: []quartermaster.AgentImpact{}, Users: []quartermaster.UserImpact{}}
	for _, a := range c.agents {
		if i := c.agent(a); len(i.Gained)+len(i.Lost) > 0 {
			impact.Agents = append(impact.Agents, i)
		}
	}
	for _, user := range c.users {
		i, err := c.user(user)
		if err != nil {
			return quartermaster.Impact{}, err
		}
		if len(i.Gained)+len(i.Lost)+len(i.Agents) > 0 {
			impact.Users = append(impact.Users, i)
		}
	}
	return impact, nil
}

type comparison struct {
	ctx     context.Context
	was, is *index
	states  []string        // every state that either knows, and "*" for all others
	touched *roaring.Bitmap // slots whose tool changed
	agents  []compared
	users   []string
	engines []supposed
	closers []func()
}

// compared is an agent and what it reaches.
type compared struct {
	agent   string
	was, is *roaring.Bitmap
}

func statesOf(a, b *index) []string {
	all := []string{anyState, quartermaster.StateUndefined}
	for _, ix := range []*index{a, b} {
		for s := range ix.states {
			all = append(all, s)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func agentsOf(catalogs ...*quartermaster.Catalog) []string {
	var all []string
	for _, c := range catalogs {
		for _, a := range c.Agents() {
			all = append(all, a.ID)
		}
		for _, b := range c.AllBindings() {
			all = append(all, b.Agent)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func (c *comparison) agent(a compared) quartermaster.AgentImpact {
	impact := quartermaster.AgentImpact{Agent: a.agent}
	if a.was == a.is && !a.is.Intersects(c.touched) {
		return impact // nearly all agents, nearly always
	}
	before, after := roaring.And(a.was, c.was.live), roaring.And(a.is, c.is.live)
	differ := roaring.Xor(before, after)
	differ.Or(roaring.And(after, c.touched))
	for it := differ.Iterator(); it.HasNext(); {
		slot := it.Next()
		var was, is place
		if before.Contains(slot) {
			was = c.place(c.was, slot)
		}
		if after.Contains(slot) {
			is = c.place(c.is, slot)
		}
		impact.Gained = append(impact.Gained, c.minus(is, was)...)
		impact.Lost = append(impact.Lost, c.minus(was, is)...)
	}
	sortAvailabilities(impact.Gained)
	sortAvailabilities(impact.Lost)
	return impact
}

// place is where a tool can be had: groups by states. The zero place is nowhere.
type place struct {
	tool           string
	groups, states []string
}

// place of a tool: its groups, by its states written out.
func (c *comparison) place(ix *index, slot uint32) place {
	tool := ix.tool(slot)
	p := place{tool: tool.Name, groups: askable(ix.catalog.GroupsOf(tool)), states: c.states}
	if !inEveryState(tool) {
		p.states = tool.AvailableInStates
	}
	return p
}

// minus is where a tool can be had by a but not by b.
func (c *comparison) minus(a, b place) []quartermaster.Availability {
	var all []quartermaster.Availability
	add := func(groups, states []string) {
		if len(groups) > 0 && len(states) > 0 {
			all = append(all, quartermaster.Availability{Tool: a.tool, Groups: groups, States: c.named(states)})
		}
	}
	if len(b.states) == 0 {
		b.groups = nil // a tool that no state has is nowhere
	}
	fresh, states := without(a.groups, b.groups), without(a.states, b.states)
	add(fresh, a.states)
	add(without(a.groups, fresh), states)
	if len(a.groups) == 0 {
		add([]string{anyGroup}, states)
	}
	return all
}

// named says states in the words of an Availability.
func (c *comparison) named(states []string) []string {
	if len(states) == len(c.states) {
		return []string{anyState}
	}
	if i := slices.Index(states, anyState); i >= 0 {
		return append(slices.Delete(slices.Clone(states), i, i+1), quartermaster.OtherStates)
	}
	return states
}

// askable are groups that can be asked for by their names: as a tool's group,
// "*" means nothing special.
func askable(groups []string) []string { return without(groups, []string{anyGroup}) }

func without(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(s string) bool { return slices.Contains(b, s) })
}

func sortAvailabilities(all []quartermaster.Availability) {
	slices.SortStableFunc(all, func(a, b quartermaster.Availability) int { return strings.Compare(a.Tool, b.Tool) })
}

// inGroups are the live tools that some of groups give in some state.
func (ix *index) inGroups(groups []string) *roaring.Bitmap {
	states := set{one: ix.anyState, more: slices.Collect(maps.Values(ix.states))}
	asked := set{all: slices.Contains(groups, anyGroup)}
	for _, g := range groups {
		asked.more = append(asked.more, ix.groups[g])
	}
	in := ix.live.Clone()
	states.narrow(in)
	asked.narrow(in)
	return in
}

func names(ix *index, m *roaring.Bitmap) []string {
	var all []string
	for it := m.Iterator(); it.HasNext(); {
		all = append(all, ix.tool(it.Next()).Name)
	}
	slices.Sort(all)
	return all
}
