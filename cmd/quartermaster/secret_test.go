package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// SEC-3: a value given as an argument is refused, and not repeated.
func TestSecretIsNoArgument(t *testing.T) {
	for _, args := range [][]string{
		{"secrets", "set", "A", "hunter2"}, {"secrets", "set", "A=hunter2"}, {"secrets", "set", "hunter2 x"},
	} {
		code, out, errOut := program(t, "", args...)
		if code != exitUsage || strings.Contains(out+errOut, "hunter2") || !strings.Contains(errOut, "standard input") {
			t.Errorf("%q: %d %q %q", args, code, out, errOut)
		}
	}
	if code, _, errOut := program(t, "hunter2", "secrets", "set"); code != exitUsage || !strings.Contains(errOut, "the name of the secret is missing") {
		t.Errorf("no name: %d %q", code, errOut)
	}
	for _, empty := range []string{"", "\n", "\r\n"} {
		if code, _, errOut := program(t, empty, "secrets", "set", "A"); code != exitUsage || !strings.Contains(errOut, "the value is empty") {
			t.Errorf("%q: %d %q", empty, code, errOut)
		}
	}
	if code, _, errOut := program(t, strings.Repeat("x", maxSecret+1), "secrets", "set", "A"); code != 20 {
		t.Errorf("too large: %d %q", code, errOut)
	}
}

func TestReadSecret(t *testing.T) {
	file := filepath.Join(t.TempDir(), "value")
	for _, tt := range [][2]string{
		{"abc", "abc"}, {"abc\n", "abc"}, {"abc\r\n", "abc"}, {"abc\n\n", "abc\n"}, {" abc \n", " abc "}, {"a\nb\n", "a\nb"}, {"abc\r", "abc\r"},
	} {
		given, want := tt[0], tt[1]
		a := &app{in: strings.NewReader(given)}
		if got, err := a.readSecret(t.Context(), "A", ""); err != nil || got != want {
			t.Errorf("stdin %q: %q (%v), want %q", given, got, err, want)
		}
		if err := os.WriteFile(file, []byte(given), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := a.readSecret(t.Context(), "A", file); err != nil || got != want {
			t.Errorf("file %q: %q (%v), want %q", given, got, err, want)
		}
	}
	if _, err := (&app{}).readSecret(t.Context(), "A", file+"-none"); err == nil {
		t.Error("a file that is not there was read")
	}
}
