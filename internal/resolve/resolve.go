// Package resolve decides: which tools may this caller see and call? List,
// call, search and explain ask the one function Resolve.
//
// A gate answers with a set of tools. A list is the intersection of the sets, a
// call asks whether its tool is in each of them, and explain says in which it
// is not: the three cannot disagree.
package resolve

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/RoaringBitmap/roaring/v2"

	"quartermaster"
)

// Catalogs is where the tools come from.
type Catalogs interface {
	Catalog(ctx context.Context, project string) (*quartermaster.Catalog, error)
}

// Resolver implements quartermaster.Resolver.
type Resolver struct {
	catalogs   Catalogs
	permission quartermaster.Permission          // nil: no such gate
	policy     quartermaster.Judge               // nil: no such gate
	gone       func(project, server string) bool // nil: none ever is
	chain      []gate

	mu       sync.RWMutex
	projects map[string]*project
	draft    atomic.Pointer[index]
}

var (
	_ quartermaster.Resolver = (*Resolver)(nil)
	_ quartermaster.Advisor  = (*Resolver)(nil)
)

// New makes a Resolver. A nil engine leaves its gate out.
func New(catalogs Catalogs, permission quartermaster.Permission, policy quartermaster.Judge) *Resolver {
	r := &Resolver{catalogs: catalogs, permission: permission, policy: policy, projects: map[string]*project{}}
	r.chain = r.gates()
	return r
}

// LeaveOut hides the tools of servers that gone reports. It is for whoever has
// made the Resolver, before anybody asks it.
func (r *Resolver) LeaveOut(gone func(project, server string) bool) { r.gone = gone }

// gate is one check. pass returns the tools it lets through, of those that are
// candidates; reason says why it lets a tool through or not, remedy what would
// let it through.
type gate struct {
	name   quartermaster.Gate
	pass   func(*request, candidates) (set, error)
	reason func(q *request, tool *quartermaster.Tool, passed bool) string
	remedy func(q *request, tool *quartermaster.Tool) string
}

// gates is the order in which they are asked. A gate whose engine is absent is
// left out.
func (r *Resolver) gates() []gate {
	all := []gate{
		{quartermaster.GateRegistry, registry, registryReason, registryRemedy},
		{quartermaster.GateCapsule, capsule, capsuleReason, capsuleRemedy},
		{quartermaster.GateDepth, depth, depthReason, depthRemedy},
		{quartermaster.GateGroup, group, groupReason, groupRemedy},
		{quartermaster.GateState, state, stateReason, stateRemedy},
		{quartermaster.GatePermission, permission, judgedReason(quartermaster.GatePermission), judgedRemedy(quartermaster.GatePermission)},
		{quartermaster.GatePolicy, policy, judgedReason(quartermaster.GatePolicy), judgedRemedy(quartermaster.GatePolicy)},
	}
	return slices.DeleteFunc(all, func(g gate) bool {
		return g.name == quartermaster.GatePermission && r.permission == nil ||
			g.name == quartermaster.GatePolicy && r.policy == nil
	})
}

// Gates names the gates that are asked, in order.
func (r *Resolver) Gates() []quartermaster.Gate {
	names := make([]quartermaster.Gate, len(r.chain))
	for i, g := range r.chain {
		names[i] = g.name
	}
	return names
}

// request is one question with everything that the gates need to answer it.
type request struct {
	ctx      context.Context
	resolver *Resolver
	index    *index
	reach    *reach
	caller   quartermaster.Caller
	question quartermaster.Question
	groups   groups
	judged   []judged
	leading  map[string][]string // names of tools by the state they lead to, when first needed
	warnings []string
}

// Resolve implements quartermaster.Resolver.
func (r *Resolver) Resolve(ctx context.Context, caller quartermaster.Caller, question quartermaster.Question) (*quartermaster.Resolution, error) {
	catalog, err := r.catalogs.Catalog(ctx, caller.Project)
	if err != nil {
		return nil, err
	}
	if caller.State == "" {
		caller.State = quartermaster.StateUndefined
	}
	ix := r.indexOf(catalog)
	q := &request{ctx: ctx, resolver: r, index: ix, reach: ix.reachOf(caller.Agent), caller: caller, question: question}
	if err := q.settleGroups(); err != nil {
		return nil, err
	}
	switch {
	case question.Explain:
		return q.explain()
	case question.Tool != "":
		return q.admit()
	default:
		return q.list()
	}
}

// answer is a Resolution with room for the one tool of an admission.
type answer struct {
	quartermaster.Resolution
	one [1]*quartermaster.Tool
}

func (q *request) answer() *answer {
	return &answer{Resolution: quartermaster.Resolution{
		Groups: q.groups.effective, State: q.caller.State, Revision: q.index.catalog.Revision(), Warnings: q.warnings,
		Refusals: nobody, Filtered: nothingFiltered,
	}}
}

func nobody(func(*quartermaster.Tool, quartermaster.Refusal) bool) {}

func nothingFiltered(quartermaster.Gate, int) ([]*quartermaster.Tool, int) { return nil, 0 }

// list intersects what every gate lets through.
func (q *request) list() (*quartermaster.Resolution, error) {
	// Starting from the reach costs less than starting from everything, and is
	// the same.
	left := q.reach.set.Clone()
	passes := make([]set, len(q.resolver.chain))
	for i, g := range q.resolver.chain {
		passed, err := g.pass(q, candidates{q: q, many: left})
		if err != nil {
			return nil, failed(g.name, err)
		}
		passed.narrow(left)
		passes[i] = passed
	}
	q.warnings = append(q.warnings, q.reach.warnings...)
	a := q.answer()
	a.Tools = q.visible(left)
	a.Refusals = q.refusals(q.index.every, passes)
	a.Filtered = q.filtered(passes)
	return &a.Resolution, nil
}

