package provider

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"quartermaster"
)

// An error says which program did not start, why, and what would help; it
// never holds a value of the environment.
func TestStartProcessFails(t *testing.T) {
	dir := t.TempDir()
	file := func(name, content string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	tests := map[string]struct {
		c    command
		want string
	}{
		"no program":      {command{}, "no program is named"},
		"not found":       {command{Path: "no-such-program"}, "was not found on the PATH; install it"},
		"a relative path": {command{Path: "./nothing", Dir: dir}, "does not exist"},
		"no such file":    {command{Path: dir + "/nothing"}, "does not exist"},
		"not executable":  {command{Path: file("plain", "#!/bin/sh\n", 0o600)}, "not executable; change its mode"},
		"a directory":     {command{Path: dir}, "is a directory"},
		"no interpreter":  {command{Path: file("script", "#!/no/such/interpreter\n", 0o700)}, "interpreter that its first line names, does not exist"},
		"no program file": {command{Path: file("text", "hello", 0o700)}, "no program for this machine"},
		"no directory":    {command{Path: "sh", Dir: dir + "/nothing"}, `working directory "` + dir + `/nothing" does not exist`},
		"cwd is a file":   {command{Path: "sh", Dir: file("f", "", 0o600)}, "is a file; change cwd"},
		"NUL":             {command{Path: "sh", Args: []string{"a\x00b"}}, "NUL"},
		"NUL in a value":  {command{Path: "sh", Env: []string{"KEY=hunter2\x00"}}, "environment has no name or holds a NUL"},
		"no name":         {command{Path: "sh", Env: []string{"hunter2"}}, "environment has no name"},
		"too long":        {command{Path: "/bin/sh", Args: []string{strings.Repeat("x", 1<<20)}}, "too long"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if tt.c.Env == nil {
				tt.c.Env = []string{"KEY=hunter2", "PATH=" + dir}
			}
			p, err := startProcess(tt.c)
			if p != nil || err == nil || quartermaster.CodeOf(err) != quartermaster.CodeUnavailable {
				t.Fatalf("got %v, %v", p, err)
			}
			if text := err.Error(); !strings.Contains(text, tt.want) || !strings.Contains(text, strconv.Quote(tt.c.Path)) || strings.Contains(text, "hunter2") {
				t.Errorf("says %q, want %q", text, tt.want)
			}
		})
	}
}

// UP-2: the PATH on which a program is looked for is its own, and a relative
// path begins at its directory.
func TestProcessIsFound(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(dir+"/server", []byte("#!/bin/sh\necho found\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, c := range []command{
		{Path: "server", Env: []string{newMark(), "PATH=" + dir}},
		{Path: "./server", Env: []string{newMark()}, Dir: dir},
	} {
		if out, err := io.ReadAll(start(t, c)); string(out) != "found\n" || err != nil {
			t.Errorf("%s: %q, %v", c.Path, out, err)
		}
	}
}

// UP-2: only PATH and HOME come from us; secrets are put in their places.
func TestEnvironment(t *testing.T) {
	t.Setenv("PATH", "/our/bin")
	t.Setenv("HOME", "/our/home")
	t.Setenv("OUR_SECRET", "hunter2")
	lookup := func(name string) (string, bool) {
		value, ok := map[string]string{"KEY": "k-1", "NEST": "${KEY}"}[name]
		return value, ok
	}
	tests := map[string]struct {
		configured map[string]string
		want       []string
	}{
		"nothing":         {nil, []string{"HOME=/our/home", "PATH=/our/bin"}},
		"own":             {map[string]string{"PATH": "/x", "A": "1", "E": ""}, []string{"A=1", "E=", "HOME=/our/home", "PATH=/x"}},
		"secrets":         {map[string]string{"A": "Bearer ${KEY}:${KEY}"}, []string{"A=Bearer k-1:k-1", "HOME=/our/home", "PATH=/our/bin"}},
		"not looked into": {map[string]string{"A": "${NEST}"}, []string{"A=${KEY}", "HOME=/our/home", "PATH=/our/bin"}},
		"no reference":    {map[string]string{"A": "$KEY ${} ${1}"}, []string{"A=$KEY ${} ${1}", "HOME=/our/home", "PATH=/our/bin"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got, err := environment(tt.configured, lookup); !slices.Equal(got, tt.want) || err != nil {
				t.Errorf("got %q, %v, want %q", got, err, tt.want)
			}
		})
	}
	t.Run("missing", func(t *testing.T) {
		got, err := environment(map[string]string{"A": "${KEY}", "B": "x-${OUR_SECRET}"}, lookup)
		if got != nil || quartermaster.CodeOf(err) != quartermaster.CodeUnavailable {
			t.Fatal(got, err)
		}
		const want = "env.B refers to ${OUR_SECRET}, which is not set; set it with: quartermaster secrets set OUR_SECRET"
		if err.Error() != want {
			t.Errorf("says %q", err)
		}
	})
	t.Run("we have none", func(t *testing.T) {
		os.Unsetenv("PATH")
		os.Unsetenv("HOME")
		if got, err := environment(nil, lookup); len(got) > 0 || err != nil {
			t.Error(got, err)
		}
	})
}
