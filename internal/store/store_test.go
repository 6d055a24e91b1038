package store

import (
	"context"
	"flag"
	"fmt"
	"os"
	"testing"

	"quartermaster/internal/store/storetest"

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
