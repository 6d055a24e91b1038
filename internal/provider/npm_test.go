package provider

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"quartermaster"
)

// npm is where npm's official servers are installed.
func npm(t *testing.T, server string) string {
	t.Helper()
	root := os.Getenv("QUARTERMASTER_NPM")
	if root == "" {
		t.Skip("QUARTERMASTER_NPM does not say where they are installed")
	}
	return filepath.Join(root, "node_modules/@modelcontextprotocol", server, "dist/index.js")
}

// UP-1: npm's official servers work as processes.
func TestNPMServers(t *testing.T) {
	dir := t.TempDir()
	for name, tt := range map[string]struct {
		args                  []string
		tool, arguments, want string
	}{
		"everything": {[]string{npm(t, "server-everything")}, "echo", `{"message":"hi"}`, "hi"},
		"filesystem": {[]string{npm(t, "server-filesystem"), dir}, "list_allowed_directories", `{}`, filepath.Base(dir)},
		"memory":     {[]string{npm(t, "server-memory")}, "read_graph", `{}`, "entities"},
	} {
		t.Run(name, func(t *testing.T) {
			w := open(t, quick)
			s := quartermaster.Server{Name: name, Transport: quartermaster.TransportStdio, Command: "node", Args: tt.args}
			s.Env = map[string]string{"MEMORY_FILE_PATH": filepath.Join(dir, "memory.json")}
			s.Timeouts.Startup = quartermaster.Duration(20 * time.Second)
			w.put(s)
			w.awaitState(name, stateReady)
			if got := w.runText(name, tt.tool, tt.arguments); !strings.Contains(got, tt.want) {
				t.Errorf("answers %q", got)
			}
		})
	}
}

// UP-1: npm's everything server works over the network.
func TestNPMServersOverHTTP(t *testing.T) {
	index := npm(t, "server-everything")
	for name, tt := range map[string]struct {
		transport quartermaster.Transport
		path      string
	}{
		"streamableHttp": {quartermaster.TransportHTTP, "/mcp"},
		"sse":            {quartermaster.TransportSSE, "/sse"},
	} {
		t.Run(name, func(t *testing.T) {
			w := open(t, quick)
			w.put(remote(name, tt.transport, "http://"+startNode(t, index, name)+tt.path))
			w.awaitState(name, stateReady)
			if got := w.runText(name, "echo", `{"message":"hi"}`); !strings.Contains(got, "hi") {
				t.Errorf("answers %q", got)
			}
		})
	}
}

// startNode starts a server and waits until it listens.
func startNode(t *testing.T, args ...string) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr = l.Addr().String()
	_ = l.Close()
	_, port, _ := net.SplitHostPort(addr)
	c := exec.Command("node", args...)
	c.Env = append(os.Environ(), "PORT="+port)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	})
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if conn, err := net.Dial("tcp", addr); err == nil {
			_ = conn.Close()
			return addr
		}
	}
	t.Fatal("it does not listen")
	return ""
}
