package provider

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"quartermaster"
)

// site is a rogue that is spoken to by HTTP: before may answer a request in its
// place, and then reports true.
type site struct {
	*rogue
	events bool // answers as an event stream
	before func(rw http.ResponseWriter, r *http.Request, method string) bool
}

func (h *site) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	var m struct {
		ID     json.RawMessage
		Method string
		Params json.RawMessage
	}
	_ = json.Unmarshal(body, &m)
	if h.before != nil && h.before(rw, r, m.Method) {
		return
	}
	if r.Method != http.MethodPost {
		rw.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	var answer bytes.Buffer
	one := &rogue{version: h.version, tools: h.tools, on: h.on, out: nopCloser{&answer}}
	one.handle(string(m.ID), m.Method, string(m.Params))
	switch {
	case answer.Len() == 0:
		rw.WriteHeader(http.StatusAccepted)
	case h.events:
		rw.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(rw, ": a comment\nnonsense\nid: 1\nevent: message\ndata: %s\n\n", bytes.TrimSpace(answer.Bytes()))
	default:
		rw.Header().Set("Content-Type", "application/json")
		_, _ = rw.Write(answer.Bytes())
	}
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

// serveSite starts it.
func serveSite(t testing.TB, h *site) *httptest.Server {
	t.Helper()
	if h.rogue == nil {
		h.rogue = &rogue{}
	}
	s := httptest.NewServer(h)
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

func byHTTP(url string) quartermaster.Server { return remote("s", quartermaster.TransportHTTP, url) }

// UP-7, SEC-3: configured headers are sent with every request, with their
// secrets, and to nobody but the configured server.
func TestHeaders(t *testing.T) {
	var others atomic.Int64
	other := serveSite(t, &site{before: func(http.ResponseWriter, *http.Request, string) bool {
		others.Add(1)
		return false
	}})
	var seen, moved atomic.Int64
	s := serveSite(t, &site{before: func(rw http.ResponseWriter, r *http.Request, method string) bool {
		if r.Header.Get("Authorization") == "Bearer hunter2" && r.Header.Get("X-Team") == "blue" && r.Host == "tools.example" {
			seen.Add(1)
		} else {
			t.Errorf("%s has %v", method, r.Header)
		}
		if method == "tools/call" && moved.Load() == 1 {
			http.Redirect(rw, r, other.URL, http.StatusTemporaryRedirect)
			return true
		}
		return false
	}})
	w := open(t, quick)
	server := byHTTP(s.URL)
	server.Headers = map[string]string{"Authorization": "Bearer ${TOKEN}", "x-team": "blue", "Host": "tools.example"}
	w.safe["TOKEN"] = "hunter2"
	w.put(server)
	w.awaitTools("s", "a", "b", "c")
	w.runText("s", "a", "{}")
	if seen.Load() < 4 {
		t.Errorf("seen %d times", seen.Load())
	}
	moved.Store(1)
	_, err := w.run("s", "a", "{}")
	wantCode(t, err, quartermaster.CodeExecutionFailed, "sends us on to "+other.URL+"; if that is right, make it the url")
	if others.Load() != 0 {
		t.Error("went to somebody else")
	}
}

// UP-2: a secret that is not set, or cannot be opened, is said so.
func TestMissingSecret(t *testing.T) {
	w := open(t, quick)
	server := byHTTP("http://127.0.0.1:1")
	server.Headers = map[string]string{"Authorization": "Bearer ${TOKEN}"}
	w.put(server)
	s := w.awaitState("s", stateFailed, stateResting)
	if !strings.Contains(s.Reason, "headers.Authorization refers to ${TOKEN}, which is not set; set it with: quartermaster secrets set TOKEN") {
		t.Errorf("is %+v", s)
	}
}

// SEC-3: what a server writes about our secrets is not shown.
func TestSecretsAreHidden(t *testing.T) {
	s := serveSite(t, &site{rogue: &rogue{on: map[string]func(*rogue, string, string){"initialize": func(r *rogue, id, _ string) {
		r.write(`{"jsonrpc":"2.0","id":` + id + `,"error":{"code":-1,"message":"the token hunter2 is not valid"}}`)
	}}}})
	w := open(t, quick)
	w.safe["TOKEN"] = "hunter2"
	server := byHTTP(s.URL)
	server.Headers = map[string]string{"Authorization": "Bearer ${TOKEN}"}
	w.put(server)
	if got := w.awaitState("s", stateFailed, stateResting); !strings.Contains(got.Reason, "the token ${TOKEN} is not valid") || strings.Contains(got.LastError, "hunter2") {
		t.Errorf("is %+v", got)
	}
}

// A server that says no says what a person can do about it.
func TestHTTPRefusals(t *testing.T) {
	tests := map[int]string{
		401: "answered 401 Unauthorized; check the credentials in its headers",
		403: "answered 403 Forbidden; check the credentials in its headers",
		429: "answered 429 Too Many Requests; it wants fewer requests",
		500: "answered 500 Internal Server Error",
		503: "answered 503 Service Unavailable",
		404: "Not Found",
	}
	for status, want := range tests {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			s := serveSite(t, &site{before: func(rw http.ResponseWriter, _ *http.Request, _ string) bool {
				http.Error(rw, "no", status)
				return true
			}})
			w := open(t, quick)
			w.put(byHTTP(s.URL))
			if got := w.awaitState("s", stateFailed, stateResting); !strings.Contains(got.Reason, want) {
				t.Errorf("is %+v", got)
			}
		})
	}
}

