package provider

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"quartermaster"
)

// UP-6: a request that was sent is not sent twice; the error says that the tool
// may have run. The connection is made anew.
func TestDiesDuringCall(t *testing.T) {
	ways := map[string]func(t *testing.T) quartermaster.Server{
		"stdio": func(t *testing.T) quartermaster.Server { return self(t, "s", "model") },
		"tcp": func(t *testing.T) quartermaster.Server {
			return remote("s", quartermaster.TransportTCP, "tcp://"+network(t, append([]string{"tcp"}, selfArgs("model")...)...))
		},
	}
	for name, server := range ways {
		t.Run(name, func(t *testing.T) {
			w := open(t, quick)
			w.put(server(t))
			w.awaitTools("s", modelTools...)
			var others sync.WaitGroup
			others.Go(func() {
				_, err := w.run("s", "hang", "")
				wantCode(t, err, quartermaster.CodeExecutionFailed, "the tool may have run")
			})
			w.await("the other call has begun", func() bool { return w.find("p", "s").shared.now.Load().line.busy() == 1 })
			_, err := w.run("s", "die", "")
			words := "closed the connection"
			if name == "stdio" {
				words = `exited with status 7; the last it wrote to stderr: "I was told to"; the tool may have run`
			}
			wantCode(t, err, quartermaster.CodeExecutionFailed, words)
			others.Wait()
			w.await("it is back", func() bool { s := w.Status("p", "s"); return s.Restarts == 1 && s.State == "ready" })
			if got := w.runText("s", "echo", `{}`); got != "{}" {
				t.Error(got)
			}
		})
	}
}

func (l *line) busy() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.calls
}

// Whatever happens to a server meanwhile: a call gets the answer that is its
// own, or an error that says what kind of failure it was.
func TestCallsDuringTrouble(t *testing.T) {
	w := open(t, quick, func(u *Upstreams) { u.timing.rest = 20 * time.Millisecond })
	w.put(self(t, "stdio", "model"))
	w.put(remote("http", quartermaster.TransportHTTP, "http://"+network(t, "http-2025-11-25")))
	w.awaitTools("stdio", modelTools...)
	w.awaitTools("http", modelTools...)
	var good, bad atomic.Int64
	var callers sync.WaitGroup
	for i := range 8 {
		callers.Go(func() {
			for j := range 100 {
				server := []string{"stdio", "http"}[j%2]
				arguments := fmt.Sprintf(`{"i":%d,"j":%d}`, i, j)
				r, err := w.run(server, "echo", arguments)
				switch quartermaster.CodeOf(err) {
				case quartermaster.CodeUnavailable, quartermaster.CodeExecutionFailed:
					bad.Add(1)
				default:
					if good.Add(1); err != nil || textOf(r) != arguments {
						t.Errorf("%s: %v, %v", arguments, r, err)
					}
				}
			}
		})
	}
	for range 5 {
		if pid := w.Status("p", "stdio").PID; pid > 1 {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		_ = w.Restart(t.Context(), "p", "http")
	}
	callers.Wait()
	if good.Load() < 100 {
		t.Errorf("%d calls went well, %d did not", good.Load(), bad.Load())
	}
}

// UP-6: an upstream that answers with the very code by which the SDK says that a
// session is over has been called all the same.
func TestAnswersLikeTheSDK(t *testing.T) {
	for _, code := range []string{"-32003", "-32004", "-32005"} {
		w := open(t, quick)
		w.put(listenRogue(t, func() *rogue {
			return &rogue{on: map[string]func(*rogue, string, string){"tools/call": func(r *rogue, id, _ string) {
				r.write(`{"jsonrpc":"2.0","id":` + id + `,"error":{"code":` + code + `,"message":"something"}}`)
			}}}
		}))
		w.awaitTools("r", "a", "b", "c")
		_, err := w.run("r", "a", "{}")
		wantCode(t, err, quartermaster.CodeExecutionFailed, "something")
	}
}

// UP-6: an HTTP server that is away fails calls at once, and nothing was sent.
func TestHTTPServerGoesAway(t *testing.T) {
	addr, kill := program(t, selfArgs("listen", "http-json")...)
	w := open(t, quick)
	w.put(byHTTP("http://" + addr))
	w.awaitTools("s", modelTools...)
	kill()
	// The first call may be written to a connection that is already dead.
	if _, err := w.run("s", "echo", "{}"); err == nil || !strings.Contains(err.Error(), "cannot be reached") {
		t.Error(err)
	}
	w.awaitState("s", stateFailed, stateResting)
	_, err := w.run("s", "echo", "{}")
	wantCode(t, err, quartermaster.CodeUnavailable, "cannot be reached")
}

// UP-2: a program sees PATH, HOME and what is configured, with the secrets.
func TestStdioEnvironment(t *testing.T) {
	t.Setenv("OURS", "not for others")
	w := open(t, quick)
	w.safe["TOKEN"] = "hunter2"
	s := self(t, "s", "model")
	s.Env = map[string]string{"API_TOKEN": "x-${TOKEN}", "PLAIN": "1"}
	w.put(s)
	w.awaitTools("s", modelTools...)
	env := w.runText("s", "env", "")
	if !strings.Contains(env, "API_TOKEN=x-hunter2") || !strings.Contains(env, "PLAIN=1") || !strings.Contains(env, "PATH=") || strings.Contains(env, "OURS") {
		t.Error(env)
	}
	s.Env["OTHER"] = "${NOT_SET}"
	w.put(s)
	got := w.awaitState("s", stateFailed, stateResting)
	if !strings.Contains(got.Reason, "env.OTHER refers to ${NOT_SET}, which is not set; set it with: quartermaster secrets set NOT_SET") {
		t.Errorf("is %+v", got)
	}
}

// A tool that a person has made for a server is called by what follows the
// server in its name.
func TestUpstreamName(t *testing.T) {
	for _, tt := range []struct {
		tool quartermaster.Tool
		want string
	}{
		{quartermaster.Tool{Name: "files__read_1a2b3c4d", Server: "files", Upstream: "read/it"}, "read/it"},
		{quartermaster.Tool{Name: "files__read", Server: "files"}, "read"},
		{quartermaster.Tool{Name: "read", Server: "files"}, "read"},
	} {
		if got := upstreamName(&tt.tool); got != tt.want {
			t.Errorf("%s is called %s", tt.tool.Name, got)
		}
	}
}
