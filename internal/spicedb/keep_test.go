package spicedb

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	v1 "github.com/authzed/authzed-go/proto/authzed/api/v1"
	"google.golang.org/grpc"

	"quartermaster"
)

// counter counts the questions that reach SpiceDB.
type counter struct {
	v1.PermissionsServiceClient
	lookups, checks, reads atomic.Int64
}

func (c *counter) LookupResources(ctx context.Context, in *v1.LookupResourcesRequest, o ...grpc.CallOption) (grpc.ServerStreamingClient[v1.LookupResourcesResponse], error) {
	c.lookups.Add(1)
	return c.PermissionsServiceClient.LookupResources(ctx, in, o...)
}

func (c *counter) CheckPermission(ctx context.Context, in *v1.CheckPermissionRequest, o ...grpc.CallOption) (*v1.CheckPermissionResponse, error) {
	c.checks.Add(1)
	return c.PermissionsServiceClient.CheckPermission(ctx, in, o...)
}

func (c *counter) ReadRelationships(ctx context.Context, in *v1.ReadRelationshipsRequest, o ...grpc.CallOption) (grpc.ServerStreamingClient[v1.ReadRelationshipsResponse], error) {
	c.reads.Add(1)
	return c.PermissionsServiceClient.ReadRelationships(ctx, in, o...)
}

// openCounting opens a site whose questions are counted, once its answers are
// trusted.
func openCounting(t *testing.T, o Options) (*site, *counter) {
	t.Helper()
	s := open(t, o)
	w := s.world.Load()
	eventually(t, "the watch speaks", w.trusted)
	count := &counter{PermissionsServiceClient: s.direct}
	w.use.Lock()
	w.client = count
	w.use.Unlock()
	return s, count
}

// GATE-6: an answer is asked for once and kept; a change that concerns one user
// leaves what is kept of the others, and one that concerns nobody all of it.
func testKept(t *testing.T, o Options) {
	s, count := openCounting(t, o)
	s.tools(t, "a", "b")
	s.grant(t, "tool:a#executor@user:alice", "tool:b#executor@group:ops#member", "group:ops#member@user:bob")
	w := s.world.Load()
	settle := func() {
		t.Helper()
		// A cluster's watch repeats what we have written ourselves: only when it
		// has done so is it quiet.
		if w.watch == nil {
			s.mustAllow(t, "alice", s.allowed(t, "alice"))
			s.mustAllow(t, "bob", s.allowed(t, "bob"))
			return
		}
		eventually(t, "answers are kept", func() bool {
			before := count.lookups.Load()
			heard := w.watch.heard.Load()
			s.allowed(t, "alice")
			s.allowed(t, "bob")
			eventually(t, "the watch speaks", func() bool { return w.watch.heard.Load() != heard })
			return count.lookups.Load() == before
		})
	}
	settle()
	asks := func(want int64, what string, do func()) {
		t.Helper()
		before := count.lookups.Load()
		do()
		if got := count.lookups.Load() - before; got != want {
			t.Errorf("%s: asked %d times, want %d", what, got, want)
		}
	}
	asks(0, "kept", func() { s.mustAllow(t, "alice", "a"); s.mustAllow(t, "bob", "b") })
	asks(0, "a change of a description", func() {
		s.change(t, func(d *quartermaster.Draft) error {
			_, err := d.UpdateTool("a", func(tool *quartermaster.Tool) error { tool.Description = "new"; return nil })
			return err
		})
		s.mustAllow(t, "alice", "a")
		s.mustAllow(t, "bob", "b")
	})
	if w.watch != nil {
		return // of a cluster a change through us concerns all of the project
	}
	asks(1, "a grant to alice", func() {
		s.grant(t, "tool:b#executor@user:alice")
		s.mustAllow(t, "alice", "a b")
		s.mustAllow(t, "bob", "b")
	})
	asks(2, "a grant to a group", func() {
		s.grant(t, "tool:a#executor@group:ops#member")
		s.mustAllow(t, "alice", "a b")
		s.mustAllow(t, "bob", "a b")
	})
	asks(0, "a tool that goes", func() {
		s.change(t, func(d *quartermaster.Draft) error {
			d.Revoke(quartermaster.GrantFilter{Resource: "tool:none"})
			return nil
		})
		s.mustAllow(t, "alice", "a b")
	})
	asks(2, "a new tool", func() {
		s.tools(t, "c")
		s.mustAllow(t, "alice", "a b")
		s.mustAllow(t, "bob", "a b")
	})
}

