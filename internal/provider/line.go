package provider

import (
	"context"
	"sync"
	"time"
)

// line is a session with the calls that are on it.
type line struct {
	session *session
	target  *target
	listing listing
	began   time.Time

	mu    sync.Mutex
	calls int
	used  time.Time     // when the last call ended
	shut  bool          // no further calls
	empty chan struct{} // closed when it is shut and no call is left
}

func newLine(s *session, t *target) *line {
	now := time.Now()
	return &line{session: s, target: t, began: now, used: now, empty: make(chan struct{})}
}

// take begins a call; false: the line takes none any more.
func (l *line) take() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.shut {
		return false
	}
	l.calls++
	return true
}

// give ends a call.
func (l *line) give() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls--
	l.used = time.Now()
	if l.shut && l.calls == 0 {
		close(l.empty)
	}
}

// shutIfIdle shuts a line that was not used for so long. Else it says how long
// that can still take.
func (l *line) shutIfIdle(limit time.Duration) (shut bool, left time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.calls > 0 {
		return false, limit
	}
	if left = limit - time.Since(l.used); left > 0 {
		return false, left
	}
	l.shutNow()
	return true, 0
}

func (l *line) shutNow() {
	if !l.shut {
		l.shut = true
		if l.calls == 0 {
			close(l.empty)
		}
	}
}

// hangUp lets the calls that are on the line end, for a while, and then ends
// the session. When hurry ends there is no time for either.
func (l *line) hangUp(hurry context.Context, drain, grace time.Duration) {
	l.mu.Lock()
	l.shutNow()
	l.mu.Unlock()
	late := time.NewTimer(drain)
	defer late.Stop()
	select {
	case <-l.empty:
	case <-late.C:
		l.session.wire.fail(errHungUp) // or the session would wait for them too
	case <-hurry.Done():
		l.session.wire.fail(errHungUp)
	}
	if hurry.Err() != nil {
		grace = 0
	}
	l.session.close(grace)
}
