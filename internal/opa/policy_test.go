package opa

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"quartermaster"
)

// GATE-7: no policy at all is the shipped default, which says what it is, also
// to a project that names a query or has nothing but tests.
func TestDefault(t *testing.T) {
	e := open(t, Options{})
	bare := catalogOf(t, []string{"a", "b"}, nil)
	for name, c := range map[string]*quartermaster.Catalog{
		"bare":       bare,
		"query":      withQuery(t, bare, "data.soma.tools.allow"),
		"only tests": withPolicy(t, bare, "x_test", "package x_test\n\ntest_x if true"),
	} {
		said, err := e.Judge(t.Context(), c, caller("alice"), quartermaster.Question{Explain: true}, c.Tools())
		if err != nil {
			t.Fatal(name, err)
		}
		for _, j := range said {
			if !j.Allowed || j.Why.Reason != "no policy is set: the shipped default allows everything" || j.Why.Remedy != "" {
				t.Errorf("%s: %+v", name, j.Why)
			}
		}
	}
	if d := e.Status().Detail; !strings.Contains(d, "OPA v1.22.0 embedded") || !strings.Contains(d, "shipped default: allows everything") {
		t.Error(d)
	}
}

func asksServer(address string) string {
	return fmt.Sprintf("package quartermaster.tools\n\nallow if http.send({\"method\": \"GET\", \"url\": %q}).body.yes\n", address)
}

// POL-1: policies reach the hosts that are named and no other; what they hear is
// never kept; a host that does not answer is waited for no longer than the
// evaluation may take.
func TestHosts(t *testing.T) {
	var yes atomic.Bool
	hang := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/away":
			http.Redirect(w, r, "http://localhost:1/", http.StatusFound)
		case "/hang":
			select {
			case <-hang:
			case <-r.Context().Done():
			}
		default:
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, fmt.Sprintf(`{"yes": %t}`, yes.Load()))
		}
	}))
	defer server.Close()
	defer close(hang)
	address, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	e := open(t, Options{Hosts: []string{address.Hostname()}, Timeout: 2 * time.Second})
	c := catalogOf(t, []string{"a"}, map[string]string{"p": asksServer(server.URL)})
	for _, answer := range []bool{true, false, true} {
		yes.Store(answer)
		if got := judged(t, e, c, caller("alice"), quartermaster.Question{}); (got == "a") != answer {
			t.Errorf("the server says %t: %q passes", answer, got)
		}
	}
	for name, there := range map[string]string{
		"another host": strings.Replace(server.URL, address.Hostname(), "localhost", 1),
		"it hangs":     server.URL + "/hang",
		"nobody there": "http://" + address.Hostname() + ":1/",
	} {
		c := catalogOf(t, []string{"a"}, map[string]string{"p": asksServer(there)})
		if _, err := e.Judge(t.Context(), c, caller("alice"), quartermaster.Question{}, c.Tools()); quartermaster.CodeOf(err) != quartermaster.CodeUnavailable {
			t.Errorf("%s: %v", name, err)
		}
	}
	c = catalogOf(t, []string{"a"}, map[string]string{"p": asksServer(server.URL + "/away")})
	if got := judged(t, e, c, caller("alice"), quartermaster.Question{}); got != "" {
		t.Errorf("followed to another host: %q", got)
	}
}
