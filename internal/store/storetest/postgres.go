// Package storetest holds what tests of the store need: real databases, and the
// suite that every database passes.
package storetest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// errNoPostgres means that this machine has no PostgreSQL, as opposed to one
// that does not work: the first skips a test, the second fails it.
var errNoPostgres = errors.New("no PostgreSQL server found (initdb and postgres, on PATH or where packages put them): install it, e.g. apt-get install postgresql")

const (
	startTimeout = 30 * time.Second
	stopTimeout  = 20 * time.Second
)

var (
	mainRuns  atomic.Bool
	databases atomic.Int64
	startOnce sync.Once
	shared    *postgres
	errShared error
)

// Main runs the tests and then stops the server that Postgres may have started.
// Every package that calls Postgres has it as its TestMain:
//
//	func TestMain(m *testing.M) { os.Exit(storetest.Main(m)) }
func Main(m *testing.M) int {
	mainRuns.Store(true)
	code := m.Run()
	if shared == nil {
		return code
	}
	err := errors.Join(shared.stop(), os.RemoveAll(shared.dir))
	if err != nil {
		fmt.Fprintln(os.Stderr, "storetest:", err)
		return max(code, 1)
	}
	return code
}

// Postgres returns the URL of a new, empty database that is dropped when the
// test ends. The first call of a test process starts the server.
//
// Without PostgreSQL on the machine the test is skipped, or fails if
// QUARTERMASTER_REQUIRE_POSTGRES=1, so that a gate cannot pass by skipping.
func Postgres(t testing.TB) (url string) {
	t.Helper()
	pg := server(t)
	name := fmt.Sprintf("test_%d", databases.Add(1))
	pg.exec(t, "CREATE DATABASE "+name)
	t.Cleanup(func() { pg.exec(t, "DROP DATABASE "+name+" WITH (FORCE)") })
	return pg.url(name)
}

// StopPostgres shuts the server down, cutting every connection, until
// StartPostgres or the end of the test. All tests of the process share the
// server: a test that stops it must not run in parallel with others.
func StopPostgres(t testing.TB) {
	t.Helper()
	pg := server(t)
	t.Cleanup(func() { StartPostgres(t) })
	if err := pg.stop(); err != nil {
		t.Fatal(err)
	}
}

// StartPostgres starts the server again, with its data and at the same URL.
// It does nothing if the server runs.
func StartPostgres(t testing.TB) {
	t.Helper()
	if err := server(t).start(); err != nil {
		t.Fatal(err)
	}
}

// RestartPostgres cuts every connection; the server is ready when it returns.
func RestartPostgres(t testing.TB) {
	t.Helper()
	StopPostgres(t)
	StartPostgres(t)
}

func server(t testing.TB) *postgres {
	t.Helper()
	if !mainRuns.Load() {
		t.Fatal("storetest: nobody would stop the server: this package needs func TestMain(m *testing.M) { os.Exit(storetest.Main(m)) }")
	}
	startOnce.Do(func() { shared, errShared = newPostgres() })
	switch {
	case errors.Is(errShared, errNoPostgres) && os.Getenv("QUARTERMASTER_REQUIRE_POSTGRES") != "1":
		t.Skip(errShared)
	case errShared != nil:
		t.Fatal(errShared)
	}
	return shared
}

// postgres is one server on a unix socket in a directory of its own.
type postgres struct {
	bin  string              // directory of the binaries
	dir  string              // data, log and socket
	cred *syscall.Credential // nil: run as ourselves

	mu     sync.Mutex
	cmd    *exec.Cmd     // nil while stopped
	exited chan struct{} // closed once cmd is reaped
}

func newPostgres() (pg *postgres, err error) {
	bin, err := findBinaries()
	if err != nil {
		return nil, err
	}
	pg = &postgres{bin: bin}
	if pg.cred, err = unprivileged(); err != nil {
		return nil, err
	}
	if pg.dir, err = os.MkdirTemp(tempBase(pg.cred != nil), "qmpg-"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(pg.dir))
		}
	}()
	if pg.cred != nil {
		if err := os.Chown(pg.dir, int(pg.cred.Uid), int(pg.cred.Gid)); err != nil {
			return nil, err
		}
	}
	if err := pg.initdb(); err != nil {
		return nil, err
	}
	return pg, pg.start()
}

// initdb prefers an order of text that is not the order of its bytes, as most
// production databases have it: SQL that silently relies on byte order, which
// is what SQLite sorts by, then fails here and not there.
func (pg *postgres) initdb() error {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	var errs []error
	for _, locale := range [][]string{
		{"--locale=C.UTF-8", "--locale-provider=icu", "--icu-locale=en-US"}, // 15 and newer, built with ICU
		{"--locale=en_US.UTF-8", "--lc-messages=C"},
		{"--locale=C.UTF-8"},
		{"--locale=C"},
	} {
		args := append([]string{"-D", pg.data(), "-A", "trust", "-U", "postgres", "-E", "UTF8", "--no-sync"}, locale...)
		out, err := pg.command(ctx, "initdb", args...).CombinedOutput()
		if err == nil {
			return nil
		}
		errs = append(errs, fmt.Errorf("initdb %v: %w\n%s", locale, err, out))
	}
	return errors.Join(errs...)
}

