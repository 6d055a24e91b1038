package main

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// speaking is a server that says what it is told to and remembers what it was
// asked.
type speaking struct {
	*testing.T
	url     string
	answers map[string]string // METHOD PATH, below the project or from /: STATUS BODY
	asked   []string          // METHOD PATH BODY
}

func newSpeaking(t *testing.T, answers map[string]string) *speaking {
	t.Helper()
	s := &speaking{T: t, answers: answers}
	srv := httptest.NewServer(s)
	t.Cleanup(srv.Close)
	s.url = srv.URL
	return s
}

func (s *speaking) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	what := r.Method + " " + strings.TrimPrefix(r.RequestURI, "/api/v1/projects/default/")
	s.asked = append(s.asked, strings.TrimSpace(what+" "+string(body)))
	status, said, ok := strings.Cut(s.answers[what], " ")
	if !ok {
		status, said = "404", `{"code":"not_found","detail":"nothing at `+what+`"}`
	}
	w.Header().Set("Content-Type", "application/json")
	if status[0] >= '4' && !strings.HasPrefix(what, "GET /readyz") {
		w.Header().Set("Content-Type", "application/problem+json")
	}
	w.WriteHeader(int(status[0]-'0')*100 + int(status[1]-'0')*10 + int(status[2]-'0'))
	_, _ = io.WriteString(w, said)
}

// run runs the whole program against the server.
func (s *speaking) run(stdin string, args ...string) (code int, out, errOut string) {
	s.Helper()
	s.asked = nil
	var o, e bytes.Buffer
	getenv := func(name string) string { return map[string]string{"QUARTERMASTER_SERVER": s.url}[name] }
	code = run(s.Context(), args, getenv, strings.NewReader(stdin), &o, &e)
	return code, o.String(), e.String()
}

// says runs the program, which must end well, print this and ask that.
func (s *speaking) says(args []string, want string, asked ...string) {
	s.Helper()
	code, out, errOut := s.run("", args...)
	if code != exitOK || out != want {
		s.Errorf("%q: %d\n%s\n%s\nwant\n%s", args, code, out, errOut, want)
	}
	if got := strings.Join(s.asked, "\n"); len(asked) > 0 && got != strings.Join(asked, "\n") {
		s.Errorf("%q asked\n%s", args, got)
	}
}

// fails runs the program, which must end with this code and say that.
func (s *speaking) fails(args []string, exit int, want ...string) {
	s.Helper()
	code, out, errOut := s.run("", args...)
	for _, w := range want {
		if !strings.Contains(errOut, w) {
			s.Errorf("%q: no %q in\n%s", args, w, errOut)
		}
	}
	if code != exit {
		s.Errorf("%q ended with %d, want %d\n%s%s", args, code, exit, out, errOut)
	}
}
