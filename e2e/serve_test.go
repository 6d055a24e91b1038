package e2e

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

const (
	startLimit = 30 * time.Second
	stopLimit  = 5 * time.Second
)

// running is the server of one script.
type running struct {
	cmd    *exec.Cmd
	exited chan struct{}
	err    error // of cmd, once it has exited
}

type runningKey struct{}

func of(ts *testscript.TestScript) *running { return ts.Value(runningKey{}).(*running) }

func (r *running) kill() {
	if r.cmd != nil {
		_ = r.cmd.Process.Kill()
		<-r.exited
		r.cmd = nil
	}
}

// serve [FLAG...] starts a server on a free port, with its data in $WORK/data
// and its log in $WORK/serve.log, and waits until it is ready. From then on
// commands of the script speak to it.
func serve(ts *testscript.TestScript, neg bool, args []string) {
	r := of(ts)
	if neg || r.cmd != nil {
		ts.Fatalf("usage: serve [FLAG...], once at a time")
	}
	address := workFile(ts, "address")
	_ = os.Remove(address)
	log, err := os.OpenFile(workFile(ts, "serve.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	ts.Check(err)
	defer func() { _ = log.Close() }()

	args = append([]string{"serve", "--listen", "127.0.0.1:0", "--data", workFile(ts, "data"), "--address-file", address}, args...)
	r.start(ts, log, args)
	limit := time.After(startLimit)
	for {
		if url, ok := readWhenThere(address); ok {
			ts.Setenv("QUARTERMASTER_SERVER", url)
			return
		}
		select {
		case <-r.exited:
			r.cmd = nil
			ts.Fatalf("the server ended before it was ready: %v\n%s", r.err, ts.ReadFile("serve.log"))
		case <-limit:
			r.kill()
			ts.Fatalf("the server is not ready after %v\n%s", startLimit, ts.ReadFile("serve.log"))
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func (r *running) start(ts *testscript.TestScript, log io.Writer, args []string) {
	r.cmd = exec.Command(filepath.Join(bin, "quartermaster"), args...)
	r.cmd.Dir = ts.Getenv("WORK")
	r.cmd.Stdout, r.cmd.Stderr = log, log
	r.cmd.Env = []string{"PATH=" + ts.Getenv("PATH"), "HOME=" + ts.Getenv("HOME")}
	ts.Check(r.cmd.Start())
	exited := make(chan struct{})
	r.exited = exited
	cmd := r.cmd
	go func() {
		r.err = cmd.Wait()
		close(exited)
	}()
}

var signals = map[string]syscall.Signal{"TERM": syscall.SIGTERM, "INT": syscall.SIGINT, "KILL": syscall.SIGKILL}

// halt [SIGNAL] ends the server: by TERM (the default) or INT it must end in
// time and with code 0.
func halt(ts *testscript.TestScript, neg bool, args []string) {
	r := of(ts)
	name := "TERM"
	if len(args) == 1 {
		name = args[0]
	}
	signal, ok := signals[name]
	if neg || len(args) > 1 || !ok || r.cmd == nil {
		ts.Fatalf("usage: halt [TERM|INT|KILL], after serve")
	}
	ts.Check(r.cmd.Process.Signal(signal))
	select {
	case <-r.exited:
	case <-time.After(stopLimit):
		r.kill()
		ts.Fatalf("the server did not end within %v of %s\n%s", stopLimit, name, ts.ReadFile("serve.log"))
	}
	r.cmd = nil
	if signal != syscall.SIGKILL && r.err != nil {
		ts.Fatalf("the server ended with %v\n%s", r.err, ts.ReadFile("serve.log"))
	}
}
