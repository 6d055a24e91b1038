package spicedb

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	v1 "github.com/authzed/authzed-go/proto/authzed/api/v1"

	"quartermaster"
)

// clusters are the servers that engines share with others.
var clusters = map[string]func(testing.TB) *process{
	"memory":   func(t testing.TB) *process { return own(t) },
	"postgres": func(t testing.TB) *process { return own(t, onPostgres(t)...) },
}

func eachCluster(t *testing.T, run func(t *testing.T, p *process)) {
	t.Helper()
	t.Parallel()
	for kind, start := range clusters {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			run(t, start(t))
		})
	}
}

// write goes past the engine, as somebody else does.
func (s *site) write(t testing.TB, updates ...*v1.RelationshipUpdate) {
	t.Helper()
	if _, err := s.direct.WriteRelationships(t.Context(), &v1.WriteRelationshipsRequest{Updates: updates}); err != nil {
		t.Fatal(err)
	}
}

func (s *site) row(text string) *v1.Relationship {
	g := grantText(text)
	return relationship(s.project, &g)
}

// GATE-6: what somebody else writes into the cluster acts as soon as its watch
// says so.
func TestOthersWrite(t *testing.T) {
	eachCluster(t, func(t *testing.T, p *process) {
		s := open(t, p.options())
		s.tools(t, "a", "b")
		s.grant(t, "tool:a#executor@group:ops#member")
		eventually(t, "the watch speaks", s.world.Load().trusted)
		comes := func(user, want string) {
			t.Helper()
			eventually(t, user+" may execute "+want, func() bool { return s.allowed(t, user) == want })
		}
		for _, user := range []string{"alice", "bob"} {
			s.mustAllow(t, user, "")
		}
		s.write(t, touch(s.row("tool:b#executor@user:alice")))
		comes("alice", "b")
		s.write(t, touch(s.row("group:ops#member@user:bob")))
		comes("bob", "a")
		s.write(t, touch(s.row("group:ops#member@group:dev#member")), touch(s.row("group:dev#member@user:alice")))
		comes("alice", "a b")
		s.write(t, remove(s.row("tool:a#executor@group:ops#member")))
		comes("bob", "")
		comes("alice", "b")
		s.mustAgree(t, "alice", "bob")
	})
}

// GATE-6: without a watch every answer is asked for, so that what somebody else
// writes acts at once.
func TestNoWatch(t *testing.T) {
	t.Parallel()
	s := open(t, own(t, append(onPostgres(t), "--datastore-disable-watch-support")...).options())
	s.tools(t, "a")
	for range 3 {
		s.mustAllow(t, "alice", "")
		s.write(t, touch(s.row("tool:a#executor@user:alice")))
		s.mustAllow(t, "alice", "a")
		s.write(t, remove(s.row("tool:a#executor@user:alice")))
	}
	if status := s.Status(); status.Trouble == "" {
		t.Errorf("says nothing of it: %+v", status)
	}
}

// GATE-6: a watch that has nothing to say is told from one that is lost, whatever
// the datastore: answers stay kept.
func TestSilence(t *testing.T) {
	eachCluster(t, func(t *testing.T, p *process) {
		o := p.options()
		o.MaxStale = 3 * time.Second
		s, count := openCounting(t, o)
		s.tools(t, "a")
		s.mustAllow(t, "alice", "")
		w := s.world.Load().watch
		for range 3 {
			heard := w.heard.Load()
			eventually(t, "the watch speaks", func() bool { return w.heard.Load() > heard })
		}
		s.mustAllow(t, "alice", "")
		before := count.lookups.Load()
		s.mustAllow(t, "alice", "")
		if count.lookups.Load() != before {
			t.Error("the answer was not kept")
		}
		if status := s.Status(); status.Trouble != "" || !status.Ready() && status.Total != 1 {
			t.Errorf("%+v", status)
		}
	})
}

// GATE-1: a cluster behind a network that lets nothing through: what is kept is
// not trusted beyond the set time, then every request fails; it recovers by
// itself, and what was written meanwhile is known.
func TestUnreachable(t *testing.T) {
	t.Parallel()
	server := own(t)
	p := newProxy(t, server.address)
	o := server.options()
	o.Endpoint, o.MaxStale = p.Addr().String(), time.Second
	s := open(t, o)
	past := open(t, server.options())
	s.tools(t, "a")
	s.grant(t, "tool:a#executor@user:alice")
	eventually(t, "the watch speaks", s.world.Load().trusted)
	s.mustAllow(t, "alice", "a")
	p.hold(true)
	past.project = s.project
	past.write(t, remove(past.row("tool:a#executor@user:alice")))
	eventually(t, "the revoked tool is refused or nothing is answered", func() bool {
		judgments, err := s.judge(t, "alice", quartermaster.Question{})
		return codeOf(err) == quartermaster.CodeUnavailable || err == nil && !judgments[0].Allowed
	})
	if _, err := s.judge(t, "alice", quartermaster.Question{}); codeOf(err) != quartermaster.CodeUnavailable {
		t.Errorf("while nothing comes through: %v", err)
	}
	if s.Status().Trouble == "" {
		t.Error("says nothing of it")
	}
	if _, err := s.store.Change(t.Context(), s.project, func(d *quartermaster.Draft) error {
		_, _, err := d.Grant(grantText("tool:a#executor@user:bob"))
		return err
	}); codeOf(err) != quartermaster.CodeUnavailable {
		t.Errorf("granted: %v", err)
	}
	p.hold(false)
	eventually(t, "it is back", func() bool {
		judgments, err := s.judge(t, "alice", quartermaster.Question{})
		if err == nil && judgments[0].Allowed {
			t.Fatal("what was kept before is trusted again")
		}
		return err == nil && s.world.Load().trusted()
	})
	s.grant(t, "tool:a#executor@user:alice")
	s.mustAllow(t, "alice", "a")
}

