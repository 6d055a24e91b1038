package opa

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/open-policy-agent/opa/v1/util"

	"quartermaster"
)

const (
	filesPoll  = 500 * time.Millisecond
	filesLimit = 32 << 20 // of all files of the house together
)

// files is a house policy that stands in files. They are looked at twice a
// second: names, sizes and times, and what is in them where one of those has
// changed or is so young that it could change unnoticed. That works on mounted
// volumes and with every editor.
type files struct {
	following
	engine *Engine
	path   string
	stamp  string
	digest [sha256.Size]byte
}

func (e *Engine) openFiles(ctx context.Context) (house, error) {
	f := &files{engine: e, path: e.options.Path}
	stamp, err := f.look()
	if err != nil {
		return nil, invalid(err)
	}
	if err := f.load(ctx, stamp); err != nil {
		return nil, err
	}
	interval := e.options.poll
	if interval == 0 {
		interval = filesPoll
	}
	f.follow(func(ctx context.Context) { f.watch(ctx, interval) })
	return f, nil
}

func (f *files) watch(ctx context.Context, interval time.Duration) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		stamp, err := f.look()
		switch {
		case err != nil:
			f.stamp = "" // whatever is seen next is news
		case stamp == f.stamp:
			continue
		default:
			err = f.load(ctx, stamp)
		}
		if ctx.Err() == nil {
			f.heard(f.engine.options.Log, err)
		}
	}
}

// load reads and tries the files, and puts them into force if they are good.
func (f *files) load(ctx context.Context, stamp string) error {
	s, err := f.read()
	if err != nil {
		return invalid(err)
	}
	digest := s.digest()
	f.stamp = stamp
	if digest == f.digest {
		return f.refused
	}
	f.digest = digest
	p, err := f.engine.build(ctx, s)
	f.refused = err
	if err == nil {
		f.enforce(p)
	}
	return err
}

// root is the directory of the files and the one file that is meant, if so.
func (f *files) root() (root fs.FS, only string, err error) {
	info, err := os.Stat(f.path)
	switch {
	case err != nil:
		return nil, "", err
	case info.IsDir():
		return os.DirFS(f.path), "", nil
	}
	return os.DirFS(filepath.Dir(f.path)), filepath.Base(f.path), nil
}

// each visits the files that count. Hidden ones do not: editors and volumes
// keep their own there.
func (f *files) each(visit func(root fs.FS, name string, info fs.FileInfo) error) error {
	root, only, err := f.root()
	if err != nil {
		return err
	}
	if only != "" {
		info, err := fs.Stat(root, only)
		if err != nil {
			return err
		}
		return visit(root, only, info)
	}
	return fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case name != "." && strings.HasPrefix(path.Base(name), "."):
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		case d.IsDir() || !counts(name):
			return nil
		}
		info, err := fs.Stat(root, name) // follows links
		if err != nil || info.IsDir() {
			return err
		}
		return visit(root, name, info)
	})
}

func counts(name string) bool {
	return slices.Contains([]string{".rego", ".json", ".yaml", ".yml"}, path.Ext(name))
}

// look tells whether the files may have changed.
func (f *files) look() (stamp string, err error) {
	var b strings.Builder
	now := time.Now()
	err = f.each(func(_ fs.FS, name string, info fs.FileInfo) error {
		fmt.Fprintf(&b, "%q %d %d\n", name, info.Size(), info.ModTime().UnixNano())
		// Two writes within one tick of the file system's clock look alike.
		if now.Sub(info.ModTime()) < 2*time.Second {
			fmt.Fprintln(&b, now.UnixNano())
		}
		return nil
	})
	return b.String(), err
}

func (f *files) read() (source, error) {
	s := f.engine.houseSource()
	s.data = map[string]any{}
	total := int64(0)
	err := f.each(func(root fs.FS, name string, info fs.FileInfo) error {
		if total += info.Size(); total > filesLimit {
			return fmt.Errorf("%s has more than %d bytes", f.path, filesLimit)
		}
		content, err := fs.ReadFile(root, name)
		if err != nil {
			return err
		}
		if path.Ext(name) == ".rego" {
			s.modules = append(s.modules, module{file: name, text: string(content)})
			return nil
		}
		return s.addData(name, content)
	})
	if err == nil && !slices.ContainsFunc(s.modules, func(m module) bool { return !m.test() }) {
		err = fmt.Errorf("there is no .rego file in %s", f.path)
	}
	return s, err
}

// addData puts a file of data where its directory says, as OPA does.
func (s *source) addData(name string, content []byte) error {
	var value any
	if err := util.Unmarshal(content, &value); err != nil {
		return problems{{file: name, words: err.Error()}}
	}
	if dir := path.Dir(name); dir != "." {
		parts := strings.Split(dir, "/")
		for _, part := range slices.Backward(parts) {
			value = map[string]any{part: value}
		}
	}
	document, ok := value.(map[string]any)
	if !ok {
		return problems{{file: name, words: "must hold an object"}}
	}
	if !merge(s.data, document) {
		return problems{{file: name, words: "gives data that another file gives too"}}
	}
	return nil
}

// merge adds from to into; false where both have one value.
func merge(into, from map[string]any) bool {
	for key, value := range from {
		old, taken := into[key]
		if !taken {
			into[key] = value
			continue
		}
		a, okA := old.(map[string]any)
		b, okB := value.(map[string]any)
		if !okA || !okB || !merge(a, b) {
			return false
		}
	}
	return true
}

func (f *files) status() quartermaster.EngineStatus {
	p := f.policy.Load()
	return quartermaster.EngineStatus{
		Detail:  fmt.Sprintf("%s: %s in %s", houseLayer, count(len(p.modules), "file"), f.path),
		Trouble: f.trouble(),
	}
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