// UP-6: what becomes of a call that is answered by HTTP itself.
func TestHTTPCallFailures(t *testing.T) {
	tests := map[int]struct {
		code quartermaster.Code
		lost bool
	}{
		401: {quartermaster.CodeUnavailable, true},
		429: {quartermaster.CodeUnavailable, false},
		503: {quartermaster.CodeUnavailable, false},
		500: {quartermaster.CodeExecutionFailed, false}, // it may have run
		502: {quartermaster.CodeExecutionFailed, false},
	}
	for status, tt := range tests {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			s := serveSite(t, &site{before: func(rw http.ResponseWriter, _ *http.Request, method string) bool {
				if method == "tools/call" {
					http.Error(rw, "no", status)
				}
				return method == "tools/call"
			}})
			w := open(t, quick)
			w.put(byHTTP(s.URL))
			w.awaitTools("s", "a", "b", "c")
			_, err := w.run("s", "a", "{}")
			wantCode(t, err, tt.code, fmt.Sprint("answered ", status))
			if tt.lost {
				w.await("it is made anew", func() bool { return w.Status("p", "s").Restarts == 1 })
			} else if got := w.Status("p", "s"); got.State != "ready" || got.Restarts != 0 {
				t.Errorf("is %+v", got)
			}
		})
	}
}

// A server that was started anew does not know our session: we begin another,
// also when it answers with a message instead of a plain 404.
func TestSessionForgotten(t *testing.T) {
	for _, body := range []string{"gone", `{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found"}}`} {
		var sessions atomic.Int64
		s := serveSite(t, &site{before: func(rw http.ResponseWriter, r *http.Request, method string) bool {
			switch {
			case method == "initialize":
				rw.Header().Set(sessionHeader, fmt.Sprint("session", sessions.Add(1)))
			case r.Header.Get(sessionHeader) == "session1" && method == "tools/call":
				rw.Header().Set("Content-Type", "application/json")
				rw.WriteHeader(http.StatusNotFound)
				_, _ = io.WriteString(rw, body)
				return true
			}
			return false
		}})
		w := open(t, quick)
		w.put(byHTTP(s.URL))
		w.awaitTools("s", "a", "b", "c")
		_, err := w.run("s", "a", "{}")
		wantCode(t, err, quartermaster.CodeUnavailable, "no longer knows our session")
		w.await("another session", func() bool { return sessions.Load() == 2 && w.Status("p", "s").State == "ready" })
		if got := w.runText("s", "a", "{}"); got != "called" {
			t.Error(got)
		}
	}
}

