package store

import (
	"context"
	"embed"
	"fmt"
	"io/fs"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
)

// migrations are for both databases, but for a file whose name ends in that of
// one.
//
//go:embed migrations/*.sql
var migrations embed.FS

// migrate brings the schema up to date and returns its version. Several
// processes may do so at once: on PostgreSQL they queue for an advisory lock,
// on SQLite the data directory belongs to one of them.
func (s *Store) migrate(ctx context.Context) (int64, error) {
	p, err := s.migrations()
	if err != nil {
		return 0, err
	}
	if _, err := p.Up(ctx); err != nil {
		return 0, fmt.Errorf("bring the database's schema up to date: %w", err)
	}
	current, target, err := p.GetVersions(ctx)
	if err != nil {
		return 0, err
	}
	if current > target {
		return 0, fmt.Errorf("the database was written by a newer quartermaster (schema %d, this one knows %d); use that or a newer one", current, target)
	}
	return current, nil
}

// migrations are those of the store's database.
func (s *Store) migrations() (*goose.Provider, error) {
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return nil, err
	}
	kind, other := goose.DialectSQLite3, postgres
	options := []goose.ProviderOption{goose.WithDisableGlobalRegistry(true)}
	if s.dialect.name == postgres.name {
		kind, other = goose.DialectPostgres, sqlite
		locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(1, 120))
		if err != nil {
			return nil, err
		}
		options = append(options, goose.WithSessionLocker(locker))
	}
	theirs, err := fs.Glob(files, "*."+other.name+".sql")
	if err != nil {
		return nil, err
	}
	return goose.NewProvider(kind, s.write, files, append(options, goose.WithExcludeNames(theirs))...)
}
