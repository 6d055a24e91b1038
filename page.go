package quartermaster

import "iter"

// Page is one page of a list; the same everywhere in the API (BIND-5).
type Page[T any] struct {
	Content       []T  `json:"content" nullable:"false"`
	Page          int  `json:"page"`
	Size          int  `json:"size"`
	TotalElements int  `json:"totalElements"`
	TotalPages    int  `json:"totalPages"`
	First         bool `json:"first"`
	Last          bool `json:"last"`
}

// PageOf cuts page number page (from 1) of size elements out of all. It walks
// all of it, because it counts it, but keeps the page only.
func PageOf[T any](all iter.Seq[T], page, size int) Page[T] {
	p := Page[T]{Content: []T{}, Page: page, Size: size}
	for v := range all {
		if p.TotalElements/size == page-1 { // no product: an absurd page number must not overflow
			p.Content = append(p.Content, v)
		}
		p.TotalElements++
	}
	p.TotalPages = (p.TotalElements + size - 1) / size
	p.First = page == 1
	p.Last = page >= p.TotalPages
	return p
}

// MapPage is the same page of other things.
func MapPage[T, U any](p Page[T], view func(T) U) Page[U] {
	content := make([]U, len(p.Content))
	for i, v := range p.Content {
		content[i] = view(v)
	}
	return Page[U]{content, p.Page, p.Size, p.TotalElements, p.TotalPages, p.First, p.Last}
}
