package opa

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"quartermaster"
)

// bundleServer serves one file, as any web server does.
type bundleServer struct {
	*httptest.Server
	mu      sync.Mutex
	content []byte // nil: not there
	plain   bool   // without ETags
	asked   int
	sent    int
	tokens  map[string]bool
}

func newBundleServer(t *testing.T) *bundleServer {
	s := &bundleServer{tokens: map[string]bool{}}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.asked++
		s.tokens[r.Header.Get("Authorization")] = true
		if s.content == nil || r.URL.Path != "/bundles/house.tar.gz" || r.URL.RawQuery != "v=1" {
			http.NotFound(w, r)
			return
		}
		if !s.plain {
			sum := sha256.Sum256(s.content)
			w.Header().Set("ETag", `"`+hex.EncodeToString(sum[:8])+`"`)
		}
		if r.Header.Get("If-None-Match") == "" || s.plain {
			s.sent++
		}
		w.Header().Set("Content-Type", "application/gzip")
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(s.content))
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *bundleServer) serve(content []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.content = content
}

func (s *bundleServer) requests() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked
}

// pack makes a bundle: files in a tarball.
func pack(t *testing.T, files map[string]string) []byte {
	t.Helper()
	var b bytes.Buffer
	zipped := gzip.NewWriter(&b)
	tarball := tar.NewWriter(zipped)
	for name, text := range files {
		if err := tarball.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Size: int64(len(text)), Mode: 0o600}); err != nil {
			t.Fatal(err)
		}
		if _, err := tarball.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(tarball.Close(), zipped.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// POL-1, GATE-1: nothing passes until the bundle is there; then it is followed,
// a bad one is refused and the old stays, and so it is while the server is gone.
func TestBundle(t *testing.T) {
	s := newBundleServer(t)
	e := open(t, Options{Bundle: s.URL + "/bundles/house.tar.gz?v=1", BundleToken: "secret", poll: time.Second})
	c := catalogOf(t, []string{"a", "b"}, nil)
	for _, tools := range [][]*quartermaster.Tool{c.Tools(), nil} {
		if _, err := e.Judge(t.Context(), c, caller("alice"), quartermaster.Question{}, tools); quartermaster.CodeOf(err) != quartermaster.CodeUnavailable {
			t.Error(err)
		}
	}
	await(t, "it is missed", func() bool { return strings.Contains(e.Status().Trouble, "Not Found") })
	if st := e.Status(); st.Ready() || st.Loaded != 0 || st.Total != 1 || !strings.Contains(st.Detail, "waiting for the bundle at 127.0.0.1") {
		t.Errorf("%+v", st)
	}
	passes := func(want string) func() bool {
		return func() bool {
			names, err := passing(t.Context(), e, c, caller("alice"), quartermaster.Question{}, c.Tools())
			return err == nil && strings.Join(names, " ") == want
		}
	}
	s.serve(pack(t, map[string]string{"/a.rego": onlyTool("a")}))
	await(t, "the bundle is in force", passes("a"))
	if st := e.Status(); !st.Ready() || st.Trouble != "" || !strings.Contains(st.Detail, "1 file in the bundle at 127.0.0.1") {
		t.Errorf("%+v", st)
	}
	s.serve(pack(t, map[string]string{"/a.rego": "package quartermaster.tools\n\nallow if input.tool_name == data.x.only", "/x/data.json": `{"only": "b"}`}))
	await(t, "the next one is in force", passes("b"))

	for says, content := range map[string][]byte{
		"var x is unsafe":                  pack(t, map[string]string{"/a.rego": "package quartermaster.tools\n\nallow if x"}),
		"keyword is required":              pack(t, map[string]string{"/a.rego": "package quartermaster.tools\n\nallow { true }"}),
		"failed":                           pack(t, map[string]string{"/a.rego": onlyTool("a"), "/a_test.rego": "package a_test\n\ntest_a if false"}),
		"there is no .rego file":           pack(t, map[string]string{"/data.json": `{"x": 1}`}),
		"it is no bundle":                  []byte("hello"),
		"delta bundle":                     pack(t, map[string]string{"/patch.json": `{"data": [{"op": "add", "path": "/x", "value": 1}]}`}),
		"has more than 67108864 bytes unp": pack(t, map[string]string{"/a.rego": onlyTool("a"), "/b/data.json": strings.Repeat(" ", unpackedLimit/2), "/c/data.json": strings.Repeat(" ", unpackedLimit/2)}),
	} {
		s.serve(content)
		await(t, says, func() bool { return strings.Contains(e.Status().Trouble, says) })
		if st := e.Status(); !passes("b")() || !st.Ready() || !strings.HasSuffix(st.Trouble, "the one before still holds") {
			t.Errorf("%s: %+v", says, st)
		}
	}
	s.serve(pack(t, map[string]string{"/a.rego": "package quartermaster.tools\n\nallow { input.tool_name == \"a\" }", "/.manifest": `{"rego_version": 0}`}))
	await(t, "one in v0 is in force", passes("a"))
	await(t, "all is well", func() bool { return e.Status().Trouble == "" })

	s.serve(nil)
	await(t, "the server is missed", func() bool { return strings.Contains(e.Status().Trouble, "Not Found") })
	if !passes("a")() {
		t.Error("the old one does not hold")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.tokens) != 1 || !s.tokens["Bearer secret"] {
		t.Errorf("%v", s.tokens)
	}
}

// POL-1: a bundle that did not change is not sent again; from a server without
// ETags it is, but nothing that was decided is forgotten.
func TestBundleUnchanged(t *testing.T) {
	for _, plain := range []bool{false, true} {
		t.Run(fmt.Sprintf("plain=%t", plain), func(t *testing.T) {
			t.Parallel()
			s := newBundleServer(t)
			s.plain = plain
			s.serve(pack(t, map[string]string{"/a.rego": onlyTool("a")}))
			e := open(t, Options{Bundle: s.URL + "/bundles/house.tar.gz?v=1", poll: time.Second})
			await(t, "it is there", func() bool { return e.Status().Ready() })
			first := e.house.(*served).policy.Load()
			n := s.requests()
			await(t, "it was asked for again", func() bool { return s.requests() >= n+2 })
			s.mu.Lock()
			defer s.mu.Unlock()
			if e.house.(*served).policy.Load() != first || !plain && s.sent != 1 {
				t.Errorf("sent %d times", s.sent)
			}
		})
	}
}
