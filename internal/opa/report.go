package opa

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"
	"github.com/open-policy-agent/opa/v1/storage"
	"github.com/open-policy-agent/opa/v1/tester"

	"quartermaster"
)

// testLimit is how long all tests of a policy may take together, testOneLimit
// how long each of them.
const (
	testLimit    = 30 * time.Second
	testOneLimit = 5 * time.Second
)

// Test implements quartermaster.PolicyEngine.
func (e *Engine) Test(ctx context.Context, catalog *quartermaster.Catalog) (quartermaster.PolicyReport, error) {
	report := quartermaster.PolicyReport{Tests: []quartermaster.PolicyTest{}}
	if len(catalog.Policies()) == 0 {
		return report, nil
	}
	p := e.compileProject(catalog)
	if p.err != nil {
		return report, refusal(p.err, catalog.Policies())
	}
	if !p.empty() {
		report.Warnings = p.warnings()
	}
	tests, skipped, err := e.test(ctx, p.source, store(catalog, docEvery, ast.NewObject()))
	if err != nil {
		return report, refusal(err, catalog.Policies())
	}
	report.Tests = append(report.Tests, tests...)
	report.Warnings = append(report.Warnings, skipped...)
	return report, nil
}

// warnings are what is most likely not meant.
func (p *policy) warnings() []string {
	var all []string
	if words := p.undefined(); words != "" {
		all = append(all, words)
	}
	for _, a := range []asking{p.allow, p.allowed} {
		for _, field := range a.reads.unknown {
			if words := field + " is never there"; !slices.Contains(all, words) {
				all = append(all, words)
			}
		}
	}
	if p.allowed.offered() {
		switch kind := p.allowed.rules[0].Head.DocKind(); {
		case kind == ast.PartialObjectDoc:
			all = append(all, fmt.Sprintf("%s is an object, not a set: no tool is in it; write allowed contains name if", p.allowed.ref))
		case !p.allowed.reads.apart:
			all = append(all, fmt.Sprintf("%s looks at the tools together: its answers are not kept, and a call asks it about one tool alone", p.allowed.ref))
		}
	}
	return all
}

// test runs the tests of all modules. Those that are set aside are warnings.
func (e *Engine) test(ctx context.Context, s source, data storage.Store) (tests []quartermaster.PolicyTest, skipped []string, err error) {
	trees, found := parse(s.modules)
	if len(found) > 0 {
		return nil, nil, found
	}
	if err := withRoles(trees); err != nil {
		return nil, nil, err
	}
	ctx, stop := context.WithTimeout(ctx, testLimit)
	defer stop()
	compiler := e.compiler()
	runner := tester.NewRunner().SetCompiler(compiler).SetModules(trees).SetStore(data).
		CapturePrintOutput(false).RaiseBuiltinErrors(true).SetTimeout(testOneLimit).SetParallel(1)
	var results chan *tester.Result
	err = guarded(func() (err error) { results, err = runner.RunTests(ctx, nil); return err })
	if err != nil {
		return nil, nil, testProblems(s, err)
	}
	for _, result := range inOrder(results) {
		test := testOf(result)
		switch {
		case result.Skip:
			skipped = append(skipped, fmt.Sprintf("%s at %s is set aside: todo_ stands before its name", test.Name, test.Location))
			continue
		case result.Fail && result.Error == nil:
			test.Reason = missed(ctx, compiler, data, result)
		}
		tests = append(tests, test)
	}
	if ctx.Err() != nil {
		err = quartermaster.Errorf(quartermaster.CodeInvalidRequest, "the tests of the %s take longer than %s together", s.layer, testLimit)
	}
	return tests, skipped, err
}

func inOrder(results chan *tester.Result) []*tester.Result {
	var all []*tester.Result
	for r := range results {
		all = append(all, r)
	}
	slices.SortFunc(all, func(a, b *tester.Result) int {
		return cmp.Or(strings.Compare(a.Location.File, b.Location.File), a.Location.Row-b.Location.Row)
	})
	return all
}

// missed runs a test that failed once more, to see where.
func missed(ctx context.Context, compiler *ast.Compiler, data storage.Store, result *tester.Result) string {
	ctx, stop := context.WithTimeout(ctx, testOneLimit)
	defer stop()
	var seen watcher
	for _, m := range compiler.Modules {
		for _, r := range m.Rules {
			if r.Location.Equal(result.Location) {
				seen.expect([]*ast.Rule{r})
			}
		}
	}
	_, err := rego.New(rego.Query(result.Package+"."+result.Name), rego.Compiler(compiler), rego.Store(data),
		rego.QueryTracer(&seen)).Eval(ctx)
	for _, t := range seen.tries {
		if err == nil && t.failed != nil && t.failed.Location != nil {
			return fmt.Sprintf("line %d, %s, is not true", t.failed.Location.Row, quote(t.failed))
		}
	}
	return "it is not true"
}

func testProblems(s source, err error) error {
	if _, ok := errors.AsType[ast.Errors](err); ok {
		return problemsOf(s.modules[0].file, err)
	}
	return err
}

func testOf(r *tester.Result) quartermaster.PolicyTest {
	t := quartermaster.PolicyTest{
		Name: r.Package + "." + r.Name, Location: place(r.Location), Passed: r.Pass(),
		Duration: quartermaster.Duration(r.Duration),
	}
	if r.Error != nil {
		t.Reason = r.Error.Error()
	}
	return t
}

// refusal is what is wrong with a project's policies, for whoever writes them.
func refusal(err error, policies []*quartermaster.Policy) error {
	found, ok := errors.AsType[problems](err)
	if !ok {
		return err
	}
	e := quartermaster.Errorf(quartermaster.CodeInvalidRequest, "the policies do not compile")
	for _, p := range found {
		location := "policies." + p.file
		for _, policy := range policies {
			if policy.File() == p.file {
				location = "policies." + policy.Name
			}
		}
		if p.line > 0 {
			location = fmt.Sprintf("%s:%d", location, p.line)
		}
		e.Faults = append(e.Faults, quartermaster.Fault{Location: location, Message: p.words})
	}
	return e
}
