package provider

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"quartermaster"
)

// Call implements quartermaster.Provider.
//
// The code of an error says whether the tool may have run: CodeUnavailable
// means that nothing was sent, or that it was surely refused, so that anybody
// may try again; after CodeExecutionFailed and CodeTimeout only a tool that is
// read-only or idempotent may be tried again (UP-6). Call never sends twice.
func (u *Upstreams) Call(ctx context.Context, caller quartermaster.Caller, tool *quartermaster.Tool, arguments json.RawMessage) (*quartermaster.Result, error) {
	return u.call(ctx, caller, tool, arguments, nil)
}

// call tells hear, if that is not nil, what the tool says while it runs.
func (u *Upstreams) call(ctx context.Context, caller quartermaster.Caller, tool *quartermaster.Tool, arguments json.RawMessage, hear func(progress)) (*quartermaster.Result, error) {
	var up *upstream
	for {
		next := u.find(caller.Project, tool.Server)
		if next == nil {
			return nil, quartermaster.Errorf(quartermaster.CodeUnavailable, "server %s is not there or not enabled", tool.Server)
		}
		// When settings change meanwhile, another upstream takes its place.
		if next == up {
			break
		}
		up = next
		result, err := up.call(ctx, caller.Agent, tool, arguments, hear)
		if !errors.Is(err, errReplaced) {
			return result, err
		}
	}
	return nil, up.shared.unavailable(up.shared.now.Load())
}

// errReplaced is a connection that was ended before the call began.
var errReplaced = errors.New("the connection was ended")

// call waits for its turn and for a line, and then runs the tool.
func (up *upstream) call(ctx context.Context, agent string, tool *quartermaster.Tool, arguments json.RawMessage, hear func(progress)) (*quartermaster.Result, error) {
	if up.turns != nil {
		select {
		case up.turns <- struct{}{}:
			defer func() { <-up.turns }()
		case <-ctx.Done():
			return nil, up.crowded(ctx)
		}
	}
	line, err := up.hold(ctx, agent)
	if err != nil {
		if ctx.Err() != nil {
			err = up.crowded(ctx)
		}
		return nil, err
	}
	defer line.give()
	began := time.Now()
	result, err := up.run(ctx, line, tool, arguments, hear)
	up.took.add(time.Since(began))
	return result, err
}

// hold returns the line that an agent's call goes over. An agent's connection
// may have ended because it was not used: then it gets another.
func (up *upstream) hold(ctx context.Context, agent string) (*line, error) {
	for {
		c, err := up.connectionOf(agent)
		if err != nil {
			return nil, err
		}
		l, err := c.hold(ctx)
		switch {
		case err == nil || ctx.Err() != nil:
			return l, err
		case up.stopped():
			return nil, errReplaced
		case c.agent == "" || c.now.Load().state != stateStopped:
			return nil, err
		}
		up.forget(c)
	}
}

// run makes the call itself. Its time is the tool's, else the server's (EXE-3).
func (up *upstream) run(ctx context.Context, l *line, tool *quartermaster.Tool, arguments json.RawMessage, hear func(progress)) (*quartermaster.Result, error) {
	limit := requestLimit(up.server)
	if tool.Timeout > 0 {
		limit = time.Duration(tool.Timeout)
	}
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	began, heard, name := time.Now(), &notes{hear: hear}, upstreamName(tool)
	r, err := l.session.call(limited, name, arguments, heard.add)
	if err == nil {
		result, err := r.result()
		if err != nil {
			return nil, up.failed(err, quartermaster.CodeExecutionFailed, err.Error())
		}
		return result, nil
	}
	if limited.Err() != nil {
		return nil, up.interrupted(ctx, began, heard)
	}
	if answered, ok := wireError(err); ok {
		if strings.Contains(answered.Message, name) {
			poke(up.shared.changed) // it may no longer have this tool
		}
		return nil, up.failed(err, quartermaster.CodeExecutionFailed, l.target.plain(answered.Message))
	}
	return nil, up.broken(l, r, err)
}

// upstreamName is what the server itself calls the tool.
func upstreamName(tool *quartermaster.Tool) string {
	if tool.Upstream != "" {
		return tool.Upstream
	}
	return strings.TrimPrefix(tool.Name, tool.Server+"__") // made by a person, not discovered
}

// broken is for a call that was cut off, or could not even begin.
func (up *upstream) broken(l *line, r reply, err error) error {
	l.session.blame(err)
	status, refused := errors.AsType[*statusError](err)
	reason := l.target.reason(l.session.wire, inUse, err)
	if !r.sent || refused && status.refused() || errors.Is(err, errSessionEnded) {
		return up.failed(err, quartermaster.CodeUnavailable, reason)
	}
	return up.failed(err, quartermaster.CodeExecutionFailed, reason+"; the tool may have run")
}

// crowded is for a call whose time was up before it had a place or a line.
func (up *upstream) crowded(ctx context.Context) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return ctx.Err()
	}
	return up.failed(ctx.Err(), quartermaster.CodeTimeout, "had no place for the call in time")
}

// interrupted is for a call whose time is up, or that nobody waits for any
// more. What has been heard of it goes with the error (EXE-3).
func (up *upstream) interrupted(ctx context.Context, began time.Time, heard *notes) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return ctx.Err()
	}
	e := up.failed(context.DeadlineExceeded, quartermaster.CodeTimeout, fmt.Sprintf(
		"did not answer within %v; it was told to cancel, but the tool may have run", time.Since(began).Round(time.Millisecond)))
	if all := heard.all(); len(all) > 0 {
		e.Details = map[string]any{"progress": all}
	}
	return e
}

func (up *upstream) failed(cause error, code quartermaster.Code, reason string) *quartermaster.Error {
	e := quartermaster.Errorf(code, "server %s: %s", up.server.Name, reason)
	e.Cause = cause
	return e
}

// notes keeps the last things that a running tool has said.
type notes struct {
	hear func(progress)
	mu   sync.Mutex
	last []progress
}

const maxNotes = 20

func (n *notes) add(p progress) {
	n.mu.Lock()
	n.last = append(n.last, p)
	n.last = n.last[max(0, len(n.last)-maxNotes):]
	n.mu.Unlock()
	if n.hear != nil {
		var err error
		defer contain(&err) // a hearer that fails has heard it all the same
		n.hear(p)
	}
}

func (n *notes) all() []progress {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.last)
}
