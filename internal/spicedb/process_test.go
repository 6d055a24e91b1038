package spicedb

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"

	"quartermaster/internal/store/storetest"
)

const presharedKey = "for tests"

// buildServer builds SpiceDB's own program, of the version that is embedded.
var buildServer = sync.OnceValues(func() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	program := filepath.Join(cache, "quartermaster", "spicedb")
	out, err := exec.Command("go", "build", "-o", program, "github.com/authzed/spicedb/cmd/spicedb").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("go build spicedb: %w\n%s", err, out)
	}
	return program, nil
})

// process is a SpiceDB server.
type process struct {
	address string
	args    []string
	cmd     *exec.Cmd
}

// serve starts a server; further arguments choose its datastore.
func serve(args ...string) (*process, error) {
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	s := &process{address: address, args: append([]string{
		"serve", "--grpc-preshared-key", presharedKey, "--grpc-addr", address, "--grpc-shutdown-grace-period", "0s",
		"--http-enabled=false", "--metrics-enabled=false", "--telemetry-endpoint=", "--skip-release-check", "--log-level", "error",
		"--dispatch-cluster-enabled=false",
	}, args...)}
	return s, s.start()
}

func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}

func (s *process) start() error {
	program, err := buildServer()
	if err != nil {
		return err
	}
	s.cmd = exec.Command(program, s.args...)
	s.cmd.Stderr = os.Stderr
	s.cmd.SysProcAttr = &syscall.SysProcAttr{}
	// Where the system can, it ends the server if the tests crash.
	if f := reflect.ValueOf(s.cmd.SysProcAttr).Elem().FieldByName("Pdeathsig"); f.IsValid() {
		f.Set(reflect.ValueOf(syscall.SIGKILL))
	}
	if err := s.cmd.Start(); err != nil {
		return err
	}
	return s.awaitReady()
}

func (s *process) awaitReady() error {
	transport := insecure.NewCredentials()
	if slices.Contains(s.args, "--grpc-tls-cert-path") {
		transport = credentials.NewTLS(&tls.Config{InsecureSkipVerify: true})
	}
	conn, err := grpc.NewClient(s.address, grpc.WithTransportCredentials(transport))
	if err != nil {
		return err
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	for {
		r, err := grpc_health_v1.NewHealthClient(conn).Check(ctx, &grpc_health_v1.HealthCheckRequest{})
		if err == nil && r.GetStatus() == grpc_health_v1.HealthCheckResponse_SERVING {
			return nil
		}
		if ctx.Err() != nil {
			s.kill()
			return fmt.Errorf("spicedb does not answer: %w", err)
		}
		pause(ctx, 20*time.Millisecond)
	}
}

// kill ends the process as a crash would.
func (s *process) kill() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
}

func (s *process) options() Options {
	return Options{Endpoint: s.address, Token: presharedKey, Insecure: true}
}

// own starts a server for one test.
func own(t testing.TB, args ...string) *process {
	t.Helper()
	s, err := serve(args...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.kill)
	return s
}

// onPostgres makes a database of a PostgreSQL server ready for SpiceDB and
// returns the arguments that use it.
func onPostgres(t testing.TB) []string {
	t.Helper()
	args := []string{"--datastore-engine", "postgres", "--datastore-conn-uri", storetest.Postgres(t)}
	program, err := buildServer()
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(program, append([]string{"datastore", "migrate", "head", "--log-level", "error", "--skip-release-check"}, args...)...).CombinedOutput(); err != nil {
		t.Fatalf("migrate: %v\n%s", err, out)
	}
	return args
}
