package opa

import (
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"quartermaster"
)

// module is one text of Rego.
type module struct {
	file   string
	text   string
	parsed *ast.Module // nil: the text is still to be read
}

// test reports whether the module is there to test the others.
func (m module) test() bool { return strings.HasSuffix(m.file, "_test.rego") }

// modulesOf are a project's.
func modulesOf(policies []*quartermaster.Policy) []module {
	modules := make([]module, len(policies))
	for i, p := range policies {
		modules[i] = module{file: p.File(), text: p.Rego}
	}
	return modules
}

// parse reads modules, each as Rego v1 and, where that fails, as v0.
func parse(modules []module) (map[string]*ast.Module, problems) {
	parsed := make(map[string]*ast.Module, len(modules))
	var found problems
	for _, m := range modules {
		if parsed[m.file] != nil {
			found = append(found, problem{file: m.file, words: "two policies have this file name: give one of them another"})
			continue
		}
		tree, err := m.parse()
		if err != nil {
			found = append(found, problemsOf(m.file, err)...)
			continue
		}
		if root := packageRoot(tree); supplied[root] != 0 {
			found = append(found, problem{m.file, tree.Package.Location.Row, fmt.Sprintf(
				"data.%s is supplied by Quartermaster: give the package another name, such as quartermaster.tools", root)})
		}
		parsed[m.file] = tree
	}
	return parsed, found
}

func (m module) parse() (*ast.Module, error) {
	if m.parsed != nil {
		return m.parsed, nil
	}
	tree, err := ast.ParseModuleWithOpts(m.file, m.text, ast.ParserOptions{RegoVersion: ast.RegoV1})
	if err == nil && tree == nil {
		err = errors.New("holds no package")
	}
	if err == nil {
		return tree, nil
	}
	old, oldErr := ast.ParseModuleWithOpts(m.file, m.text, ast.ParserOptions{RegoVersion: ast.RegoV0})
	if oldErr == nil && old != nil {
		return old, nil
	}
	// A text that v1 finds only keywords wanting in is v0, and what is wrong
	// with it is what v0 says.
	if oldErr != nil && strings.Contains(err.Error(), "keyword is required") {
		err = oldErr
	}
	return nil, err
}

func packageRoot(tree *ast.Module) string {
	if len(tree.Package.Path) < 2 {
		return ""
	}
	root, _ := tree.Package.Path[1].Value.(ast.String)
	return string(root)
}

//go:embed default.rego
var defaultText string

//go:embed roles.rego
var rolesText string

// Files that the server ships. No policy can bear such a name.
const (
	defaultFile = "(shipped) default.rego"
	rolesFile   = "(shipped) roles.rego"
)

// withRoles adds the shipped companion to every package that asks for
// user_has_role[user][role] and does not define it itself (GATE-7).
func withRoles(parsed map[string]*ast.Module) error {
	asking, having := map[string]ast.Ref{}, map[string]bool{}
	for _, m := range parsed {
		home := m.Package.Path.String()
		ast.WalkRefs(m, func(r ast.Ref) bool {
			if r[0].Value.Compare(hasRole) == 0 {
				asking[home] = m.Package.Path
			}
			return false
		})
		for _, r := range m.Rules {
			having[home] = having[home] || r.Head.Ref()[0].Value.Compare(hasRole) == 0
		}
		for _, i := range m.Imports {
			having[home] = having[home] || i.Name() == hasRole
		}
	}
	for home, path := range asking {
		if having[home] {
			continue
		}
		tree, err := ast.ParseModuleWithOpts(rolesFile, rolesText, ast.ParserOptions{RegoVersion: ast.RegoV1})
		if err != nil {
			return err
		}
		tree.Package.Path = path
		parsed[rolesFile+" for "+home] = tree
	}
	return nil
}

const hasRole = ast.Var("user_has_role")

// problem is one thing that is wrong with a module.
type problem struct {
	file  string
	line  int
	words string
}

func (p problem) String() string {
	if p.line == 0 {
		return p.file + ": " + p.words
	}
	return fmt.Sprintf("%s:%d: %s", p.file, p.line, p.words)
}

// problems are an error; none of them is none.
type problems []problem

func (p problems) Error() string {
	words := make([]string, len(p))
	for i, one := range p {
		words[i] = one.String()
	}
	return strings.Join(words, "; ")
}

// problemsOf puts what OPA found wrong into places and words. file is for an
// error that does not say where.
func problemsOf(file string, err error) problems {
	all, ok := errors.AsType[ast.Errors](err)
	if one, single := errors.AsType[*ast.Error](err); single && !ok {
		all, ok = ast.Errors{one}, true
	}
	if !ok {
		return problems{{file: file, words: err.Error()}}
	}
	found := make(problems, len(all))
	for i, e := range all {
		found[i] = problem{file: file, words: remedied(e.Message)}
		if e.Location != nil {
			found[i].line = e.Location.Row
			if e.Location.File != "" {
				found[i].file = e.Location.File
			}
		}
	}
	slices.SortStableFunc(found, func(a, b problem) int {
		if c := strings.Compare(a.file, b.file); c != 0 {
			return c
		}
		return a.line - b.line
	})
	return found
}

// remedied says of functions that are switched off what can be done.
func remedied(message string) string {
	switch name, _ := strings.CutPrefix(message, "undefined function "); name {
	case "http.send":
		return "http.send is switched off: start the server with --policy-host HOST for each host that policies may reach"
	case "opa.runtime", "net.lookup_ip_addr":
		return name + " is not offered to policies here"
	}
	return message
}
