package spicedb

import (
	"context"
	"strconv"
	"time"

	"quartermaster"
)

// answer is what a user may execute of a state's tools.
type answer struct {
	state *state
	set   *set
}

// ask finds out what a user may execute. Many who ask at once about one user are
// one question, unless what they would share might be untrue.
func (p *project) ask(ctx context.Context, user string) (answer, error) {
	if !p.world.trusted() {
		return p.askNow(ctx, user)
	}
	p.mu.Lock()
	key := strconv.FormatUint(p.generation, 10) + " " + user
	p.mu.Unlock()
	asked := p.asking.DoChan(key, func() (any, error) {
		return p.askNow(context.WithoutCancel(ctx), user)
	})
	select {
	case r := <-asked:
		if r.Err != nil {
			return answer{}, r.Err
		}
		return r.Val.(answer), nil
	case <-ctx.Done():
		return answer{}, ctx.Err()
	}
}

func (p *project) askNow(ctx context.Context, user string) (answer, error) {
	if err := p.turn.Acquire(ctx, 1); err != nil {
		return answer{}, err
	}
	defer p.turn.Release(1)
	p.mu.Lock()
	generation, st := p.generation, p.state.Load()
	p.mu.Unlock()
	if st == nil {
		return answer{}, begunAnew()
	}
	w := p.world
	want, lessons := w.fresh.want()
	trusted := w.trusted()
	if !trusted || w.watch == nil {
		want = fullyConsistent // where nobody else writes it is also what SpiceDB keeps answers for
	}
	found := newSet(len(st.places))
	if w.schema.Load().expires {
		found.until = time.Now().Add(time.Second)
	}
	token, err := w.lookup(ctx, p.id, user, want, func(name string) {
		if place, ok := st.places[name]; ok {
			found.add(place)
		}
	})
	if err != nil {
		return answer{}, err
	}
	if token != nil {
		w.fresh.seen(token, lessons)
	}
	return answer{st, found}, p.keep(user, found, st, generation, trusted)
}

// keep keeps an answer if nothing was forgotten since it was asked for. It fails
// if the answer is of a SpiceDB that has lost what it knew.
func (p *project) keep(user string, found *set, asked *state, generation uint64, trusted bool) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.replaced {
		return begunAnew()
	}
	if trusted && p.generation == generation {
		asked.answers.put(user, found)
	}
	return nil
}

func begunAnew() error {
	return quartermaster.Errorf(quartermaster.CodeUnavailable, "SpiceDB has begun anew; try again")
}

// verdicts says of each tool whether it is in an answer. Tools mostly come in the
// order of the catalog, so that the next one is found without looking it up.
func (a answer) verdicts(tools []*quartermaster.Tool, judgments []quartermaster.Judgment) {
	all := a.state.catalog.Tools()
	next := 0
	for i, t := range tools {
		place, ok := next, true
		if place >= len(all) || all[place] != t {
			place, ok = a.state.places[t.Name]
		}
		if ok {
			judgments[i].Allowed = a.set.has(place)
			next = place + 1
		}
	}
}
