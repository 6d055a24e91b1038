package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	driver "modernc.org/sqlite" // by name: "sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// dialect is all in which the two databases differ for us. The rest of the SQL
// is one text for both.
type dialect struct {
	name string
	// list turns a parameter that holds a JSON array of strings into rows with
	// one column, value.
	list func(param string) string
	// rows does so with a JSON array of arrays: value->>0 is the first of each.
	rows func(param string) string
	// notify tells other processes, once the transaction is committed, that a
	// project has changed; empty where there are none.
	notify string
	// snapshot is the isolation under which several reads see one state.
	snapshot sql.TxOptions
}

var sqlite = dialect{
	name: "sqlite",
	list: func(param string) string { return "json_each(" + param + ")" },
	rows: func(param string) string { return "json_each(" + param + ")" },
}

var postgres = dialect{
	name:     "postgres",
	list:     func(param string) string { return "json_array_elements_text(CAST(" + param + " AS json)) AS l(value)" },
	rows:     func(param string) string { return "json_array_elements(CAST(" + param + " AS json)) AS l(value)" },
	notify:   `SELECT pg_notify('` + channel + `', $1)`,
	snapshot: sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true},
}

// answered reports whether err is what a database said that is there and free to
// answer.
func answered(err error) bool {
	if e, ok := errors.AsType[*driver.Error](err); ok {
		primary := e.Code() & 0xff
		return primary != sqlite3.SQLITE_BUSY && primary != sqlite3.SQLITE_LOCKED
	}
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		// Class 08 is the connection, 57 a shutdown or a canceled statement, 40
		// another transaction in the way; the rest is too many clients.
		return !slices.Contains([]string{"08", "40", "57"}, e.Code[:min(2, len(e.Code))]) && e.Code != "53300"
	}
	return false
}

const channel = "quartermaster_changes"

// lockWait is how long a new process waits for an old one to leave, as when a
// supervisor restarts it.
const lockWait = 5 * time.Second

func (s *Store) openSQLite(ctx context.Context, data string) error {
	if data == "" {
		return errors.New("no data directory is given")
	}
	if err := os.MkdirAll(data, 0o700); err != nil {
		return fmt.Errorf("make the data directory: %w", err)
	}
	unlock, err := lockDir(ctx, data)
	if err != nil {
		return err
	}
	s.close = append(s.close, unlock)
	s.dialect = sqlite
	path := filepath.Join(data, "quartermaster.db")
	if err := makePrivate(path); err != nil {
		return err
	}
	// FULL: a revocation that was answered must survive a power cut too.
	if s.write, err = s.sqlitePool(path, 1, "journal_mode(WAL)", "synchronous(FULL)"); err != nil {
		return err
	}
	if err := s.write.PingContext(ctx); err != nil {
		return fmt.Errorf("open %s: %w", path, err)
	}
	s.read, err = s.sqlitePool(path, 8, "query_only(1)")
	return err
}

// makePrivate makes sure that only its owner can read the database: the
// directory may be one that others can enter. The files beside it are made by
// SQLite with the mode of the first.
func makePrivate(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("open %s: %w", path, err)
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("open %s: %w", path, err)
	}
	for _, name := range []string{path, path + "-wal", path + "-shm"} {
		info, err := os.Stat(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("open %s: %w", name, err)
		}
		// Another owner has set up the sharing, and only they could end it.
		owner, ok := info.Sys().(*syscall.Stat_t)
		if info.Mode().Perm()&0o077 == 0 || ok && int(owner.Uid) != os.Geteuid() {
			continue
		}
		if err := os.Chmod(name, 0o600); err != nil {
			return fmt.Errorf("take %s from others than its owner: %w", name, err)
		}
	}
	return nil
}

func (s *Store) sqlitePool(path string, most int, pragmas ...string) (*sql.DB, error) {
	query := url.Values{"_txlock": {"immediate"}, "_pragma": append(pragmas, "foreign_keys(1)", "busy_timeout(5000)")}
	if most > 1 {
		query.Set("_txlock", "deferred") // readers never wait for the writer
	}
	dsn := url.URL{Scheme: "file", Opaque: url.PathEscape(path), RawQuery: query.Encode()}
	db, err := sql.Open("sqlite", dsn.String())
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	db.SetMaxOpenConns(most)
	db.SetMaxIdleConns(most)
	s.close = append(s.close, db.Close)
	return db, nil
}

// lockDir makes sure that one process at a time uses a data directory: the
// snapshots in memory would not notice the writes of another.
func lockDir(ctx context.Context, data string) (unlock func() error, err error) {
	path := filepath.Join(data, "lock")
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock the data directory: %w", err)
	}
	deadline := time.Now().Add(lockWait)
	for {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return f.Close, nil // closing unlocks
		}
		if time.Now().After(deadline) || ctx.Err() != nil {
			_ = f.Close()
			return nil, fmt.Errorf("another quartermaster is using the data directory %s; stop it, choose another --data, or use --database to share one", data)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// ErrDatabaseURL does not repeat the URL: it may hold a password.
var ErrDatabaseURL = errors.New("--database is not a PostgreSQL URL such as postgres://user@host:5432/name")

func (s *Store) openPostgres(ctx context.Context, databaseURL string) error {
	config, err := pgx.ParseConfig(databaseURL)
	if err != nil {
		return ErrDatabaseURL
	}
	s.dialect = postgres
	db := stdlib.OpenDB(*config)
	db.SetMaxOpenConns(20)
	db.SetMaxIdleConns(20)
	db.SetConnMaxIdleTime(time.Minute)
	s.write, s.read = db, db
	s.close = append(s.close, db.Close)
	if err := db.PingContext(ctx); err != nil {
		return fmt.Errorf("connect to PostgreSQL: %w", err)
	}
	return nil
}
