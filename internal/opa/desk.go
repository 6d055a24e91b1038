package opa

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"
	"github.com/open-policy-agent/opa/v1/storage"

	"quartermaster"
)

// desk is where the questions about one project are answered. Projects share no
// desk, so that none waits for another's policies.
type desk struct {
	judge    *judge
	building chan struct{} // holds one: whoever prepares a ruling
	cores    chan struct{} // holds one for each evaluation that runs
	rulings  atomic.Pointer[[]*ruling]

	mu      sync.RWMutex // guards what follows and the decisions of all rulings
	numbers map[*quartermaster.Tool]uint32
	era     uint64
}

// rulingsKept is enough for both layers, as they are and as they were before:
// requests that began before a change still ask by the old catalog.
const rulingsKept = 4

func newDesk(j *judge) *desk {
	d := &desk{
		judge: j, building: make(chan struct{}, 1), numbers: map[*quartermaster.Tool]uint32{},
		cores: make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/2)),
	}
	d.rulings.Store(&[]*ruling{})
	return d
}

// origin tells rulings apart: a policy that was compiled elsewhere, or a
// project's own, which are the same as long as the catalog's slice is.
type origin struct {
	policy   *policy
	policies []*quartermaster.Policy
	query    string
}

func (o *origin) same(other *origin) bool {
	return o.policy == other.policy && o.query == other.query && identical(o.policies, other.policies)
}

// ruling is a policy made ready for the documents of one catalog.
type ruling struct {
	origin    origin
	desk      *desk
	policy    *policy
	documents documents
	data      storage.Store
	allow     *rule // nil: not offered
	allowed   *rule
}

// rule is what can be asked of a ruling.
type rule struct {
	asking
	decisions *decisions
	prepared  rego.PreparedEvalQuery
}

// ruling finds or prepares what holds for a catalog. compile is asked where no
// policy of this origin is at hand; only a project's ever is not.
func (d *desk) ruling(ctx context.Context, catalog *quartermaster.Catalog, o origin, compile func() *policy) (*ruling, error) {
	if r, _ := d.find(catalog, &o); r != nil {
		return r, nil
	}
	select {
	case d.building <- struct{}{}:
		defer func() { <-d.building }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	r, p := d.find(catalog, &o)
	if r != nil {
		return r, nil
	}
	if p == nil {
		p = o.policy
	}
	if p == nil {
		p = compile()
	}
	r, err := d.prepare(ctx, p, catalog)
	if err != nil {
		return nil, err
	}
	r.origin = o
	d.add(r)
	return r, nil
}

// find looks for the ruling of an origin; where there is only one for other
// documents, its policy will do for the next.
func (d *desk) find(catalog *quartermaster.Catalog, o *origin) (*ruling, *policy) {
	var p *policy
	for _, r := range *d.rulings.Load() {
		if !r.origin.same(o) {
			continue
		}
		if r.documents.same(catalog, r.policy.docs()) {
			return r, r.policy
		}
		p = r.policy
	}
	return nil, p
}

// add puts a ruling first and forgets the last one, with all it has decided.
func (d *desk) add(r *ruling) {
	next := append([]*ruling{r}, *d.rulings.Load()...)
	if len(next) > rulingsKept {
		last := next[rulingsKept]
		next = next[:rulingsKept:rulingsKept]
		d.mu.Lock()
		last.each((*decisions).drop)
		d.mu.Unlock()
	}
	d.rulings.Store(&next)
}

func (r *ruling) each(f func(*decisions)) {
	for _, one := range []*rule{r.allow, r.allowed} {
		if one != nil {
			f(one.decisions)
		}
	}
}

func (d *desk) prepare(ctx context.Context, p *policy, catalog *quartermaster.Catalog) (*ruling, error) {
	r := &ruling{desk: d, policy: p, documents: documentsOf(catalog)}
	if p.compiler == nil {
		return r, nil
	}
	r.data = store(catalog, p.docs(), p.static)
	var err error
	if r.allow, err = r.rule(ctx, p.allow); err != nil {
		return nil, err
	}
	r.allowed, err = r.rule(ctx, p.allowed)
	return r, err
}

func (r *ruling) rule(ctx context.Context, a asking) (*rule, error) {
	if !a.offered() {
		return nil, nil
	}
	query, err := r.prepared(ctx, a.ref)
	return &rule{a, &decisions{memory: r.desk.judge.memory, byKey: map[string]*decided{}}, query}, err
}

// prepared makes a query. A function that fails makes it fail: it must not make
// a rule look as if it were not satisfied, which another may turn around.
func (r *ruling) prepared(ctx context.Context, ref ast.Ref) (rego.PreparedEvalQuery, error) {
	return rego.New(rego.Query(ref.String()), rego.Compiler(r.policy.compiler), rego.Store(r.data),
		rego.StrictBuiltinErrors(true)).PrepareForEval(ctx)
}

// number gives every tool of a question its number. A tool that was changed is
// another one and has another.
func (d *desk) number(a *asked) {
	a.numbers = a.room[:0]
	if len(a.tools) > len(a.room) {
		a.numbers = make([]uint32, 0, len(a.tools))
	}
	d.mu.RLock()
	a.era = d.era
	for _, t := range a.tools {
		number, ok := d.numbers[t]
		if !ok {
			break
		}
		a.numbers = append(a.numbers, number)
	}
	d.mu.RUnlock()
	if len(a.numbers) < len(a.tools) {
		d.learn(a)
	}
}

// learn gives out new numbers. When most belong to tools that are gone, it
// begins anew.
func (d *desk) learn(a *asked) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.numbers) > 2*len(a.catalog.Tools())+1024 {
		clear(d.numbers)
		d.era++
		for _, r := range *d.rulings.Load() {
			r.each((*decisions).clear)
		}
	}
	a.era, a.numbers = d.era, a.numbers[:0]
	for _, t := range a.tools {
		number, ok := d.numbers[t]
		if !ok {
			number = uint32(len(d.numbers))
			d.numbers[t] = number
		}
		a.numbers = append(a.numbers, number)
	}
}

// sweep forgets decisions that were not asked for lately, until no more than
// enough is kept.
func (d *desk) sweep(enough int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, r := range *d.rulings.Load() {
		r.each(func(kept *decisions) { kept.sweep(enough) })
	}
}