// Many who ask at once are one question.
func testBurst(t *testing.T, o Options) {
	s, count := openCounting(t, o)
	s.tools(t, "a", "b")
	s.grant(t, "tool:a#executor@user:alice")
	s.mustAllow(t, "bob", "") // the project is known
	before := count.lookups.Load()
	var all sync.WaitGroup
	start := make(chan struct{})
	for range 50 {
		all.Go(func() {
			<-start
			s.mustAllow(t, "alice", "a")
		})
	}
	close(start)
	all.Wait()
	if got := count.lookups.Load() - before; got > 10 { // one, but for what a watch lets forget meanwhile
		t.Errorf("asked %d times", got)
	}
}

// PERM-1: where a cluster keeps the grants, they are written as one with the
// change that they belong to, or not at all.
func TestKeep(t *testing.T) {
	t.Parallel()
	s := open(t, own(t).options())
	store := newBook(s.project)
	s.store = s.Keep(store)
	s.tools(t, "a", "b")
	s.grant(t, "tool:a#executor@user:alice")
	if token := s.catalog(t).Project().GrantsToken; token == "" {
		t.Error("it is not said how fresh the grants must be read")
	}
	if grants := s.catalog(t).AllGrants(); len(grants) != 0 {
		t.Errorf("the store keeps %s", keys(grants))
	}
	broken := errors.New("the disk is full")
	both := func(d *quartermaster.Draft) error {
		d.Revoke(quartermaster.GrantFilter{Subject: "user:alice"})
		_, _, err := d.Grant(grantText("tool:b#executor@user:bob"))
		return err
	}
	unchanged := func(what string) {
		t.Helper()
		grants, err := s.Grants(t.Context(), s.catalog(t), quartermaster.GrantFilter{})
		if err != nil || keys(grants) != "tool:a#executor@user:alice" {
			t.Errorf("%s: %s, %v", what, keys(grants), err)
		}
		s.mustAllow(t, "alice", "a")
		s.mustAllow(t, "bob", "")
		s.mustAgree(t, "alice", "bob")
	}
	if _, err := s.store.Change(t.Context(), s.project, func(d *quartermaster.Draft) error {
		_ = both(d)
		return broken
	}); !errors.Is(err, broken) {
		t.Error(err)
	}
	unchanged("an edit that fails")
	store.fail = broken
	if _, err := s.store.Change(t.Context(), s.project, both); !errors.Is(err, broken) {
		t.Error(err)
	}
	unchanged("a commit that fails")
	before := s.catalog(t)
	if after := s.change(t, func(d *quartermaster.Draft) error { return nil }); after != before {
		t.Error("nothing was changed, and yet something was")
	}
	s.change(t, both)
	s.mustAllow(t, "alice", "")
	s.mustAllow(t, "bob", "b")
	if e := open(t, Options{}); e.Keep(store) != quartermaster.Store(store) {
		t.Error("the embedded engine keeps nothing itself")
	}
}

// Names can be exchanged: what is granted goes with the tool, not with the name.
func TestKeepExchange(t *testing.T) {
	t.Parallel()
	s := open(t, own(t).options())
	s.tools(t, "a", "b")
	s.grant(t, "tool:a#executor@user:alice", "tool:b#executor@user:bob", "project#admin@user:root")
	s.mustAllow(t, "root", "a b")
	s.change(t, func(d *quartermaster.Draft) error {
		for _, name := range [][2]string{{"a", "x"}, {"b", "a"}, {"x", "b"}} {
			if _, err := d.UpdateTool(name[0], func(tool *quartermaster.Tool) error { tool.Name = name[1]; return nil }); err != nil {
				return err
			}
		}
		return nil
	})
	s.mustAllow(t, "alice", "b")
	s.mustAllow(t, "bob", "a")
	s.mustAllow(t, "root", "a b")
	s.change(t, func(d *quartermaster.Draft) error {
		if err := d.DeleteTool("a"); err != nil {
			return err
		}
		_, err := d.CreateTool(quartermaster.Tool{Name: "a", Provider: "native"})
		return err
	})
	s.mustAllow(t, "bob", "")
	s.mustAllow(t, "root", "a b")
	s.mustAgree(t, "alice", "bob", "root")
}
