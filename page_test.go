package quartermaster

import (
	"iter"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func count(n int) iter.Seq[int] {
	return func(yield func(int) bool) {
		for i := range n {
			if !yield(i) {
				return
			}
		}
	}
}

// BIND-5
func TestPageOf(t *testing.T) {
	tests := map[string]struct {
		n, page, size int
		content       []int
		pages         int
		first, last   bool
	}{
		"nothing":         {0, 1, 20, []int{}, 0, true, true},
		"nothing, page 2": {0, 2, 20, []int{}, 0, false, true},
		"all on one":      {3, 1, 20, []int{0, 1, 2}, 1, true, true},
		"exactly one":     {3, 1, 3, []int{0, 1, 2}, 1, true, true},
		"first of two":    {4, 1, 3, []int{0, 1, 2}, 2, true, false},
		"last of two":     {4, 2, 3, []int{3}, 2, false, true},
		"middle":          {9, 2, 3, []int{3, 4, 5}, 3, false, false},
		"past the end":    {4, 3, 3, []int{}, 2, false, true},
		"absurd":          {4, math.MaxInt, 100, []int{}, 1, false, true},
		"absurd product":  {4, math.MaxInt/2 + 2, 2, []int{}, 2, false, true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			p := PageOf(count(tt.n), tt.page, tt.size)
			if !slices.Equal(p.Content, tt.content) || p.Content == nil {
				t.Errorf("content %v, want %v", p.Content, tt.content)
			}
			if p.Page != tt.page || p.Size != tt.size || p.TotalElements != tt.n || p.TotalPages != tt.pages || p.First != tt.first || p.Last != tt.last {
				t.Errorf("page %+v, want %+v", p, tt)
			}
		})
	}
}

// BIND-5: the pages, one after the other, are the list.
func TestPagesAreTheList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, size := rapid.IntRange(0, 250).Draw(t, "n"), rapid.IntRange(1, 100).Draw(t, "size")
		var all []int
		for page := 1; ; page++ {
			p := PageOf(count(n), page, size)
			all = append(all, p.Content...)
			if p.First != (page == 1) || p.TotalElements != n {
				t.Fatalf("page %+v", p)
			}
			if p.Last {
				if page != max(1, p.TotalPages) {
					t.Fatalf("page %d of %d is the last", page, p.TotalPages)
				}
				break
			}
		}
		if !slices.Equal(all, slices.Collect(count(n))) {
			t.Fatalf("together %v", all)
		}
	})
}
