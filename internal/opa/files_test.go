package opa

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"quartermaster"
)

// await waits until something has come true.
func await(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain until %s", what)
		}
	}
}

func onlyTool(name string) string {
	return "package quartermaster.tools\n\nallow if input.tool_name == \"" + name + "\"\n"
}

// lines is a log that can be read while it is written.
type lines struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.Write(p)
}

func (l *lines) count(words string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.all.String(), words)
}

// POL-1: a house policy in files that does not work is refused at the start,
// with file and line.
func TestFilesRefused(t *testing.T) {
	const good = "package quartermaster.tools\n\nallow := true\n"
	for says, files := range map[string]map[string]string{
		"sub/a.rego:3: var x is unsafe":                                      {"sub/a.rego": "package quartermaster.tools\n\nallow if x"},
		"a_test.rego:3: data.a_test.test_no failed: line 3, false, is not":   {"a.rego": good, "a_test.rego": "package a_test\n\ntest_no if false"},
		"a_test.rego:3: var y is unsafe":                                     {"a.rego": good, "a_test.rego": "package a_test\n\ntest_no if y"},
		"there is no .rego file":                                             {"a.json": `{"x": 1}`, ".hidden.rego": good, "b_test.rego": "package b"},
		"set the query of the house policy to it":                            {"a.rego": "package other\n\nallow := true"},
		"data.roles is supplied by Quartermaster: give the data another nam": {"a.rego": good, "roles/data.json": `{"alice": ["admin"]}`},
		"data.tools is supplied by Quartermaster: give the package":          {"a.rego": good, "b.rego": "package tools.mine\n\nx := 1"},
		"b.json: gives data that another file gives too":                     {"a.rego": good, "a.json": `{"x": {"y": 1}}`, "b.json": `{"x": {"y": 2}}`},
		"b.json: must hold an object":                                        {"a.rego": good, "b.json": `[1]`},
		"b.yaml: ":                                                           {"a.rego": good, "b.yaml": "x: [1"},
		"http.send is switched off":                                          {"a.rego": "package quartermaster.tools\n\nallow if http.send({})"},
	} {
		dir := t.TempDir()
		for name, text := range files {
			write(t, dir, name, text)
		}
		e, err := Open(t.Context(), Options{Path: dir})
		if e != nil || quartermaster.CodeOf(err) != quartermaster.CodeInvalidRequest || !strings.Contains(err.Error(), says) {
			t.Errorf("%v\nwant %q", err, says)
		}
	}
	dir := t.TempDir()
	write(t, dir, "a.rego", good)
	write(t, dir, "large.json", "{}")
	if err := os.Truncate(filepath.Join(dir, "large.json"), filesLimit); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), Options{Path: dir}); err == nil || !strings.Contains(err.Error(), "has more than") {
		t.Error(err)
	}
}

// POL-1: files are followed; a change that does not work is refused with a line
// in the log and in the status, and the old policy stays until a good one comes.
func TestFilesFollowed(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "a.rego", onlyTool("a"))
	var log lines
	e := open(t, Options{Path: dir, poll: 5 * time.Millisecond, Log: slog.New(slog.NewTextHandler(&log, nil))})
	c := catalogOf(t, []string{"a", "b"}, nil)
	passes := func(want string) func() bool {
		return func() bool { return judged(t, e, c, caller("alice"), quartermaster.Question{}) == want }
	}
	troubled := func(words string) func() bool {
		return func() bool { return strings.Contains(e.Status().Trouble, words) }
	}
	if !passes("a")() {
		t.Fatal("not in force")
	}
	write(t, dir, "a.rego", onlyTool("b"))
	await(t, "the change is in force", passes("b"))
	write(t, dir, "data.json", `{"more": "a"}`)
	write(t, dir, "b.rego", "package quartermaster.tools\n\nallow if input.tool_name == data.more\n")
	await(t, "a new file is in force", passes("a b"))

	write(t, dir, "b.rego", "package quartermaster.tools\n\nallow if {\n")
	await(t, "it is refused", troubled("b.rego:4: "))
	write(t, dir, "b.rego", "package quartermaster.tools\n\nallow if true\n")
	write(t, dir, "b_test.rego", "package b_test\n\ntest_b if not data.quartermaster.tools.allow\n")
	await(t, "its test fails", troubled("b_test.rego:3: data.b_test.test_b failed"))
	if !passes("a b")() || !strings.HasSuffix(e.Status().Trouble, "the one before still holds") {
		t.Error("the old one does not hold")
	}
	if n := log.count("b.rego:4: "); n != 1 {
		t.Errorf("logged %d times", n)
	}
	for _, name := range []string{"b.rego", "b_test.rego"} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	await(t, "all is well", troubled(""))
	await(t, "what is left is in force", passes("b"))

	gone := dir + "-gone"
	if err := os.Rename(dir, gone); err != nil {
		t.Fatal(err)
	}
	await(t, "the directory is missed", troubled("no such file"))
	if !passes("b")() {
		t.Error("the old one does not hold")
	}
	if err := os.Rename(gone, dir); err != nil {
		t.Fatal(err)
	}
	await(t, "the directory is back", func() bool { return e.Status().Trouble == "" })
}

// POL-1: a change that keeps name, size and, within the clock's grain, the time
// is seen all the same.
func TestFilesSameStamp(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "a.rego")
	e := func() *Engine {
		write(t, dir, "a.rego", onlyTool("a"))
		return open(t, Options{Path: file, poll: 5 * time.Millisecond})
	}()
	c := catalogOf(t, []string{"a", "b"}, nil)
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	write(t, dir, "a.rego", onlyTool("b"))
	if err := os.Chtimes(file, info.ModTime(), info.ModTime()); err != nil {
		t.Fatal(err)
	}
	await(t, "the change is in force", func() bool {
		return judged(t, e, c, caller("alice"), quartermaster.Question{}) == "b"
	})
}

// POL-1: a volume that replaces its files by turning a link, as those of
// Kubernetes do, is followed.
func TestFilesMounted(t *testing.T) {
	dir := t.TempDir()
	link := func(target, name string) {
		t.Helper()
		if err := os.Symlink(target, filepath.Join(dir, name+".new")); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(dir, name+".new"), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	write(t, dir, "..one/a.rego", onlyTool("a"))
	write(t, dir, "..two/a.rego", onlyTool("b"))
	link("..one", "..data")
	link("..data/a.rego", "a.rego")
	e := open(t, Options{Path: dir, poll: 5 * time.Millisecond})
	c := catalogOf(t, []string{"a", "b"}, nil)
	if got := judged(t, e, c, caller("alice"), quartermaster.Question{}); got != "a" || !strings.Contains(e.Status().Detail, "1 file ") {
		t.Errorf("%q passes, %s", got, e.Status().Detail)
	}
	link("..two", "..data")
	await(t, "the link is followed", func() bool {
		return judged(t, e, c, caller("alice"), quartermaster.Question{}) == "b"
	})
}
