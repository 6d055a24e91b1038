package quartermaster_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
)

const module = "quartermaster"

// Invariant 6: each heavy dependency has one door. An import that begins with
// the key may stand in these directories (not below them) and nowhere else.
var doors = map[string][]string{
	"database/sql":                           {"internal/store"},
	"github.com/authzed":                     {"internal/spicedb"},
	"github.com/coder/websocket":             {"internal/provider"},
	"github.com/danielgtaylor/huma":          {"internal/server"},
	"github.com/goccy/go-yaml":               {"cmd/quartermaster"},
	"github.com/jackc/pgx":                   {"internal/store", "internal/store/storetest"},
	"github.com/modelcontextprotocol/go-sdk": {"internal/provider"},
	"github.com/open-policy-agent":           {"internal/opa"},
	"github.com/pressly/goose":               {"internal/store"},
	"github.com/prometheus/client_golang":    {"internal/server"},
	"github.com/santhosh-tekuri/jsonschema":  {"internal/schema"},
	"github.com/dlclark/regexp2":             {"internal/schema"},
	"github.com/RoaringBitmap/roaring":       {"internal/resolve"},
	"github.com/swaggest/swgui":              {"internal/server"},
	"github.com/spf13/cobra":                 {"cmd/quartermaster"},
	"go.yaml.in/yaml":                        {"cmd/quartermaster"},
	"google.golang.org/adk":                  {"internal/run"},
	"gopkg.in/yaml":                          {}, // unmaintained
	"modernc.org/sqlite":                     {"internal/store"},
	"os/exec":                                {"cmd/quartermaster", "internal/provider", "internal/store/storetest"},
}

// Packages are verbs or places. These names say nothing and collect everything.
var emptyNames = []string{"util", "utils", "common", "helpers", "manager", "service", "core", "base", "misc"}

// Invariant 4: identity is a parameter, never in a context. What a context may
// carry instead is named here, file by file.
var contextValues = []string{}

// violations reports every breach of the architecture in the product's files;
// tests may import what they like.
func violations(fsys fs.FS) []string {
	var found []string
	report := func(file, format string, args ...any) {
		found = append(found, file+": "+fmt.Sprintf(format, args...))
	}
	err := fs.WalkDir(fsys, ".", func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && notOurs(fsys, file):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go"):
			return nil
		}
		src, err := fs.ReadFile(fsys, file)
		if err != nil {
			return err
		}
		tree, err := parser.ParseFile(token.NewFileSet(), file, src, parser.SkipObjectResolution)
		if err != nil {
			report(file, "does not parse: %v", err)
			return nil
		}
		dir := path.Dir(file)
		for _, name := range []string{tree.Name.Name, path.Base(dir)} {
			if slices.Contains(emptyNames, name) {
				report(file, "package name %q says nothing", name)
				break
			}
		}
		for _, spec := range tree.Imports {
			imported, _ := strconv.Unquote(spec.Path.Value) // the parser has checked it
			if reason := refuse(dir, imported); reason != "" {
				report(file, "imports %s: %s", imported, reason)
			}
		}
		if putsValueIntoContext(tree) && !slices.Contains(contextValues, file) {
			report(file, "context.WithValue: who asks is a parameter")
		}
		return nil
	})
	if err != nil {
		report(".", "%v", err)
	}
	return found
}

// notOurs tells directories that the go command does not build with us.
func notOurs(fsys fs.FS, dir string) bool {
	if dir == "." {
		return false
	}
	base := path.Base(dir)
	if base == "testdata" || base == "vendor" || strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") {
		return true
	}
	_, err := fs.Stat(fsys, path.Join(dir, "go.mod"))
	return err == nil
}

// refuse says why a package in dir may not have this import, or nothing.
func refuse(dir, imported string) string {
	for prefix, allowed := range doors {
		if begins(imported, prefix) && !slices.Contains(allowed, dir) {
			return fmt.Sprintf("its door is %q", allowed)
		}
	}
	if !begins(imported, module) {
		first, _, _ := strings.Cut(imported, "/")
		thirdParty := strings.Contains(first, ".")
		if thirdParty && (dir == "." || begins(dir, "client")) {
			return "the standard library only"
		}
		return ""
	}
	return refuseOurs(dir, strings.TrimPrefix(strings.TrimPrefix(imported, module), "/"))
}

