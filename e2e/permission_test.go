package e2e

import (
	"context"
	"net"
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

// listed counts the tools that alice's agent has on a replica; -1: the replica
// says that it cannot tell.
func listed(ctx context.Context, t *testing.T, r *replica) int {
	t.Helper()
	got, err := r.Resolve(ctx, client.Situation{Agent: "x", User: "alice"})
	if quartermaster.CodeOf(err) == quartermaster.CodeUnavailable {
		return -1
	}
	if err != nil {
		t.Fatal(err)
	}
	return len(got.Tools)
}

// bindTool gives the agent x a tool.
func bindTool(t *testing.T, r *replica, name string) {
	t.Helper()
	tool, err := r.CreateTool(t.Context(), quartermaster.Tool{Name: name, Enabled: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.ReplaceBindings(t.Context(), "x", []string{tool.ID}); err != nil {
		t.Fatal(err)
	}
}

// grantAndRevoke has one replica change what the other must follow. Where it was
// changed it holds at once.
func grantAndRevoke(t *testing.T, a, b *replica) {
	t.Helper()
	ctx := t.Context()
	if n := listed(ctx, t, a); n != 0 {
		t.Fatalf("before the grant: %d tools", n)
	}
	if _, err := a.Grant(ctx, quartermaster.Grant{Subject: "user:alice", Relation: "executor", Tool: "shared"}); err != nil {
		t.Fatal(err)
	}
	if n := listed(ctx, t, a); n != 1 {
		t.Errorf("after the grant: %d tools, want 1 at once", n)
	}
	follows(t, "grant", func(ctx context.Context) bool { return listed(ctx, t, b) == 1 })
	if err := b.Revoke(ctx, client.GrantFilter{Subject: "user:alice", Relation: "executor", Tool: "shared"}); err != nil {
		t.Fatal(err)
	}
	if n := listed(ctx, t, b); n != 0 {
		t.Errorf("after the revocation: %d tools, want 0 at once", n)
	}
	follows(t, "revocation", func(ctx context.Context) bool { return listed(ctx, t, a) == 0 })
}

// SCALE-2, GATE-2, GATE-6: each replica has an engine of its own, and all of
// them follow the database.
func TestGrantsReachReplicas(t *testing.T) {
	database := storetest.Postgres(t)
	a, b := newReplica(t, database), newReplica(t, database)
	a.ready(t)
	b.ready(t)
	bindTool(t, a, "shared")
	grantAndRevoke(t, a, b)
}

// PERM-1, GATE-1: replicas that share a SpiceDB. While it is gone nothing is
// listed, not even less; when it is back all is as it was.
func TestSpiceDBCluster(t *testing.T) {
	database, cluster := storetest.Postgres(t), startSpiceDB(t)
	settings := []string{"QUARTERMASTER_SPICEDB=" + cluster.address, "QUARTERMASTER_SPICEDB_TOKEN=" + spicedbKey, "QUARTERMASTER_SPICEDB_INSECURE=true"}
	a, b := newReplica(t, database, settings...), newReplica(t, database, settings...)
	a.ready(t)
	b.ready(t)
	bindTool(t, a, "shared")
	grantAndRevoke(t, a, b)
	if _, err := a.Grant(t.Context(), quartermaster.Grant{Subject: "user:alice", Relation: "executor", Tool: "shared"}); err != nil {
		t.Fatal(err)
	}
	follows(t, "grant", func(ctx context.Context) bool { return listed(ctx, t, b) == 1 })

	cluster.kill()
	follows(t, "loss of the cluster", func(ctx context.Context) bool { return listed(ctx, t, a) == -1 && listed(ctx, t, b) == -1 })
	cluster.start(t)
	follows(t, "return of the cluster", func(ctx context.Context) bool { return listed(ctx, t, a) == 1 && listed(ctx, t, b) == 1 })

	a.end(syscall.SIGKILL)
	c := newReplica(t, database, settings...).ready(t)
	if n := listed(t.Context(), t, c); n != 1 {
		t.Errorf("after a restart: %d tools, want 1", n)
	}
}

const spicedbKey = "for tests"

// spicedbServer is a SpiceDB process on PostgreSQL.
type spicedbServer struct {
	program, address, database string
	cmd                        *exec.Cmd
}

func startSpiceDB(t *testing.T) *spicedbServer {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	s := &spicedbServer{program: filepath.Join(cache, "quartermaster", "spicedb"), database: storetest.Postgres(t)}
	s.run(t, exec.Command("go", "build", "-o", s.program, "github.com/authzed/spicedb/cmd/spicedb"))
	s.run(t, exec.Command(s.program, "datastore", "migrate", "head", "--skip-release-check", "--datastore-engine", "postgres", "--datastore-conn-uri", s.database))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.address = l.Addr().String()
	_ = l.Close()
	s.start(t)
	t.Cleanup(s.kill)
	return s
}

func (s *spicedbServer) run(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", cmd, err, out)
	}
}

// start waits until the port is open: what comes before it answers must hold too.
func (s *spicedbServer) start(t *testing.T) {
	t.Helper()
	s.cmd = exec.Command(s.program, "serve", "--grpc-preshared-key", spicedbKey, "--grpc-addr", s.address, "--grpc-shutdown-grace-period", "0s",
		"--http-enabled=false", "--metrics-enabled=false", "--telemetry-endpoint=", "--skip-release-check", "--dispatch-cluster-enabled=false",
		"--datastore-engine", "postgres", "--datastore-conn-uri", s.database)
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(startLimit); ; time.Sleep(10 * time.Millisecond) {
		conn, err := net.Dial("tcp", s.address)
		if err == nil {
			_ = conn.Close()
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

func (s *spicedbServer) kill() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
}