// filtered tells what one gate alone has taken from the list. It costs as much
// as the agent reaches, not as the catalog holds.
func (q *request) filtered(passes []set) func(quartermaster.Gate, int) ([]*quartermaster.Tool, int) {
	return func(name quartermaster.Gate, most int) (tools []*quartermaster.Tool, total int) {
		left := q.reach.set.Clone()
		for i, g := range q.resolver.chain {
			if g.name == name {
				after := left.Clone()
				passes[i].narrow(after)
				left.AndNot(after)
				return q.first(left, most), int(left.GetCardinality())
			}
			passes[i].narrow(left)
		}
		return nil, 0
	}
}

// first are at most so many tools of a set, by name.
func (q *request) first(m *roaring.Bitmap, most int) []*quartermaster.Tool {
	tools := q.visible(m)
	return tools[:min(most, len(tools))]
}

// admit asks every gate about one tool.
func (q *request) admit() (*quartermaster.Resolution, error) {
	slot, ok := q.find(q.question.Tool)
	if !ok {
		return q.missing(nobody)
	}
	for _, g := range q.resolver.chain {
		passed, err := g.pass(q, candidates{q: q, one: slot})
		if err != nil {
			return nil, failed(g.name, err)
		}
		if !passed.has(slot) {
			return q.missing(q.refused(slot, g))
		}
	}
	a := q.answer()
	a.one[0] = q.reach.view(q.index.tool(slot), slot)
	a.Tools = a.one[:]
	return &a.Resolution, nil
}

// missing answers that the one tool is not there for the caller.
func (q *request) missing(refusals func(func(*quartermaster.Tool, quartermaster.Refusal) bool)) (*quartermaster.Resolution, error) {
	if err := q.answerable(); err != nil {
		return nil, err
	}
	a := q.answer()
	a.Refusals = refusals
	return &a.Resolution, nil
}

func (q *request) refused(slot uint32, g gate) func(func(*quartermaster.Tool, quartermaster.Refusal) bool) {
	return func(yield func(*quartermaster.Tool, quartermaster.Refusal) bool) {
		tool := q.index.tool(slot)
		yield(tool, quartermaster.Refusal{Gate: g.name, Reason: g.reason(q, tool, false)})
	}
}

// find looks up the tool that the caller means by a name: an alias first, then
// a real name, then @server/tool.
func (q *request) find(name string) (uint32, bool) {
	if slot, ok := q.reach.alias(name); ok {
		return slot, true
	}
	return q.index.slot(name)
}

// failed is a gate that could not answer: the request fails, closed (GATE-1).
// What an engine says of it is for operators.
func failed(name quartermaster.Gate, err error) *quartermaster.Error {
	e := quartermaster.Errorf(quartermaster.CodeUnavailable, "the %s gate cannot answer now; try again", name)
	e.Details = map[string]any{"gate": name}
	e.Cause = err
	return e
}

// visible returns tools as the caller sees them, in the order of their names.
func (q *request) visible(left *roaring.Bitmap) []*quartermaster.Tool {
	n := int(left.GetCardinality())
	catalog := q.index.catalog.Tools()
	if n > len(catalog)/16 {
		return q.walk(left, n) // costs less than sorting so many
	}
	tools := make([]*quartermaster.Tool, 0, n)
	for it := left.Iterator(); it.HasNext(); {
		slot := it.Next()
		tools = append(tools, q.reach.view(q.index.tool(slot), slot))
	}
	slices.SortFunc(tools, byName)
	return tools
}

// walk goes through the catalog, which is sorted, and puts the tools that have
// another name for this caller into their places.
func (q *request) walk(left *roaring.Bitmap, n int) []*quartermaster.Tool {
	tools := make([]*quartermaster.Tool, 0, n)
	var renamed []*quartermaster.Tool
	for slot, view := range q.reach.views {
		if left.Contains(slot) {
			renamed = append(renamed, view)
		}
	}
	slices.SortFunc(renamed, byName)
	bits := q.index.bitsOf(left)
	for position, tool := range q.index.catalog.Tools() {
		slot := q.index.slots[position]
		if !bits.has(slot) || q.reach.views[slot] != nil {
			continue
		}
		for len(renamed) > 0 && renamed[0].Name < tool.Name {
			tools, renamed = append(tools, renamed[0]), renamed[1:]
		}
		tools = append(tools, tool)
	}
	return append(tools, renamed...)
}

func byName(a, b *quartermaster.Tool) int { return strings.Compare(a.Name, b.Name) }

// refusals yields those of asked that a gate has not let through, with the first
// such gate. A gate knows at least the tools that all before it have let through,
// so the first refusal is always a true one.
func (q *request) refusals(asked *roaring.Bitmap, passes []set) func(func(*quartermaster.Tool, quartermaster.Refusal) bool) {
	return func(yield func(*quartermaster.Tool, quartermaster.Refusal) bool) {
		for position, tool := range q.index.catalog.Tools() {
			slot := q.index.slots[position]
			first := slices.IndexFunc(passes, func(s set) bool { return !s.has(slot) })
			if first < 0 || !asked.Contains(slot) {
				continue
			}
			g := q.resolver.chain[first]
			if !yield(tool, quartermaster.Refusal{Gate: g.name, Reason: g.reason(q, tool, false)}) {
				return
			}
		}
	}
}
