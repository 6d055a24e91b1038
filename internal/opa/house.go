package opa

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/open-policy-agent/opa/v1/storage/inmem"

	"quartermaster"
)

// following is a house policy that is replaced while the server runs: what is
// good comes into force, what is not leaves the old one where it is.
type following struct {
	policy  atomic.Pointer[policy] // nil: none came yet
	words   atomic.Pointer[string] // what is wrong; nil: nothing
	refused error                  // why the newest is not in force; for whoever follows
	stop    context.CancelFunc
	done    sync.WaitGroup
}

func (f *following) follow(watch func(context.Context)) {
	ctx, stop := context.WithCancel(context.Background())
	f.stop = stop
	f.done.Go(func() { watch(ctx) })
}

func (f *following) close() {
	f.stop()
	f.done.Wait()
}

func (f *following) enforce(p *policy) { f.policy.Store(p) }

// heard notes how the last look went, and says so once.
func (f *following) heard(log *slog.Logger, err error) {
	before := f.trouble()
	if err == nil {
		if f.words.Store(nil); before != "" {
			log.Info("house policy is well again")
		}
		return
	}
	words := err.Error()
	if f.policy.Load() != nil {
		words += "; the one before still holds"
	}
	if f.words.Store(&words); words != before {
		log.Warn("house policy is in trouble", "reason", words)
	}
}

func (f *following) trouble() string {
	if words := f.words.Load(); words != nil {
		return *words
	}
	return ""
}

// layer implements house.
func (f *following) layer(ctx context.Context, d *desk, catalog *quartermaster.Catalog) (layer, error) {
	p := f.policy.Load()
	if p == nil {
		return nil, quartermaster.Errorf(quartermaster.CodeUnavailable, "the house policy is not there yet; try again")
	}
	return d.ruling(ctx, catalog, origin{policy: p}, nil)
}

func (e *Engine) houseSource() source {
	return source{layer: houseLayer, keeper: "the house policy", query: e.query, setting: "the query of the house policy"}
}

// build compiles and tests a house policy. One that could never allow anything
// is refused too: it is most likely not what is meant.
func (e *Engine) build(ctx context.Context, s source) (*policy, error) {
	p := e.compile(s)
	if p.err != nil {
		return nil, invalid(p.err)
	}
	if words := p.undefined(); words != "" {
		return nil, invalid(fmt.Errorf("%s", words))
	}
	tests, _, err := e.test(ctx, s, inmem.NewFromASTObject(p.static))
	if err != nil {
		return nil, invalid(err)
	}
	for _, t := range (quartermaster.PolicyReport{Tests: tests}).Failed() {
		return nil, invalid(fmt.Errorf("%s: %s failed: %s", t.Location, t.Name, t.Reason))
	}
	return p, nil
}

// invalid is a house policy that does not come into force.
func invalid(err error) error {
	return quartermaster.Errorf(quartermaster.CodeInvalidRequest, "the house policy is refused: %v", err)
}

// digest tells sources apart by what is in them.
func (s *source) digest() (sum [sha256.Size]byte) {
	h := sha256.New()
	for _, m := range s.modules {
		fmt.Fprintf(h, "%q %q\n", m.file, m.text)
	}
	if data, err := json.Marshal(s.data); err == nil { // it came from JSON
		_, _ = h.Write(data)
	}
	h.Sum(sum[:0])
	return sum
}
