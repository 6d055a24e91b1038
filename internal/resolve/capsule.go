package resolve

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/RoaringBitmap/roaring/v2"

	"quartermaster"
)

// capsule passes the tools in the agent's reach: what its patterns match and
// what is bound to it, narrowed by allowed (AGT-3, AGT-4).
func capsule(q *request, _ candidates) (set, error) { return set{one: q.reach.set}, nil }

// reach is what an agent can get at in one index: its definition and bindings
// compiled to a set. Its sets are shared with the reaches that follow it and are
// never changed.
type reach struct {
	definition *quartermaster.Agent // nil: it has none
	bindings   *quartermaster.Bindings
	number     uint64 // of the index that it is true for

	patterns  []pattern
	allowed   []pattern
	matched   *roaring.Bitmap // by patterns
	bound     *roaring.Bitmap // by bindings
	permitted *roaring.Bitmap // by allowed; nil: everything
	set       *roaring.Bitmap // what follows from the three

	names    map[string]uint32              // aliases to the slots of their targets
	views    map[uint32]*quartermaster.Tool // tools that are listed under an alias
	shadow   map[uint32]string              // tools whose name is an alias of another
	warnings []string
}

// nothing is the reach of an agent that nobody has said anything about.
var nothing = &reach{matched: roaring.New(), bound: roaring.New(), set: roaring.New(), bindings: &quartermaster.Bindings{}}

// reachOf returns an agent's reach in this index: the one that is there, the
// one that is there brought up to date, or a new one.
func (ix *index) reachOf(agent string) *reach {
	have := ix.reaches.get(agent)
	if have != nil && have.number == ix.number {
		return have
	}
	next := ix.reachAfter(have, agent)
	if next != nothing { // any string is an agent: keep only those that mean something
		ix.reaches.put(agent, next, len(ix.catalog.Agents())+len(ix.catalog.AllBindings()))
	}
	return next
}

// reachAfter makes an agent's reach in this index from one of an earlier index,
// which may be nil.
func (ix *index) reachAfter(have *reach, agent string) *reach {
	definition, bindings := ix.catalog.Agent(agent), ix.catalog.Bindings(agent)
	if definition == nil && len(bindings.Tools) == 0 {
		return nothing
	}
	if next := have.follow(ix, definition, bindings); next != nil {
		return next
	}
	return compile(ix, definition, bindings)
}

// compile makes a reach from nothing.
func compile(ix *index, definition *quartermaster.Agent, bindings *quartermaster.Bindings) *reach {
	r := &reach{definition: definition, bindings: bindings, number: ix.number}
	if definition != nil {
		r.patterns, _ = parseAll("tools", definition.Tools, definition.Aliases)
		if len(definition.Allowed) > 0 {
			r.allowed, _ = parseAll("allowed", definition.Allowed, definition.Aliases)
			r.permitted = ix.matching(r.allowed) // none, if none of them can be read
		}
	}
	r.matched, r.bound = ix.matching(r.patterns), ix.boundBy(bindings)
	r.settle(ix)
	return r
}

// matching is the set of tools that one of the patterns matches.
func (ix *index) matching(patterns []pattern) *roaring.Bitmap {
	if slices.ContainsFunc(patterns, func(p pattern) bool { return p.all }) {
		return ix.every
	}
	m := roaring.New()
	for _, p := range patterns {
		p.each(ix, func(slot uint32) { m.Add(slot) })
	}
	m.RunOptimize()
	return m
}

func (ix *index) boundBy(bindings *quartermaster.Bindings) *roaring.Bitmap {
	m := roaring.New()
	for _, b := range bindings.Tools {
		if tool := ix.catalog.ToolByID(b.ToolID); tool != nil {
			m.Add(ix.slotOf(tool))
		}
	}
	return m
}

// settle derives everything that follows from the three sets.
func (r *reach) settle(ix *index) {
	switch {
	case r.bound.IsEmpty():
		r.set = r.matched
	case r.matched.IsEmpty():
		r.set = r.bound
	default:
		r.set = roaring.Or(r.matched, r.bound)
	}
	if r.permitted != nil {
		r.set = roaring.And(r.set, r.permitted)
	}
	r.names, r.views, r.shadow, r.warnings = nil, nil, nil, nil
	if r.definition != nil && len(r.definition.Aliases) > 0 {
		r.nameAliases(ix)
	}
}

// nameAliases lets tools in the set answer to their aliases (AGT-5). An alias
// whose target is out of reach does nothing.
func (r *reach) nameAliases(ix *index) {
	r.names, r.views, r.shadow = map[string]uint32{}, map[uint32]*quartermaster.Tool{}, map[uint32]string{}
	for _, alias := range slices.Sorted(maps.Keys(r.definition.Aliases)) {
		slot, ok := ix.slot(r.definition.Aliases[alias])
		if !ok || !r.set.Contains(slot) {
			continue
		}
		r.names[alias] = slot
		// The first of several aliases is the one that is listed.
		if tool := ix.tool(slot); r.views[slot] == nil && tool.Name != alias {
			view := *tool
			view.Name, view.Target = alias, tool.Name
			r.views[slot] = &view
		}
	}
	hidden := roaring.New()
	for alias, target := range r.names {
		slot, ok := ix.slot(alias)
		if !ok || slot == target || !r.set.Contains(slot) {
			continue
		}
		r.shadow[slot] = alias
		r.warnings = append(r.warnings, fmt.Sprintf("aliases: %q hides the tool of that name", alias))
		if r.views[slot] == nil { // else it has another name to be called by
			hidden.Add(slot)
		}
	}
	slices.Sort(r.warnings)
	if !hidden.IsEmpty() {
		r.set = roaring.AndNot(r.set, hidden)
	}
}

