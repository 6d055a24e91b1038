package provider

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"quartermaster"
)

const (
	defaultInterval = 30 * time.Second
	checkLimit      = 5 * time.Second // for one check
	redAfter        = 2               // missed checks in a row (UP-5)
)

func (up *upstream) checkInterval() time.Duration {
	if d := up.server.HealthCheck.Interval; d > 0 {
		return time.Duration(d)
	}
	return defaultInterval
}

// examine asks how the server is. Its schedule is its own: a server that hangs
// in a check delays nothing else.
func (w *watch) examine() {
	w.do(func(ctx context.Context) func() step {
		ctx, cancel := context.WithTimeout(ctx, checkLimit)
		defer cancel()
		began := time.Now()
		err := w.l.check(ctx, w.c.up.server.HealthCheck)
		took := time.Since(began)
		return func() step { return w.diagnose(err, took) }
	})
}

// diagnose draws the conclusions: one missed check, or a slow one, is yellow;
// two in a row are red, and the connection is made anew.
func (w *watch) diagnose(err error, took time.Duration) step {
	w.check.Reset(w.c.up.checkInterval())
	switch {
	case err == nil && took > checkLimit/2:
		w.missed, w.healthNote = 0, fmt.Sprintf("is slow: the health check took %v", took.Round(time.Millisecond))
	case err == nil:
		w.missed, w.healthNote = 0, ""
	default:
		w.missed++
		if errors.Is(err, context.DeadlineExceeded) {
			err = fmt.Errorf("no answer within %v", checkLimit)
		}
		w.healthNote = fmt.Sprintf("missed %d health check(s): %s", w.missed, w.l.target.plain(err.Error()))
		if w.missed >= redAfter {
			return w.fail(w.healthNote)
		}
	}
	w.settle()
	return nil
}

// check runs one check of the kind that is configured.
func (l *line) check(ctx context.Context, h *quartermaster.HealthCheck) error {
	switch h.Kind {
	case quartermaster.HealthPing:
		return l.session.ping(ctx)
	case quartermaster.HealthHTTP:
		return l.target.get(ctx, h.Path)
	case quartermaster.HealthCommand:
		return l.target.run(ctx, h.Command)
	default:
		return fmt.Errorf("there is no health check %q", h.Kind)
	}
}

// get expects a good answer from a path of the server.
func (t *target) get(ctx context.Context, path string) error {
	u, err := url.Parse(t.server.URL)
	if err != nil {
		return err
	}
	if !strings.HasPrefix(origin(u), "http") {
		return errors.New("only a server with an http or ws url can be checked by http; use ping or command")
	}
	w := newWire()
	if err := w.request(t); err != nil {
		return err
	}
	defer w.hangUp()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, origin(u)+path, http.NoBody)
	if err != nil {
		return err
	}
	answer, err := w.client.Do(request)
	if err != nil {
		return unreachable(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode >= http.StatusMultipleChoices {
		return &statusError{answer.StatusCode}
	}
	return nil
}

// run expects a program to end with status 0. It gets what the server gets.
func (t *target) run(ctx context.Context, argv []string) error {
	env, err := environment(t.server.Env, t.secret)
	if err != nil {
		return err
	}
	p, err := startProcess(command{
		Path: argv[0], Args: argv[1:], Env: env, Dir: t.server.Cwd,
		Hidden: slices.Collect(maps.Values(t.secrets)),
	})
	if err != nil {
		return err
	}
	defer p.Stop(hasty)
	go func() { _, _ = io.Copy(io.Discard, p) }()
	select {
	case <-p.Done():
	case <-ctx.Done():
		return ctx.Err()
	}
	if err := p.Err(); err != nil {
		if last := p.Stderr(); len(last) > 0 {
			return fmt.Errorf("%w: %s", err, last[len(last)-1])
		}
		return err
	}
	return nil
}
