package opa

import (
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"quartermaster"
)

// source is what a policy is made from.
type source struct {
	layer   string // as it is called in words: "house policy"
	keeper  string // who can change it
	modules []module
	data    map[string]any // of the house; projects have none of their own
	query   ast.Ref
	setting string // what names the query
}

// The layers in words.
const (
	houseLayer   = "house policy"
	projectLayer = "project policy"
)

// policy is a source, compiled. It is immutable.
type policy struct {
	source
	compiler *ast.Compiler
	static   ast.Object // of data
	allow    asking     // the rule that the query names
	allowed  asking     // the set rule beside it
	err      error      // why it cannot be asked; then nothing else is set
}

// asking is one rule of a policy that can be asked.
type asking struct {
	ref   ast.Ref
	rules []*ast.Rule // none: it is not offered
	reads reads
}

func (a asking) offered() bool { return len(a.rules) > 0 }

// functions are what cannot be asked: there is nothing to call them with.
func (a asking) functions() (found problems) {
	for _, r := range a.rules {
		if len(r.Head.Args) > 0 {
			found = append(found, problem{r.Location.File, r.Location.Row, fmt.Sprintf("%s is a function: the query must name a rule without arguments", a.ref)})
		}
	}
	return found
}

// shipped reports whether this is the default that stands where no policy is.
func (p *policy) shipped() bool { return p.modules[0].file == defaultFile }

// empty reports whether there is nothing to ask: no module but for tests.
func (p *policy) empty() bool { return p.compiler == nil && p.err == nil }

// docs are the documents of the catalog that the policy reads.
func (p *policy) docs() docs { return p.allow.reads.docs | p.allowed.reads.docs }

func (e *Engine) shippedDefault() (*policy, error) {
	query, err := parseQuery(quartermaster.DefaultPolicyQuery)
	if err != nil {
		return nil, err
	}
	p := e.compile(source{layer: projectLayer, modules: []module{{file: defaultFile, text: defaultText}}, query: query})
	return p, p.err
}

// projectSource is what a catalog says of policies.
func projectSource(catalog *quartermaster.Catalog) (source, error) {
	query, err := parseQuery(queryOf(catalog))
	return source{
		layer: projectLayer, keeper: "the project's policies",
		modules: modulesOf(catalog.Policies()), query: query, setting: "policyQuery",
	}, err
}

func queryOf(catalog *quartermaster.Catalog) string {
	if query := catalog.Project().PolicyQuery; query != "" {
		return query
	}
	return quartermaster.DefaultPolicyQuery
}

func (e *Engine) compileProject(catalog *quartermaster.Catalog) *policy {
	s, err := projectSource(catalog)
	if err != nil {
		return &policy{source: s, err: err}
	}
	return e.compile(s)
}

// compile makes a policy of the modules that are not tests.
func (e *Engine) compile(s source) *policy {
	p := &policy{source: s}
	modules := slices.DeleteFunc(slices.Clone(s.modules), module.test)
	if len(modules) == 0 {
		return p
	}
	trees, found := parse(modules)
	if len(found) > 0 {
		p.err = found
		return p
	}
	if p.err = withRoles(trees); p.err != nil {
		return p
	}
	if p.static, p.err = staticData(s.data); p.err != nil {
		return p
	}
	compiler := e.compiler()
	if p.err = guarded(func() error { compiler.Compile(trees); return nil }); p.err != nil {
		return p
	}
	if compiler.Failed() {
		p.err = problemsOf(modules[0].file, compiler.Errors)
		return p
	}
	p.compiler = compiler
	p.allow = p.asking(s.query)
	p.allowed = p.asking(setRule(s.query))
	if found := append(p.allow.functions(), p.allowed.functions()...); len(found) > 0 {
		return &policy{source: s, err: found}
	}
	return p
}

func (e *Engine) compiler() *ast.Compiler { return ast.NewCompiler().WithCapabilities(e.caps) }

func (p *policy) asking(ref ast.Ref) asking {
	a := asking{ref: ref, rules: p.compiler.GetRulesExact(ref)}
	if a.offered() {
		a.reads = analyze(p.compiler, ref, a.rules)
	}
	return a
}

// setRule is the rule beside the query that answers for many tools at once.
func setRule(query ast.Ref) ast.Ref {
	return query[:len(query)-1].Append(ast.StringTerm("allowed"))
}

// undefined says that nothing decides, and what seems to be meant; "" where
// something does.
func (p *policy) undefined() string {
	if p.allow.offered() || p.allowed.offered() {
		return ""
	}
	words := fmt.Sprintf("nothing defines %s: every tool is refused", p.query)
	var others []string
	for _, m := range p.compiler.Modules {
		for _, r := range m.Rules {
			if ref := r.Ref().GroundPrefix().String(); strings.HasSuffix(ref, ".allow") && !slices.Contains(others, ref) {
				others = append(others, ref)
			}
		}
	}
	if len(others) == 0 {
		return words
	}
	slices.Sort(others)
	return fmt.Sprintf("%s; the policies define %s: set %s to it", words, strings.Join(others, " and "), p.setting)
}

func staticData(data map[string]any) (ast.Object, error) {
	for name := range data {
		if supplied[name] != 0 {
			return nil, fmt.Errorf("data.%s is supplied by Quartermaster: give the data another name", name)
		}
	}
	if data == nil {
		data = map[string]any{}
	}
	value, err := ast.InterfaceToValue(data)
	if err != nil {
		return nil, err
	}
	return value.(ast.Object), nil
}

// capabilities are what policies may call. They see nothing of the process that
// they run in and reach no host but those that are named.
func capabilities(hosts []string) *ast.Capabilities {
	caps := ast.CapabilitiesForThisVersion()
	caps.Builtins = slices.DeleteFunc(caps.Builtins, func(b *ast.Builtin) bool {
		switch b.Name {
		case ast.OPARuntime.Name, ast.NetLookupIPAddr.Name:
			return true
		case ast.BitsShiftLeft.Name:
			return true // one call can ask for more memory than there is
		case ast.HTTPSend.Name:
			return len(hosts) == 0
		}
		return false
	})
	caps.AllowNet = append([]string{}, hosts...) // nil would be every host
	return caps
}

// guarded turns a panic into an error: a policy must not end the process.
func guarded(f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = errors.Join(errPanic, fmt.Errorf("%v\n%s", r, debug.Stack()))
		}
	}()
	return f()
}

var errPanic = errors.New("OPA failed")
