package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"quartermaster"
	"quartermaster/client"
)

const policyLong = `A policy is a Rego module. The policies of a project compile together and are asked
for every list and call; "quartermaster policy query" says by which rule. One whose
name ends in _test is there to test the others: a change by which a test fails is
refused, and the old policies stay.`

func policyCommand(a *app) *cobra.Command {
	c := nounCommand("policy", "List, put, test and delete policies", policyLong,
		policyList(a), policyShow(a), policyPut(a), policyDelete(a), policyTest(a), policyQuery(a))
	c.Aliases = []string{"policies"}
	return c
}

func policyList(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List all policies of the project", Args: cobra.NoArgs,
		RunE: listAll(a, (*client.Project).Policies, "no policies: the default allows everything; put one with: quartermaster policy put FILE",
			[]string{"NAME", "UPDATED", "LINES", "PACKAGE"}, func(p quartermaster.Policy) []string {
				return []string{p.Name, when(p.UpdatedAt), fmt.Sprint(lineCount(p.Rego)), packageOf(p.Rego)}
			}),
	}
}

func lineCount(text string) int { return strings.Count(strings.TrimSuffix(text, "\n"), "\n") + 1 }

// packageOf is the name that a module gives to its package.
func packageOf(rego string) string {
	for line := range strings.Lines(rego) {
		if words := strings.Fields(line); len(words) > 1 && words[0] == "package" {
			return words[1]
		}
	}
	return ""
}

func policyShow(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "show NAME", Aliases: []string{"get"}, Short: "Print a policy", Args: cobra.ExactArgs(1), ValidArgsFunction: a.completePolicies,
		Example: "  quartermaster policy show access > access.rego",
		RunE: a.inProject(func(ctx context.Context, p *client.Project, args []string) error {
			policy, err := p.Policy(ctx, args[0])
			if err != nil {
				return err
			}
			return a.print(policy, func() error { return a.printText(policy.Rego) })
		}),
	}
}

func policyPut(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "put [NAME] FILE...", Short: "Add or replace policies, if all of them compile and pass their tests", Args: cobra.MinimumNArgs(1),
		Long: "Put adds or replaces policies, all or nothing. A policy is called what its file is, without\n" +
			".rego, or NAME, which is given before one file. FILE may be a directory, which stands for\n" +
			"all .rego files in it; - is standard input and needs a NAME.",
		Example: "  quartermaster policy put access.rego access_test.rego\n" +
			"  quartermaster policy put office-hours rules/hours.rego\n" +
			"  generate | quartermaster policy put generated -",
		RunE: a.inProject(func(ctx context.Context, p *client.Project, args []string) error {
			files, err := a.readPut(args)
			if err != nil {
				return err
			}
			body, err := files.json()
			if err != nil {
				return err
			}
			applied, err := p.ApplyFrom(ctx, body, client.ApplyOptions{})
			if err != nil {
				return files.located(err)
			}
			return a.print(applied, func() error { return a.printPut(files, applied) })
		}),
	}
}

func (a *app) printPut(files document, applied client.Applied) error {
	a.warn(applied.Warnings)
	said := map[string]string{}
	for _, d := range applied.Changes {
		said[d.Name] = map[string]string{"create": "created", "update": "replaced"}[d.Action]
	}
	for name := range files.policies() {
		line := said[name] + " policy " + name
		if said[name] == "" {
			line = "policy " + name + " is as it was"
		}
		if _, err := fmt.Fprintln(a.out, plainText(line)); err != nil {
			return err
		}
	}
	return nil
}

func policyDelete(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "delete NAME...", Short: "Delete policies that the others do without", Args: cobra.MinimumNArgs(1), ValidArgsFunction: a.completePolicies,
		RunE: a.deleteEach((*client.Project).DeletePolicy, "deleted policy %s"),
	}
}

func policyTest(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "test [FILE...]", Short: "Run the tests of policies, and keep nothing",
		Long: "Test compiles the project's policies as they would be with those in the files, and runs\n" +
			"their tests; without files, those that the project has. The exit code is not 0 if one fails.",
		Example: "  quartermaster policy test access.rego access_test.rego\n  quartermaster policy test rules/\n  quartermaster policy test",
		RunE: a.inProject(func(ctx context.Context, p *client.Project, args []string) error {
			files, err := a.readPolicies(args)
			if err != nil {
				return err
			}
			policies := map[string]string{}
			for name, rego := range files.policies() {
				policies[name] = rego
			}
			report, err := p.TestPolicies(ctx, policies)
			if err != nil {
				return files.located(err)
			}
			if err := a.print(report, func() error { return a.printReport(files, report) }); err != nil {
				return err
			}
			if len(report.Failed()) > 0 {
				return silentError(exitCodes[quartermaster.CodeInvalidRequest]) // as put would end
			}
			return nil
		}),
	}
}