// EXE-7: what a tool answers reaches the agent as it is written, over JSON, an
// event stream and lines alike.
func TestResultsUnchanged(t *testing.T) {
	results := map[string]string{
		"text":       `{"content":[{"type":"text","text":"<&> \u2028 é","annotations":{"x-own":1.50}}],"isError":false}`,
		"numbers":    `{"content":[],"structuredContent":{"big":12345678901234567890123,"tiny":1e-400,"one":1.0}}`,
		"unknown":    `{"content":[{"type":"hologram","data":{"deep":[[[1]]]}},{"type":"text","text":"","_meta":{"k":"v"}}],"other":1}`,
		"array":      `{"content":[],"structuredContent":[1,2]}`,
		"structured": `{"structuredContent":{"only":true}}`,
		"error":      `{"content":[{"type":"text","text":"I failed"}],"isError":true}`,
		"image":      `{"content":[{"type":"image","data":"AAAA","mimeType":"image/png"},{"type":"audio","data":"AAAA","mimeType":"audio/wav"}]}`,
	}
	answering := func() *rogue {
		return &rogue{on: map[string]func(*rogue, string, string){"tools/call": func(r *rogue, id, params string) {
			for name, result := range results {
				if strings.Contains(params, `"name":"`+name+`"`) {
					r.answer(id, result)
				}
			}
		}}}
	}
	ways := map[string]quartermaster.Server{
		"json":   byHTTP(serveSite(t, &site{rogue: answering()}).URL),
		"events": byHTTP(serveSite(t, &site{rogue: answering(), events: true}).URL),
		"lines":  listenRogue(t, answering),
	}
	for way, server := range ways {
		t.Run(way, func(t *testing.T) {
			w := open(t, quick)
			server.Name = "s"
			w.put(server)
			w.awaitTools("s", "a", "b", "c")
			for name, result := range results {
				got, err := w.run("s", name, "{}")
				if err != nil {
					t.Errorf("%s: %v", name, err)
					continue
				}
				var want struct {
					Content           []json.RawMessage
					StructuredContent json.RawMessage
					IsError           bool
				}
				_ = json.Unmarshal([]byte(result), &want)
				same := slices.EqualFunc(got.Content, want.Content, func(a, b json.RawMessage) bool { return string(a) == string(b) })
				if !same || string(got.StructuredContent) != string(want.StructuredContent) || got.IsError != want.IsError {
					t.Errorf("%s: got %s %s %v", name, got.Content, got.StructuredContent, got.IsError)
				}
			}
		})
	}
}

// A tool that answers with something else than a result is an error of ours,
// and of that call only.
func TestOddAnswers(t *testing.T) {
	answers := map[string]string{
		"a": `{"content":"text"}`,
		"b": `{"content":[],"isError":"yes"}`,
		"c": `{"what":1}`,
		"d": `{"resultType":"input_required","inputRequests":{"x":{"method":"elicitation/create","params":{}}}}`,
	}
	w := open(t, quick)
	w.put(listenRogue(t, func() *rogue {
		return &rogue{on: map[string]func(*rogue, string, string){"tools/call": func(r *rogue, id, params string) {
			for name, result := range answers {
				if strings.Contains(params, `"name":"`+name+`"`) {
					r.answer(id, result)
					return
				}
			}
			r.write(`{"jsonrpc":"2.0","id":` + id + `,"error":{"code":-32602,"message":"Unknown tool: e"}}`)
		}}}
	}))
	w.awaitTools("r", "a", "b", "c")
	for name, want := range map[string]string{
		"a": "content that is no list", "b": "isError that is neither", "c": "no result of this method",
		"d": "asks for input", "e": "server r: Unknown tool: e",
	} {
		_, err := w.run("r", name, "{}")
		wantCode(t, err, quartermaster.CodeExecutionFailed, want)
	}
	if s := w.Status("p", "r"); s.State != "ready" || s.Restarts != 0 {
		t.Errorf("is %+v", s)
	}
}

