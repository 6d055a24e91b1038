package server

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"maps"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"quartermaster"
)

type secrets = quartermaster.Page[SecretView]

// SEC-3, REST-2
func TestSecrets(t *testing.T) {
	onBoth(t, func(t *testing.T, r rest) {
		var s SecretView
		r.do("PUT", "secrets/B", `{"value":"hunter2"}`).ok(201, &s)
		if s.Name != "B" || s.CreatedAt.IsZero() || s.UsedBy == nil {
			t.Errorf("created %+v", s)
		}
		a := r.do("PUT", "secrets/B", `{"value":"hunter3"}`)
		a.ok(200, &s)
		if strings.Contains(string(a.body), "hunter") || strings.Contains(string(a.body), "value") {
			t.Errorf("answer %s", a.body)
		}
		for path, body := range map[string]string{
			"9A": `{"value":"hunter2"}`, "a-b": `{"value":"hunter2"}`, "A": `{"value":""}`, "AA": `{}`, "AAA": `{"value":null}`,
			"C": `{"value":["hunter2"]}`, "D": `{"value":"hunter2","more":"hunter2"}`, "E": `{"value":"hunter2\u0000"}`, "F": `{"value":"` + strings.Repeat("hunter2", 5000) + `"}`,
		} {
			a := r.do("PUT", "secrets/"+path, body)
			a.fails(422, quartermaster.CodeInvalidRequest, "")
			if strings.Contains(string(a.body), "hunter2") {
				t.Errorf("%s: the value is repeated: %s", path, a.body)
			}
		}
		var server quartermaster.Server
		r.do("PUT", "servers/files", `{"transport":"stdio","command":"x","env":{"A":"${B}${NONE}","API_KEY":"hunter2"}}`).ok(201, &server)
		if server.Env["API_KEY"] != "${FILES_API_KEY}" || !slices.Equal(server.Warnings, []string{"env.A refers to ${NONE}, which is not set; set it with: quartermaster secrets set NONE"}) {
			t.Errorf("server %+v", server)
		}
		r.do("PUT", "servers/web", `{"transport":"http","url":"https://x.example","headers":{"X":"${B}"}}`).ok(201, nil)
		var page secrets
		r.do("GET", "secrets", nil).ok(200, &page)
		used := map[string]string{}
		for _, s := range page.Content {
			used[s.Name] = strings.Join(s.UsedBy, " ")
		}
		if want := map[string]string{"B": "files web", "FILES_API_KEY": "files"}; !maps.Equal(used, want) || page.TotalElements != 2 {
			t.Errorf("used by %v, want %v", used, want)
		}
		r.do("GET", "secrets?size=1&page=2", nil).ok(200, &page)
		if len(page.Content) != 1 || page.Content[0].Name != "FILES_API_KEY" || !page.Last {
			t.Errorf("second page %+v", page)
		}
		p := r.do("DELETE", "secrets/B", nil).fails(409, quartermaster.CodeNotDeletable, "")
		if !strings.Contains(p.Detail, "servers files, web") {
			t.Errorf("refused: %s", p.Detail)
		}
		r.do("DELETE", "servers/files", nil).ok(204, nil)
		r.do("DELETE", "secrets/FILES_API_KEY", nil).ok(204, nil)
		r.do("DELETE", "secrets/FILES_API_KEY", nil).fails(404, quartermaster.CodeNotFound, "")
		r.do("GET", "secrets/B", nil).fails(405, quartermaster.CodeNotAllowed, "") // nothing gives it back
		r.do("PUT", "/api/v1/projects/none/secrets/A", `{"value":"hunter2"}`).fails(404, quartermaster.CodeNotFound, "")

		// What is shown can be put back and changes nothing.
		r.do("GET", "servers/web", nil).ok(200, &server)
		r.do("PUT", "servers/web", server).ok(200, nil)
	})
}