// GATE-1, PERM-1: the server is killed in the middle of traffic and comes back.
// No answer is ever one that the server would not give; while it is gone there is
// none; it recovers by itself.
func TestKill(t *testing.T) {
	eachCluster(t, func(t *testing.T, p *process) {
		o := p.options()
		o.LocalOperator = true
		s := open(t, o)
		s.tools(t, "a", "b")
		s.grant(t, "tool:a#executor@user:alice")
		var traffic sync.WaitGroup
		done := make(chan struct{})
		for range 4 {
			traffic.Go(func() {
				for {
					select {
					case <-done:
						return
					default:
					}
					judgments, err := s.judge(t, "local", quartermaster.Question{})
					if err == nil && names(s.catalog(t), judgments) != "a b" {
						t.Errorf("local was given %q", names(s.catalog(t), judgments))
					}
				}
			})
		}
		for range 2 {
			s.mustAllow(t, "local", "a b")
			p.kill()
			eventually(t, "nothing is answered", func() bool {
				_, err := s.judge(t, "eve", quartermaster.Question{})
				return codeOf(err) == quartermaster.CodeUnavailable
			})
			if err := p.start(); err != nil {
				t.Fatal(err)
			}
			eventually(t, "it is back", func() bool {
				judgments, err := s.judge(t, "local", quartermaster.Question{})
				return err == nil && names(s.catalog(t), judgments) == "a b"
			})
			eventually(t, "the watch is back", s.world.Load().trusted)
		}
		close(done)
		traffic.Wait()
		if len(p.args) > 0 && p.args[len(p.args)-2] == "--datastore-conn-uri" {
			s.mustAllow(t, "alice", "a") // PostgreSQL has kept it
		}
		s.grant(t, "tool:b#executor@user:alice")
		s.mustAgree(t, "alice", "local")
	})
}

// SCALE-2: a change through one replica acts in the others with the catalog that
// it is part of.
func TestReplicas(t *testing.T) {
	eachCluster(t, func(t *testing.T, p *process) {
		a, b := open(t, p.options()), open(t, p.options())
		store := newBook(a.project)
		b.project = a.project
		a.store, b.store = a.Keep(store), b.Keep(store)
		a.tools(t, "x", "y")
		for range 5 {
			b.mustAllow(t, "alice", "")
			a.grant(t, "tool:x#executor@user:alice", "project#admin@user:bob")
			b.mustAllow(t, "alice", "x")
			b.mustAllow(t, "bob", "x y")
			b.revoke(t, "tool:x#executor@user:alice")
			a.mustAllow(t, "alice", "")
			a.change(t, func(d *quartermaster.Draft) error { return d.DeleteTool("x") })
			b.tools(t, "x")
			a.mustAllow(t, "bob", "x y")
			b.mustAllow(t, "bob", "x y")
		}
	})
}

// GATE-1: an answer that breaks off is no answer.
func TestBrokenOff(t *testing.T) {
	t.Parallel()
	server := own(t)
	p := newProxy(t, server.address)
	o := server.options()
	o.Endpoint, o.LocalOperator = p.Addr().String(), true
	s := open(t, o)
	var many []string
	for i := range 2000 {
		many = append(many, fmt.Sprintf("tool%04d", i))
	}
	s.tools(t, many...)
	s.mustAllow(t, "local", s.allowed(t, "local"))
	whole := s.allowed(t, "local")
	stop := make(chan struct{})
	var cutting sync.WaitGroup
	cutting.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(7 * time.Millisecond):
				p.cut()
			}
		}
	})
	for range 100 {
		s.world.Load().forgetAnswers()
		judgments, err := s.judge(t, "local", quartermaster.Question{})
		if err == nil && names(s.catalog(t), judgments) != whole {
			t.Fatalf("given %d tools of %d", len(names(s.catalog(t), judgments)), len(whole))
		}
	}
	close(stop)
	cutting.Wait()
}

// A cluster that is not there yet is waited for.
func TestOpenBeforeTheCluster(t *testing.T) {
	t.Parallel()
	server := own(t)
	server.kill()
	o := server.options()
	o.LocalOperator = true
	s := open(t, o)
	if err := s.Load(t.Context(), []*quartermaster.Catalog{s.catalog(t)}); err != nil {
		t.Error(err)
	}
	if status := s.Status(); status.Ready() || status.Trouble == "" {
		t.Errorf("%+v", status)
	}
	if _, err := s.Schema(t.Context()); codeOf(err) != quartermaster.CodeUnavailable {
		t.Error(err)
	}
	s.tools(t, "a") // needs no cluster
	if _, err := s.judge(t, "alice", quartermaster.Question{}); codeOf(err) != quartermaster.CodeUnavailable {
		t.Error(err)
	}
	if err := server.start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it is reached", func() bool { return s.Status().Ready() && s.Status().Trouble == "" })
	s.mustAllow(t, "local", "a")
}

// caller ends before the answer: the caller's error, and nothing is left behind.
func TestCallerGivesUp(t *testing.T) {
	t.Parallel()
	server := own(t)
	p := newProxy(t, server.address)
	o := server.options()
	o.Endpoint = p.Addr().String()
	s := open(t, o)
	s.tools(t, "a")
	s.mustAllow(t, "bob", "")
	p.hold(true)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	c := s.catalog(t)
	if _, err := s.Judge(ctx, c, quartermaster.Caller{Project: s.project, User: "alice"}, quartermaster.Question{}, c.Tools()); err == nil {
		t.Error("answered")
	}
	p.hold(false)
}
