package provider

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"quartermaster"
	"quartermaster/internal/provider/supervise"
)

// command is a program to run as an upstream server.
type command struct {
	Path   string
	Args   []string
	Env    []string // complete environment: KEY=VALUE
	Dir    string
	Hidden []string // values that Stderr must not show
}

// supervised starts the supervisor, which starts the program.
func (c command) supervised(file string, brand supervise.Brand, descriptors []*os.File) (*os.Process, error) {
	self, err := supervise.Executable()
	if err != nil {
		return nil, err
	}
	argv := []string{os.Args[0], supervise.Argument, brand.String(), orphanGrace.String(), file, c.Path}
	return os.StartProcess(self, append(argv, c.Args...), &os.ProcAttr{ //nolint:gosec // operators configure what we start
		Dir:   c.Dir,
		Env:   append([]string{}, c.Env...), // nil would be our own
		Files: descriptors,
		Sys:   &syscall.SysProcAttr{Setsid: true}, // or an interrupt at our terminal would reach it
	})
}

// find finds the file of the program, and what can be known to be wrong before
// anything is started.
func (c command) find() (file, reason string) {
	if c.Path == "" {
		return "", "no program is named"
	}
	for _, text := range slices.Concat([]string{c.Path, c.Dir}, c.Args) {
		if strings.ContainsRune(text, 0) {
			return "", "its path, arguments or directory hold a NUL character"
		}
	}
	for _, entry := range c.Env {
		if name, _, ok := strings.Cut(entry, "="); !ok || name == "" || strings.ContainsRune(entry, 0) {
			return "", "an entry of its environment has no name or holds a NUL character"
		}
	}
	if reason := c.directoryFault(); reason != "" {
		return "", reason
	}
	if !strings.Contains(c.Path, "/") {
		if file = c.onPath(); file == "" {
			return "", "it was not found on the PATH; install it, or give its full path"
		}
		return file, ""
	}
	if info, err := os.Stat(c.fromDirectory(c.Path)); err == nil && info.IsDir() {
		return "", "it is a directory"
	}
	return c.Path, ""
}

// fromDirectory is a path as the program would see it.
func (c command) fromDirectory(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(c.Dir, path)
}

func (c command) directoryFault() string {
	if c.Dir == "" {
		return ""
	}
	switch info, err := os.Stat(c.Dir); {
	case errors.Is(err, os.ErrNotExist):
		return fmt.Sprintf("its working directory %q does not exist; create it, or change cwd", c.Dir)
	case err != nil:
		return fmt.Sprintf("its working directory %q cannot be used: %v", c.Dir, errors.Unwrap(err))
	case !info.IsDir():
		return fmt.Sprintf("its working directory %q is a file; change cwd", c.Dir)
	}
	return ""
}

// onPath looks for the program on the PATH that it will have itself, as a shell
// in that environment would.
func (c command) onPath() string {
	for _, entry := range c.Env {
		path, ok := strings.CutPrefix(entry, "PATH=")
		if !ok {
			continue
		}
		for _, dir := range filepath.SplitList(path) {
			file := filepath.Join(dir, c.Path)
			if info, err := os.Stat(file); err == nil && filepath.IsAbs(file) && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
				return file
			}
		}
	}
	return ""
}

// startFault puts into words why a program did not start, and what would help.
func startFault(err error) string {
	var no syscall.Errno
	if !errors.As(err, &no) {
		return err.Error()
	}
	switch no {
	case syscall.ENOENT:
		return "it, or the interpreter that its first line names, does not exist"
	case syscall.EACCES:
		return "it is not executable; change its mode"
	case syscall.ENOEXEC:
		return "it is no program for this machine"
	case syscall.E2BIG:
		return "its arguments and environment are too long"
	case syscall.EAGAIN, syscall.ENOMEM:
		return "the machine has no room for another process"
	}
	return no.Error()
}

func (c command) failed(reason string) error {
	return quartermaster.Errorf(quartermaster.CodeUnavailable, "cannot start %q: %s", c.Path, reason)
}

// environment is all that a program of an upstream server gets to see: PATH and
// HOME of ours and what is configured, with the secrets in their places (UP-2).
func environment(configured map[string]string, lookup func(name string) (string, bool)) ([]string, error) {
	env := map[string]string{}
	for _, name := range []string{"PATH", "HOME"} {
		if value, ok := os.LookupEnv(name); ok {
			env[name] = value
		}
	}
	for _, key := range slices.Sorted(maps.Keys(configured)) {
		value, err := quartermaster.ExpandSecrets(configured[key], func(name string) (string, error) {
			value, ok := lookup(name)
			if !ok {
				return "", quartermaster.Errorf(quartermaster.CodeUnavailable,
					"env.%s refers to ${%s}, which is not set; set it with: quartermaster secrets set %s", key, name, name)
			}
			return value, nil
		})
		if err != nil {
			return nil, err
		}
		env[key] = value
	}
	all := make([]string, 0, len(env))
	for _, key := range slices.Sorted(maps.Keys(env)) {
		all = append(all, key+"="+env[key])
	}
	return all, nil
}
