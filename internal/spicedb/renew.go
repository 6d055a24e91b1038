package spicedb

import "errors"

// renewAfter is after how many writes an embedded world is replaced. The
// in-memory datastore keeps every version of itself, some 12 KB for each write:
// a server that runs for years would run out of memory.
const renewAfter = 10_000

// renewSoon replaces an embedded world by a new one, in the background, once it
// carries too much of its past.
func (e *Engine) renewSoon(w *world) {
	if !w.ready.Load() || w.writes.Load() < max(e.renewAfter, w.rows.Load()/4) || !w.renewing.CompareAndSwap(false, true) {
		return
	}
	e.ending.Lock()
	defer e.ending.Unlock()
	if e.closed.Err() != nil {
		return
	}
	e.renewal.Go(func() {
		if err := e.renew(w); err != nil && e.closed.Err() == nil {
			e.log.Warn("the embedded SpiceDB could not be renewed: it keeps its past", "error", err)
			w.writes.Store(0)
			w.renewing.Store(false)
		}
	})
}

// renew makes a world that knows the same catalogs. Projects that go on meanwhile
// are brought up to date when they are next asked about, as ever.
func (e *Engine) renew(old *world) error {
	e.schemas.Lock()
	defer e.schemas.Unlock()
	next, err := e.embed(e.closed, old.schema.Load())
	if err != nil {
		return err
	}
	next.ready.Store(true)
	for p := range old.eachProject() {
		st := p.state.Load()
		if st == nil {
			continue
		}
		if err := next.project(p.id).follow(e.closed, e.closed, st.catalog); err != nil {
			return errors.Join(err, next.retire())
		}
	}
	e.world.Store(next)
	return old.retire()
}
