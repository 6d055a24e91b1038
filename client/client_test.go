package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"quartermaster"
	"quartermaster/client"
)

// seen is what a request looked like on the wire.
type seen struct {
	method, uri, body string
	header            http.Header
}

// answering starts a server that answers everything alike and says what it was
// asked.
func answering(t *testing.T, status int, contentType, body string, options ...client.Option) (*client.Client, *seen) {
	t.Helper()
	last := &seen{}
	return serving(t, func(w http.ResponseWriter, r *http.Request) {
		data, _ := io.ReadAll(r.Body)
		*last = seen{r.Method, r.RequestURI, string(data), r.Header}
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}, options...), last
}

func serving(t *testing.T, h http.HandlerFunc, options ...client.Option) *client.Client {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	c, err := client.New(s.URL+"/", options...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// BIND-6: an agent id is percent-encoded in a path.
func TestPathsAreEscaped(t *testing.T) {
	ids := map[string]string{
		"writer":       "writer",
		"team/a":       "team%2Fa",
		"50%":          "50%25",
		"%2F":          "%252F",
		"a b":          "a%20b",
		"ü":            "%C3%BC",
		"a?b#c":        "a%3Fb%23c",
		"a;b":          "a%3Bb",
		".":            "%2E",
		"..":           "%2E%2E",
		"...":          "...",
		"../../admin":  "..%2F..%2Fadmin",
		"a\nb":         "a%0Ab",
		"@files/read":  "@files%2Fread",
		"a+b&c=d":      "a+b&c=d",
		"\\":           "%5C",
		"\xff invalid": "%FF%20invalid",
	}
	for id, want := range ids {
		t.Run(id, func(t *testing.T) {
			c, last := answering(t, 200, "application/json", "{}")
			if _, err := c.Project("p").Agent(t.Context(), id); err != nil {
				t.Fatal(err)
			}
			if want = "/api/v1/projects/p/agents/" + want; last.uri != want {
				t.Errorf("got %s, want %s", last.uri, want)
			}
		})
	}
}

// What no URL can carry must not become the URL of something else.
func TestPathsThatCannotBe(t *testing.T) {
	c, last := answering(t, 200, "application/json", "{}")
	if err := c.Project("p").DeleteAgent(t.Context(), ""); quartermaster.CodeOf(err) != quartermaster.CodeInvalidRequest {
		t.Errorf("agent: %v", err)
	}
	if _, err := c.Project("").Tools(quartermaster.ToolFilter{}).Page(t.Context(), 1, 1); quartermaster.CodeOf(err) != quartermaster.CodeInvalidRequest {
		t.Errorf("project: %v", err)
	}
	if last.uri != "" {
		t.Errorf("something was sent: %s", last.uri)
	}
}

func TestRequest(t *testing.T) {
	c, last := answering(t, 200, "application/json", `{"name":"echo"}`,
		client.WithToken("s3cret"), client.WithUser("alice"), client.WithUserAgent("test/1"))
	tool, err := c.Project("p").UpdateTool(t.Context(), "echo", map[string]any{"description": "<b>", "state": nil})
	if err != nil {
		t.Fatal(err)
	}
	if tool.Name != "echo" || !tool.Enabled {
		t.Errorf("got %+v", tool)
	}
	if last.method != "PATCH" || strings.TrimSpace(last.body) != `{"description":"<b>","state":null}` {
		t.Errorf("sent %s %s", last.method, last.body)
	}
	for k, want := range map[string]string{
		"Content-Type": "application/merge-patch+json", "Authorization": "Bearer s3cret",
		"Quartermaster-User": "alice", "User-Agent": "test/1",
	} {
		if got := last.header.Get(k); got != want {
			t.Errorf("%s: got %q, want %q", k, got, want)
		}
	}
}

// Raw documents go out byte for byte: the server keeps schemas as written.
func TestWrittenDocumentsAreSentAsTheyAre(t *testing.T) {
	c, last := answering(t, 200, "application/json", `{"changes":[]}`)
	const doc = `{"quartermaster":"v1","tools":{"b":{},"a":{"inputSchema":{"z":1.50,"a":"<"}}}}`
	if _, err := c.Project("p").ApplyFrom(t.Context(), json.RawMessage(doc), client.ApplyOptions{DryRun: true}); err != nil {
		t.Fatal(err)
	}
	if last.body != doc || last.uri != "/api/v1/projects/p/apply?dryRun=true&prune=false" {
		t.Errorf("sent %s to %s", last.body, last.uri)
	}
}

// BIND-3: null is not the empty set.
func TestReplaceBindingsSendsAnEmptySet(t *testing.T) {
	c, last := answering(t, 200, "application/json", `{"agentId":"a","boundToolCount":0,"toolIds":[]}`)
	if _, err := c.Project("p").ReplaceBindings(t.Context(), "a", nil); err != nil {
		t.Fatal(err)
	}
	if strings.TrimSpace(last.body) != `{"agentId":"a","toolIds":[]}` {
		t.Errorf("sent %s", last.body)
	}
}

func TestServerHasItsStatus(t *testing.T) {
	c, _ := answering(t, 200, "application/json", `{"name":"files","transport":"stdio","status":{"health":"red","tools":3}}`)
	s, err := c.Project("p").Server(t.Context(), "files")
	if err != nil {
		t.Fatal(err)
	}
	if s.Name != "files" || !s.Enabled || !s.Prefix || s.Status == nil || s.Status.Health != "red" || s.Status.Tools != 3 {
		t.Errorf("got %+v, status %+v", s.Server, s.Status)
	}
}

// REST-1: errors come back as they were meant.
func TestProblems(t *testing.T) {
	const problem = "application/problem+json"
	tests := map[string]struct {
		status            int
		contentType, body string
		want              quartermaster.Error
	}{
		"with faults": {
			422, problem, `{"type":"about:blank","title":"Unprocessable Entity","status":422,"detail":"not valid","code":"invalid_request","errors":[{"location":"body.name","message":"must not be empty"}]}`,
			quartermaster.Error{Code: quartermaster.CodeInvalidRequest, Message: "not valid", Faults: []quartermaster.Fault{{Location: "body.name", Message: "must not be empty"}}},
		},
		"with details": {
			400, problem + "; charset=utf-8", `{"status":400,"detail":"no","code":"INVALID_TOOL_IDS","invalidIds":["a","b"]}`,
			quartermaster.Error{Code: quartermaster.CodeInvalidToolIDs, Message: "no", Details: map[string]any{"invalidIds": []any{"a", "b"}}},
		},
		"of a newer server":  {418, problem, `{"detail":"short and stout","code":"teapot"}`, quartermaster.Error{Code: "teapot", Message: "short and stout"}},
		"without a code":     {503, problem, `{"title":"Service Unavailable"}`, quartermaster.Error{Code: quartermaster.CodeUnavailable, Message: "Service Unavailable"}},
		"of a proxy":         {502, "text/html", "<html>", quartermaster.Error{Code: quartermaster.CodeUnavailable, Message: "URL answered 502 Bad Gateway, but not as a Quartermaster does: is the address right?"}},
		"a broken document":  {500, problem, "{", quartermaster.Error{Code: quartermaster.CodeInternal, Message: "URL answered 500 Internal Server Error, but not as a Quartermaster does: is the address right?"}},
		"a redirect":         {302, "text/html", "", quartermaster.Error{Code: quartermaster.CodeInternal, Message: "URL answered 302 Found, but not as a Quartermaster does: is the address right?"}},
		"success, not of us": {200, "text/html", "<html>", quartermaster.Error{Code: quartermaster.CodeInternal, Message: "URL gave an answer that is not understood: is it a Quartermaster of this version?"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c, _ := answering(t, tt.status, tt.contentType, tt.body)
			_, err := c.Project("p").Tool(t.Context(), "echo")
			e, ok := errors.AsType[*quartermaster.Error](err)
			if !ok {
				t.Fatalf("got %v", err)
			}
			want := strings.ReplaceAll(tt.want.Message, "URL", c.Address())
			if e.Code != tt.want.Code || e.Message != want || !slices.Equal(e.Faults, tt.want.Faults) || fmt.Sprint(e.Details) != fmt.Sprint(tt.want.Details) {
				t.Errorf("got  %+v\nwant %+v", e, tt.want)
			}
		})
	}
}

func TestUnreachable(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := "http://" + l.Addr().String()
	_ = l.Close()
	c, err := client.New(address)
	if err != nil {
		t.Fatal(err)
	}
	err = c.Ready(t.Context())
	want := "no server answers at " + address + ": is it running? start it with: quartermaster serve"
	if quartermaster.CodeOf(err) != quartermaster.CodeUnavailable || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestTimeoutAndCancel(t *testing.T) {
	slow := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	c := serving(t, slow, client.WithTimeout(20*time.Millisecond))
	if err := c.Ready(t.Context()); quartermaster.CodeOf(err) != quartermaster.CodeTimeout {
		t.Errorf("timeout: got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.Ready(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("cancel: got %v", err)
	}
}

func TestAddresses(t *testing.T) {
	for _, bad := range []string{"", "127.0.0.1:7070", "ftp://x", "http://", "http://user:s3cret@x", "http://x?a=b", "http://x#y", "http://%zz"} {
		_, err := client.New(bad)
		if err == nil {
			t.Errorf("%s is taken", bad)
		} else if strings.Contains(err.Error(), "s3cret") {
			t.Errorf("the error tells the password: %v", err)
		}
	}
}

// paged answers with pages of the numbers from 0 to total.
func paged(total int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var page, size int
		_, _ = fmt.Sscan(r.URL.Query().Get("page"), &page)
		_, _ = fmt.Sscan(r.URL.Query().Get("size"), &size)
		all := func(yield func(quartermaster.Group) bool) {
			for i := range total {
				if !yield(quartermaster.Group{Name: fmt.Sprint(i)}) {
					return
				}
			}
		}
		_ = json.NewEncoder(w).Encode(quartermaster.PageOf(all, page, size))
	}
}

func TestListWalksAllPages(t *testing.T) {
	for _, total := range []int{0, 1, 99, 100, 101, 250} {
		groups, err := serving(t, paged(total)).Project("p").Groups().Collect(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(groups) != total || total > 0 && groups[total-1].Name != fmt.Sprint(total-1) {
			t.Errorf("%d: got %d", total, len(groups))
		}
	}
}

func TestListStops(t *testing.T) {
	asked := 0
	c := serving(t, func(w http.ResponseWriter, r *http.Request) {
		if asked++; asked == 2 {
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = io.WriteString(w, `{"code":"unavailable","detail":"gone"}`)
			return
		}
		paged(250)(w, r)
	})
	got := 0
	for _, err := range c.Project("p").Groups().All(t.Context()) {
		if err != nil {
			if quartermaster.CodeOf(err) != quartermaster.CodeUnavailable {
				t.Errorf("got %v", err)
			}
			continue
		}
		got++
	}
	if got != 100 || asked != 2 {
		t.Errorf("got %d items in %d requests", got, asked)
	}
	for range c.Project("p").Groups().All(t.Context()) {
		break
	}
	if asked != 3 {
		t.Errorf("asked %d times", asked)
	}
}

func TestFiltersAreQueries(t *testing.T) {
	c, last := answering(t, 200, "application/json", `{"content":[],"last":true}`)
	if _, err := c.Project("p").Bound("a/b ü", quartermaster.ToolFilter{Text: "x&y", Category: "c"}).Collect(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := "/api/v1/projects/p/bindings/bound?agentId=a%2Fb+%C3%BC&category=c&page=1&q=x%26y&size=100"
	if last.uri != want {
		t.Errorf("got %s, want %s", last.uri, want)
	}
}
