package provider

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// A dead server gives its place to the next after a while, and the while is
// short once it is known how long starts take.
func TestNursery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNursery()
		fill := func() (leave []func(bool)) {
			for range cap(n.places) {
				l, err := n.enter(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				leave = append(leave, l)
			}
			return leave
		}
		began := time.Now()
		leave := fill()
		leave = append(leave, fill()...)
		if at(began) != "1s" {
			t.Errorf("the dead held their places for %s", at(began))
		}
		for range 20 { // the dead of the second time are still there
			ok, err := n.enter(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(10 * time.Millisecond)
			ok(true)
		}
		began = time.Now()
		leave = append(leave, fill()...)
		leave = append(leave, fill()...)
		if at(began) != "250ms" {
			t.Errorf("the dead held their places for %s", at(began))
		}
		defer func() {
			for _, l := range leave {
				l(false)
			}
		}()
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if _, err := n.enter(ctx); err == nil {
			t.Error("there was a place")
		}
	})
}

func TestLatency(t *testing.T) {
	var l latency
	if calls, p50, p99 := l.summary(); calls != 0 || p50 != 0 || p99 != 0 {
		t.Error(calls, p50, p99)
	}
	for i := range 1000 { // only the last ones count
		l.add(time.Duration(i+1) * time.Millisecond)
	}
	calls, p50, p99 := l.summary()
	if calls != 1000 || p50 != 872*time.Millisecond || p99 != 997*time.Millisecond {
		t.Error(calls, p50, p99)
	}
}
