package provider

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"quartermaster"
)

// timing is every duration in the life of a connection that is no setting.
type timing struct {
	backoff func(tries int) time.Duration // before the next try
	rest    time.Duration                 // after restAfter failed connects in a row
	stable  time.Duration                 // so long connected, and what went before is forgiven
	idle    time.Duration                 // so long unused, and what starts on use is stopped
	refresh time.Duration                 // how often the list of tools is asked for without a reason
	settle  time.Duration                 // the least time between two refreshes
	drain   time.Duration                 // for calls when their connection is taken away
	grace   time.Duration                 // for a program to end
}

const restAfter = 3

func usualTiming() timing {
	return timing{
		backoff: backoff, rest: time.Minute, stable: 30 * time.Second, idle: 5 * time.Minute,
		refresh: 5 * time.Minute, settle: time.Second, drain: 10 * time.Second, grace: defaultGrace,
	}
}

// backoff is nothing for the first try after a loss and grows from two seconds to
// half a minute. Its jitter keeps replicas, and the servers behind one broken
// network, from coming back all at once.
func backoff(tries int) time.Duration {
	if tries == 0 {
		return 0
	}
	return jitter(min(2*time.Second<<min(tries-1, 10), 30*time.Second))
}

// jitter varies d by half of it in both directions.
func jitter(d time.Duration) time.Duration { return d/2 + rand.N(d) }

// connection keeps a line to a server: it makes it, watches it, makes it anew.
// Only its own goroutine, which runs its steps, moves its state; everybody else
// reads that, or asks for something through a channel.
type connection struct {
	up    *upstream
	agent string // "" for the one that is shared, and that discovers
	onUse bool   // runs only while it is used
	eager bool   // but begins at once

	ctx  context.Context // ends when it is no longer wanted
	stop context.CancelFunc
	done chan struct{}

	now     atomic.Pointer[condition]
	wake    chan struct{} // somebody wants to call
	again   chan struct{} // somebody wants it started anew
	changed chan struct{} // the list of tools may have changed
	starts  atomic.Int64
	program atomic.Pointer[process] // the last one that was started, also if it has ended
	trouble atomic.Pointer[string]  // the last reason for a failure

	line    *line
	tries   int            // since it was last stable
	misses  int            // failed connects in a row
	legacy  bool           // it is of the older era, and does not like to be asked
	probed  bool           // it was asked for the newer era, and failed
	mourner *time.Timer    // tells when it was down for too long
	leaving sync.WaitGroup // lines that still drain
}

// step is one stage of a connection's life; it returns the next one.
type step func() step

func newConnection(up *upstream, agent string, onUse bool) *connection {
	c := &connection{
		up: up, agent: agent, onUse: onUse, done: make(chan struct{}),
		wake: make(chan struct{}, 1), again: make(chan struct{}, 1), changed: make(chan struct{}, 1),
	}
	c.ctx, c.stop = context.WithCancel(context.Background())
	c.now.Store(&condition{state: stateStopped, reason: reasonOnUse, since: time.Now(), patient: true, next: make(chan struct{})})
	return c
}

const reasonOnUse = "starts on first use"

// run is the whole life. after is the end of the connection that this one
// replaces: two of a kind at a time could get in each other's way.
func (c *connection) run(after <-chan struct{}) {
	defer close(c.done)
	if after != nil {
		<-after
	}
	first := c.start
	if c.onUse && !c.eager {
		first = c.standBy
	}
	for next := step(first); next != nil; {
		next = next()
	}
	c.leaving.Wait()
}

// standBy waits until somebody wants to call.
func (c *connection) standBy() step {
	if c.agent != "" && c.tries > 0 && c.misses == 0 {
		return c.finish // what an agent no longer uses is forgotten
	}
	reason, limit := reasonOnUse, forever
	if c.misses > 0 {
		reason += "; the last time it failed: " + c.lastTrouble()
	}
	if c.agent != "" {
		limit = c.up.timing().idle
	}
	drop(c.wake) // whoever still waits asks again when it hears of this
	c.move(condition{state: stateStopped, reason: reason, patient: true})
	c.tries = 0
	if c.wait(limit, c.wake) != asked {
		return c.finish
	}
	return c.start
}

// start connects.
func (c *connection) start() step {
	if c.ctx.Err() != nil {
		return c.finish
	}
	c.tries++
	c.starts.Add(1)
	if c.now.Load().state != stateStarting {
		c.move(condition{state: stateStarting, patient: c.onUse || c.tries <= 1 && c.misses == 0})
	}
	line, err := c.connect()
	if err != nil {
		c.misses++
		return c.failBecause(err.Error())
	}
	c.misses = 0
	c.line = line
	return c.serve
}

// failBecause is what follows when there is no connection, or none any more.
func (c *connection) failBecause(reason string) step {
	if c.ctx.Err() != nil {
		return c.finish
	}
	c.trouble.Store(&reason)
	return c.fail
}

// fail waits a little: not at all for the first try after a loss (UP-6).
func (c *connection) fail() step {
	c.move(condition{state: stateFailed, reason: c.lastTrouble()})
	c.makeRoom()
	if c.misses > 0 && c.misses%restAfter == 0 {
		return c.rest
	}
	return c.pause(c.up.timing().backoff(c.tries))
}

