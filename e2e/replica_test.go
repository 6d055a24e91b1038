package e2e

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"quartermaster"
	"quartermaster/client"
	"quartermaster/internal/store/storetest"
)

// replica is a server process.
type replica struct {
	*client.Project
	process *os.Process
	address string
	log     string
	exited  chan struct{}
}

// newReplica starts a server process, with settings as environment variables;
// ready waits until it answers.
func newReplica(t *testing.T, database string, settings ...string) *replica {
	t.Helper()
	dir := t.TempDir()
	address := filepath.Join(dir, "address")
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = log.Close() })
	cmd := exec.Command(filepath.Join(bin, "quartermaster"), "serve", "--listen", "127.0.0.1:0", "--data", dir, "--address-file", address)
	cmd.Env = append(append(os.Environ(), "QUARTERMASTER_DATABASE="+database), settings...)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	r := &replica{process: cmd.Process, exited: make(chan struct{}), address: address, log: log.Name()}
	go func() { _ = cmd.Wait(); close(r.exited) }()
	t.Cleanup(func() { r.end(syscall.SIGKILL) })
	return r
}

func (r *replica) ready(t *testing.T) *replica {
	t.Helper()
	for deadline := time.Now().Add(startLimit); ; time.Sleep(10 * time.Millisecond) {
		if url, ok := readWhenThere(r.address); ok {
			c, err := client.New(url)
			if err != nil {
				t.Fatal(err)
			}
			r.Project = c.Project(quartermaster.DefaultProject)
			return r
		}
		select {
		case <-r.exited:
			deadline = time.Time{}
		default:
		}
		if time.Now().After(deadline) {
			text, _ := os.ReadFile(r.log)
			t.Fatalf("not ready in time\n%s", text)
		}
	}
}

func (r *replica) end(signal os.Signal) {
	_ = r.process.Signal(signal)
	<-r.exited
}

// follows waits until seen reports true, and says how long it took.
func follows(t *testing.T, what string, seen func(context.Context) bool) {
	t.Helper()
	began := time.Now()
	for !seen(t.Context()) {
		if time.Since(began) > 10*time.Second {
			t.Fatalf("%s: the other replica does not follow", what)
		}
		time.Sleep(time.Millisecond)
	}
	t.Logf("%s: seen by the other replica after %s", what, time.Since(began).Round(time.Millisecond))
}

// POOL-2, SCALE-2, GATE-2: what is changed through one process acts on the
// other, also when the first is killed right after it has answered.
func TestReplicas(t *testing.T) {
	database := storetest.Postgres(t)
	a, b := newReplica(t, database), newReplica(t, database) // both bring the schema up to date at once
	a.ready(t)
	b.ready(t)
	ctx := t.Context()
	resolved := func(ctx context.Context, r *replica, agent string) int {
		got, err := r.Resolve(ctx, client.Situation{Agent: agent})
		if err != nil {
			t.Fatal(err)
		}
		return len(got.Tools)
	}
	tool, err := a.CreateTool(ctx, quartermaster.Tool{Name: "shared", Enabled: true})
	if err != nil {
		t.Fatal(err)
	}
	follows(t, "new tool", func(ctx context.Context) bool { _, err := b.Tool(ctx, "shared"); return err == nil })
	if _, err := b.ReplaceBindings(ctx, "x", []string{tool.ID}); err != nil {
		t.Fatal(err)
	}
	if n := resolved(ctx, b, "x"); n != 1 {
		t.Errorf("the replica that was changed has %d tools, want 1 at once", n)
	}
	follows(t, "binding", func(ctx context.Context) bool { return resolved(ctx, a, "x") == 1 })
	if _, err := a.ReplaceBindings(ctx, "x", []string{}); err != nil {
		t.Fatal(err)
	}
	a.end(syscall.SIGKILL)
	follows(t, "revocation by a process that was killed", func(ctx context.Context) bool { return resolved(ctx, b, "x") == 0 })
	c := newReplica(t, database).ready(t)
	if n := resolved(ctx, c, "x"); n != 0 {
		t.Errorf("a new replica gives %d tools", n)
	}
}
