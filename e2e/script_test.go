package e2e

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// setup gives every script the program and nothing of the tester's own.
func setup(env *testscript.Env) error {
	env.Setenv("PATH", bin+string(os.PathListSeparator)+env.Getenv("PATH"))
	env.Setenv("HOME", env.WorkDir)
	// A script that forgets to serve must not meet a server of the tester's.
	env.Setenv("QUARTERMASTER_SERVER", "http://127.0.0.1:1")
	for _, name := range []string{"QUARTERMASTER_TOKEN", "QUARTERMASTER_PROJECT", "QUARTERMASTER_USER"} {
		env.Setenv(name, "")
	}
	env.Setenv("NPM", filepath.Join(os.Getenv("QUARTERMASTER_NPM"), "node_modules", "@modelcontextprotocol"))
	env.Values[runningKey{}] = &running{}
	env.Values[awaitedKey{}] = &[]string{}
	env.Defer(func() { env.Values[runningKey{}].(*running).kill() })
	return nil
}

// exits CODE COMMAND... runs a command that must end with this code. Its output
// is there for stdout and stderr to look at.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("ended with %d, want %d", got, want)
	}
}

// setid VAR keeps the first UUID of the last output in a variable.
func setID(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: setid VAR")
	}
	id := regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`).FindString(ts.ReadFile("stdout"))
	if id == "" {
		ts.Fatalf("the last output holds no id")
	}
	ts.Setenv(args[0], id)
}

type awaitedKey struct{}

// await COMMAND... names a command whose output until waits for.
func await(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: await COMMAND...")
	}
	*ts.Value(awaitedKey{}).(*[]string) = args
}

// until REGEXP runs the awaited command until its output matches.
func until(ts *testscript.TestScript, neg bool, args []string) {
	command := *ts.Value(awaitedKey{}).(*[]string)
	if neg || len(args) != 1 || len(command) == 0 {
		ts.Fatalf("usage: until REGEXP, after await")
	}
	want := regexp.MustCompile("(?m)" + args[0])
	for deadline := time.Now().Add(startLimit); ; time.Sleep(100 * time.Millisecond) {
		ts.Check(ts.Exec(command[0], command[1:]...))
		if want.MatchString(ts.ReadFile("stdout")) {
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("no line like %s after %v\n%s", args[0], startLimit, ts.ReadFile("serve.log"))
		}
	}
}

// orphans fails if a process that the script's server has started outlives it
// for longer than it takes to end a stubborn one. They are known by their home.
func orphans(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) > 0 || of(ts).cmd != nil {
		ts.Fatalf("usage: orphans, after halt")
	}
	home := []byte("HOME=" + ts.Getenv("WORK") + "\x00")
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		var left []string
		processes, _ := filepath.Glob("/proc/[0-9]*/environ")
		for _, environ := range processes {
			if data, err := os.ReadFile(environ); err == nil && bytes.Contains(append([]byte{0}, data...), append([]byte{0}, home...)) {
				left = append(left, filepath.Base(filepath.Dir(environ)))
			}
		}
		if len(left) == 0 {
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("left behind: processes %v", left)
		}
	}
}

// same FILE... checks that all files are equal.
func same(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: same FILE...")
	}
	first := ts.ReadFile(args[0])
	for _, other := range args[1:] {
		if ts.ReadFile(other) != first {
			ts.Fatalf("%s and %s differ", args[0], other)
		}
	}
}

func readWhenThere(path string) (string, bool) {
	data, err := os.ReadFile(path)
	return strings.TrimSpace(string(bytes.TrimSpace(data))), err == nil
}

func workFile(ts *testscript.TestScript, name string) string {
	return filepath.Join(ts.Getenv("WORK"), name)
}
