package provider

import (
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"quartermaster"
)

// everything builds the SDK's own server for conformance tests, once.
var everything = sync.OnceValues(func() (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "quartermaster-test", "everything-server-v1.8.0")
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	temporary := path + "." + time.Now().Format("150405.000000")
	out, err := exec.Command("go", "build", "-o", temporary, "github.com/modelcontextprotocol/go-sdk/conformance/everything-server").CombinedOutput()
	if err != nil {
		os.Stderr.Write(out)
		return "", err
	}
	return path, os.Rename(temporary, path)
})

// everythingHTTP starts it on a port and waits until it answers.
func everythingHTTP(t testing.TB, path string, args ...string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	_ = l.Close()
	c := exec.Command(path, append([]string{"-http", addr}, args...)...)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	})
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		answer, err := http.Get("http://" + addr)
		if err == nil {
			_ = answer.Body.Close()
			http.DefaultClient.CloseIdleConnections()
			return addr
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

// UP-1: a server that others have written works over every transport, in both
// eras.
func TestEverythingServer(t *testing.T) {
	path, err := everything()
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		server quartermaster.Server
		era    string
	}{
		"stdio":    {quartermaster.Server{Transport: quartermaster.TransportStdio, Command: path}, "2026-07-28"},
		"http-new": {remote("", quartermaster.TransportHTTP, "http://"+everythingHTTP(t, path)+"/mcp"), "2026-07-28"},
		"http-old": {remote("", quartermaster.TransportHTTP, "http://"+everythingHTTP(t, path, "-stateless=false")+"/mcp"), "2025-11-25"},
		"tcp":      {remote("", quartermaster.TransportTCP, "tcp://"+network(t, "tcp", path)), "2026-07-28"},
		"ws":       {remote("", quartermaster.TransportWS, "ws://"+network(t, "ws", path)), "2026-07-28"},
	} {
		t.Run(name, func(t *testing.T) {
			w := open(t, quick)
			tt.server.Name = name
			w.put(tt.server)
			w.await("its tools", func() bool { return len(w.tools(name)) >= 25 })
			if s := w.Status("p", name); s.Era != tt.era {
				t.Errorf("is %+v", s)
			}
			if got := w.runText(name, "test_simple_text", `{}`); !strings.Contains(got, "simple text") {
				t.Errorf("answers %q", got)
			}
			if r, err := w.run(name, "test_error_handling", `{}`); err != nil || !r.IsError {
				t.Errorf("answers %v, %v", r, err)
			}
			if r, err := w.run(name, "test_multiple_content_types", `{}`); err != nil || len(r.Content) != 3 {
				t.Errorf("answers %v, %v", r, err)
			}
			heard := make(chan progress, 10)
			if _, err := w.call(t.Context(), caller, tool(name, "test_tool_with_progress"), []byte(`{}`), func(p progress) { heard <- p }); err != nil {
				t.Error(err)
			}
			if p := <-heard; p.Total != 100 {
				t.Errorf("heard %+v", p)
			}
			// Its schema asks for headers, which only a newer client sends.
			if r, err := w.run(name, "test_x_mcp_header", `{"region":"eu","query":"q"}`); err != nil || r.IsError {
				t.Errorf("answers %v, %v", r, err)
			}
			if tt.era == "2026-07-28" {
				_, err := w.run(name, "test_input_required_result_elicitation", `{}`)
				wantCode(t, err, quartermaster.CodeExecutionFailed, "asks for input")
			}
		})
	}
}
