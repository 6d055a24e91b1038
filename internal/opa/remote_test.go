package opa

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/open-policy-agent/opa/v1/version"

	"quartermaster"
)

// opaProgram builds the server program of OPA itself, once.
var opaProgram = sync.OnceValues(func() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	program := filepath.Join(cache, "quartermaster", "opa-v"+version.Version)
	if _, err := os.Stat(program); err == nil {
		return program, nil
	}
	if err := os.MkdirAll(filepath.Dir(program), 0o755); err != nil {
		return "", err
	}
	half := fmt.Sprintf("%s.%d", program, os.Getpid())
	if out, err := exec.CommandContext(context.Background(), "go", "build", "-o", half, "github.com/open-policy-agent/opa").CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return program, os.Rename(half, program)
})

// opaServer is a real OPA in a process of its own.
type opaServer struct {
	address string
	process *exec.Cmd
}

// startOPA starts one with policies in files.
func startOPA(t *testing.T, address string, files ...string) *opaServer {
	t.Helper()
	program, err := opaProgram()
	if err != nil {
		t.Fatal(err)
	}
	s := &opaServer{address: address}
	arguments := append([]string{
		"run", "--server", "--addr", address, "--skip-version-check",
		"--authentication=token", "--authorization=basic", authorization(t),
	}, files...)
	s.process = exec.CommandContext(context.Background(), program, arguments...)
	if err := s.process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.kill)
	await(t, "OPA is up", func() bool {
		request, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+"/health", nil)
		request.Header.Set("Authorization", "Bearer secret")
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return false
		}
		defer response.Body.Close()
		return response.StatusCode == http.StatusOK
	})
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	return s
}

// authorization lets in whoever has the token.
func authorization(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "authz.rego")
	if err := os.WriteFile(file, []byte("package system.authz\n\ndefault allow := false\n\nallow if input.identity == \"secret\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func (s *opaServer) kill() {
	if s.process != nil {
		_ = s.process.Process.Kill()
		_ = s.process.Wait()
		s.process = nil
	}
}

func (s *opaServer) put(t *testing.T, path, content string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "http://"+s.address+path, strings.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer secret")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if body, _ := io.ReadAll(response.Body); response.StatusCode >= 300 {
		t.Fatalf("%s: %s", response.Status, body)
	}
}