// follow brings a reach up to date with a later index by looking only at the
// tools that have changed; nil if that is not possible.
func (r *reach) follow(ix *index, definition *quartermaster.Agent, bindings *quartermaster.Bindings) *reach {
	if r == nil || r.definition != definition || r.number > ix.number || r.number < ix.since {
		return nil
	}
	next := *r
	next.number, next.bindings = ix.number, bindings
	touched := ix.touchedSince(r.number)
	next.matched = ix.rematched(r.matched, touched, r.patterns)
	if r.permitted != nil {
		next.permitted = ix.rematched(r.permitted, touched, r.allowed)
	}
	if same(r.bindings.Tools, bindings.Tools) {
		next.bound = ix.retouched(r.bound, touched, func(t *quartermaster.Tool) bool { return bindings.Has(t.ID) })
	} else {
		next.bound = ix.boundBy(bindings)
	}
	renamed := len(touched) > 0 && definition != nil && len(definition.Aliases) > 0
	if renamed || next.matched != r.matched || next.permitted != r.permitted || next.bound != r.bound {
		next.settle(ix)
	}
	return &next
}

// rematched is matching, where was is what the patterns matched before some
// slots were touched.
func (ix *index) rematched(was *roaring.Bitmap, touched []touch, patterns []pattern) *roaring.Bitmap {
	if slices.ContainsFunc(patterns, func(p pattern) bool { return p.all }) {
		return ix.every
	}
	return ix.retouched(was, touched, func(t *quartermaster.Tool) bool {
		return slices.ContainsFunc(patterns, func(p pattern) bool { return p.matches(t) })
	})
}

// retouched decides anew whether the tools in touched slots are in a set. It
// returns the set itself if that changes nothing, else a copy.
func (ix *index) retouched(was *roaring.Bitmap, touched []touch, in func(*quartermaster.Tool) bool) *roaring.Bitmap {
	is := was
	for _, t := range touched {
		tool := ix.tool(t.slot)
		now := tool != nil && in(tool)
		if now == is.Contains(t.slot) {
			continue
		}
		if is == was {
			is = was.Clone()
		}
		if now {
			is.Add(t.slot)
		} else {
			is.Remove(t.slot)
		}
	}
	return is
}

func (r *reach) alias(name string) (uint32, bool) {
	slot, ok := r.names[name]
	return slot, ok
}

// view is a tool as the agent sees it.
func (r *reach) view(tool *quartermaster.Tool, slot uint32) *quartermaster.Tool {
	if v := r.views[slot]; v != nil {
		return v
	}
	return tool
}

func capsuleReason(q *request, tool *quartermaster.Tool, passed bool) string {
	r := q.reach
	by, alias := r.reachedBy(tool), r.shadow[q.index.slotOf(tool)]
	switch {
	case passed:
		return by
	case alias != "":
		return fmt.Sprintf("its name is taken by the alias %q of agent %q", alias, q.caller.Agent)
	case by != "":
		return by + ", but the definition's allowed list leaves it out"
	case r.definition == nil && len(r.bindings.Tools) == 0:
		return fmt.Sprintf("agent %q has no definition and nothing is bound to it", q.caller.Agent)
	}
	return fmt.Sprintf("no pattern of agent %q matches it, and it is not bound to it", q.caller.Agent)
}

func capsuleRemedy(q *request, tool *quartermaster.Tool) string {
	r := q.reach
	slot := q.index.slotOf(tool)
	if r.shadow[slot] != "" {
		return "rename the alias"
	}
	var steps []string
	if r.reachedBy(tool) == "" {
		steps = append(steps, fmt.Sprintf("bind it (%s) or add a pattern that matches %q to the definition's tools",
			q.command("bind", "--add", tool.Name, q.caller.Agent), tool.Name))
	}
	if r.permitted != nil && !r.permitted.Contains(slot) {
		steps = append(steps, fmt.Sprintf("add %q to the definition's allowed", tool.Name))
	}
	return strings.Join(steps, ", and ")
}

// targetOf is what an alias of the definition stands for; "" if it has none.
func (r *reach) targetOf(alias string) string {
	if r.definition == nil {
		return ""
	}
	return r.definition.Aliases[alias]
}

// reachedBy says which pattern or binding reaches a tool; "" for none.
func (r *reach) reachedBy(tool *quartermaster.Tool) string {
	for _, p := range r.patterns {
		if p.matches(tool) {
			if p.text != p.glob && p.text != tool.Name {
				return fmt.Sprintf("the definition's tools name it by the alias %q", p.text)
			}
			return fmt.Sprintf("the pattern %q of the definition matches it", p.text)
		}
	}
	if r.bindings.Has(tool.ID) {
		return "it is bound to the agent"
	}
	return ""
}
