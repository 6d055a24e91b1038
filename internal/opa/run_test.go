package opa

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/open-policy-agent/opa/v1/topdown"
)

// GATE-1: a question returns in time even if an evaluation does not; that one
// keeps its core, so that a project cannot have more of them than it may.
func TestLeftBehind(t *testing.T) {
	d := newDesk(open(t, Options{}).judge)
	release := make(chan struct{})
	deaf := func(context.Context, topdown.Cancel, int) error {
		<-release
		return nil
	}
	for range cap(d.cores) + 1 {
		err := d.run(t.Context(), 10*time.Millisecond, 1, deaf)
		if _, ok := errors.AsType[*cut](err); !ok {
			t.Errorf("%v", err)
		}
	}
	if len(d.cores) != cap(d.cores) {
		t.Errorf("%d of %d cores are taken", len(d.cores), cap(d.cores))
	}
	close(release)
	await(t, "the cores are free", func() bool { return len(d.cores) == 0 })
}

// GATE-1: an evaluation that fails, or panics, fails the question and ends the
// others.
func TestRunFails(t *testing.T) {
	d := newDesk(open(t, Options{}).judge)
	failure := errors.New("failure")
	for name, f := range map[string]func() error{
		"fails":  func() error { return failure },
		"panics": func() error { panic("at the disco") },
	} {
		var done atomic.Int64
		err := d.run(t.Context(), time.Minute, 1000, func(_ context.Context, _ topdown.Cancel, k int) error {
			if k == 3 {
				return f()
			}
			done.Add(1)
			return nil
		})
		if !errors.Is(err, failure) && !errors.Is(err, errPanic) {
			t.Errorf("%s: %v", name, err)
		}
		await(t, "the cores are free", func() bool { return len(d.cores) == 0 })
		if done.Load() == 1000 {
			t.Errorf("%s: all were evaluated", name)
		}
	}
	var all [1000]bool
	err := d.run(t.Context(), time.Minute, len(all), func(_ context.Context, _ topdown.Cancel, k int) error {
		all[k] = true
		return nil
	})
	for k, done := range all {
		if err != nil || !done {
			t.Fatalf("%d was not evaluated: %v", k, err)
		}
	}
}
