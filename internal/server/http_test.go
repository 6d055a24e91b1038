package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"quartermaster"
)

// EXE-2: every code has a status, and every problem says its code.
func TestEveryCodeHasAStatus(t *testing.T) {
	s := &Server{}
	for _, code := range quartermaster.Codes {
		p := s.problem(t.Context(), quartermaster.Errorf(code, "why"))
		if p.Status < 400 || p.Code != code || p.Detail != "why" || p.Title == "" {
			t.Errorf("%s: %+v", code, p)
		}
	}
	if len(statuses) != len(quartermaster.Codes) {
		t.Errorf("%d statuses for %d codes", len(statuses), len(quartermaster.Codes))
	}
	e := quartermaster.Errorf(quartermaster.CodeBudgetExhausted, "spent")
	e.Details = map[string]any{"limit": 100}
	body, err := json.Marshal(s.problem(t.Context(), e))
	if err != nil || !strings.Contains(string(body), `"limit":100`) || !json.Valid(body) {
		t.Errorf("%s %v", body, err)
	}
}

// REST-1: every error is a problem document, also where no route is.
func TestProblems(t *testing.T) {
	r := newRest(t, "")
	r.do("GET", "/api/v1/nothing", nil).fails(404, quartermaster.CodeNotFound, "")
	r.do("GET", "/api/v1/projects/none", nil).fails(404, quartermaster.CodeNotFound, "")
	r.do("GET", "/api/v1/projects/none/tools", nil).fails(404, quartermaster.CodeNotFound, "")
	r.do("PUT", "/api/v1/projects/none/bindings", `{"agentId":"a","toolIds":[]}`).fails(404, quartermaster.CodeNotFound, "")
	a := r.do("DELETE", "tools", nil)
	a.fails(405, quartermaster.CodeNotAllowed, "")
	if allow := a.header.Get("Allow"); !strings.Contains(allow, "GET") || !strings.Contains(allow, "POST") {
		t.Errorf("Allow: %q", allow)
	}
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, r.url+"/api/v1/projects/default/tools", strings.NewReader("name=x"))
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.send(req).fails(415, quartermaster.CodeUnsupportedMedia, "")
	r.do("POST", "tools", `{"name":"x","description":"`+strings.Repeat("x", 65*mebibyte)+`"}`).fails(413, quartermaster.CodeTooLarge, "")
}

// SEC-3: no wrong value is repeated in an error, it may be a secret.
func TestErrorsDoNotRepeatValues(t *testing.T) {
	r := newRest(t, "")
	for _, body := range []string{
		`{"transport":"http","url":"http://x","headers":{"Authorization":["hunter2"]}}`,
		`{"transport":"http","url":"http://x","headers":{"Authorization":"hunter2\n"}}`,
		`{"transport":"http","url":"http://x","headers":"hunter2"}`,
		`{"transport":"http","url":"http://u:hunter2@x"}`,
		`{"transport":"stdio","command":"x","env":{"K":"hunter2\u0000"}}`,
		`{"transport":"stdio","env":{"K":"hunter2"},`,
	} {
		a := r.do("PUT", "servers/s", body)
		if a.status < 400 || strings.Contains(string(a.body), "hunter2") {
			t.Errorf("%s: %d %s", body, a.status, a.body)
		}
	}
}

