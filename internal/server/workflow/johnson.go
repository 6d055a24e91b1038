package workflow

import "slices"

// places inverts an order.
func places(order []int) []int {
	place := make([]int, len(order))
	for i, v := range order {
		place[v] = i
	}
	return place
}

// cycles finds the elementary cycles, each once and begun at its first state in
// order, shortest first; and whether there are more than maxCycles. It is
// Johnson's algorithm (1975): between two cycles it walks the graph at most
// twice.
func (g *graph) cycles(order []int) (found [][]int, more bool) {
	n := len(order)
	place := places(order)
	next := make([][]int, n) // by place, every edge spelled out
	for i, v := range order {
		for _, to := range slices.Concat(g.out[v], g.any) {
			if to != v {
				next[i] = append(next[i], place[to])
			}
		}
		next[i] = sorted(next[i])
	}
	j := johnson{next: next, member: make([]bool, n), blocked: make([]bool, n), waiting: make([][]int, n)}
	for s := 0; s < n && len(j.found) <= maxCycles; {
		part := j.firstPart(s)
		if part == nil {
			break
		}
		s = part[0]
		j.from(part)
		s++
	}
	found = j.found
	if more = len(found) > maxCycles; more {
		found = found[:maxCycles]
	}
	slices.SortFunc(found, func(a, b []int) int {
		if len(a) != len(b) {
			return len(a) - len(b)
		}
		return slices.Compare(a, b)
	})
	for _, cycle := range found {
		for i, p := range cycle {
			cycle[i] = order[p]
		}
	}
	return found, more
}

type johnson struct {
	next    [][]int
	member  []bool // the part of the graph that is looked at
	start   int
	path    []int
	blocked []bool
	waiting [][]int // who becomes free with a blocked one
	found   [][]int
}

// firstPart finds, among the places from s on, the strongly connected part with
// the least first place; nil if there is none with two places.
func (j *johnson) firstPart(s int) []int {
	var first []int
	parts := components(len(j.next)-s, func(v int) []int {
		out := j.next[v+s]
		at, _ := slices.BinarySearch(out, s)
		shifted := make([]int, 0, len(out)-at)
		for _, to := range out[at:] {
			shifted = append(shifted, to-s)
		}
		return shifted
	}, nil)
	for _, part := range parts {
		if len(part) < 2 {
			continue
		}
		slices.Sort(part)
		if first == nil || part[0] < first[0] {
			first = part
		}
	}
	for i := range first {
		first[i] += s
	}
	return first
}

// from finds the cycles through the first place of a part.
func (j *johnson) from(part []int) {
	clear(j.member)
	for _, v := range part {
		j.member[v], j.blocked[v], j.waiting[v] = true, false, nil
	}
	j.start = part[0]
	j.walk(j.start)
}

func (j *johnson) walk(v int) (closed bool) {
	j.path = append(j.path, v)
	j.blocked[v] = true
	for _, to := range j.next[v] {
		if !j.member[to] {
			continue
		}
		if len(j.found) > maxCycles {
			closed = true
			break
		}
		if to == j.start {
			j.found = append(j.found, slices.Clone(j.path))
			closed = true
		} else if !j.blocked[to] && j.walk(to) {
			closed = true
		}
	}
	if closed {
		j.free(v)
	} else {
		for _, to := range j.next[v] {
			if j.member[to] && !slices.Contains(j.waiting[to], v) {
				j.waiting[to] = append(j.waiting[to], v)
			}
		}
	}
	j.path = j.path[:len(j.path)-1]
	return closed
}

func (j *johnson) free(v int) {
	j.blocked[v] = false
	list := j.waiting[v]
	j.waiting[v] = nil
	for _, w := range list {
		if j.blocked[w] {
			j.free(w)
		}
	}
}