// A message of an upstream that is too large ends its connection, whichever way
// it comes.
func TestTooLarge(t *testing.T) {
	huge := func() *rogue {
		return &rogue{on: map[string]func(*rogue, string, string){"tools/call": func(r *rogue, id, _ string) {
			r.answer(id, `{"content":[{"type":"text","text":"`+strings.Repeat("x", maxMessage)+`"}]}`)
		}}}
	}
	ways := map[string]quartermaster.Server{
		"json":   byHTTP(serveSite(t, &site{rogue: huge()}).URL),
		"events": byHTTP(serveSite(t, &site{rogue: huge(), events: true}).URL),
		"lines":  listenRogue(t, huge),
	}
	for way, server := range ways {
		t.Run(way, func(t *testing.T) {
			w := open(t, quick)
			server.Name = "s"
			w.put(server)
			w.awaitTools("s", "a", "b", "c")
			_, err := w.run("s", "a", "{}")
			wantCode(t, err, quartermaster.CodeExecutionFailed, "sent a message larger than 16 MiB; the tool may have run")
			w.await("it is back", func() bool { s := w.Status("p", "s"); return s.Restarts == 1 && s.State == "ready" })
		})
	}
}

// POOL-4 in the newer era: when the stream of news ends, we listen anew.
func TestListensAnew(t *testing.T) {
	addr, kill := program(t, selfArgs("listen", "http-2026-07-28")...)
	w := open(t, quick, func(u *Upstreams) { u.timing.stable = 0 })
	w.put(byHTTP("http://" + addr))
	w.awaitTools("s", modelTools...)
	kill()
	w.await("it is noticed", func() bool { return w.toldOf("listens anew") })
	if s := w.awaitState("s", stateFailed, stateResting); !strings.Contains(s.Reason, "connection refused") {
		t.Errorf("is %+v", s)
	}
}

// SEC-3: an upstream on this machine or in a private network is for those
// operators who say so.
func TestGuardedUpstreams(t *testing.T) {
	s := serveSite(t, &site{})
	w := open(t, quick, func(u *Upstreams) { u.policy = dialPolicy{} })
	for name, server := range map[string]quartermaster.Server{
		"http": byHTTP(s.URL),
		"sse":  remote("", quartermaster.TransportSSE, s.URL),
		"ws":   remote("", quartermaster.TransportWS, strings.Replace(s.URL, "http", "ws", 1)),
		"tcp":  remote("", quartermaster.TransportTCP, strings.Replace(s.URL, "http", "tcp", 1)),
	} {
		server.Name = name
		w.put(server)
		if got := w.awaitState(name, stateFailed, stateResting); !strings.Contains(got.Reason, "this machine itself, which is allowed in local mode only") {
			t.Errorf("%s is %+v", name, got)
		}
	}
}

// The upstream's own choice of where we should post is not followed elsewhere.
func TestSSEEndpointElsewhere(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(rw, "event: endpoint\ndata: http://127.0.0.2:9/steal\n\n")
		rw.(http.Flusher).Flush()
		<-r.Context().Done()
	}))
	t.Cleanup(s.Close)
	w := open(t, quick)
	w.put(remote("s", quartermaster.TransportSSE, s.URL))
	if got := w.awaitState("s", stateFailed, stateResting); !strings.Contains(got.Reason, "sends us on to http://127.0.0.2:9; if that is right, make it the url") {
		t.Errorf("is %+v", got)
	}
}

func selfArgs(args ...string) []string {
	return append([]string{os.Args[0], runMode}, args...)
}
