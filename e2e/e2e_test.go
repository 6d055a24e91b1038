// Package e2e runs the built program as people do: every testdata/*.txtar is a
// script of commands with what they must print and the codes they must end with.
package e2e

import (
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"quartermaster/internal/store/storetest"
)

var update = flag.Bool("update", false, "rewrite what the scripts expect to what they get")

// bin is where the program under test is.
var bin string

func TestMain(m *testing.M) {
	flag.Parse()
	code, err := build(func() int { return storetest.Main(m) })
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		code = 1
	}
	os.Exit(code)
}

// build makes the program, runs the tests and tidies up.
func build(tests func() int) (int, error) {
	dir, err := os.MkdirTemp("", "quartermaster-e2e-")
	if err != nil {
		return 0, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	bin = dir
	args := append([]string{"build", "-ldflags", "-X main.version=v0-e2e", "-o", filepath.Join(dir, "quartermaster")}, buildFlags...)
	cmd := exec.Command("go", append(args, "../cmd/quartermaster")...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("build the program: %w\n%s", err, out)
	}
	return tests(), nil
}

// lookAtSource tells the go command what this test depends on. It cannot see
// that the program was built, and would keep a result of an older one.
func lookAtSource(t *testing.T) {
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		switch d.Name() {
		case ".git", "bin", "docs", "e2e":
			return fs.SkipDir
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestScripts(t *testing.T) {
	lookAtSource(t)
	testscript.Run(t, testscript.Params{
		Dir:                "testdata",
		UpdateScripts:      *update,
		RequireUniqueNames: true,
		Setup:              setup,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits,
			"serve": serve,
			"halt":  halt, // not stop: testscript has one, which ends the script
			"setid": setID,
			"same":  same,
			"await": await,
			"until": until,

			"orphans": orphans,
		},
		Condition: func(name string) (bool, error) {
			if name != "npm" {
				return false, fmt.Errorf("unknown condition %q", name)
			}
			return os.Getenv("QUARTERMASTER_NPM") != "", nil
		},
	})
}