func (a *app) printReport(files document, report quartermaster.PolicyReport) error {
	a.warn(report.Warnings)
	for _, t := range report.Tests {
		mark := findingMarks[well]
		text := fmt.Sprintf("%s %s (%s)", files.testPlace(t.Location), t.Name, t.Duration)
		if !t.Passed {
			mark, text = findingMarks[wrong], text+": "+t.Reason
		}
		if _, err := fmt.Fprintf(a.out, "%s %s\n", a.color(mark[1], mark[0]), plainText(text)); err != nil {
			return err
		}
	}
	switch failed := len(report.Failed()); {
	case len(report.Tests) == 0:
		a.note("no tests; they are rules named test_... in policies whose name ends in _test")
	case failed > 0:
		a.note("%d of %s failed", failed, count(len(report.Tests), "test"))
	default:
		a.note("%s passed", count(len(report.Tests), "test"))
	}
	return nil
}

func policyQuery(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "query [QUERY]", Short: "Show or set the rule that decides", Args: cobra.MaximumNArgs(1), ValidArgsFunction: cobra.NoFileCompletions,
		Long: "Query shows or sets the rule of the project's policies that is asked whether a tool may be\n" +
			"used; " + quartermaster.DefaultPolicyQuery + " from the start.",
		Example: "  quartermaster policy query\n  quartermaster policy query data.soma.tools.allow",
		RunE: a.inProject(func(ctx context.Context, p *client.Project, args []string) error {
			var (
				project client.Updated
				err     error
			)
			if len(args) == 0 {
				project.Project, err = p.Get(ctx)
			} else {
				project, err = p.Update(ctx, map[string]any{"policyQuery": args[0]})
			}
			if err != nil {
				return err
			}
			a.warn(project.Warnings)
			return a.done(object{{"policyQuery", project.PolicyQuery}}, "%s", project.PolicyQuery)
		}),
	}
}

const regoEnding = ".rego"

// readPut reads what put is told to: NAME FILE, or files that have their names by
// themselves.
func (a *app) readPut(args []string) (document, error) {
	if len(args) == 2 && quartermaster.ValidToolName(args[0]) && !strings.HasSuffix(args[0], regoEnding) {
		doc := policyDocument()
		return doc, a.readPolicy(doc, args[0], args[1])
	}
	return a.readPolicies(args)
}

// readPolicies reads modules into a document, called by their files.
func (a *app) readPolicies(args []string) (document, error) {
	doc := policyDocument()
	for _, arg := range args {
		files, err := filesIn(arg, regoEnding)
		if err != nil {
			return document{}, err
		}
		for _, file := range files {
			if file == "-" {
				return document{}, usagef("standard input has no name: policy put takes one before it")
			}
			if err := a.readPolicy(doc, strings.TrimSuffix(filepath.Base(file), regoEnding), file); err != nil {
				return document{}, err
			}
		}
	}
	return doc, nil
}

// policyDocument is a project file without anything in it.
func policyDocument() document {
	return document{value: object{{"quartermaster", quartermaster.DocumentVersion}, {"policies", object{}}}, places: places{}}
}

// readPolicy adds a module to a policyDocument.
func (a *app) readPolicy(doc document, name, file string) error {
	data, shown, err := a.readAll(file)
	if err != nil {
		return err
	}
	at := join("policies", name)
	if other, taken := doc.places[at]; taken {
		return usagef("%s and %s would both be policy %s", other, shown, name)
	}
	doc.places[at] = place{file: shown}
	policies, _ := doc.value[1].value.(object)
	policies = append(policies, member{name, object{{"rego", string(data)}}})
	doc.value[1].value = policies
	return nil
}

// policies are the modules of a document, by name.
func (d document) policies() func(func(name, rego string) bool) {
	return func(yield func(string, string) bool) {
		v, _ := d.value.get("policies")
		modules, _ := v.(object)
		for _, m := range modules {
			module, _ := m.value.(object)
			rego, _ := module.get("rego")
			text, _ := rego.(string)
			if !yield(m.key, text) {
				return
			}
		}
	}
}

// testPlace is where a test stands in the files that were read; of one that the
// project has, the engine says where.
func (d document) testPlace(location string) string {
	file, line, _ := strings.Cut(location, regoEnding+":")
	if own, ok := d.places[join("policies", file)]; ok {
		return own.file + ":" + line
	}
	return location
}
