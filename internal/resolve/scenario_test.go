package resolve

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/rogpeppe/go-internal/txtar"
	"pgregory.net/rapid"

	"quartermaster"
)

// A scenario is a project and questions about it. In testdata/*.txtar:
//
//	-- project.yaml --
//	a project file
//	-- cases --
//	? agent=writer user=alice groups=a,b state=s depth=1   who asks; no groups= at all is no ask
//	= files__read read                                    the list, as the agent sees it
//	! files__write group                                  a refusal: tool, first gate, words of the reason
//	+ files__write put the tool into                      what would let it through: words of the remedy
//	> @files/read read                                    a call by that name gets that tool, as the agent sees it; or none
//	* groups_not_granted                                  the request as a whole is refused
//	~ group "x"                                           a warning holds these words
//	% tools: "x"                                          a warning of the definition holds these words
//	%! aliases.x                                          the definition has a conflict there
//
// Each question is asked as a list, by every name, and as an explanation, and
// the three must agree.
type scenario struct {
	name    string
	catalog *quartermaster.Catalog
	cases   []scenarioCase
}

type scenarioCase struct {
	line     string
	caller   quartermaster.Caller
	list     []string
	refusals [][]string
	remedies [][]string
	calls    [][]string
	warnings []string
	checks   []string
	conflict []string
	code     quartermaster.Code
}

func TestScenarios(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal("no scenarios", err)
	}
	for _, file := range files {
		s := readScenario(t, file)
		t.Run(s.name, func(t *testing.T) {
			for _, c := range s.cases {
				t.Run(strings.ReplaceAll(c.line, "/", "|"), func(t *testing.T) { s.run(t, c) })
			}
		})
	}
}

func readScenario(t *testing.T, file string) scenario {
	t.Helper()
	archive, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	s := scenario{name: strings.TrimSuffix(filepath.Base(file), ".txtar")}
	for _, f := range archive.Files {
		switch f.Name {
		case "project.yaml":
			s.catalog = catalogOf(t, f.Data)
		case "cases":
			s.cases = readCases(t, file, string(f.Data))
		default:
			t.Fatalf("%s: what is %s?", file, f.Name)
		}
	}
	return s
}

// catalogOf makes the catalog of a new project to which a file was applied.
func catalogOf(t testing.TB, data []byte) *quartermaster.Catalog {
	t.Helper()
	var doc quartermaster.Document
	raw, err := yaml.YAMLToJSON(data)
	if err == nil {
		err = yaml.UnmarshalWithOptions(raw, &doc, yaml.UseJSONUnmarshaler())
	}
	if err != nil {
		t.Fatal(err)
	}
	return apply(t, empty(), doc)
}

func empty() *quartermaster.Catalog {
	return quartermaster.NewCatalog(quartermaster.Project{ID: "default", Name: "p", Plan: quartermaster.PlanFree})
}

func apply(t testing.TB, c *quartermaster.Catalog, doc quartermaster.Document) *quartermaster.Catalog {
	t.Helper()
	d := c.Draft(time.Unix(1, 0))
	d.AddBuiltins()
	if err := d.Apply(doc, false); err != nil {
		t.Fatal(err)
	}
	return d.Catalog()
}

func readCases(t *testing.T, file, text string) []scenarioCase {
	t.Helper()
	var cases []scenarioCase
	for number, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		kind, rest, _ := strings.Cut(line, " ")
		rest = strings.TrimSpace(rest)
		if kind == "?" {
			cases = append(cases, scenarioCase{line: rest, caller: readCaller(t, rest)})
			continue
		}
		if len(cases) == 0 {
			t.Fatalf("%s: line %d of cases comes before a question", file, number+1)
		}
		c := &cases[len(cases)-1]
		switch kind {
		case "=":
			c.list = strings.Fields(rest)
		case "!":
			c.refusals = append(c.refusals, strings.SplitN(rest, " ", 3))
		case "+":
			c.remedies = append(c.remedies, strings.SplitN(rest, " ", 2))
		case ">":
			c.calls = append(c.calls, strings.Fields(rest))
		case "~":
			c.warnings = append(c.warnings, rest)
		case "%":
			c.checks = append(c.checks, rest)
		case "%!":
			c.conflict = append(c.conflict, rest)
		case "*":
			c.code = quartermaster.Code(rest)
		default:
			t.Fatalf("%s: line %d of cases: %s", file, number+1, line)
		}
	}
	return cases
}

