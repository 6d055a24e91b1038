package spicedb

import (
	"sync"
	"sync/atomic"

	"golang.org/x/sync/semaphore"
	"golang.org/x/sync/singleflight"

	"quartermaster"
)

// project is what a world knows of one project.
type project struct {
	world *world
	id    string
	state atomic.Pointer[state]

	// turn lets any number look or one change, so that nobody looks while only a
	// part of a change is written.
	turn   *semaphore.Weighted
	asking singleflight.Group // by user and generation

	mu         sync.Mutex
	generation uint64 // grows with every answer that is forgotten
	replaced   bool   // SpiceDB has forgotten all: what is known here is of its past

	pending *quartermaster.Catalog // what may be written in part; its turn guards it
	trouble atomic.Pointer[string]
}

// everyTurn is more than can look at once.
const everyTurn = 1 << 20

// state is the catalog that SpiceDB reflects, and what is known of its users. A
// tool's bit in an answer is its place among the catalog's tools; where one comes
// or goes, nothing is known any more.
type state struct {
	catalog *quartermaster.Catalog
	places  map[string]int // by name
	answers *answers
}

func newProject(w *world, id string) *project {
	return &project{world: w, id: id, turn: semaphore.NewWeighted(everyTurn)}
}

// kept returns an answer that is known to be true now for a catalog, if there is
// one.
func (p *project) kept(c *quartermaster.Catalog, user string) (*state, *set) {
	st := p.state.Load()
	if st == nil || st.catalog.Revision() < c.Revision() || !p.world.trusted() {
		return nil, nil
	}
	return st, st.answers.get(user)
}

// forget drops answers. An answer that is being asked for now will not be kept.
func (p *project) forget(c concern) {
	p.mu.Lock()
	defer p.mu.Unlock()
	st := p.state.Load()
	if st == nil {
		return
	}
	p.generation++
	if !c.all {
		for _, user := range c.users {
			st.answers.drop(user)
		}
		return
	}
	next := *st
	next.answers = &answers{}
	p.state.Store(&next)
}

// become makes a catalog the one that is answered for.
func (p *project) become(c *quartermaster.Catalog, d difference) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.generation++
	next := state{answers: &answers{}}
	was := p.state.Load()
	if was != nil {
		next = *was
	}
	next.catalog = c
	if d.concerns.all {
		next.answers = &answers{}
	}
	for _, user := range d.concerns.users {
		next.answers.drop(user)
	}
	if was == nil || len(d.added)+len(d.gone) > 0 {
		next.places = placesOf(c.Tools())
	}
	p.state.Store(&next)
}

func placesOf(tools []*quartermaster.Tool) map[string]int {
	places := make(map[string]int, len(tools))
	for i, t := range tools {
		places[t.Name] = i
	}
	return places
}
