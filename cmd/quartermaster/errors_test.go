package main

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"quartermaster"
)

// EXE-2: one exit code each.
func TestExitCodes(t *testing.T) {
	taken := map[int]quartermaster.Code{}
	for _, code := range quartermaster.Codes {
		exit, ok := exitCodes[code]
		if !ok {
			t.Errorf("%s has no exit code", code)
			continue
		}
		if other, ok := taken[exit]; ok {
			t.Errorf("%s and %s have the same exit code %d", code, other, exit)
		}
		taken[exit] = code
		if exit == exitOK || exit == exitUsage || exit >= 126 {
			t.Errorf("%s has the exit code %d, which means something else", code, exit)
		}
		if !strings.Contains(exitCodesTopic().Long, "  "+string(code)) {
			t.Errorf("the help does not tell of %s", code)
		}
	}
	if len(exitCodes) != len(quartermaster.Codes) {
		t.Errorf("%d exit codes for %d codes", len(exitCodes), len(quartermaster.Codes))
	}
}

// program runs the whole program without a server.
func program(t *testing.T, stdin string, args ...string) (code int, out, errOut string) {
	t.Helper()
	var o, e bytes.Buffer
	getenv := func(name string) string {
		return map[string]string{"QUARTERMASTER_SERVER": "http://127.0.0.1:1", "QUARTERMASTER_TOKEN": "s3cret"}[name]
	}
	code = run(t.Context(), args, getenv, strings.NewReader(stdin), &o, &e)
	return code, o.String(), e.String()
}

func TestEveryCommandHasHelp(t *testing.T) {
	a := &app{getenv: func(string) string { return "" }}
	var walk func(path []string)
	walk = func(path []string) {
		root := a.rootCommand()
		c, _, err := root.Find(path)
		if err != nil {
			t.Fatal(err)
		}
		if c.Short == "" || strings.HasSuffix(c.Short, ".") {
			t.Errorf("%v: short help is %q", path, c.Short)
		}
		if code, out, _ := program(t, "", append(path, "--help")...); code != exitOK || out == "" {
			t.Errorf("%v --help ended with %d", path, code)
		}
		for _, sub := range c.Commands() {
			walk(append(path[:len(path):len(path)], sub.Name()))
		}
	}
	walk(nil)
}

func TestErrorsAreTold(t *testing.T) {
	code, out, errOut := program(t, "", "tools", "list", "-o", "json")
	if code != 10 || out != "" || !strings.Contains(errOut, `"code": "unavailable"`) || !strings.Contains(errOut, `"exitCode": 10`) {
		t.Errorf("got %d %q %q", code, out, errOut)
	}
	if strings.Contains(errOut, "s3cret") {
		t.Error("the token is told")
	}
	code, _, errOut = program(t, "", "tools", "nonsense")
	if code != exitUsage || !strings.HasPrefix(errOut, "quartermaster: ") || !strings.Contains(errOut, "\nhint: usage: ") {
		t.Errorf("got %d %q", code, errOut)
	}
	var o, e bytes.Buffer
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if code := run(ctx, []string{"tools", "list"}, func(string) string { return "" }, nil, &o, &e); code != exitInterrupted {
		t.Errorf("interrupted: got %d %q", code, &e)
	}
}

// A text from upstream must not steer the terminal that shows it.
func TestPlainText(t *testing.T) {
	got := plainText("a\x1b[2Jb\nc\u202ed\u009b")
	if strings.ContainsAny(got, "\x1b\n\u202e\u009b") {
		t.Errorf("got %q", got)
	}
}
