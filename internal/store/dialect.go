package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite" // the driver "sqlite"
)

// dialect is all in which the two databases differ for us. The rest of the SQL
// is one text for both.
type dialect struct {
	name string
	// list turns a parameter that holds a JSON array of strings into rows with
	// one column, value.
	list func(param string) string
	// notify tells other processes, once the transaction is committed, that a
	// project has changed; empty where there are none.
	notify string
	// snapshot is the isolation under which several reads see one state.
	snapshot sql.TxOptions
}

var sqlite = dialect{
	name: "sqlite",
	list: func(param string) string { return "json_each(" + param + ")" },
}

var postgres = dialect{
	name:     "postgres",
	list:     func(param string) string { return "json_array_elements_text(CAST(" + param + " AS json)) AS l(value)" },
	notify:   `SELECT pg_notify('` + channel + `', $1)`,
	snapshot: sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true},
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

func (s *Store) openPostgres(ctx context.Context, databaseURL string) error {
	config, err := pgx.ParseConfig(databaseURL)
	if err != nil {
		return errors.New("--database is not a PostgreSQL URL such as postgres://user@host:5432/name")
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
