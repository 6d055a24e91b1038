package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"quartermaster"
	"quartermaster/internal/store/storetest"

	"pgregory.net/rapid"
)

// patience is how long a test waits for what takes milliseconds: a busy machine
// is no reason to fail. How long it took is logged, not asserted.
const patience = 30 * time.Second

// eventually waits until ok and returns how long that took.
func eventually(t *testing.T, what string, ok func() bool) time.Duration {
	t.Helper()
	begin := time.Now()
	for !ok() {
		if time.Since(begin) > patience {
			t.Fatalf("%s: not within %s", what, patience)
		}
		time.Sleep(time.Millisecond)
	}
	return time.Since(begin)
}

func setName(t *testing.T, s *Store, name string) *quartermaster.Catalog {
	t.Helper()
	c, err := s.Change(t.Context(), quartermaster.DefaultProject, func(d *quartermaster.Draft) error {
		return d.SetProject(quartermaster.Project{Name: name, Plan: quartermaster.PlanTeam})
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func revision(t *testing.T, s *Store) int64 {
	t.Helper()
	c, err := s.Catalog(t.Context(), quartermaster.DefaultProject)
	if err != nil {
		t.Fatal(err)
	}
	return c.Revision()
}

func mustEqual(t *testing.T, a, b *Store) {
	t.Helper()
	x, errX := a.Catalog(t.Context(), quartermaster.DefaultProject)
	y, errY := b.Catalog(t.Context(), quartermaster.DefaultProject)
	if errX != nil || errY != nil {
		t.Fatal(errX, errY)
	}
	if d := storetest.Difference(x, y); d != "" {
		t.Errorf("the replicas differ: %s", d)
	}
}

// POOL-2, SCALE-2, GATE-2: a change through one replica acts on all within a
// second.
func TestFollow(t *testing.T) {
	o := Options{Database: storetest.Postgres(t), Data: t.TempDir()}
	a, b := open(t, o), open(t, o)
	_ = revision(t, b)
	// Until it listens, it only asks.
	eventually(t, "the listener", func() bool {
		var n int
		err := b.read.QueryRow(`SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN%'`).Scan(&n)
		return err == nil && n == 2
	})
	var most time.Duration
	for i := range 50 {
		want := setName(t, a, fmt.Sprint("name ", i)).Revision()
		most = max(most, eventually(t, "a change", func() bool { return revision(t, b) >= want }))
	}
	t.Logf("seen by the other replica after %s at most", most)
	mustEqual(t, a, b)
	if _, err := a.CreateProject(t.Context(), quartermaster.Project{ID: "later"}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Catalog(t.Context(), "later"); err != nil {
		t.Errorf("a project of the other replica: %v", err)
	}
}

// SCALE-2: the same where notifications get lost, as behind a pooler.
func TestFollowWithoutNotifications(t *testing.T) {
	o := Options{Database: storetest.Postgres(t), Data: t.TempDir()}
	a, b := open(t, o), openDeaf(t, o)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); b.poll(ctx) }()
	defer func() { cancel(); <-done }()
	_ = revision(t, b)
	var most time.Duration
	for i := range 3 {
		want := setName(t, a, fmt.Sprint("name ", i)).Revision()
		most = max(most, eventually(t, "a change", func() bool { return revision(t, b) >= want }))
	}
	t.Logf("seen by asking after %s at most", most)
}

// openDeaf opens a store that is told nothing and asks nothing by itself.
func openDeaf(t *testing.T, o Options) *Store {
	t.Helper()
	s := &Store{log: open(t, o).log, builtins: quartermaster.Builtins()}
	if err := s.openPostgres(t.Context(), o.Database); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	s.confirm()
	return s
}

// POOL-2: a replica that missed more changes than are kept reads all of it.
func TestFollowAfterALongAbsence(t *testing.T) {
	o := Options{Database: storetest.Postgres(t), Data: t.TempDir()}
	a, b := open(t, o), openDeaf(t, o)
	before := revision(t, b)
	_, err := a.Change(t.Context(), quartermaster.DefaultProject, func(d *quartermaster.Draft) error {
		tool, err := d.CreateTool(quartermaster.Tool{Name: "early", Enabled: true})
		if err != nil {
			return err
		}
		_, err = d.ReplaceBindings("x", []string{tool.ID})
		_, _, errGrant := d.Grant(quartermaster.Grant{Tool: tool.Name, Relation: "executor", Subject: "user:x"})
		return errors.Join(err, errGrant)
	})
	if err != nil {
		t.Fatal(err)
	}
	for i := range keptRevisions + 3 {
		setName(t, a, fmt.Sprint("name ", i))
	}
	var kept int
	if err := a.read.QueryRow(`SELECT count(DISTINCT revision) FROM changes`).Scan(&kept); err != nil || kept != keptRevisions {
		t.Errorf("%d revisions are kept (%v), want %d", kept, err, keptRevisions)
	}
	b.confirm()
	if got := revision(t, b); got != before {
		t.Fatalf("revision %d, want that it has followed nothing since %d", got, before)
	}
	b.follow(o.Database)
	took := eventually(t, "the changes", func() bool { return revision(t, b) == revision(t, a) })
	t.Logf("%d changes followed after %s", keptRevisions+4, took)
	mustEqual(t, a, b)
}

// POOL-2: one that follows change by change holds what the database holds,
// whatever the changes were.
func TestFollowChangeByChange(t *testing.T) {
	t.Parallel()
	o := Options{Database: storetest.Postgres(t), Data: t.TempDir()}
	a, b := open(t, o), openDeaf(t, o)
	number := 0
	rapid.Check(t, func(t *rapid.T) {
		number++
		ctx, project := context.Background(), fmt.Sprint("p", number)
		if _, err := a.CreateProject(ctx, quartermaster.Project{ID: project}); err != nil {
			t.Fatal(err)
		}
		for range rapid.IntRange(1, 5).Draw(t, "edits") {
			var want *quartermaster.Catalog
			for range rapid.IntRange(1, 3).Draw(t, "behind") {
				var err error
				if want, err = a.Change(ctx, project, func(d *quartermaster.Draft) error { storetest.Edit(t, d); return nil }); err != nil {
					t.Fatal(err)
				}
			}
			got, err := b.refresh(ctx, project)
			if err != nil {
				t.Fatal(err)
			}
			if d := storetest.Difference(want, got); d != "" {
				t.Fatalf("the replicas differ: %s", d)
			}
		}
	})
}

// NAT-0, SCALE-2: replicas of two versions, as during an upgrade, each have their
// own texts of the built-in tools and write nothing because of the other's.
func TestFollowAnotherVersion(t *testing.T) {
	t.Parallel()
	o := Options{Database: storetest.Postgres(t), Data: t.TempDir()}
	newer := o
	newer.builtins = quartermaster.Builtins()
	newer.builtins[0].Description = "newer"
	further := newer.builtins[0]
	further.Name, further.Config = "further", json.RawMessage(`{"builtin":"further"}`)
	newer.builtins = append(newer.builtins, further)

	a := open(t, o)
	if got := revision(t, a); got != 1 {
		t.Fatalf("revision %d", got)
	}
	b := open(t, newer)
	if got := revision(t, b); got != 2 { // the further one was missing
		t.Errorf("revision %d, want 2", got)
	}
	for i, s := range []*Store{a, b, a, b} {
		c, err := s.Change(t.Context(), quartermaster.DefaultProject, func(d *quartermaster.Draft) error {
			_, err := d.UpdateTool("echo", func(t *quartermaster.Tool) error { t.Category = fmt.Sprint("by ", i); return nil })
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		eventually(t, "a change", func() bool { return revision(t, a) >= c.Revision() && revision(t, b) >= c.Revision() })
	}
	time.Sleep(3 * pollEvery) // room to undo each other's
	for s, want := range map[*Store]string{a: quartermaster.Builtins()[0].Description, b: "newer"} {
		c, err := s.Catalog(t.Context(), quartermaster.DefaultProject)
		if err != nil {
			t.Fatal(err)
		}
		echo := c.ToolByName("echo")
		if c.Revision() != 6 || echo.Description != want || echo.Category != "by 3" || c.ToolByName("further") == nil {
			t.Errorf("revision %d, echo %+v; want 6 and %q", c.Revision(), echo, want)
		}
	}
}

// GATE-1, GATE-2: who cannot know of a revocation says nothing rather than
// something old.
func TestFollowFailsClosed(t *testing.T) {
	o := Options{Database: storetest.Postgres(t), Data: t.TempDir()}
	a, b := open(t, o), open(t, o)
	last := setName(t, a, "before").Revision()
	eventually(t, "a change", func() bool { return revision(t, b) == last })

	storetest.StopPostgres(t)
	stopped := time.Now()
	if _, err := b.Catalog(t.Context(), quartermaster.DefaultProject); err != nil {
		t.Errorf("at once: %v, want the snapshot", err)
	}
	_, err := b.Change(t.Context(), quartermaster.DefaultProject, func(*quartermaster.Draft) error { return nil })
	if quartermaster.CodeOf(err) != quartermaster.CodeUnavailable {
		t.Errorf("a change: %v, want unavailable", err)
	}
	if strings.Contains(fmt.Sprint(err), "postgres") {
		t.Errorf("the answer has the driver's words: %v", err)
	}
	eventually(t, "failing closed", func() bool {
		_, err = b.Catalog(t.Context(), quartermaster.DefaultProject)
		return err != nil
	})
	t.Logf("failed closed after %s", time.Since(stopped))
	if quartermaster.CodeOf(err) != quartermaster.CodeUnavailable {
		t.Errorf("%v, want unavailable", err)
	}

	storetest.StartPostgres(t)
	took := eventually(t, "recovery", func() bool {
		_, errA := a.Catalog(t.Context(), quartermaster.DefaultProject)
		_, errB := b.Catalog(t.Context(), quartermaster.DefaultProject)
		return errA == nil && errB == nil
	})
	t.Logf("recovered after %s", took)
	want := setName(t, a, "after").Revision()
	eventually(t, "a change", func() bool { return revision(t, b) == want }) // by asking, until it listens again
	mustEqual(t, a, b)
}

// SCALE-1: any number of replicas start at once, on a database that has
// nothing yet.
func TestOpenAtOnce(t *testing.T) {
	t.Parallel()
	o := Options{Database: storetest.Postgres(t), Data: t.TempDir()}
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			s, err := Open(t.Context(), o)
			if err != nil {
				t.Error(err)
				return
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	checkRows(t, open(t, o), catalogOf(t, o))

	o = Options{Database: storetest.Postgres(t), Data: t.TempDir()}
	for range 3 {
		cmd, _ := startChild(t, roleOpen, o)
		group.Go(func() {
			if err := cmd.Wait(); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if got := revision(t, open(t, o)); got != 1 {
		t.Errorf("revision %d, want that the default project was made once", got)
	}
}

func catalogOf(t *testing.T, o Options) *quartermaster.Catalog {
	t.Helper()
	c, err := open(t, o).Catalog(t.Context(), quartermaster.DefaultProject)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// SCALE-1: one process per data directory; the second is told so.
func TestOpenDataDirectoryInUse(t *testing.T) {
	t.Parallel()
	o := Options{Data: t.TempDir()}
	first := open(t, o)
	begin := time.Now()
	_, err := Open(t.Context(), o)
	if err == nil || !strings.Contains(err.Error(), "another quartermaster is using the data directory "+o.Data) {
		t.Errorf("second: %v", err)
	}
	if took := time.Since(begin); took < lockWait {
		t.Errorf("second: refused after %s, without waiting for %s", took, lockWait)
	}
	// One that leaves in time is waited for.
	closed := make(chan error)
	time.AfterFunc(200*time.Millisecond, func() { closed <- first.Close() })
	second, err := Open(t.Context(), o)
	if err := <-closed; err != nil {
		t.Error(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := second.Close(); err != nil {
		t.Error(err)
	}
}

func TestOpenRefusesANewerSchema(t *testing.T) {
	t.Parallel()
	for name, options := range databases {
		t.Run(name, func(t *testing.T) {
			o := options(t)
			s := open(t, o)
			if s.SchemaVersion() != 6 {
				t.Fatalf("schema version %d, want 6: change this test with it", s.SchemaVersion())
			}
			if _, err := s.write.Exec(`INSERT INTO goose_db_version (version_id, is_applied) VALUES (999, $1)`, true); err != nil {
				t.Fatal(err)
			}
			_ = s.Close()
			_, err := Open(t.Context(), o)
			if err == nil || !strings.Contains(err.Error(), "written by a newer quartermaster (schema 999, this one knows 6)") {
				t.Errorf("error %v, want that the database is newer", err)
			}
		})
	}
}

func TestOpenRefuses(t *testing.T) {
	for name, o := range map[string]Options{
		"no directory":   {},
		"a file":         {Data: "/dev/null"},
		"no url":         {Database: "postgres://%zz"},
		"nobody listens": {Database: "postgres://u:secret@127.0.0.1:1/x?connect_timeout=1"},
	} {
		_, err := Open(t.Context(), o)
		if err == nil {
			t.Errorf("%s: opened", name)
		} else if strings.Contains(err.Error(), "secret") { // Invariant 8
			t.Errorf("%s: the error holds the password: %v", name, err)
		}
	}
}
