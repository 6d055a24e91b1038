package spicedb

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	v1 "github.com/authzed/authzed-go/proto/authzed/api/v1"
	"go.uber.org/goleak"

	"quartermaster"
	"quartermaster/internal/store/storetest"
)

func TestMain(m *testing.M) {
	_ = flag.Set("rapid.checks", "10") // each has to do with real servers; the command line may ask for more
	before := goleak.IgnoreCurrent()   // what SpiceDB's dependencies start when they are linked in
	code := storetest.Main(m)
	if err := goleak.Find(before); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// kinds are the SpiceDBs that everything must hold for (PERM-1).
var kinds = map[string]func(testing.TB) Options{
	"embedded": func(testing.TB) Options { return Options{} },
	"memory":   func(t testing.TB) Options { return own(t).options() },
	"postgres": func(t testing.TB) Options { return own(t, onPostgres(t)...).options() },
}

// TestEngine runs everything that holds for an engine wherever it runs.
func TestEngine(t *testing.T) {
	t.Parallel()
	for kind, options := range kinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			o := options(t)
			for name, run := range suite {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					run(t, o)
				})
			}
		})
	}
}

// site is an engine with a store beside it, as a process has them, and a
// connection to the same SpiceDB that goes past both.
type site struct {
	*Engine
	store   quartermaster.Store
	project string
	direct  v1.PermissionsServiceClient
}

var projects atomic.Int64

// open makes a site with a project of its own.
func open(t testing.TB, o Options) *site {
	t.Helper()
	e, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	s := &site{Engine: e, project: fmt.Sprintf("p%d", projects.Add(1)), direct: e.world.Load().client}
	s.store = e.Keep(newBook(s.project))
	return s
}

func (s *site) catalog(t testing.TB) *quartermaster.Catalog {
	t.Helper()
	c, err := s.store.Catalog(t.Context(), s.project)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (s *site) change(t testing.TB, edit func(*quartermaster.Draft) error) *quartermaster.Catalog {
	t.Helper()
	c, err := s.store.Change(t.Context(), s.project, edit)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (s *site) tools(t testing.TB, names ...string) {
	t.Helper()
	s.change(t, func(d *quartermaster.Draft) error {
		for _, name := range names {
			if _, err := d.CreateTool(quartermaster.Tool{Name: name, Provider: "native"}); err != nil {
				return err
			}
		}
		return nil
	})
}

// grantText reads tool:x#executor@user:alice.
func grantText(text string) quartermaster.Grant {
	resource, rest, _ := strings.Cut(text, "#")
	relation, subject, _ := strings.Cut(rest, "@")
	return quartermaster.Grant{Resource: resource, Relation: relation, Subject: subject}
}

func (s *site) grant(t testing.TB, grants ...string) {
	t.Helper()
	s.change(t, func(d *quartermaster.Draft) error {
		for _, text := range grants {
			if _, _, err := d.Grant(grantText(text)); err != nil {
				return err
			}
		}
		return nil
	})
}

func (s *site) revoke(t testing.TB, grants ...string) {
	t.Helper()
	s.change(t, func(d *quartermaster.Draft) error {
		for _, text := range grants {
			g := grantText(text)
			if gone := d.Revoke(quartermaster.GrantFilter{Subject: g.Subject, Relation: g.Relation, Resource: g.Resource}); len(gone) != 1 {
				return fmt.Errorf("%s: revoked %d", text, len(gone))
			}
		}
		return nil
	})
}

func (s *site) judge(t testing.TB, user string, q quartermaster.Question, names ...string) ([]quartermaster.Judgment, error) {
	t.Helper()
	c := s.catalog(t)
	tools := c.Tools()
	if len(names) > 0 {
		tools = nil
		for _, name := range names {
			tools = append(tools, c.ToolByName(name))
		}
	}
	return s.Judge(t.Context(), c, quartermaster.Caller{Project: s.project, User: user}, q, tools)
}

// allowed lists what a user may execute.
func (s *site) allowed(t testing.TB, user string) string {
	t.Helper()
	c := s.catalog(t)
	judgments, err := s.Judge(t.Context(), c, quartermaster.Caller{Project: s.project, User: user}, quartermaster.Question{}, c.Tools())
	if err != nil {
		t.Errorf("%s: %v, for %v", user, err, errors.Unwrap(err))
	}
	return names(c, judgments)
}

// names lists the tools that are allowed, of all.
func names(c *quartermaster.Catalog, judgments []quartermaster.Judgment) string {
	var names []string
	for i, j := range judgments {
		if j.Allowed {
			names = append(names, c.Tools()[i].Name)
		}
	}
	return strings.Join(names, " ")
}

func (s *site) mustAllow(t testing.TB, user, want string) {
	t.Helper()
	if got := s.allowed(t, user); got != want {
		t.Errorf("%s may execute %q, want %q", user, got, want)
	}
}

// eventually waits for what does not happen at once.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never came to be: %s", what)
		}
	}
}

func codeOf(err error) quartermaster.Code {
	if err == nil {
		return ""
	}
	return quartermaster.CodeOf(err)
}

// book is a store in memory.
type book struct {
	mu       sync.Mutex
	catalogs map[string]*quartermaster.Catalog
	fail     error // of the next commit
}

func newBook(projects ...string) *book {
	b := &book{catalogs: map[string]*quartermaster.Catalog{}}
	for _, id := range projects {
		_, _ = b.CreateProject(context.Background(), quartermaster.Project{ID: id})
	}
	return b
}

func (b *book) Catalog(_ context.Context, project string) (*quartermaster.Catalog, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if c := b.catalogs[project]; c != nil {
		return c, nil
	}
	return nil, quartermaster.Errorf(quartermaster.CodeNotFound, "there is no project %q", project)
}

func (b *book) Change(_ context.Context, project string, edit func(*quartermaster.Draft) error) (*quartermaster.Catalog, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.catalogs[project]
	d := c.Draft(time.Now())
	if err := edit(d); err != nil {
		return nil, err
	}
	if err := b.fail; err != nil {
		b.fail = nil
		return nil, err
	}
	if changes := d.Changes(); len(changes) > 0 {
		c = c.With(c.Revision()+1, changes)
		b.catalogs[project] = c
	}
	return c, nil
}

func (b *book) CreateProject(_ context.Context, p quartermaster.Project) (quartermaster.Project, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.catalogs[p.ID] = quartermaster.NewCatalog(p)
	return p, nil
}

func (b *book) Projects(context.Context) ([]quartermaster.Project, error) {
	return nil, errors.ErrUnsupported
}
