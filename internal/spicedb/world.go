package spicedb

import (
	"context"
	"errors"
	"io"
	"iter"
	"sync"
	"sync/atomic"
	"time"

	v1 "github.com/authzed/authzed-go/proto/authzed/api/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"quartermaster"
	"quartermaster/internal/spicedb/id"
)

// world is one SpiceDB and what is known of it.
type world struct {
	engine  *Engine
	client  v1.PermissionsServiceClient
	schemas v1.SchemaServiceClient
	stop    func() error
	updates int // that one write may hold

	use     sync.RWMutex // held by whoever asks
	retired bool

	schema   atomic.Pointer[schema]
	projects sync.Map // of *project, by id
	watch    *watch   // nil: embedded, where nobody else writes
	fresh    freshness

	loaded, total atomic.Int64 // rows, at the start
	ready         atomic.Bool  // they are loaded
	rows          atomic.Int64 // written into an embedded server
	writes        atomic.Int64 // into an embedded server, since it began
	renewing      atomic.Bool
}

func newWorld(e *Engine, conn *grpc.ClientConn, stop func() error, updates int) *world {
	return &world{engine: e, client: v1.NewPermissionsServiceClient(conn), schemas: v1.NewSchemaServiceClient(conn), stop: stop, updates: updates}
}

// embed starts a world in this process.
func (e *Engine) embed(ctx context.Context, s *schema) (*world, error) {
	conn, stop, err := startServer(ctx)
	if err != nil {
		return nil, errors.Join(errors.New("the embedded SpiceDB does not start"), err)
	}
	w := newWorld(e, conn, stop, embeddedUpdates)
	if err := w.setSchema(ctx, s); err != nil {
		return nil, errors.Join(err, stop())
	}
	return w, nil
}

// reached fails while nothing is known of a cluster.
func (w *world) reached() error {
	if w.schema.Load() == nil {
		return quartermaster.Errorf(quartermaster.CodeUnavailable, "SpiceDB has not been reached yet; try again")
	}
	return nil
}

// trusted reports whether an answer that is kept is true now.
func (w *world) trusted() bool { return w.watch == nil || w.watch.trusted() }

func (w *world) leave() { w.use.RUnlock() }

// retire waits for those who still ask, then ends the world.
func (w *world) retire() error {
	if w.watch != nil {
		w.watch.end()
	}
	w.use.Lock()
	defer w.use.Unlock()
	if w.retired {
		return nil
	}
	w.retired = true
	return w.stop()
}

func (w *world) project(id string) *project {
	if p, ok := w.projects.Load(id); ok {
		return p.(*project)
	}
	p, _ := w.projects.LoadOrStore(id, newProject(w, id))
	return p.(*project)
}

func (w *world) eachProject() iter.Seq[*project] {
	return func(yield func(*project) bool) {
		w.projects.Range(func(_, p any) bool { return yield(p.(*project)) })
	}
}

// forgetAnswers drops what is kept of every user.
func (w *world) forgetAnswers() {
	w.fresh.learn()
	for p := range w.eachProject() {
		p.forget(everyone)
	}
}

var fullyConsistent = &v1.Consistency{Requirement: &v1.Consistency_FullyConsistent{FullyConsistent: true}}

// lookup asks for everything that a user may execute and gives yield the names
// of the tools in one project. What the answer depends on further conditions is
// no permission. An answer that breaks off is an error.
func (w *world) lookup(ctx context.Context, project, user string, want *v1.Consistency, yield func(name string)) (*v1.ZedToken, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	stream, err := w.client.LookupResources(ctx, &v1.LookupResourcesRequest{
		Consistency: want, ResourceObjectType: quartermaster.TypeTool, Permission: permissionToUse, Subject: userSubject(user),
	})
	var token *v1.ZedToken
	for err == nil {
		var r *v1.LookupResourcesResponse
		if r, err = stream.Recv(); err != nil {
			break
		}
		token = r.GetLookedUpAt()
		if r.GetPermissionship() != v1.LookupPermissionship_LOOKUP_PERMISSIONSHIP_HAS_PERMISSION {
			continue
		}
		if home, tool, ok := id.Object(quartermaster.TypeTool, r.GetResourceObjectId()); ok && home == project {
			yield(tool.ID)
		}
	}
	if errors.Is(err, io.EOF) {
		return token, nil
	}
	return nil, unavailable(err)
}

