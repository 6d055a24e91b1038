package client

import (
	"context"
	"iter"
	"maps"
	"net/http"
	"net/url"
	"strconv"

	"quartermaster"
)

// MaxPageSize is the most that the server puts on one page.
const MaxPageSize = 100

// List is a list on the server, not yet read. It may be read many times.
type List[T any] struct {
	get   func(ctx context.Context, query url.Values, answer any) error
	query url.Values
}

func (c *Client) getter(path string) func(context.Context, url.Values, any) error {
	return func(ctx context.Context, query url.Values, answer any) error {
		return c.do(ctx, request{method: http.MethodGet, path: path, query: query}, answer)
	}
}

func (p *Project) getter(path string) func(context.Context, url.Values, any) error {
	return func(ctx context.Context, query url.Values, answer any) error {
		return p.do(ctx, request{method: http.MethodGet, path: path, query: query}, answer)
	}
}

// Page reads one page of the list; pages are counted from 1.
func (l List[T]) Page(ctx context.Context, page, size int) (quartermaster.Page[T], error) {
	query := url.Values{"page": {strconv.Itoa(page)}, "size": {strconv.Itoa(size)}}
	maps.Copy(query, l.query)
	var p quartermaster.Page[T]
	err := l.get(ctx, query, &p)
	return p, err
}

// All walks the list, page after page. It ends with the first error. What is
// changed on the server meanwhile may be missed or seen twice.
func (l List[T]) All(ctx context.Context) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for n := 1; ; n++ {
			page, err := l.Page(ctx, n, MaxPageSize)
			if err != nil {
				var none T
				yield(none, err)
				return
			}
			for _, v := range page.Content {
				if !yield(v, nil) {
					return
				}
			}
			if page.Last || len(page.Content) == 0 {
				return
			}
		}
	}
}

// Collect reads the whole list.
func (l List[T]) Collect(ctx context.Context) ([]T, error) {
	all := []T{}
	for v, err := range l.All(ctx) {
		if err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	return all, nil
}