func readCaller(t *testing.T, text string) quartermaster.Caller {
	t.Helper()
	caller := quartermaster.Caller{Project: "default", User: "somebody", Granted: []string{"*"}}
	for _, field := range strings.Fields(text) {
		key, value, _ := strings.Cut(field, "=")
		switch key {
		case "agent":
			caller.Agent = value
		case "user": // with a user, the groups are those that the user was granted
			caller.User, caller.Granted = value, nil
		case "groups":
			caller.Groups = []string{}
			if value != "" {
				caller.Groups = strings.Split(value, ",")
			}
		case "state":
			caller.State = value
		case "depth", "maxDepth":
			n, err := strconv.Atoi(value)
			if err != nil {
				t.Fatal(err)
			}
			if key == "depth" {
				caller.Depth = n
			} else {
				caller.MaxDepth = n
			}
		default:
			t.Fatalf("what is %s?", field)
		}
	}
	return caller
}

// fixed is a catalog that never changes.
type fixed struct{ catalog *quartermaster.Catalog }

func (f fixed) Catalog(context.Context, string) (*quartermaster.Catalog, error) {
	return f.catalog, nil
}

func (s scenario) run(t *testing.T, c scenarioCase) {
	r := New(fixed{s.catalog}, nil, nil)
	res, err := r.Resolve(t.Context(), c.caller, quartermaster.Question{})
	if c.code != "" {
		if quartermaster.CodeOf(err) != c.code {
			t.Fatalf("%v, want %s", err, c.code)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if got := seenNames(res.Tools); !slices.Equal(got, c.list) {
		t.Errorf("listed %v, want %v", got, c.list)
	}
	contains(t, "warning", res.Warnings, c.warnings)
	refused := agree(t, r, c.caller, s.catalog, res)
	for _, want := range c.refusals {
		got, ok := refused[want[0]]
		if !ok {
			t.Errorf("%s was not refused", want[0])
			continue
		}
		if string(got.Gate) != want[1] || len(want) > 2 && !strings.Contains(got.Reason, want[2]) {
			t.Errorf("%s was refused by %s: %s; want %v", want[0], got.Gate, got.Reason, want[1:])
		}
	}
	for _, want := range c.remedies {
		if e := explanation(t, r, c.caller, want[0]); !strings.Contains(e.Remedy, want[1]) {
			t.Errorf("the remedy for %s is %q, want %q", want[0], e.Remedy, want[1])
		}
	}
	for _, call := range c.calls {
		got := []string{call[0]}
		if tool := admit(t, r, c.caller, call[0]); tool != nil {
			got = append(got, tool.Name)
		}
		if !slices.Equal(got, call) {
			t.Errorf("called by that name: %v, want %v", got, call)
		}
	}
	conflicts, warnings := r.Check(s.catalog, s.catalog, c.caller.Agent)
	contains(t, "warning of the definition", warnings, c.checks)
	var at []string
	for _, f := range conflicts {
		at = append(at, f.Location)
	}
	if !slices.Equal(at, c.conflict) {
		t.Errorf("conflicts at %v, want %v", at, c.conflict)
	}
}

// contains checks that each of wanted is part of one of got.
func contains(t *testing.T, noun string, got, wanted []string) {
	t.Helper()
	for _, w := range wanted {
		if !slices.ContainsFunc(got, func(g string) bool { return strings.Contains(g, w) }) {
			t.Errorf("no %s with %q: %q", noun, w, got)
		}
	}
}

func explanation(t rapid.TB, r *Resolver, caller quartermaster.Caller, tool string) quartermaster.Explanation {
	t.Helper()
	res, err := r.Resolve(context.Background(), caller, quartermaster.Question{Tool: tool, Explain: true})
	if err != nil || len(res.Explanations) != 1 {
		t.Fatal(res, err)
	}
	return res.Explanations[0]
}

func seenNames(tools []*quartermaster.Tool) []string {
	all := make([]string, len(tools))
	for i, t := range tools {
		all[i] = t.Name
	}
	return all
}

// agree asks about every tool by name and for an explanation of all, and checks
// both against the list. It returns the refusals by real name.
func agree(t rapid.TB, r *Resolver, caller quartermaster.Caller, catalog *quartermaster.Catalog, listed *quartermaster.Resolution) map[string]quartermaster.Refusal {
	t.Helper()
	seen := map[string]string{} // real name to how it is listed
	for _, tool := range listed.Tools {
		real := tool.Name
		if tool.Target != "" {
			real = tool.Target
		}
		if _, twice := seen[real]; twice {
			t.Errorf("%s is listed twice", real)
		}
		seen[real] = tool.Name
	}
	refused := map[string]quartermaster.Refusal{}
	for tool, refusal := range listed.Refusals {
		if _, twice := refused[tool.Name]; twice || seen[tool.Name] != "" {
			t.Errorf("%s is accounted for twice", tool.Name)
		}
		if refusal.Gate == "" || refusal.Reason == "" {
			t.Errorf("%s is refused without a reason: %+v", tool.Name, refusal)
		}
		refused[tool.Name] = refusal
	}
	if len(seen)+len(refused) != len(catalog.Tools()) {
		t.Errorf("%d tools, but %d listed and %d refused", len(catalog.Tools()), len(seen), len(refused))
	}
	explained, err := r.Resolve(context.Background(), caller, quartermaster.Question{Explain: true})
	if err != nil {
		t.Fatal(err)
	}
	if a, b := fmt.Sprint(seenNames(explained.Tools)), fmt.Sprint(seenNames(listed.Tools)); a != b {
		t.Errorf("explained %s, listed %s", a, b)
	}
	for _, e := range explained.Explanations {
		real := e.Name
		if e.Target != "" {
			real = e.Target
		}
		if e.Allowed != (seen[real] != "") || e.Gate != refused[real].Gate || e.Reason != refused[real].Reason {
			t.Errorf("%s: explained as %+v, refused as %+v", real, e, refused[real])
		}
	}
	for _, tool := range catalog.Tools() {
		names := []string{tool.Name}
		if ref := "@" + tool.Server + "/" + strings.TrimPrefix(tool.Name, tool.Server+"__"); catalog.ToolByName(ref) == tool {
			names = append(names, ref)
		}
		for _, name := range names {
			if a := catalog.Agent(caller.Agent); a != nil && a.Aliases[name] != "" {
				continue // to this agent it may mean another tool
			}
			got := ""
			if admitted := admit(t, r, caller, name); admitted != nil {
				got = admitted.Name
			}
			if got != seen[tool.Name] {
				t.Errorf("%s: admitted as %q, listed as %q", name, got, seen[tool.Name])
			}
		}
	}
	for real, as := range seen {
		if got := admit(t, r, caller, as); got == nil || got.Name != as || got.Target != "" && got.Target != real {
			t.Errorf("%s is listed, but called by that name gives %+v", as, got)
		}
	}
	return refused
}

func admit(t rapid.TB, r *Resolver, caller quartermaster.Caller, name string) *quartermaster.Tool {
	t.Helper()
	res, err := r.Resolve(context.Background(), caller, quartermaster.Question{Tool: name})
	if err != nil {
		t.Fatal(err)
	}
	if len(res.Tools) == 0 {
		return nil
	}
	return res.Tools[0]
}
