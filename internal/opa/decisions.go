package opa

import (
	"sync"
	"sync/atomic"

	"quartermaster"
)

// decisions are the answers of one rule at one revision, as far as they are
// known: for each key two bits for every tool. The lock of the desk guards them.
type decisions struct {
	memory  *memory
	byKey   map[string]*decided
	dropped bool // no longer counted, so nothing may be added
}

// decided are the answers to questions with one key, over the numbers that the
// desk gives to tools.
type decided struct {
	known, allowed bits
	recent         atomic.Bool // asked for since the last sweep
}

// weight is roughly what an entry takes up: its bits, the key, and its place in
// the map.
func (d *decided) weight(key string) int64 {
	return int64(len(key)+8*(len(d.known)+len(d.allowed))) + 160
}

// recall takes from the answer what is known to be refused and returns the
// positions of what is not known yet.
func (d *decisions) recall(key []byte, a *asked) (unknown []int) {
	found := d.byKey[string(key)]
	if found == nil {
		return a.positions()
	}
	if !found.recent.Load() {
		found.recent.Store(true)
	}
	for i, number := range a.numbers {
		switch {
		case !a.answer[i].Allowed:
		case !found.known.has(number):
			unknown = append(unknown, i)
		case !found.allowed.has(number):
			a.answer[i] = quartermaster.Judgment{}
		}
	}
	return unknown
}

// one is what is known of a single tool.
func (d *decisions) one(key []byte, number uint32) (allowed, known bool) {
	found := d.byKey[string(key)]
	if found == nil || !found.known.has(number) {
		return false, false
	}
	return found.allowed.has(number), true
}

// keep notes what has been found out.
func (d *decisions) keep(key []byte, numbers []uint32, allowed []bool) {
	if d.dropped {
		return
	}
	found := d.byKey[string(key)]
	if found == nil {
		found = &decided{}
		d.byKey[string(key)] = found
	} else {
		d.memory.used.Add(-found.weight(string(key)))
	}
	found.recent.Store(true)
	for i, number := range numbers {
		found.known.set(number)
		if allowed[i] {
			found.allowed.set(number)
		}
	}
	d.memory.used.Add(found.weight(string(key)))
}

// clear forgets everything.
func (d *decisions) clear() {
	for key, found := range d.byKey {
		d.memory.used.Add(-found.weight(key))
	}
	clear(d.byKey)
}

// drop forgets everything, for good.
func (d *decisions) drop() {
	d.clear()
	d.dropped = true
}

// sweep forgets what was not asked for since the last one, until no more than
// enough is kept.
func (d *decisions) sweep(enough int64) {
	for key, found := range d.byKey {
		if d.memory.used.Load() <= enough {
			return
		}
		if !found.recent.Swap(false) {
			d.memory.used.Add(-found.weight(key))
			delete(d.byKey, key)
		}
	}
}

// bits is a set of small numbers.
type bits []uint64

func (b bits) has(n uint32) bool {
	word := n >> 6
	return int(word) < len(b) && b[word]&(1<<(n&63)) != 0
}

func (b *bits) set(n uint32) {
	if word := int(n >> 6); word >= len(*b) {
		*b = append(*b, make(bits, word+1-len(*b))...)
	}
	(*b)[n>>6] |= 1 << (n & 63)
}

// memory bounds what all desks of a judge keep together.
type memory struct {
	limit    int64
	used     atomic.Int64
	sweeping sync.Mutex
}

// shrink makes room once the limit is passed: first what was not asked for
// lately goes, then the rest.
func (m *memory) shrink(desks []*desk) {
	if m.used.Load() <= m.limit || !m.sweeping.TryLock() {
		return
	}
	defer m.sweeping.Unlock()
	for range 2 {
		for _, d := range desks {
			d.sweep(m.limit / 4 * 3)
		}
	}
}
