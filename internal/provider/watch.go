package provider

import (
	"context"
	"sync"
	"time"
)

// watch is what goes on beside the calls while a connection is up: its list of
// tools is kept true, its health is asked for, and when nobody uses it, it ends.
type watch struct {
	c *connection
	l *line

	ctx    context.Context
	cancel context.CancelFunc
	jobs   sync.WaitGroup
	news   chan func() step // what jobs have found out, for the connection's own goroutine

	refresh *time.Timer
	listing bool      // a job is at it
	stale   bool      // and what it lists may have changed since it began
	listed  time.Time // when the last one ended
	check   *time.Timer
	idle    *time.Timer
	deaf    <-chan struct{}

	listNote   string // what is wrong with the list
	recordNote string // what is wrong with bringing it into the catalog
	healthNote string // what is wrong with its health
	missed     int    // health checks in a row
}

// serve is the step of a connection that is up.
func (c *connection) serve() step {
	w := &watch{
		c: c, l: c.line, news: make(chan func() step), deaf: c.line.session.wire.deaf,
		refresh: stoppedTimer(), check: stoppedTimer(), idle: stoppedTimer(),
	}
	w.ctx, w.cancel = context.WithCancel(c.ctx)
	defer w.end()
	w.begin()
	for {
		if next := w.once(); next != nil {
			return next
		}
	}
}

func (w *watch) begin() {
	c := w.c
	w.listNote = w.l.target.plain(w.l.listing.note())
	w.settle()
	if c.onUse {
		w.idle.Reset(c.up.timing().idle)
	}
	if c.agent != "" {
		return // its list and its health are those of the one that is shared
	}
	w.record(w.l.listing)
	w.l.listing = listing{} // it may be large, and the catalog has it now
	if c.up.server.HealthCheck != nil {
		w.check.Reset(jitter(c.up.checkInterval()))
	}
}

func stoppedTimer() *time.Timer {
	t := time.NewTimer(time.Hour)
	t.Stop()
	return t
}

// end waits for the jobs, so that none outlives the connection.
func (w *watch) end() {
	w.cancel()
	for _, t := range []*time.Timer{w.refresh, w.check, w.idle} {
		t.Stop()
	}
	w.jobs.Wait()
}

// once waits for one thing to happen.
func (w *watch) once() step {
	c := w.c
	select {
	case <-c.ctx.Done():
		return c.finish
	case <-c.again:
		return w.renew("is started anew")
	case <-w.l.session.lost:
		return w.lose()
	case <-w.deaf:
		return w.unheard()
	case news := <-w.news:
		return news()
	case <-c.changed:
		w.refreshSoon()
	case <-w.refresh.C:
		w.relist()
	case <-w.check.C:
		w.examine()
	case <-w.idle.C:
		return w.stopIfIdle()
	}
	return nil
}

// settle shows in the state what the jobs have found out.
func (w *watch) settle() {
	next := condition{state: stateReady, line: w.l, reason: joined(w.healthNote, w.recordNote, w.listNote)}
	if next.reason != "" {
		next.state = stateDegraded
	}
	w.c.move(next)
}

// do runs a job beside, and takes what it returns back to the connection's own
// goroutine.
func (w *watch) do(job func(ctx context.Context) func() step) {
	w.jobs.Go(func() {
		news := w.contained(job)
		select {
		case w.news <- news:
		case <-w.ctx.Done():
		}
	})
}

// contained makes a job that panics the end of this connection only.
func (w *watch) contained(job func(ctx context.Context) func() step) (news func() step) {
	var err error
	defer func() {
		if err != nil {
			news = func() step { return w.fail(err.Error()) }
		}
	}()
	defer contain(&err)
	return job(w.ctx)
}

// stableYet reports whether the connection has proved itself.
func (w *watch) stableYet() bool { return time.Since(w.l.began) >= w.c.up.timing().stable }

// lose is what follows when the session has ended by itself.
func (w *watch) lose() step {
	return w.fail(w.l.target.reason(w.l.session.wire, inUse, w.l.session.why))
}

// fail ends the connection for a reason.
func (w *watch) fail(reason string) step {
	if w.stableYet() {
		w.c.tries = 0
	}
	return w.c.failBecause(reason)
}

// renew starts the connection anew.
func (w *watch) renew(reason string) step {
	c := w.c
	c.forgive()
	c.move(condition{state: stateStarting, reason: reason, patient: true})
	c.makeRoom()
	return c.start
}

// unheard is for a session that goes on, but on which the upstream can no
// longer tell news. A new session can listen again. Where the stream never
// lasts, as behind some proxies, the periodic refresh has to do.
func (w *watch) unheard() step {
	if w.stableYet() {
		return w.renew("listens anew: the stream of its news has ended")
	}
	w.deaf = nil
	return nil
}

// stopIfIdle stops a connection that nobody uses.
func (w *watch) stopIfIdle() step {
	shut, left := w.l.shutIfIdle(w.c.up.timing().idle)
	if !shut {
		w.idle.Reset(left)
		return nil
	}
	w.c.hangUp()
	return w.c.standBy
}

// refreshSoon asks for the list, but not more often than is reasonable,
// whatever the upstream says.
func (w *watch) refreshSoon() {
	if w.stale = w.listing; w.c.agent == "" && !w.stale {
		w.refresh.Reset(max(0, w.c.up.timing().settle-time.Since(w.listed)))
	}
}

// relist asks for the list of tools.
func (w *watch) relist() {
	if w.listing {
		w.refresh.Reset(w.c.up.timing().settle)
		return
	}
	w.listing = true
	w.do(func(ctx context.Context) func() step {
		ctx, cancel := context.WithTimeout(ctx, requestLimit(w.c.up.server))
		defer cancel()
		found, err := w.l.session.list(ctx)
		return func() step {
			if err != nil {
				w.l.session.blame(err)
				w.listNote = "its tools could not be listed again: " + w.l.target.plain(err.Error())
				w.listedAt(false)
				return nil
			}
			w.listNote = w.l.target.plain(found.note())
			w.record(found)
			return nil
		}
	})
}

// record brings a list into the catalog.
func (w *watch) record(found listing) {
	w.listing = true
	u := w.c.up
	w.do(func(ctx context.Context) func() step {
		note, err := u.owner.record(ctx, u.project, u.server.Name, found.offers)
		return func() step {
			if w.recordNote = note; err != nil {
				w.recordNote = "its tools could not be recorded: " + err.Error()
			}
			w.listedAt(err == nil)
			return nil
		}
	})
}

// listedAt ends a refresh and plans the next.
func (w *watch) listedAt(well bool) {
	w.listing, w.listed = false, time.Now()
	next := jitter(w.c.up.timing().refresh)
	if !well {
		next = min(next, 10*time.Second)
	}
	w.refresh.Reset(next)
	if w.stale {
		w.refreshSoon()
	}
	w.settle()
}
