package spicedb

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync/atomic"
	"time"

	v1 "github.com/authzed/authzed-go/proto/authzed/api/v1"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"quartermaster"
	"quartermaster/internal/spicedb/id"
)

// watch follows what is written into a cluster, by us or by others, so that the
// answers that are kept stay true.
type watch struct {
	client   v1.WatchServiceClient
	reach    func(context.Context) (*v1.ZedToken, error)
	maxStale time.Duration
	began    time.Time
	heard    atomic.Int64 // when it last spoke, since it began; -1: it is not up
	up       atomic.Pointer[time.Time]
	trouble  atomic.Pointer[string]

	cancel context.CancelFunc
	ended  chan struct{}
}

// reconnect is how long to wait before a cluster is tried again.
var reconnect = backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 2 * time.Second}

func newWatch(maxStale time.Duration, client v1.WatchServiceClient) *watch {
	w := &watch{client: client, maxStale: maxStale, began: time.Now(), ended: make(chan struct{})}
	w.heard.Store(-1)
	return w
}

func (w *watch) start(ctx context.Context, world *world, token *v1.ZedToken) {
	ctx, w.cancel = context.WithCancel(ctx)
	go func() {
		defer close(w.ended)
		w.follow(ctx, world, token)
	}()
}

func (w *watch) end() {
	w.cancel()
	<-w.ended
}

// trusted reports whether the watch has spoken within the time that is allowed
// for silence.
func (w *watch) trusted() bool {
	heard := w.heard.Load()
	return heard >= 0 && time.Since(w.began)-time.Duration(heard) <= w.maxStale
}

// hear notes that the watch has spoken. If it was silent for too long, more than
// this may have to be said: what was kept until then is not trusted again.
func (w *watch) hear(world *world) {
	if !w.trusted() {
		world.forgetAnswers()
	}
	w.heard.Store(int64(time.Since(w.began)))
	if w.up.Load() == nil {
		now := time.Now()
		w.up.Store(&now)
		w.trouble.Store(nil)
		world.engine.log.Info("the watch of SpiceDB is up", "endpoint", world.engine.options.Endpoint)
	}
}

// lost lets no kept answer be trusted from now on.
func (w *watch) lost(err error, log *slog.Logger) {
	w.heard.Store(-1)
	w.up.Store(nil)
	words := "the watch of SpiceDB is lost: every answer is asked for anew"
	if err != nil {
		words += " (" + status.Convert(err).Message() + ")"
	}
	if old := w.trouble.Swap(&words); old == nil || *old != words {
		log.Warn("lost the watch of SpiceDB; until it is back every answer is asked for anew", "error", err)
	}
}

