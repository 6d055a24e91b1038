package store

import (
	"context"
	"database/sql/driver"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"quartermaster"
	"quartermaster/internal/store/storetest"

	"github.com/jackc/pgx/v5/pgconn"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if role := os.Getenv(childRole); role != "" {
		os.Exit(child(role))
	}
	_ = flag.Set("rapid.checks", "30") // each opens the database again; the command line may ask for more
	code := storetest.Main(m)
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// databases are the kinds that everything must hold for.
var databases = map[string]func(t testing.TB) Options{
	"SQLite":   func(t testing.TB) Options { return Options{Data: t.TempDir()} },
	"Postgres": func(t testing.TB) Options { return Options{Database: storetest.Postgres(t), Data: t.TempDir()} },
}

// Tests run in parallel unless they stop PostgreSQL or measure a time.
func TestStore(t *testing.T) {
	t.Parallel()
	for name, options := range databases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.Run(t, func(t *testing.T) storetest.Database {
				o := options(t)
				return storetest.Database{
					Open:   func(ctx context.Context) (storetest.Store, error) { return Open(ctx, o) },
					Shared: o.Database != "",
				}
			})
		})
	}
}

func open(t testing.TB, o Options) *Store {
	t.Helper()
	s, err := Open(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// SEC-3: nobody else reads the embedded database, wherever it lies.
func TestFilesArePrivate(t *testing.T) {
	t.Parallel()
	o := Options{Data: t.TempDir()}
	if err := os.Chmod(o.Data, 0o755); err != nil {
		t.Fatal(err)
	}
	check := func(when string) {
		t.Helper()
		for _, name := range []string{"quartermaster.db", "quartermaster.db-wal", "quartermaster.db-shm", "lock"} {
			info, err := os.Stat(filepath.Join(o.Data, name))
			if err != nil {
				t.Fatal(err)
			}
			if mode := info.Mode().Perm(); mode != 0o600 {
				t.Errorf("%s: %s has mode %04o", when, name, mode)
			}
		}
	}
	s := open(t, o)
	check("new")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"quartermaster.db", "quartermaster.db-wal", "quartermaster.db-shm"} {
		path := filepath.Join(o.Data, name)
		if err := os.WriteFile(path, nil, 0o600); err != nil { // as a process that was killed leaves them
			t.Fatal(err)
		}
		if err := os.Chmod(path, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	open(t, o)
	check("looser before")
}

// A database that is there but takes no more is not one to try again at once.
func TestDiskFull(t *testing.T) {
	t.Parallel()
	s := open(t, Options{Data: t.TempDir()})
	if _, err := s.write.Exec(`PRAGMA max_page_count = 1`); err != nil { // no more than it has
		t.Fatal(err)
	}
	_, err := s.Change(t.Context(), quartermaster.DefaultProject, func(d *quartermaster.Draft) error {
		_, _, err := d.PutAgent(quartermaster.Agent{ID: "a", Instruction: strings.Repeat("x", 1_000_000)})
		return err
	})
	if quartermaster.CodeOf(err) != quartermaster.CodeUnavailable || !strings.Contains(fmt.Sprint(err), "could not be written") || errors.Unwrap(err) == nil {
		t.Errorf("%v", err)
	}
	if _, err := s.Catalog(t.Context(), quartermaster.DefaultProject); err != nil {
		t.Errorf("reading: %v", err)
	}
}

func TestAnswered(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want bool
	}{
		{&pgconn.PgError{Code: "53100"}, true},  // disk full
		{&pgconn.PgError{Code: "25006"}, true},  // read only
		{&pgconn.PgError{Code: "53300"}, false}, // too many clients
		{&pgconn.PgError{Code: "57P01"}, false}, // shut down
		{&pgconn.PgError{Code: "08006"}, false},
		{&pgconn.PgError{}, true},
		{driver.ErrBadConn, false},
		{context.DeadlineExceeded, false},
		{nil, false},
	} {
		if got := answered(tt.err); got != tt.want {
			t.Errorf("%v: %t, want %t", tt.err, got, tt.want)
		}
	}
}