// read gives yield every relationship that a filter chooses.
func (w *world) read(ctx context.Context, filter *v1.RelationshipFilter, yield func(*v1.Relationship)) error {
	ctx, goOn, cancel := patient(ctx)
	defer cancel()
	stream, err := w.client.ReadRelationships(ctx, &v1.ReadRelationshipsRequest{Consistency: fullyConsistent, RelationshipFilter: filter})
	for err == nil {
		var r *v1.ReadRelationshipsResponse
		if r, err = stream.Recv(); err == nil {
			yield(r.GetRelationship())
			goOn()
		}
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return unavailable(err)
}

// patient ends a context when nothing has come for as long as one question may
// take, however long it goes on otherwise.
func patient(ctx context.Context) (patient context.Context, goOn, done func()) {
	patient, cancel := context.WithCancel(ctx)
	timer := time.AfterFunc(timeout, cancel)
	return patient, func() { timer.Reset(timeout) }, func() {
		timer.Stop()
		cancel()
	}
}

// write makes updates: all at once, where one write can hold them.
func (w *world) write(ctx context.Context, updates []*v1.RelationshipUpdate) (token *v1.ZedToken, err error) {
	limit := timeout
	if w.watch == nil {
		limit = embeddedTimeout
	}
	for some := range portions(updates, w.updates) {
		asking, cancel := context.WithTimeout(ctx, limit)
		r, err := w.client.WriteRelationships(asking, &v1.WriteRelationshipsRequest{Updates: some})
		cancel()
		if err != nil {
			return nil, unwritten(err)
		}
		token = r.GetWrittenAt()
		w.writes.Add(1)
	}
	return token, nil
}

// portions cuts updates so that each part is within a number and within what one
// message may hold at the other end.
func portions(updates []*v1.RelationshipUpdate, most int) iter.Seq[[]*v1.RelationshipUpdate] {
	const bytes = 3 << 20
	return func(yield func([]*v1.RelationshipUpdate) bool) {
		for len(updates) > 0 {
			n, size := 0, 0
			for n < min(len(updates), most) && size < bytes {
				size += proto.Size(updates[n]) + 8
				n++
			}
			if !yield(updates[:n]) {
				return
			}
			updates = updates[n:]
		}
	}
}

// load writes rows, as many at once as can be: the fewer the writes, the fewer
// versions of itself does the in-memory datastore keep. (An import in bulk takes
// as long and leaves as much behind.)
func (w *world) load(ctx context.Context, rows iter.Seq[*v1.Relationship]) error {
	some := make([]*v1.RelationshipUpdate, 0, w.updates)
	flush := func() error {
		_, err := w.write(ctx, some)
		if err == nil {
			w.rows.Add(int64(len(some)))
			w.loaded.Add(int64(len(some)))
		}
		some = some[:0]
		return err
	}
	for r := range rows {
		if some = append(some, touch(r)); len(some) < w.updates {
			continue
		}
		if err := flush(); err != nil {
			return err
		}
	}
	return flush()
}

// unavailable is what a question comes to that SpiceDB did not answer. Its words
// are for the log.
func unavailable(err error) error {
	if status.Code(err) == codes.FailedPrecondition {
		return failed(err, "the permission engine cannot answer: "+status.Convert(err).Message())
	}
	return failed(err, "the permission engine did not answer; try again")
}

// unwritten is unavailable for a write. To try again is no remedy where SpiceDB
// did answer.
func unwritten(err error) error {
	switch status.Code(err) {
	case codes.InvalidArgument, codes.FailedPrecondition, codes.ResourceExhausted, codes.PermissionDenied, codes.Unauthenticated:
		return failed(err, "the permission engine refuses to write: "+status.Convert(err).Message())
	}
	return failed(err, "the permission engine could not be written; try again")
}

func failed(err error, message string) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*quartermaster.Error](err); ok {
		return err
	}
	e := quartermaster.Errorf(quartermaster.CodeUnavailable, "%s", message)
	e.Cause = err
	return e
}