// Invariant 6: a star. Every package imports the root package, none imports a
// sibling, only the command imports them all.
func refuseOurs(dir, target string) string {
	switch {
	case dir == ".":
		return "the root package imports none of ours"
	case target == "":
		return ""
	case target == "internal/store/storetest":
		return "test support is no part of the product"
	case dir == "cmd/quartermaster":
		return ""
	case dir == "internal/store/storetest" && target != "internal/store":
		return "test support of the store sees the root package and the store"
	case begins(dir, "internal") && arm(dir) == arm(target):
		return ""
	default:
		return "a star: only the root package, and what lies below the same arm"
	}
}

// arm is the part of the star that a directory belongs to: internal/store for
// everything at and below it.
func arm(dir string) string {
	parts := strings.Split(dir, "/")
	return strings.Join(parts[:min(2, len(parts))], "/")
}

// begins compares whole elements; the dot is for gopkg.in/yaml.v3.
func begins(path, prefix string) bool {
	rest, ok := strings.CutPrefix(path, prefix)
	return ok && (rest == "" || rest[0] == '/' || rest[0] == '.')
}

// putsValueIntoContext finds the function even where it is renamed or only
// mentioned, not called.
func putsValueIntoContext(tree *ast.File) (found bool) {
	names := map[string]bool{} // what this file calls the context package
	for _, spec := range tree.Imports {
		if spec.Path.Value != `"context"` {
			continue
		}
		if spec.Name == nil {
			names["context"] = true
		} else {
			names[spec.Name.Name] = true
		}
	}
	ast.Inspect(tree, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			pkg, ok := n.X.(*ast.Ident)
			found = found || ok && names[pkg.Name] && n.Sel.Name == "WithValue"
		case *ast.Ident:
			found = found || names["."] && n.Name == "WithValue"
		}
		return !found
	})
	return found
}

func TestArchitecture(t *testing.T) {
	for _, v := range violations(os.DirFS(".")) {
		t.Error(v)
	}
}

