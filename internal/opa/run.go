package opa

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/open-policy-agent/opa/v1/topdown"

	"quartermaster"
)

// run does n evaluations within a time limit, on as many cores as are free of
// those that the project may use. It returns in time even if OPA does not: what
// is left behind keeps its core until it ends.
func (d *desk) run(ctx context.Context, limit time.Duration, n int, evaluate func(ctx context.Context, cancel topdown.Cancel, k int) error) error {
	ctx, stop := context.WithTimeoutCause(ctx, limit, &cut{limit})
	defer stop()
	cancel := topdown.NewCancel()
	defer cancel.Cancel() // one has failed: the others need not go on
	defer context.AfterFunc(ctx, cancel.Cancel)()
	select {
	case d.cores <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	var next atomic.Int64
	done := make(chan error, cap(d.cores))
	work := func() {
		defer func() { <-d.cores }()
		done <- guarded(func() error {
			for k := next.Add(1) - 1; k < int64(n) && ctx.Err() == nil; k = next.Add(1) - 1 {
				if err := evaluate(ctx, cancel, int(k)); err != nil {
					return err
				}
			}
			return nil
		})
	}
	go work()
	workers := 1
	for workers < min(n, cap(done)) && d.free() { // each has room to say how it ended
		go work()
		workers++
	}
	for range workers {
		select {
		case err := <-done:
			if err != nil {
				return causeOf(ctx, err)
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return causeOf(ctx, ctx.Err())
}

// free takes one more core if nobody else of the project wants it.
func (d *desk) free() bool {
	select {
	case d.cores <- struct{}{}:
		return true
	default:
		return false
	}
}

// limit is the time for a question about n tools: that of one evaluation, and as
// much again for every thousand.
func (e *Engine) limit(n int) time.Duration {
	return e.options.Timeout * time.Duration(1+n/1000)
}

// cut is an evaluation that took too long.
type cut struct{ after time.Duration }

func (c *cut) Error() string { return fmt.Sprintf("was cut after %s", c.after) }

// causeOf tells an evaluation that was ended from one that failed.
func causeOf(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// unavailable is a layer that cannot answer: the request fails, closed (GATE-1).
// An agent may hear it, so the particulars, which can repeat arguments, are for
// the log.
func unavailable(layer string, catalog *quartermaster.Catalog, err error) error {
	if quartermaster.CodeOf(err) == quartermaster.CodeUnavailable {
		return err
	}
	words := "failed; try again, or look into the server's log"
	if c, ok := errors.AsType[*cut](err); ok {
		words = fmt.Sprintf("%s; whoever wrote it should look for loops over large data", c)
	} else if _, ok := errors.AsType[problems](err); ok {
		words = "does not compile; `quartermaster policy test` says where"
	}
	e := quartermaster.Errorf(quartermaster.CodeUnavailable, "the %s for project %s %s", layer, catalog.Project().ID, words)
	e.Cause = err
	return e
}