func (pg *postgres) start() error {
	pg.mu.Lock()
	defer pg.mu.Unlock()
	if pg.cmd != nil {
		return nil
	}
	log, err := os.OpenFile(pg.log(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()

	// Durability is off: the data dies with the test.
	cmd := pg.command(context.Background(), "postgres", "-D", pg.data(), "-k", pg.dir, "-p", "5432",
		"-c", "listen_addresses=",
		"-c", "fsync=off", "-c", "synchronous_commit=off", "-c", "full_page_writes=off",
		"-c", "max_connections=200", "-c", "track_commit_timestamp=on")
	cmd.Stdout, cmd.Stderr = log, log
	started, exited := make(chan error), make(chan struct{})
	go func() {
		// The kernel sends the parent-death signal when the thread that forked
		// ends, so that thread is held for as long as the server runs.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // how it ended stands in the log
		}
		close(exited)
	}()
	if err := <-started; err != nil {
		return err
	}
	pg.cmd, pg.exited = cmd, exited
	if err := pg.awaitReady(); err != nil {
		return errors.Join(err, pg.stopLocked())
	}
	return nil
}

func (pg *postgres) awaitReady() error {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	for {
		conn, err := pgx.Connect(ctx, pg.url("postgres"))
		if err == nil {
			return conn.Close(ctx)
		}
		select {
		case <-time.After(20 * time.Millisecond):
			continue
		case <-pg.exited:
			err = errors.New("it ended by itself")
		case <-ctx.Done():
		}
		log, _ := os.ReadFile(pg.log())
		return fmt.Errorf("postgres did not become ready: %w\n%s", err, log[max(0, len(log)-8<<10):])
	}
}

func (pg *postgres) stop() error {
	pg.mu.Lock()
	defer pg.mu.Unlock()
	return pg.stopLocked()
}

func (pg *postgres) stopLocked() error {
	if pg.cmd == nil {
		return nil
	}
	proc := pg.cmd.Process
	pg.cmd = nil
	_ = proc.Signal(syscall.SIGINT) // a fast shutdown; fails only if it has ended
	select {
	case <-pg.exited:
		return nil
	case <-time.After(stopTimeout):
		_ = proc.Kill() // its children notice and end too
		<-pg.exited
		return fmt.Errorf("postgres had to be killed after %s", stopTimeout)
	}
}

// command runs one of the binaries as the server's user, in a process group of
// its own, so that a Ctrl-C reaches the tests and not the database under them.
func (pg *postgres) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(pg.bin, name), args...)
	cmd.Dir = pg.dir                                // ours may be closed to that user
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")} // no PGDATA, PGPORT, LC_ALL of the developer
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: pg.cred}
	// A test process that panics or is killed never comes to stop. The field
	// does not exist on every system this file compiles on, hence by name.
	if f := reflect.ValueOf(cmd.SysProcAttr).Elem().FieldByName("Pdeathsig"); f.IsValid() {
		f.SetInt(int64(syscall.SIGQUIT)) // an immediate shutdown
	}
	return cmd
}

func (pg *postgres) exec(t testing.TB, sql string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	conn, err := pgx.Connect(ctx, pg.url("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// url names the port too, or else a PGPORT in the environment would.
func (pg *postgres) url(database string) string {
	q := url.Values{"host": {pg.dir}, "port": {"5432"}, "user": {"postgres"}}
	return "postgres:///" + database + "?" + q.Encode()
}

func (pg *postgres) data() string { return filepath.Join(pg.dir, "data") }
func (pg *postgres) log() string  { return filepath.Join(pg.dir, "log") }

// findBinaries returns the directory of the binaries: that on PATH, else the
// newest that a package installed. Debian keeps its own off PATH.
func findBinaries() (string, error) {
	var dirs []string
	for _, pattern := range []string{
		"/usr/lib/postgresql/*/bin",
		"/usr/pgsql-*/bin",
		"/opt/homebrew/opt/postgresql*/bin",
		"/usr/local/opt/postgresql*/bin",
	} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			return "", err
		}
		dirs = append(dirs, found...)
	}
	slices.SortStableFunc(dirs, func(a, b string) int { return cmp.Compare(version(b), version(a)) })
	if onPath, err := exec.LookPath("initdb"); err == nil {
		dirs = slices.Insert(dirs, 0, filepath.Dir(onPath))
	}
	for _, dir := range dirs {
		_, errInit := exec.LookPath(filepath.Join(dir, "initdb"))
		_, errServe := exec.LookPath(filepath.Join(dir, "postgres"))
		if errInit == nil && errServe == nil {
			return dir, nil
		}
	}
	return "", errNoPostgres
}

var number = regexp.MustCompile(`\d+(\.\d+)?`)

func version(dir string) float64 {
	v, _ := strconv.ParseFloat(number.FindString(dir), 64) // no number: 0, the last choice
	return v
}

// unprivileged returns whom to run the server as: PostgreSQL refuses root.
func unprivileged() (*syscall.Credential, error) {
	if os.Getuid() != 0 {
		return nil, nil // no credential: stay who we are
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		u, err = user.Lookup("nobody")
	}
	if err != nil {
		return nil, fmt.Errorf("PostgreSQL refuses to run as root: %w", err)
	}
	uid, errUID := strconv.ParseUint(u.Uid, 10, 32)
	gid, errGID := strconv.ParseUint(u.Gid, 10, 32)
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, errors.Join(errUID, errGID)
}

// tempBase is TMPDIR, unless the socket's path would exceed what the kernel
// takes (107 bytes, 103 on macOS) or another user could not reach it.
func tempBase(otherUser bool) string {
	base, err := filepath.Abs(os.TempDir())
	if err != nil || len(base) > 64 {
		return "/tmp"
	}
	for dir := base; otherUser; dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		if err != nil || info.Mode().Perm()&0o001 == 0 {
			return "/tmp"
		}
		if dir == filepath.Dir(dir) {
			break
		}
	}
	return base
}
