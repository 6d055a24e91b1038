package server

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"quartermaster"
	"quartermaster/internal/provider"
	"quartermaster/internal/resolve"
	"quartermaster/internal/schema"
	"quartermaster/internal/store"
	"quartermaster/internal/store/storetest"
)

func TestMain(m *testing.M) { os.Exit(storetest.Main(m)) }

// rest is a running server and the shortest way to talk to it.
type rest struct {
	*testing.T
	url string
}

// newRest serves an empty store: the embedded one, or PostgreSQL.
func newRest(t *testing.T, database string) rest {
	t.Helper()
	return newLoggedRest(t, database, nil)
}

// newLoggedRest is newRest with a log to look at.
func newLoggedRest(t *testing.T, database string, log *slog.Logger) rest {
	t.Helper()
	s, r := newServer(t, database, log)
	s.SetReady()
	return r
}

// newServer serves what does not count as ready yet.
func newServer(t *testing.T, database string, log *slog.Logger) (*Server, rest) {
	t.Helper()
	st, err := store.Open(t.Context(), store.Options{Data: t.TempDir(), Database: database, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	resolver := resolve.New(st, nil, nil)
	s := New(Config{
		Store:       st,
		Resolver:    resolver,
		Advisor:     resolver,
		Providers:   map[quartermaster.ProviderKind]quartermaster.Provider{quartermaster.ProviderNative: provider.Native{}},
		Upstreams:   still{},
		Historian:   st,
		CheckSchema: schema.Check,
		Version:     "test",
		Log:         log,
	})
	srv := httptest.NewServer(s)
	t.Cleanup(srv.Close)
	return s, rest{t, srv.URL}
}

// still are upstream servers of which none is connected.
type still struct{}

func (still) Status(string, string) quartermaster.ServerStatus {
	return quartermaster.ServerStatus{Health: "red", State: "stopped", Reason: "nothing connects to it here"}
}

func (still) Stderr(_, server string) []string { return []string{server + " has said this"} }

func (still) Restart(context.Context, string, string) error {
	return quartermaster.Errorf(quartermaster.CodeUnavailable, "it does not start")
}

// onBoth runs a test on both databases.
func onBoth(t *testing.T, test func(*testing.T, rest)) {
	t.Run("sqlite", func(t *testing.T) { test(t, newRest(t, "")) })
	t.Run("postgres", func(t *testing.T) { test(t, newRest(t, storetest.Postgres(t))) })
}

// answer is what came back.
type answer struct {
	*testing.T
	what   string
	status int
	header http.Header
	body   []byte
}

// do sends body (a string as it is, anything else as JSON) to a path below the
// default project, or to one that starts with /.
func (r rest) do(method, path string, body any) answer {
	r.Helper()
	if !strings.HasPrefix(path, "/") {
		path = "/api/v1/projects/default/" + path
	}
	var reader io.Reader
	switch b := body.(type) {
	case nil:
	case string:
		reader = strings.NewReader(b)
	default:
		data, err := json.Marshal(b)
		if err != nil {
			r.Fatal(err)
		}
		reader = bytes.NewReader(data)
	}
	req, err := http.NewRequestWithContext(r.Context(), method, r.url+path, reader)
	if err != nil {
		r.Fatal(err)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	return r.send(req)
}

func (r rest) send(req *http.Request) answer {
	r.Helper()
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		r.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		r.Fatal(err)
	}
	return answer{r.T, req.Method + " " + req.URL.RequestURI(), resp.StatusCode, resp.Header, data}
}

// ok reads the body of a success with this status into v, unless v is nil.
func (a answer) ok(status int, v any) {
	a.Helper()
	if a.status != status {
		a.Fatalf("%s: %d %s, want %d", a.what, a.status, a.body, status)
	}
	if v != nil {
		if err := json.Unmarshal(a.body, v); err != nil {
			a.Fatalf("%s: %v in %s", a.what, err, a.body)
		}
	}
}

// fails checks that the answer is a problem document with this status, code
// and a fault at location ("": none needed).
func (a answer) fails(status int, code quartermaster.Code, location string) Problem {
	a.Helper()
	var p Problem
	if a.status != status || a.header.Get("Content-Type") != "application/problem+json" {
		a.Fatalf("%s: %d %s %s, want %d", a.what, a.status, a.header.Get("Content-Type"), a.body, status)
	}
	if err := json.Unmarshal(a.body, &p); err != nil {
		a.Fatalf("%s: %v in %s", a.what, err, a.body)
	}
	if p.Code != code || p.Status != status || p.Detail == "" || p.Title == "" {
		a.Errorf("%s: %s, want code %s", a.what, a.body, code)
	}
	if location != "" && !strings.Contains(fmt.Sprint(p.Errors), "{"+location+" ") {
		a.Errorf("%s: %s, want a fault at %s", a.what, a.body, location)
	}
	return p
}

// tool makes a tool and returns it.
func (r rest) tool(name string, fields ...any) quartermaster.Tool {
	r.Helper()
	body := map[string]any{"name": name, "provider": "native", "config": map[string]any{"builtin": "echo"}}
	for i := 0; i < len(fields); i += 2 {
		body[fields[i].(string)] = fields[i+1]
	}
	var t quartermaster.Tool
	r.do("POST", "tools", body).ok(201, &t)
	return t
}

type page = quartermaster.Page[quartermaster.Tool]

func (r rest) page(path string) page {
	r.Helper()
	var p page
	r.do("GET", path, nil).ok(200, &p)
	return p
}

func names(p page) string {
	all := make([]string, len(p.Content))
	for i, t := range p.Content {
		all[i] = t.Name
	}
	return strings.Join(all, " ")
}
