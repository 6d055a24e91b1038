package store

import (
	"context"
	"embed"
	"fmt"
	"io/fs"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
)

//go:embed migrations/*.sql
var migrations embed.FS

// migrate brings the schema up to date and returns its version. Several
// processes may do so at once: on PostgreSQL they queue for an advisory lock,
// on SQLite the data directory belongs to one of them.
func (s *Store) migrate(ctx context.Context) (int64, error) {
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return 0, err
	}
	kind := goose.DialectSQLite3
	var options []goose.ProviderOption
	if s.dialect.name == postgres.name {
		kind = goose.DialectPostgres
		locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(1, 120))
		if err != nil {
			return 0, err
		}
		options = append(options, goose.WithSessionLocker(locker))
	}
	p, err := goose.NewProvider(kind, s.write, files, append(options, goose.WithDisableGlobalRegistry(true))...)
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