func TestArchitectureCatchesPlanted(t *testing.T) {
	imports := func(pkg string, paths ...string) string {
		src := "package " + pkg + "\n"
		for _, p := range paths {
			src += fmt.Sprintf("import _ %q\n", p)
		}
		return src
	}
	// A tree in which everything that is allowed is done.
	clean := map[string]string{
		"quartermaster.go":                     imports("quartermaster", "context", "encoding/json"),
		"quartermaster_test.go":                imports("quartermaster_test", "quartermaster/internal/store", "os/exec"),
		"internal/store/store.go":              imports("store", "quartermaster", "database/sql", "github.com/jackc/pgx/v5", "modernc.org/sqlite", "github.com/google/uuid", "quartermaster/internal/store/migrations"),
		"internal/store/migrations/embed.go":   imports("migrations", "embed"),
		"internal/store/store_test.go":         imports("store_test", "quartermaster/internal/store/storetest"),
		"internal/store/storetest/postgres.go": imports("storetest", "quartermaster", "quartermaster/internal/store", "github.com/jackc/pgx/v5", "os/exec"),
		"internal/server/routes.go":            imports("server", "quartermaster", "github.com/danielgtaylor/huma/v2"),
		"internal/server/testdata/bad.go":      imports("util", "gopkg.in/yaml.v3"),
		"client/client.go":                     imports("client", "quartermaster", "net/http"),
		"cmd/quartermaster/main.go":            imports("main", "quartermaster/client", "quartermaster/internal/server", "quartermaster/internal/store", "github.com/spf13/cobra"),
		"tools/go.mod":                         "module quartermaster/tools",
		"tools/tool.go":                        imports("util", "gopkg.in/yaml.v3"),
	}
	tree := func() fstest.MapFS {
		fsys := fstest.MapFS{}
		for name, src := range clean {
			fsys[name] = &fstest.MapFile{Data: []byte(src)}
		}
		return fsys
	}
	if got := violations(tree()); len(got) != 0 {
		t.Fatalf("the clean tree is refused: %q", got)
	}

	type planted struct{ file, src, want string }
	tests := map[string]planted{
		"root imports third party":    {"bad.go", imports("quartermaster", "github.com/google/uuid"), "standard library only"},
		"root imports ours":           {"bad.go", imports("quartermaster", "quartermaster/internal/store"), "imports none of ours"},
		"sibling":                     {"internal/resolve/bad.go", imports("resolve", "quartermaster/internal/invoke"), "a star"},
		"sibling's child":             {"internal/resolve/bad.go", imports("resolve", "quartermaster/internal/store/migrations"), "a star"},
		"sibling of like name":        {"internal/storefront/bad.go", imports("storefront", "quartermaster/internal/store"), "a star"},
		"child imports sibling":       {"internal/store/migrations/bad.go", imports("migrations", "quartermaster/internal/server"), "a star"},
		"internal imports client":     {"internal/run/bad.go", imports("run", "quartermaster/client"), "a star"},
		"internal imports command":    {"internal/run/bad.go", imports("run", "quartermaster/cmd/quartermaster"), "a star"},
		"client imports internal":     {"client/bad.go", imports("client", "quartermaster/internal/store"), "a star"},
		"client imports third party":  {"client/bad.go", imports("client", "github.com/google/uuid"), "standard library only"},
		"another command":             {"cmd/other/main.go", imports("main", "quartermaster/internal/store"), "a star"},
		"a new place":                 {"example/main.go", imports("main", "quartermaster/client"), "a star"},
		"test support sees too much":  {"internal/store/storetest/bad.go", imports("storetest", "quartermaster/internal/store/migrations"), "test support of the store"},
		"test support in the product": {"internal/store/bad.go", imports("store", "quartermaster/internal/store/storetest"), "no part of the product"},
		"test support in the command": {"cmd/quartermaster/bad.go", imports("main", "quartermaster/internal/store/storetest"), "no part of the product"},
		"built only elsewhere":        {"internal/run/bad_windows.go", "//go:build windows\n\n" + imports("run", "os/exec"), "its door"},
		"renamed import":              {"internal/run/bad.go", "package run\nimport s \"quartermaster/internal/store\"\nvar _ = s.X\n", "a star"},
		"a door does not open below":  {"internal/server/ui/bad.go", imports("ui", "github.com/danielgtaylor/huma/v2"), "its door"},
		"subpackage of a dependency":  {"internal/run/bad.go", imports("run", "github.com/jackc/pgx/v5/pgxpool"), "its door"},
		"a door of nobody":            {"cmd/quartermaster/bad.go", imports("main", "gopkg.in/yaml.v3"), "its door"},
		"context value":               {"internal/run/bad.go", "package run\nimport \"context\"\nvar C = context.WithValue(context.Background(), 1, 2)\n", "WithValue"},
		"context value, renamed":      {"internal/run/bad.go", "package run\nimport c \"context\"\nvar put = c.WithValue\n", "WithValue"},
		"context value, dot import":   {"internal/run/bad.go", "package run\nimport . \"context\"\nvar C = WithValue(Background(), 1, 2)\n", "WithValue"},
		"a file that does not parse":  {"internal/run/bad.go", "package", "does not parse"},
		"empty name of the directory": {"internal/helpers/bad.go", "package fine\n", "says nothing"},
	}
	for _, name := range emptyNames {
		tests["package "+name] = planted{"internal/fine/bad.go", "package " + name + "\n", "says nothing"}
	}
	for door := range doors {
		tests["door of "+door] = planted{"internal/nowhere/bad.go", imports("nowhere", door), "its door"}
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			fsys := tree()
			fsys[tt.file] = &fstest.MapFile{Data: []byte(tt.src)}
			got := violations(fsys)
			if len(got) != 1 || !strings.HasPrefix(got[0], tt.file+": ") || !strings.Contains(got[0], tt.want) {
				t.Errorf("got %q, want one about %s saying %q", got, tt.file, tt.want)
			}
		})
	}
}
