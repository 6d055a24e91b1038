package workflow

import "slices"

// components splits a graph into its strongly connected parts (Tarjan, 1972).
// Extra, unless nil, is one more edge of each node, or -1.
func components(n int, next func(int) []int, extra func(int) int) [][]int {
	t := tarjan{next: next, extra: extra, number: make([]int, n), low: make([]int, n), open: make([]bool, n)}
	for v := range n {
		if t.number[v] == 0 {
			t.visit(v)
		}
	}
	return t.parts
}

type tarjan struct {
	next   func(int) []int
	extra  func(int) int
	count  int
	number []int // 0: not seen
	low    []int
	open   []bool
	stack  []int
	parts  [][]int
}

func (t *tarjan) visit(v int) {
	t.count++
	t.number[v], t.low[v] = t.count, t.count
	t.stack = append(t.stack, v)
	t.open[v] = true
	for _, to := range t.next(v) {
		t.step(v, to)
	}
	if t.extra != nil {
		if to := t.extra(v); to >= 0 {
			t.step(v, to)
		}
	}
	if t.low[v] < t.number[v] {
		return
	}
	at := len(t.stack) - 1
	for t.stack[at] != v {
		at--
	}
	part := slices.Clone(t.stack[at:])
	t.stack = t.stack[:at]
	for _, w := range part {
		t.open[w] = false
	}
	t.parts = append(t.parts, part)
}

func (t *tarjan) step(v, to int) {
	if t.number[to] == 0 {
		t.visit(to)
		t.low[v] = min(t.low[v], t.low[to])
	} else if t.open[to] {
		t.low[v] = min(t.low[v], t.number[to])
	}
}
