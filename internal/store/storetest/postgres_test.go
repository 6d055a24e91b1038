package storetest

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

func TestMain(m *testing.M) { os.Exit(Main(m)) }

func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func one[T any](t *testing.T, conn *pgx.Conn, sql string) (v T) {
	t.Helper()
	if err := conn.QueryRow(t.Context(), sql).Scan(&v); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return v
}

func TestPostgresGivesEachTestItsOwnDatabase(t *testing.T) {
	a, b := connect(t, Postgres(t)), connect(t, Postgres(t))
	t.Log(one[string](t, a, "SELECT version()"))
	t.Log("text sorts by language, not by bytes:", one[bool](t, a, "SELECT 'a' < 'B'"))

	if _, err := a.Exec(t.Context(), "CREATE TABLE thing (id int)"); err != nil {
		t.Fatal(err)
	}
	const tables = "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'"
	if n := one[int](t, a, tables); n != 1 {
		t.Errorf("first database has %d tables, want the one made", n)
	}
	if n := one[int](t, b, tables); n != 0 {
		t.Errorf("second database has %d tables, want none", n)
	}
}

func TestPostgresDropsTheDatabaseUnderAnOpenConnection(t *testing.T) {
	const count = "SELECT count(*) FROM pg_database WHERE datname LIKE 'test%'"
	watch := connect(t, Postgres(t))
	before := one[int](t, watch, count)
	t.Run("inner", func(t *testing.T) {
		url := Postgres(t)
		if _, err := pgx.Connect(context.Background(), url); err != nil { // left open on purpose
			t.Fatal(err)
		}
	})
	if after := one[int](t, watch, count); after != before {
		t.Errorf("%d databases, want %d", after, before)
	}
}

func TestStopAndStartPostgres(t *testing.T) {
	url := Postgres(t)
	conn := connect(t, url)
	if _, err := conn.Exec(t.Context(), "CREATE TABLE kept (id int)"); err != nil {
		t.Fatal(err)
	}

	t.Run("stopped", func(t *testing.T) {
		StopPostgres(t)
		if err := conn.Ping(t.Context()); err == nil {
			t.Error("an old connection outlived the server")
		}
		if _, err := pgx.Connect(t.Context(), url); err == nil {
			t.Error("connected to a stopped server")
		}
	})
	// The end of the inner test has started it again.
	if n := one[int](t, connect(t, url), "SELECT count(*) FROM kept"); n != 0 {
		t.Errorf("%d rows, want an empty table", n)
	}
	RestartPostgres(t)
	_ = one[int](t, connect(t, url), "SELECT count(*) FROM kept")
}

// A server of its own, for the shared one lives until Main ends.
func TestStoppedPostgresLeavesNoProcess(t *testing.T) {
	_ = Postgres(t) // skips where there is none
	pg, err := newPostgres()
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(pg.dir)
	pids := []int{pg.cmd.Process.Pid}
	conn := connect(t, pg.url("postgres"))
	rows, err := conn.Query(t.Context(), "SELECT pid FROM pg_stat_activity")
	if err != nil {
		t.Fatal(err)
	}
	backends, err := pgx.CollectRows(rows, pgx.RowTo[int])
	if err != nil {
		t.Fatal(err)
	}
	if len(backends) < 2 {
		t.Fatalf("backends %v, want at least ours and a background worker", backends)
	}
	pids = append(pids, backends...)

	if err := pg.stop(); err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(5 * time.Second)
	for _, pid := range pids {
		for !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			if time.Now().After(deadline) {
				t.Fatalf("process %d of %v is left", pid, pids)
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
	if _, err := os.Stat(pg.dir + "/.s.PGSQL.5432"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the socket is left: %v", err)
	}
}

func TestTempBaseAvoidsWhatTheServerCannotReach(t *testing.T) {
	closed := t.TempDir()
	if err := os.Chmod(closed, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", closed)
	if got := tempBase(true); got != "/tmp" {
		t.Errorf("closed to the server's user: %s, want /tmp", got)
	}
	t.Setenv("TMPDIR", "/var/tmp")
	if got := tempBase(true); got != "/var/tmp" {
		t.Errorf("open to all: %s, want /var/tmp", got)
	}
	t.Setenv("TMPDIR", "/tmp/0123456789012345678901234567890123456789012345678901234567890123456789")
	if got := tempBase(false); got != "/tmp" {
		t.Errorf("too long for a socket: %s, want /tmp", got)
	}
}

func TestVersionOrdersDirectories(t *testing.T) {
	if version("/usr/lib/postgresql/9.6/bin") >= version("/usr/lib/postgresql/15/bin") {
		t.Error("9.6 counts as newer than 15")
	}
	if version("/opt/homebrew/opt/postgresql@17/bin") <= version("/opt/homebrew/opt/postgresql/bin") {
		t.Error("an unnumbered directory counts as newer than 17")
	}
}