// Invariant 8: whatever is asked and whatever goes wrong, no answer and no line
// of the log holds the value.
func TestNoAnswerHoldsASecret(t *testing.T) {
	const value = "hunter2"
	log := &lockedBuffer{}
	r := newLoggedRest(t, "", slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})))
	file := `{"quartermaster":"v1","servers":{
		"files":{"transport":"stdio","command":"x","env":{"API_KEY":"hunter2","AUTH":"Bearer hunter2","X":"ghp_hunter2"}},
		"web":{"transport":"http","url":"https://x.example","headers":{"Authorization":"Bearer hunter2","Cookie":"a=hunter2"}}},
		"agents":{"a":{"tools":["*"]}}}`
	for _, ask := range []struct{ method, path, body string }{
		{"PUT", "secrets/A", `{"value":"hunter2"}`},
		{"POST", "apply?dryRun=true", file},
		{"POST", "whatif", file},
		{"POST", "apply", file},
		{"POST", "apply", file},
		{"POST", "apply?dryRun=true&prune=true", file},
		{"POST", "apply?dryRun=true&prune=true", `{"quartermaster":"v1"}`},
		{"PUT", "servers/files", `{"transport":"stdio","command":"x","env":{"API_KEY":"hunter2"}}`},
		{"PUT", "servers/files", `{"transport":"stdio","command":"x","env":{"API_KEY":"hunter2","AUTH":"${A}hunter2"},"scope":"nowhere"}`},
		{"PUT", "servers/files", `{"transport":"stdio","command":"x","args":["--token","hunter2"]}`},
		{"PUT", "servers/files", `{"transport":"stdio","command":"x","env":{"X":"${A} ghp_hunter2"}}`},
		{"PUT", "servers/web", `{"transport":"http","url":"https://x.example/?api_key=hunter2"}`},
		{"PUT", "servers/web", `{"transport":"http","url":"https://x.example/","headers":{"Authorization":"Bearer hunter2\n"}}`},
		{"PUT", "servers/web", `{"transport":"http","url":"https://x.example/","headers":{"Authorization":"Bearer hunter2"}`},
		{"POST", "apply", strings.Replace(file, `"a":{"tools"`, `"a":{"maxDepth":101,"tools"`, 1)},
		{"PUT", "secrets/A", `{"value":"hunter2"`},
		{"PUT", "secrets/A", `{"value":"hunter2","value":"hunter2"}`},
		{"PUT", "secrets/A", `"hunter2"`},
		{"DELETE", "secrets/FILES_API_KEY", ""},
		{"GET", "secrets", ""},
		{"GET", "servers", ""},
		{"GET", "servers/files", ""},
		{"GET", "servers/web", ""},
		{"GET", "export", ""},
		{"GET", "explain?agent=a", ""},
		{"GET", "/openapi.json", ""},
		{"GET", "/metrics", ""},
		{"GET", "/", ""},
		{"GET", "/api/v1/status", ""},
	} {
		var body any
		if ask.body != "" {
			body = ask.body
		}
		a := r.do(ask.method, ask.path, body)
		if a.status >= 500 || a.status == 404 {
			t.Errorf("%s: %d %s", a.what, a.status, a.body)
		}
		if strings.Contains(string(a.body), value) {
			t.Errorf("%s %s: %s", a.what, ask.body, a.body)
		}
	}
	var export map[string]any
	r.do("GET", "export", nil).ok(200, &export)
	if _, ok := export["secrets"]; ok {
		t.Errorf("export %v", export)
	}
	var applied struct{ Changes []quartermaster.Difference }
	r.do("POST", "apply", export).ok(200, &applied)
	if len(applied.Changes) != 0 { // CAT-5
		t.Errorf("import of the export: %+v", applied.Changes)
	}
	if text := log.String(); strings.Contains(text, value) || !strings.Contains(text, "/secrets/A") {
		t.Errorf("log:\n%s", text)
	}
}

// Invariant 8: nor when the database gives up in between.
func TestFailureHoldsNoSecret(t *testing.T) {
	log := &lockedBuffer{}
	srv := httptest.NewServer(New(Config{Store: brokenStore{}, Log: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})), Version: "test"}))
	t.Cleanup(srv.Close)
	a := rest{t, srv.URL}.do("PUT", "secrets/A", `{"value":"hunter2"}`)
	a.fails(503, quartermaster.CodeUnavailable, "")
	if strings.Contains(string(a.body)+log.String(), "hunter2") || !strings.Contains(log.String(), "the disk is full") {
		t.Errorf("%s\n%s", a.body, log)
	}
}

// brokenStore runs every edit and then cannot write it.
type brokenStore struct{ Store }

func (brokenStore) Change(_ context.Context, _ string, edit func(*quartermaster.Draft) error) (*quartermaster.Catalog, error) {
	d := quartermaster.NewCatalog(quartermaster.Project{ID: "default"}).Draft(time.Now())
	if err := edit(d); err != nil {
		return nil, err
	}
	e := quartermaster.Errorf(quartermaster.CodeUnavailable, "try again")
	e.Cause = errors.New("the disk is full")
	return nil, e
}

// lockedBuffer is a log that requests write to at the same time.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
