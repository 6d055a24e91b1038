package provider

import (
	"slices"
	"sync"
	"time"
)

// latency remembers how long the last calls took. Percentiles of everything
// since the start would hide that a server has become slow.
type latency struct {
	mu    sync.Mutex
	calls int64
	last  []time.Duration // a ring, once it is full
}

const latencyWindow = 256

func (l *latency) add(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.last) < latencyWindow {
		l.last = append(l.last, d)
	} else {
		l.last[l.calls%latencyWindow] = d
	}
	l.calls++
}

// summary returns the number of calls ever, and the median and the 99th
// percentile of the last ones.
func (l *latency) summary() (calls int64, p50, p99 time.Duration) {
	l.mu.Lock()
	last, calls := slices.Clone(l.last), l.calls
	l.mu.Unlock()
	if len(last) == 0 {
		return calls, 0, 0
	}
	slices.Sort(last)
	return calls, last[(len(last)-1)/2], last[(len(last)-1)*99/100]
}
