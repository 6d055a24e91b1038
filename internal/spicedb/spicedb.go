// Package spicedb is the permission gate's engine: SpiceDB, embedded in the
// process or as a cluster of its own, spoken to by the same code (PERM-1).
//
// An Engine keeps what a user may execute as a set of bits per project and
// brings it up to date before it answers: from the difference between two
// catalogs where the grants are ours, from the cluster's watch where they are
// the cluster's. What cannot be known to be true is asked anew, and if nobody
// answers the request fails.
package spicedb

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"quartermaster"
)

// Options say where SpiceDB is and what it is to know.
type Options struct {
	Endpoint string // host:port of a cluster; "": embedded
	Token    string // preshared key of the cluster
	Insecure bool   // no TLS: for a cluster on loopback
	CA       []byte // PEM to trust in place of the system's

	Schema        string // text of an extended schema; "": the base schema
	LocalOperator bool   // user "local" is admin of every project

	// MaxStale is how long kept answers may be trusted without a word from the
	// cluster's watch; 0: 5 s.
	MaxStale time.Duration
	Log      *slog.Logger
}

// timeout is how long one question may take.
const timeout = 5 * time.Second

// Engine implements quartermaster.Permission.
type Engine struct {
	options Options
	log     *slog.Logger
	world   atomic.Pointer[world]
	renewal sync.WaitGroup // of the world, where that is embedded
	schemas sync.Mutex     // held while a schema is replaced, or the world
	ending  sync.Mutex     // lets no renewal begin while Close waits for the last
	closed  context.Context
	close   context.CancelFunc

	renewAfter int64
}

var _ quartermaster.Permission = (*Engine)(nil)

// Open starts the embedded engine, or reaches for the cluster. A cluster that
// does not answer is no error: the engine is in trouble until it does. One that
// refuses us, or whose schema cannot serve us, is.
func Open(ctx context.Context, o Options) (*Engine, error) {
	o.MaxStale = cmp.Or(o.MaxStale, 5*time.Second)
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	wanted, err := parseSchema(cmp.Or(o.Schema, baseSchema))
	if err != nil {
		return nil, err
	}
	e := &Engine{options: o, log: o.Log.With("engine", "spicedb"), renewAfter: renewAfter}
	e.closed, e.close = context.WithCancel(context.Background())
	var w *world
	if o.Endpoint == "" {
		w, err = e.embed(ctx, wanted)
	} else {
		w, err = e.dial(ctx, wanted)
	}
	if err != nil {
		e.close()
		return nil, err
	}
	e.world.Store(w)
	return e, nil
}

// Close ends the embedded engine, or lets go of the cluster.
func (e *Engine) Close() error {
	e.ending.Lock()
	e.close()
	e.ending.Unlock()
	e.renewal.Wait()
	return e.world.Load().retire()
}

// remote reports whether a cluster of its own keeps the grants.
func (e *Engine) remote() bool { return e.options.Endpoint != "" }

// enter returns the world for a question that must not see it end. Whoever
// enters has to leave.
func (e *Engine) enter() (*world, error) {
	for {
		w := e.world.Load()
		w.use.RLock()
		if !w.retired {
			return w, nil
		}
		w.use.RUnlock()
		if e.closed.Err() != nil {
			return nil, quartermaster.Errorf(quartermaster.CodeUnavailable, "the permission engine is shut down")
		}
	}
}

// Load brings the engine to know the catalogs, before it is said to be ready. A
// cluster that does not answer is left for later: each project is looked after
// again when it is first asked about.
func (e *Engine) Load(ctx context.Context, catalogs []*quartermaster.Catalog) error {
	w, err := e.enter()
	if err != nil {
		return err
	}
	defer w.leave()
	total := 0
	for _, c := range catalogs {
		total += w.rowsOf(c)
	}
	w.total.Store(int64(total))
	for _, c := range catalogs {
		err := w.project(c.Project().ID).follow(ctx, ctx, c)
		if err != nil && (w.watch == nil || quartermaster.CodeOf(err) != quartermaster.CodeUnavailable) {
			return err
		}
	}
	w.ready.Store(true)
	return nil
}
