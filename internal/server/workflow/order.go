package workflow

import (
	"cmp"
	"slices"
)

const sweeps = 16

// order puts the boxes of each rank into an order in which few lines cross:
// each goes to the average place of its neighbors, in one rank after the other,
// there and back again. The best order seen wins, the first of equals.
func (l *layout) order() {
	best, fewest := l.snapshot(), l.crossings()
	for i := 0; i < l.patience(sweeps) && fewest > 0; i++ {
		if i%2 == 0 {
			for r := 1; r < len(l.ranks); r++ {
				average(l.ranks[r], func(b *box) []tie { return b.left })
			}
		} else {
			for r := len(l.ranks) - 2; r >= 0; r-- {
				average(l.ranks[r], func(b *box) []tie { return b.right })
			}
		}
		if n := l.crossings(); n < fewest {
			best, fewest = l.snapshot(), n
		}
	}
	for r, boxes := range best {
		l.ranks[r] = boxes
		renumber(boxes)
	}
}

func (l *layout) snapshot() [][]*box {
	copied := make([][]*box, len(l.ranks))
	for r, boxes := range l.ranks {
		copied[r] = slices.Clone(boxes)
	}
	return copied
}

func average(boxes []*box, ties func(*box) []tie) {
	for _, b := range boxes {
		b.want = float64(b.place)
		if list := ties(b); len(list) > 0 {
			sum := 0
			for _, t := range list {
				sum += t.to.place
			}
			b.want = float64(sum) / float64(len(list))
		}
	}
	slices.SortStableFunc(boxes, func(a, b *box) int { return cmp.Compare(a.want, b.want) })
	renumber(boxes)
}

func renumber(boxes []*box) {
	for i, b := range boxes {
		b.place = i
	}
}

// crossings counts pairs of lines that cross between two ranks.
func (l *layout) crossings() int {
	total := 0
	for r, boxes := range l.ranks[:len(l.ranks)-1] {
		// A Fenwick tree of how many lines so far end at each place.
		tree := make([]int, len(l.ranks[r+1])+1)
		seen := 0
		var ends []int
		for _, b := range boxes {
			ends = ends[:0]
			for _, t := range b.right {
				ends = append(ends, t.to.place)
			}
			slices.Sort(ends)
			for _, end := range ends {
				notBelow := 0
				for i := end + 1; i > 0; i -= i & -i {
					notBelow += tree[i]
				}
				total += seen - notBelow
				for i := end + 1; i < len(tree); i += i & -i {
					tree[i]++
				}
				seen++
			}
		}
	}
	return total
}