// SEC-3: a web page of another site neither calls the server nor reads it by
// rebinding its name.
func TestOrigin(t *testing.T) {
	r := newRest(t, "")
	send := func(method, host string, header ...string) answer {
		req, err := http.NewRequestWithContext(t.Context(), method, r.url+"/api/v1/projects/default/tools", strings.NewReader(`{"name":"x"}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		for i := 0; i < len(header); i += 2 {
			req.Header.Set(header[i], header[i+1])
		}
		if host != "" {
			req.Host = host
		}
		return r.send(req)
	}
	for _, host := range []string{"evil.example", "evil.example:7070", "127.0.0.1.evil.example", "localhost.evil.example:1", "10.0.0.1", "[fe80::1]:80", "0.0.0.0"} {
		send("GET", host).fails(403, quartermaster.CodeForbiddenOrigin, "")
	}
	for _, host := range []string{"localhost", "localhost:7070", "127.0.0.1:1", "127.1.2.3", "[::1]:7070", "[::1]"} {
		send("GET", host).ok(200, nil)
	}
	send("POST", "", "Sec-Fetch-Site", "cross-site").fails(403, quartermaster.CodeForbiddenOrigin, "")
	send("POST", "", "Origin", "https://evil.example").fails(403, quartermaster.CodeForbiddenOrigin, "")
	send("POST", "", "Origin", "null").fails(403, quartermaster.CodeForbiddenOrigin, "")
	if p := r.page("tools"); names(p) != builtinNames {
		t.Errorf("created: %s", names(p))
	}
	send("POST", "", "Origin", r.url).ok(201, nil)
}

// REST-1: OpenAPI 3.1 is served, complete, and so is a page that needs nothing
// from elsewhere.
func TestDocuments(t *testing.T) {
	r := newRest(t, "")
	var doc struct {
		OpenAPI string `json:"openapi"`
		Paths   map[string]map[string]struct {
			OperationID string `json:"operationId"`
			Summary     string `json:"summary"`
		} `json:"paths"`
	}
	r.do("GET", "/openapi.json", nil).ok(200, &doc)
	if !strings.HasPrefix(doc.OpenAPI, "3.1") || len(doc.Paths) < 12 {
		t.Errorf("openapi %s with %d paths", doc.OpenAPI, len(doc.Paths))
	}
	ids := map[string]string{}
	for path, operations := range doc.Paths {
		for method, op := range operations {
			if op.Summary == "" || op.OperationID == "" || ids[op.OperationID] != "" {
				t.Errorf("%s %s: id %q is also %s", method, path, op.OperationID, ids[op.OperationID])
			}
			ids[op.OperationID] = path
		}
	}
	page := r.do("GET", "/docs/", nil)
	page.ok(200, nil)
	if m := regexp.MustCompile(`(src|href|url)=?\W*(https?:)?//[^"]*`).Find(page.body); m != nil {
		t.Errorf("the page needs %s", m)
	}
	for _, path := range []string{"/", "/healthz", "/readyz", "/metrics", "/api/v1/status", "/docs"} {
		r.do("GET", path, nil).ok(200, nil)
	}
	home := r.do("GET", "/", nil)
	if !strings.Contains(string(home.body), "time_now") {
		t.Errorf("the first page is empty: %s", home.body)
	}
	if m := r.do("GET", "/metrics", nil); !strings.Contains(string(m.body), `quartermaster_http_requests_total{method="GET",route="/openapi.json",status="200"}`) {
		t.Errorf("metrics: %s", m.body)
	}
}

// WF-4: the first page tells the groups in effect, and no more than a page
// holds.
func TestHome(t *testing.T) {
	r := newRest(t, "")
	r.do("PUT", "servers/files", `{"transport":"stdio","command":"x","groups":["vault"]}`).ok(201, nil)
	r.tool("files__read", "provider", "mcp", "server", "files", "config", nil)
	r.tool("shut", "groups", []string{})
	file := `{"quartermaster":"v1","tools":{`
	for i := range 250 {
		file += fmt.Sprintf(`"z%03d":{},`, i)
	}
	r.do("POST", "apply", strings.TrimSuffix(file, ",")+`}}`).ok(200, nil)
	home := string(r.do("GET", "/", nil).body)
	row := func(tool string) string {
		_, rest, _ := strings.Cut(home, "<code>"+tool+"</code>")
		row, _, _ := strings.Cut(rest, "</tr>")
		return row
	}
	for tool, groups := range map[string]string{"echo": "default", "files__read": "vault", "shut": "none (only *)"} {
		if !strings.Contains(row(tool), groups) {
			t.Errorf("%s: %s, want %s", tool, row(tool), groups)
		}
	}
	if !strings.Contains(home, "<h3>256 tools</h3>") || !strings.Contains(home, "and 56 more") || row("z249") != "" || row("z000") == "" {
		t.Error("the page does not end in time")
	}
}
