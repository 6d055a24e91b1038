// Package store keeps everything that must survive: in an embedded SQLite file
// by default, in PostgreSQL where several replicas share it. It is the only
// door to a database.
package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"quartermaster"
)

// Options say where to keep things.
type Options struct {
	// Data is the directory of the embedded database. Made if absent.
	Data string
	// Database is the URL of a PostgreSQL database; empty: the embedded one.
	Database string
	// SecretKey is the key that seals secrets, 32 bytes as base64 or hex;
	// empty: the one in a file of Data, which is made if absent.
	SecretKey string
	Log       *slog.Logger

	builtins []quartermaster.Tool // of another version of the program, in tests
}

// Store implements quartermaster.Store.
type Store struct {
	dialect   dialect
	write     *sql.DB // SQLite: one connection, so that writers queue here
	read      *sql.DB
	vault     *vault
	log       *slog.Logger
	builtins  []quartermaster.Tool
	snapshots snapshots
	confirmed atomic.Int64 // when the snapshots were last known to be current, in ns
	version   int64
	close     []func() error
}

var (
	_ quartermaster.Store = (*Store)(nil)
	_ quartermaster.Vault = (*Store)(nil)
)

// Open opens the database, brings its schema up to date, checks the key of the
// secrets and makes sure that the default project exists.
func Open(ctx context.Context, o Options) (*Store, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.builtins == nil {
		o.builtins = quartermaster.Builtins()
	}
	s := &Store{log: o.Log, builtins: o.builtins}
	if err := s.open(ctx, o); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *Store) open(ctx context.Context, o Options) error {
	var err error
	if o.Database != "" {
		err = s.openPostgres(ctx, o.Database)
	} else {
		err = s.openSQLite(ctx, o.Data)
	}
	if err != nil {
		return err
	}
	if s.version, err = s.migrate(ctx); err != nil {
		return err
	}
	if err := s.openVault(ctx, o); err != nil {
		return err
	}
	s.confirm()
	if o.Database != "" {
		s.follow(o.Database)
	}
	return s.ensureDefaultProject(ctx)
}

// Close ends every connection.
func (s *Store) Close() error {
	var errs []error
	for i := len(s.close) - 1; i >= 0; i-- {
		errs = append(errs, s.close[i]())
	}
	s.close = nil
	return errors.Join(errs...)
}

// Tell lets f know of every snapshot that there is, and from now on of every one
// that replaces another, in their order. f must not block.
func (s *Store) Tell(f func(*quartermaster.Catalog)) { s.snapshots.tell(f) }

// Ping asks the database for a sign of life.
func (s *Store) Ping(ctx context.Context) error {
	return unavailable(s.read.PingContext(ctx))
}

// Kind names the database: sqlite or postgres.
func (s *Store) Kind() string { return s.dialect.name }

// SchemaVersion is the number of the newest migration that is applied.
func (s *Store) SchemaVersion() int64 { return s.version }

// Change implements quartermaster.Store.
func (s *Store) Change(ctx context.Context, project string, edit func(*quartermaster.Draft) error) (*quartermaster.Catalog, error) {
	return s.change(ctx, project, func(*sql.Tx) error { return nil }, edit)
}

// change runs prepare and edit in one transaction. Its first statement takes
// the project's row, so that from there on nobody else changes the project:
// edit can check everything against the snapshot and no SQL needs to.
func (s *Store) change(ctx context.Context, project string, prepare func(*sql.Tx) error, edit func(*quartermaster.Draft) error) (*quartermaster.Catalog, error) {
	if !quartermaster.ValidProjectID(project) {
		return nil, projectMissing(project)
	}
	tx, err := s.write.BeginTx(ctx, nil)
	if err != nil {
		return nil, unwritten(err)
	}
	defer func() { _ = tx.Rollback() }()
	if err := prepare(tx); err != nil {
		return nil, err
	}
	p, err := scanProject(tx.QueryRowContext(ctx,
		`UPDATE projects SET revision = revision + 1 WHERE id = $1 RETURNING `+projectColumns, project))
	if errors.Is(err, sql.ErrNoRows) {
		return nil, projectMissing(project)
	}
	if err != nil {
		return nil, unwritten(err)
	}
	revision := p.Revision
	p.Revision-- // what the draft starts from
	current, err := s.load(ctx, tx, p, s.snapshots.get(project))
	if err != nil {
		return nil, err
	}
	now := time.Now()
	draft := current.Draft(now)
	if err := edit(draft); err != nil {
		return nil, err
	}
	changes := draft.Changes()
	if len(changes) == 0 {
		s.snapshots.put(project, current)
		return current, nil
	}
	if err := s.persist(ctx, tx, current, revision, changes, now); err != nil {
		return nil, unwritten(err)
	}
	if err := tx.Commit(); err != nil {
		// It may have been committed all the same: look again before answering.
		s.snapshots.forget(project)
		return nil, unwritten(err)
	}
	next := current.With(revision, changes)
	s.snapshots.put(project, next)
	return next, nil
}

// unavailable wraps what a driver says; the words of a driver are for the log.
func unavailable(err error) error { return failed(err, "the database did not answer; try again") }

// unwritten is unavailable for a write. To try again is no remedy where the
// database did answer, as with a full disk.
func unwritten(err error) error {
	if !answered(err) {
		return unavailable(err)
	}
	return failed(err, "the database could not be written; the server's log says why")
}

func failed(err error, message string) error {
	if err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	if _, ok := errors.AsType[*quartermaster.Error](err); ok {
		return err
	}
	e := quartermaster.Errorf(quartermaster.CodeUnavailable, "%s", message)
	e.Cause = err
	return e
}

// encode writes v as JSON in which nested JSON keeps its bytes.
func encode(v any) (string, error) {
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(v)
	return b.String(), err
}

func micros(t time.Time) int64     { return t.UnixMicro() }
func fromMicros(n int64) time.Time { return time.UnixMicro(n).UTC() }

func projectMissing(id string) error {
	return quartermaster.Errorf(quartermaster.CodeNotFound, "there is no project %q", id)
}

func wrap(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}
