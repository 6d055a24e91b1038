package spicedb

import (
	"context"
	"errors"

	"quartermaster"
)

// Suppose implements quartermaster.Judge: a scratch engine that knows the one
// catalog. Where a cluster keeps the grants and the catalog was not given them,
// they are the cluster's, with those that the catalog has beside them.
func (e *Engine) Suppose(ctx context.Context, c *quartermaster.Catalog) (judge quartermaster.Judge, close func(), err error) {
	if e.remote() && !c.Informed() {
		kept, err := e.Grants(ctx, c, quartermaster.GrantFilter{})
		if err != nil {
			return nil, nil, err
		}
		c = c.WithGrants(union(kept, c.AllGrants()))
	}
	schema, err := e.Schema(ctx)
	if err != nil {
		return nil, nil, err
	}
	scratch, err := Open(ctx, Options{Schema: schema, LocalOperator: e.options.LocalOperator})
	if err != nil {
		return nil, nil, err
	}
	if err := scratch.Load(ctx, []*quartermaster.Catalog{c}); err != nil {
		return nil, nil, errors.Join(err, scratch.Close())
	}
	return scratch, func() { _ = scratch.Close() }, nil
}

// union merges two slices that are sorted by key.
func union(a, b []*quartermaster.Grant) []*quartermaster.Grant {
	all := make([]*quartermaster.Grant, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		switch x, y := a[0].Key(), b[0].Key(); {
		case x == y:
			b = b[1:]
		case x < y:
			all, a = append(all, a[0]), a[1:]
		default:
			all, b = append(all, b[0]), b[1:]
		}
	}
	return append(append(all, a...), b...)
}