// rest waits longer (UP-3).
func (c *connection) rest() step {
	t := c.up.timing()
	c.move(condition{state: stateResting, reason: fmt.Sprintf("%s; failed %d times in a row and rests until %s",
		c.lastTrouble(), c.misses, time.Now().Add(t.rest).UTC().Format("15:04:05 UTC"))})
	c.tries = 0
	return c.pause(t.rest)
}

// pause waits before the next try.
func (c *connection) pause(d time.Duration) step {
	switch {
	case c.wait(d, nil) == ended:
		return c.finish
	case c.onUse && c.misses > 0:
		return c.standBy
	default:
		return c.start
	}
}

// finish ends the connection for good.
func (c *connection) finish() step {
	c.move(condition{state: stateStopped, reason: "is not wanted any more"})
	if c.mourner != nil {
		c.mourner.Stop()
	}
	if c.line != nil {
		c.hangUp()
	}
	return nil
}

// waking is why a wait is over.
type waking int

const (
	ended waking = iota // the connection is not wanted any more
	late                // the time is up
	asked               // somebody wants it to go on
)

const forever = time.Duration(1<<63 - 1)

// wait waits for so long, until cut, or until somebody wants it started anew.
func (c *connection) wait(d time.Duration, cut <-chan struct{}) waking {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-c.ctx.Done():
		return ended
	case <-timer.C:
		return late
	case <-c.again:
		c.forgive()
	case <-cut:
	}
	return asked
}

// forgive makes the next start like the first one.
func (c *connection) forgive() { c.tries, c.misses, c.legacy = 0, 0, false }

// hangUp ends the line and waits for that.
func (c *connection) hangUp() {
	t := c.up.timing()
	c.line.hangUp(c.up.owner.hurry, t.drain, t.grace)
	c.line = nil
}

// makeRoom ends the line for its successor. Two processes of a kind at a time
// could get in each other's way; over the network the calls of the old one may
// end beside the new one's.
func (c *connection) makeRoom() {
	if c.line == nil {
		return
	}
	if c.up.server.Transport == quartermaster.TransportStdio {
		c.hangUp()
		return
	}
	l, t := c.line, c.up.timing()
	c.line = nil
	c.leaving.Go(func() { l.hangUp(c.up.owner.hurry, t.drain, t.grace) })
}

// move replaces the condition and tells.
func (c *connection) move(next condition) {
	was := c.now.Load()
	if next.state != was.state && !legal(was.state, next.state) {
		c.up.owner.log.Error("illegal transition", "server", c.up.server.Name, "from", was.state, "to", next.state)
	}
	next.next, next.since = make(chan struct{}), time.Now()
	if next.state == was.state {
		next.since = was.since
	}
	if next.line == nil && (next.state != stateStopped || c.misses > 0) {
		if next.down = was.down; next.down.IsZero() {
			next.down = time.Now()
		}
	}
	c.now.Store(&next)
	close(was.next)
	c.mourn(was, &next)
	if next.state != was.state || next.reason != was.reason {
		c.tell(was.state, next.state, next.reason)
	}
}

// mourn tells when the connection was down for so long that its tools are no
// longer listed (POOL-3).
func (c *connection) mourn(was, now *condition) {
	switch {
	case c.agent != "" || was.down.IsZero() == now.down.IsZero():
	case now.down.IsZero():
		c.mourner.Stop()
	default:
		grace := c.up.owner.grace
		c.mourner = time.AfterFunc(grace, func() {
			if s := c.now.Load(); !s.down.IsZero() {
				c.tell(s.state, s.state, fmt.Sprintf("its tools are no longer listed: down for %v: %s", grace, s.reason))
			}
		})
	}
}

func (c *connection) tell(from, to state, reason string) {
	c.up.owner.tell(Event{
		Time: time.Now(), Project: c.up.project, Server: c.up.server.Name, Agent: c.agent,
		From: string(from), To: string(to), Reason: reason,
	})
}

func (c *connection) lastTrouble() string {
	if reason := c.trouble.Load(); reason != nil {
		return *reason
	}
	return ""
}

// hold returns the line with a call begun on it. It waits where a start is
// under way, and fails at once where there is nothing to wait for.
func (c *connection) hold(ctx context.Context) (*line, error) {
	for {
		now := c.now.Load()
		if now.line != nil && now.line.take() {
			return now.line, nil
		}
		poke(c.wake)
		if now.line == nil && !now.patient {
			return nil, c.unavailable(now)
		}
		select {
		case <-now.next:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// unavailable says why there is nothing to call.
func (c *connection) unavailable(now *condition) error {
	reason := now.reason
	if reason == "" {
		reason = c.lastTrouble()
	}
	return quartermaster.Errorf(quartermaster.CodeUnavailable, "server %s is %s: %s", c.up.server.Name, now.state, reason)
}

// poke asks without waiting; one request is as good as several.
func poke(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

// drop forgets a request that nobody has acted on.
func drop(ch chan struct{}) {
	select {
	case <-ch:
	default:
	}
}

// joined puts the reasons together that there are.
func joined(reasons ...string) string {
	var all []string
	for _, r := range reasons {
		if r != "" {
			all = append(all, r)
		}
	}
	return strings.Join(all, "; ")
}
