package opa

import (
	"context"
	"maps"
	"slices"
	"sync"

	"quartermaster"
)

// judge answers questions and keeps what it has decided, project by project.
type judge struct {
	engine *Engine
	memory *memory
	mu     sync.RWMutex
	desks  map[string]*desk
}

func newJudge(e *Engine, limit int64) *judge {
	return &judge{engine: e, memory: &memory{limit: limit}, desks: map[string]*desk{}}
}

// layer is one body of rules that a tool must pass.
type layer interface {
	// judge takes from the answer what the layer refuses.
	judge(ctx context.Context, a *asked) error
	// explain says why the tool at a position was let through or refused.
	explain(ctx context.Context, a *asked, position int) quartermaster.Why
	// name is what the layer is called in words.
	name() string
}

// nobody stands for no tool at all: its name is none that a tool can have.
var nobody = []*quartermaster.Tool{{}}

// Judge implements quartermaster.Judge. Asked about no tool, it asks the
// policies about a name that no tool has, so that a policy that fails does so
// whether there is a tool or not.
func (j *judge) Judge(ctx context.Context, catalog *quartermaster.Catalog, caller quartermaster.Caller, question quartermaster.Question, tools []*quartermaster.Tool) ([]quartermaster.Judgment, error) {
	a := used.Get().(*asked)
	defer a.done()
	a.catalog, a.caller, a.question, a.tools = catalog, caller, question, tools
	if len(tools) == 0 {
		a.tools, a.question.Explain = nobody, false
	}
	if err := j.decide(ctx, a); err != nil {
		return nil, err
	}
	return a.answer[:len(tools)], nil
}

func (j *judge) decide(ctx context.Context, a *asked) error {
	d := j.desk(a.catalog.Project().ID)
	layers, err := j.layers(ctx, d, a.catalog)
	if err != nil {
		return err
	}
	a.answer = make([]quartermaster.Judgment, len(a.tools))
	for i := range a.answer {
		a.answer[i].Allowed = true
	}
	d.number(a)
	if a.question.Explain {
		// To watch an evaluation takes some ten times as long.
		limit := 2 * j.engine.limit(100*len(a.tools))
		limited, stop := context.WithTimeoutCause(ctx, limit, &cut{limit})
		defer stop()
		ctx = limited
	}
	for _, l := range layers {
		if l == nil {
			continue
		}
		if !a.question.Explain {
			err = l.judge(ctx, a)
		} else {
			err = explained(ctx, l, a)
		}
		if err != nil {
			return unavailable(l.name(), a.catalog, err)
		}
	}
	return nil
}

// layers are those that hold for a catalog: the house's, the project's, and the
// shipped default where there is neither.
func (j *judge) layers(ctx context.Context, d *desk, catalog *quartermaster.Catalog) (layers [2]layer, err error) {
	e := j.engine
	if e.house != nil {
		if layers[0], err = e.house.layer(ctx, d, catalog); err != nil {
			return layers, unavailable(houseLayer, catalog, err)
		}
	}
	own, err := d.own(ctx, catalog)
	if err != nil {
		return layers, unavailable(projectLayer, catalog, err)
	}
	if own != nil {
		layers[1] = own
	} else if e.house == nil {
		shipped, err := d.ruling(ctx, catalog, origin{policy: e.fallback}, nil)
		if err != nil {
			return layers, unavailable(projectLayer, catalog, err)
		}
		layers[1] = shipped
	}
	return layers, nil
}

// own is what the project's policies say; nil if it has none.
func (d *desk) own(ctx context.Context, catalog *quartermaster.Catalog) (*ruling, error) {
	policies := catalog.Policies()
	if len(policies) == 0 {
		return nil, nil
	}
	o := origin{policies: policies, query: queryOf(catalog)}
	r, err := d.ruling(ctx, catalog, o, func() *policy {
		e := d.judge.engine
		if _, served := e.desk(catalog.Project().ID).find(catalog, &o); served != nil {
			return served // supposed is something else than other policies
		}
		return e.compileProject(catalog)
	})
	switch {
	case err != nil:
		return nil, err
	case r.policy.empty():
		return nil, nil
	}
	return r, r.policy.err
}

func (j *judge) desk(project string) *desk {
	j.mu.RLock()
	d := j.desks[project]
	j.mu.RUnlock()
	if d != nil {
		return d
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.desks[project] == nil {
		j.desks[project] = newDesk(j)
	}
	return j.desks[project]
}

// shrink keeps the memory of all desks within its limit.
func (j *judge) shrink() {
	if j.memory.used.Load() <= j.memory.limit {
		return
	}
	j.mu.RLock()
	desks := slices.Collect(maps.Values(j.desks))
	j.mu.RUnlock()
	j.memory.shrink(desks)
}

// supposedLimit is smaller than what is served has: a question about what might
// be is asked once.
const supposedLimit = memoryLimit / 4

// Suppose implements quartermaster.Judge: a judge with desks of its own. The
// house policy is the one that is served.
func (j *judge) Suppose(ctx context.Context, catalog *quartermaster.Catalog) (quartermaster.Judge, func(), error) {
	supposed := newJudge(j.engine, supposedLimit)
	if _, err := supposed.layers(ctx, supposed.desk(catalog.Project().ID), catalog); err != nil {
		return nil, nil, refusal(err, catalog.Policies())
	}
	return supposed, func() {}, nil
}