func freeAddress(t *testing.T) string {
	t.Helper()
	var config net.ListenConfig
	l, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// POL-1, GATE-7: a remote OPA answers the same questions: with a set rule,
// without one, about one tool and about many, with arguments and without.
func TestRemote(t *testing.T) {
	s := startOPA(t, freeAddress(t))
	e := open(t, Options{URL: "http://" + s.address + "/", Token: "secret", Timeout: 10 * time.Second})
	c := catalogOf(t, []string{"a", "b", "c"}, nil)
	one := c.Tools()[:1]
	const head = "package quartermaster.tools\n\n"
	for name, tt := range map[string]struct{ policy, list, one, call string }{
		"a rule":            {"allow if { input.tool_name != \"b\"; input.user_id == \"alice\"; input.phase }", "a c", "a", "a c"},
		"of the arguments":  {"allow if not input.arguments.x", "a b c", "a", ""},
		"a set":             {"allowed contains t if { some t in input.tools; t != \"a\" }\n\nallow := true", "b c", "", "b c"},
		"a set and a rule":  {"allowed := {\"a\", \"b\"}\n\ndefault allow := false\n\nallow if { input.tool_name == \"b\"; input.arguments.x == 1 }", "a b", "a", "b"},
		"a set alone":       {"allowed := {\"a\", \"b\"}", "a b", "a", ""},
		"nothing":           {"other := 1", "", "", ""},
		"no boolean":        {"allow := \"true\"", "", "", ""},
		"the whole input":   {"allow if input == object.union(object.remove(input, [\"tools\", \"question\"]), {\"action\": \"execute\", \"context\": {\"tenant_id\": \"acme\"}, \"depth\": 0, \"groups\": [\"default\"], \"state\": \"undefined\", \"agent_id\": \"coder\"})", "a b c", "a", "a b c"},
		"an error of a set": {"allowed contains t if { some t in input.tools; to_number(t) == 1 }", "!", "!", "!"},
	} {
		s.put(t, "/v1/policies/p", head+tt.policy)
		for _, ask := range []struct {
			question quartermaster.Question
			tools    []*quartermaster.Tool
			want     string
		}{{quartermaster.Question{}, c.Tools(), tt.list}, {quartermaster.Question{}, one, tt.one}, {call(`{"x":1}`), c.Tools(), tt.call}} {
			names, err := passing(t.Context(), e, c, caller("alice"), ask.question, ask.tools)
			got := strings.Join(names, " ")
			if err != nil && quartermaster.CodeOf(err) == quartermaster.CodeUnavailable {
				got = "!"
			}
			if got != ask.want {
				t.Errorf("%s, %s: %q (%v), want %q", name, ask.question.Arguments, got, err, ask.want)
			}
		}
		if _, err := e.Judge(t.Context(), c, caller("alice"), quartermaster.Question{}, nil); (err != nil) != (tt.list == "!") {
			t.Errorf("%s: asked about none: %v", name, err)
		}
	}
	s.put(t, "/v1/policies/p", head+"allow if input.tool_name == \"a\"")
	for tool, want := range map[string]string{"a": "allows", "b": "refuses"} {
		allowed, why := whyOf(t, e, c, quartermaster.Question{}, tool)
		if why.Reason != "house policy: the OPA at "+s.address+" "+want+" it" || allowed == (why.Remedy != "") {
			t.Errorf("%+v", why)
		}
	}
	own := withPolicy(t, c, "mine", head+"allow if input.tool_name == \"b\"")
	if got := judged(t, e, own, caller("alice"), quartermaster.Question{}); got != "" {
		t.Errorf("a project widened the house: %q", got)
	}
	if st := e.Status(); st.Trouble != "" || !strings.Contains(st.Detail, "house policy: the OPA at "+s.address) {
		t.Errorf("%+v", st)
	}
	wrong := open(t, Options{URL: "http://" + s.address, Token: "another"})
	if _, err := wrong.Judge(t.Context(), c, caller("alice"), quartermaster.Question{}, one); quartermaster.CodeOf(err) != quartermaster.CodeUnavailable || !strings.Contains(wrong.Status().Trouble, "401") {
		t.Error(err, wrong.Status().Trouble)
	}
}

// GATE-1: an OPA that is killed while it is asked fails the requests, never
// answers with less or more, and is trusted again when it is back.
func TestRemoteRestarted(t *testing.T) {
	address := freeAddress(t)
	c := catalogOf(t, []string{"a", "b", "c"}, nil)
	e := open(t, Options{URL: "http://" + address, Token: "secret", Timeout: 5 * time.Second})
	var answered, failed atomic.Int64
	var askers sync.WaitGroup
	ctx, stop := context.WithCancel(t.Context())
	defer askers.Wait()
	defer stop()
	for i := range 4 {
		askers.Go(func() {
			for ctx.Err() == nil {
				question := quartermaster.Question{}
				if i%2 == 0 {
					question = call(`{}`)
				}
				names, err := passing(ctx, e, c, caller("alice"), question, c.Tools())
				switch {
				case err == nil && strings.Join(names, " ") == "a b":
					answered.Add(1)
				case quartermaster.CodeOf(err) == quartermaster.CodeUnavailable:
					failed.Add(1)
				default:
					t.Errorf("%q, %v", names, err)
				}
			}
		})
	}
	dir := t.TempDir()
	write(t, dir, "p.rego", "package quartermaster.tools\n\nallow if input.tool_name in [\"a\", \"b\"]")
	for range 2 {
		n := failed.Load()
		await(t, "requests fail", func() bool { return failed.Load() > n && e.Status().Trouble != "" })
		s := startOPA(t, address, filepath.Join(dir, "p.rego"))
		n = answered.Load()
		await(t, "requests are answered", func() bool { return answered.Load() > n+20 && e.Status().Trouble == "" })
		s.kill()
	}
}

// GATE-1: an OPA that lies, in whatever way, fails the request or refuses.
func TestRemoteLies(t *testing.T) {
	type answers struct{ data, each string } // to the set, and to the rule; "": as if it were not defined
	var lie atomic.Pointer[answers]
	hang := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		answer := lie.Load().each
		if strings.HasSuffix(r.URL.Path, "/allowed") {
			answer = lie.Load().data
		}
		switch {
		case answer == "":
			answer = "{}"
		case answer == "hang":
			<-hang
		case answer == "elsewhere":
			http.Redirect(w, r, "/v1/data/other", http.StatusTemporaryRedirect)
			return
		case answer == "cut":
			w.Header().Set("Content-Length", "100")
			answer = `{"result": ["a"`
		case strings.HasPrefix(answer, "status "):
			var code int
			_, _ = fmt.Sscan(answer[7:], &code)
			w.WriteHeader(code)
			answer = `{"result": ["a"]}`
		}
		_, _ = io.WriteString(w, answer)
	}))
	defer server.Close()
	defer close(hang)
	patient := open(t, Options{URL: server.URL, Timeout: time.Minute})
	hasty := open(t, Options{URL: server.URL, Timeout: 100 * time.Millisecond})
	c := catalogOf(t, []string{"a", "b"}, nil)
	for _, tt := range []struct {
		answers
		want string // "!": unavailable
	}{
		{answers{data: `{"result": ["a"]}`}, "a"},
		{answers{data: `{"result": ["a", "a", "stranger"]}`}, "a"},
		{answers{data: `{"result": []}`}, ""},
		{answers{each: `{"result": true}`}, "a b"},
		{answers{each: `{"result": false}`}, ""},
		{answers{each: `{"result": [true]}`}, ""},
		{answers{each: `{"result": "true"}`}, ""},
		{answers{}, ""},
		{answers{each: `[]`}, "!"},
		{answers{each: "status 500"}, "!"},
		{answers{each: "cut"}, "!"},
		{answers{each: "hang"}, "!"},
		{answers{data: `{"result": true}`}, "!"},
		{answers{data: `{"result": {"a": true}}`}, "!"},
		{answers{data: `{"result": [1]}`}, "!"},
		{answers{data: `{"result": "a"}`}, "!"},
		{answers{data: `[]`}, "!"},
		{answers{data: `null and void`}, "!"},
		{answers{data: `{"result": ["a"]} {"result": ["b"]}`}, "!"},
		{answers{data: "status 500"}, "!"},
		{answers{data: "status 404"}, "!"},
		{answers{data: "status 204"}, "!"},
		{answers{data: "elsewhere"}, "!"},
		{answers{data: "cut"}, "!"},
		{answers{data: "hang"}, "!"},
		{answers{data: strings.Repeat(" ", answerLimit+1)}, "!"},
	} {
		lie.Store(&tt.answers)
		e := patient
		if tt.data == "hang" || tt.each == "hang" {
			e = hasty
		}
		names, err := passing(t.Context(), e, c, caller("alice"), quartermaster.Question{}, c.Tools())
		got := strings.Join(names, " ")
		if quartermaster.CodeOf(err) == quartermaster.CodeUnavailable {
			got = "!"
		}
		if got != tt.want || (e.Status().Trouble != "") != (tt.want == "!") {
			t.Errorf("%.80s %.80s: %q (%v), want %q; trouble: %s", tt.data, tt.each, got, err, tt.want, e.Status().Trouble)
		}
		if err != nil && strings.Contains(err.Error(), "127.0.0.1") {
			t.Errorf("an agent hears where the OPA is: %v", err)
		}
	}
}

// SEC-3: the token goes to the OPA in its header and nowhere else.
func TestRemoteToken(t *testing.T) {
	var got atomic.Pointer[string]
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		all := r.Header.Get("Authorization") + " " + r.URL.String()
		if bytes.Contains(body, []byte("secret")) || !json.Valid(body) {
			all += string(body)
		}
		got.Store(&all)
		w.WriteHeader(http.StatusForbidden)
	}))
	defer server.Close()
	e := open(t, Options{URL: server.URL, Token: "secret"})
	c := catalogOf(t, []string{"a"}, nil)
	_, err := e.Judge(t.Context(), c, caller("alice"), quartermaster.Question{}, c.Tools())
	if err == nil || *got.Load() != "Bearer secret /v1/data/quartermaster/tools/allowed?strict-builtin-errors=true" {
		t.Error(err, *got.Load())
	}
	if strings.Contains(fmt.Sprint(err, e.Status()), "secret") {
		t.Error(err, e.Status())
	}
}