// follow watches until ctx ends. It goes on where it was interrupted; if the
// cluster no longer knows where that was, everything is learned anew.
func (w *watch) follow(ctx context.Context, world *world, token *v1.ZedToken) {
	wait := reconnect.BaseDelay
	for ctx.Err() == nil {
		var err error
		if token == nil {
			world.beginAnew()
			token, err = w.reach(ctx)
		}
		if err == nil {
			token, err = w.watchFrom(ctx, world, token)
		}
		if ctx.Err() != nil {
			return
		}
		if w.up.Load() != nil {
			wait = reconnect.BaseDelay
		}
		w.lost(err, world.engine.log)
		pause(ctx, wait+rand.N(wait/4))
		wait = min(wait*2, reconnect.MaxDelay)
	}
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// watchFrom hears what was written since a token, until the stream ends. It
// returns where to go on, nil if that cannot be.
func (w *watch) watchFrom(ctx context.Context, world *world, token *v1.ZedToken) (*v1.ZedToken, error) {
	ctx, cancel := context.WithCancel(ctx)
	beating := make(chan struct{})
	defer func() { <-beating }()
	defer cancel()
	go func() {
		defer close(beating)
		w.beat(ctx, cancel, world)
	}()
	stream, err := w.client.Watch(ctx, &v1.WatchRequest{
		OptionalStartCursor: token,
		OptionalUpdateKinds: []v1.WatchKind{
			v1.WatchKind_WATCH_KIND_INCLUDE_RELATIONSHIP_UPDATES,
			v1.WatchKind_WATCH_KIND_INCLUDE_SCHEMA_UPDATES,
			v1.WatchKind_WATCH_KIND_INCLUDE_CHECKPOINTS,
		},
	})
	if err != nil {
		return token, err
	}
	for {
		r, err := stream.Recv()
		if err != nil {
			return resumable(token, err), err
		}
		if err := world.learn(ctx, r); err != nil {
			return nil, err
		}
		token = r.GetChangesThrough()
		w.hear(world)
	}
}

// resumable returns a token unless the cluster has refused to go on from it.
func resumable(token *v1.ZedToken, err error) *v1.ZedToken {
	switch status.Code(err) {
	case codes.InvalidArgument, codes.OutOfRange, codes.FailedPrecondition, codes.NotFound, codes.Internal, codes.Unknown, codes.DataLoss:
		return nil
	}
	return token
}

// beat makes a silent watch speak, so that silence can be told from loss: not
// every datastore says by itself that nothing was written. One of all replicas
// is enough, the others hear it too. A watch that stays silent is given up.
func (w *watch) beat(ctx context.Context, giveUp context.CancelFunc, world *world) {
	since := time.Since(w.began)
	nothing := []*v1.RelationshipUpdate{remove(toolRow("_", "heartbeat"))} // no project is called so
	for first := true; ctx.Err() == nil; first = false {
		silent := time.Since(w.began) - max(since, time.Duration(w.heard.Load()))
		if silent > 2*w.maxStale {
			giveUp()
			return
		}
		if first || silent > w.maxStale/2 {
			asking, cancel := context.WithTimeout(ctx, w.maxStale)
			_, _ = world.write(asking, nothing) // if it fails, the silence tells
			cancel()
		}
		pause(ctx, w.maxStale/8+rand.N(w.maxStale/8))
	}
}

// learn forgets the answers that an event has made untrue.
func (w *world) learn(ctx context.Context, r *v1.WatchResponse) error {
	if r.GetSchemaUpdated() {
		s, _, err := w.readSchema(ctx)
		if err == nil {
			err = w.adopt(s)
		}
		if err != nil {
			return err
		}
	}
	if len(r.GetUpdates()) == 0 {
		return nil
	}
	w.fresh.learn()
	for _, u := range r.GetUpdates() {
		w.forgetFor(u.GetRelationship())
	}
	return nil
}

// forgetFor forgets the answers that a relationship bears on.
func (w *world) forgetFor(r *v1.Relationship) {
	home, _, ok := id.Object(r.GetResource().GetObjectType(), r.GetResource().GetObjectId())
	if !ok || home == "" {
		for p := range w.eachProject() {
			p.forget(everyone)
		}
		return
	}
	if p, ok := w.projects.Load(home); ok {
		p.(*project).forget(w.schema.Load().concernOf(r))
	}
}

// concernOf says whose answers a relationship bears on.
func (s *schema) concernOf(r *v1.Relationship) concern {
	subject := r.GetSubject()
	_, to, ok := id.Object(subject.GetObject().GetObjectType(), subject.GetObject().GetObjectId())
	if ok && to.Type == quartermaster.TypeUser && subject.GetOptionalRelation() == "" && s.usersAlone {
		return concern{users: []string{to.ID}}
	}
	return everyone
}

// beginAnew lets go of all that is known: the cluster may have lost it.
func (w *world) beginAnew() {
	w.fresh.learn()
	for p := range w.eachProject() {
		p.mu.Lock()
		p.replaced = true
		p.state.Store(nil)
		p.mu.Unlock()
		w.projects.Delete(p.id)
	}
}
