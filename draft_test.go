package quartermaster_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	. "quartermaster"
	"quartermaster/internal/store/storetest"
)

func empty() *Catalog {
	d := NewCatalog(Project{ID: "p", Name: "p", Plan: PlanFree, PolicyQuery: DefaultPolicyQuery}).Draft(time.Now())
	d.AddBuiltins()
	return d.Catalog()
}

// random makes a catalog by random edits.
func random(t *rapid.T) *Catalog {
	c := empty()
	for range rapid.IntRange(0, 5).Draw(t, "edits") {
		d := c.Draft(time.Now())
		storetest.Edit(t, d)
		c = d.Catalog()
	}
	return c
}

// frozen is a copy of all that a catalog holds, down to the last byte.
func frozen(t *rapid.T, c *Catalog) string {
	text, err := json.Marshal([]any{c.Project(), c.Tools(), c.Servers(), c.Agents(), c.AllBindings(), c.Users(), c.Secrets(), c.Policies(), c.AllGrants(), c.Export()})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Invariant 7: no edit of a draft is seen in the catalog it started from, and
// none in another draft.
func TestDraftNeverChangesItsBase(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		base := random(t)
		was := frozen(t, base)
		d := base.Draft(time.Now())
		storetest.Edit(t, d)
		first := d.Catalog()
		made := frozen(t, first)
		if d := storetest.Difference(first, d.Catalog()); d != "" {
			t.Fatalf("asked twice, a draft answers differently: %s", d)
		}
		other := first.Draft(time.Now())
		storetest.Edit(t, other)
		_ = other.Catalog()
		if frozen(t, base) != was || frozen(t, first) != made {
			t.Fatal("a catalog has changed")
		}
	})
}

// Invariant 7: an edit that writes into what it is given, as decoding JSON
// into it does, writes into a copy.
func TestUpdateToolGivesACopy(t *testing.T) {
	d := empty().Draft(time.Now())
	tool, err := d.CreateTool(Tool{Name: "a", Groups: []string{"g"}, AvailableInStates: []string{"s"}, Config: json.RawMessage(`{"a":1}`)})
	if err != nil {
		t.Fatal(err)
	}
	base := d.Catalog()
	d = base.Draft(time.Now())
	next, err := d.UpdateTool(tool.ID, func(t *Tool) error {
		t.Groups[0], t.AvailableInStates[0] = "G", "S"
		copy(t.Config, `{"b":2}`)
		copy(t.InputSchema, `{"tYpE"`)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if was := base.ToolByID(tool.ID); was.Groups[0] != "g" || was.AvailableInStates[0] != "s" || string(was.Config) != `{"a":1}` || string(was.InputSchema) != `{"type":"object"}` {
		t.Errorf("the catalog's tool has changed: %+v", was)
	}
	if next.Groups[0] != "G" || string(next.Config) != `{"b":2}` || next.Version != 2 {
		t.Errorf("updated %+v", next)
	}
}

// What a draft answers is what the catalog that comes of it answers.
func TestDraftAnswersLikeItsCatalog(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := random(t).Draft(time.Now())
		storetest.Edit(t, d)
		c := d.Catalog()
		for _, tool := range c.Tools() {
			if d.Tool(tool.ID) != tool || d.Tool(tool.Name) != tool {
				t.Fatalf("tool %s is another in the draft", tool.Name)
			}
		}
		for _, s := range c.Servers() {
			if d.Server(s.Name) != s {
				t.Fatalf("server %s is another in the draft", s.Name)
			}
		}
		for _, a := range c.Agents() {
			if d.Agent(a.ID) != a {
				t.Fatalf("agent %s is another in the draft", a.ID)
			}
		}
		for _, b := range c.AllBindings() {
			if !reflect.DeepEqual(d.Bindings(b.Agent), b) {
				t.Fatalf("bindings of %s are others in the draft", b.Agent)
			}
		}
		for _, p := range c.Policies() {
			if d.Policy(p.Name) != p {
				t.Fatalf("policy %s is another in the draft", p.Name)
			}
		}
		if !slices.Equal(d.Grants(GrantFilter{}), c.AllGrants()) {
			t.Fatalf("grants %v are others in the draft", c.AllGrants())
		}
		p := d.Project()
		if p.Revision = c.Revision(); p != c.Project() {
			t.Fatalf("project %+v is another in the draft, %+v", c.Project(), p)
		}
	})
}

// BIND-7, PERM-2: after any edits, whatever is bound, granted or named exists.
func TestCatalogHoldsTogether(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := random(t)
		names := map[string]bool{}
		for _, tool := range c.Tools() {
			if names[tool.Name] {
				t.Fatalf("two tools are called %s", tool.Name)
			}
			names[tool.Name] = true
			if tool.Server != "" && c.Server(tool.Server) == nil {
				t.Fatalf("%s is of server %s, which is gone", tool.Name, tool.Server)
			}
		}
		for _, b := range c.AllBindings() {
			for i, x := range b.Tools {
				if c.ToolByID(x.ToolID) == nil || i > 0 && b.Tools[i-1].ToolID >= x.ToolID {
					t.Fatalf("bindings of %s: %v", b.Agent, b.Tools)
				}
			}
		}
		for _, g := range c.AllGrants() {
			server, _, _ := strings.Cut(g.Tool, "__")
			if g.Tool != "" && c.ToolByName(g.Tool) == nil && c.Server(server) == nil {
				t.Fatalf("%s is on no tool, and no server could offer it", g.Key())
			}
		}
	})
}

func TestSetProject(t *testing.T) {
	c := empty()
	d := c.Draft(time.Now())
	if err := d.SetProject(Project{Name: "a", Plan: PlanTeam}); err != nil {
		t.Fatal(err)
	}
	if err := d.Apply(Document{Version: DocumentVersion, Project: &DocumentProject{Name: "b"}}, false); err != nil {
		t.Fatal(err)
	}
	if p := d.Catalog().Project(); p.Name != "b" || p.Plan != PlanTeam || p.ID != "p" {
		t.Errorf("project %+v, want what both have set", p)
	}
	if err := d.SetProject(c.Project()); err != nil || len(d.Changes()) != 0 {
		t.Errorf("set back: %v, changes %v", err, d.Changes())
	}
	if err := d.SetProject(Project{Plan: "gold"}); CodeOf(err) != CodeInvalidRequest {
		t.Errorf("unknown plan: %v", err)
	}
	if err := d.SetProject(Project{PolicyQuery: "data.x"}); CodeOf(err) != CodeInvalidRequest || !strings.HasSuffix(err.Error(), "policyQuery: must name one rule, such as data.quartermaster.tools.allow") {
		t.Errorf("no rule: %v", err)
	}
}

// GATE-7
func TestSetPolicyQuery(t *testing.T) {
	d := empty().Draft(time.Now())
	if err := d.SetProject(Project{PolicyQuery: "data.own.allow"}); err != nil {
		t.Fatal(err)
	}
	d = d.Catalog().Draft(time.Now())
	if got := d.Project().PolicyQuery; got != "data.own.allow" {
		t.Errorf("query %s", got)
	}
	if err := d.SetProject(Project{}); err != nil || d.Project().PolicyQuery != DefaultPolicyQuery {
		t.Errorf("absent is %s (%v), want the default", d.Project().PolicyQuery, err)
	}
}

// PERM-1: how fresh grants must be read is nobody's to see or set, and stays
// whatever else of the project is set.
func TestSetGrantsToken(t *testing.T) {
	d := empty().Draft(time.Now())
	d.SetGrantsToken("token")
	if err := d.SetProject(Project{Name: "other", GrantsToken: "forged"}); err != nil {
		t.Fatal(err)
	}
	p := d.Catalog().Project()
	if p.GrantsToken != "token" || p.Name != "other" {
		t.Errorf("project %+v", p)
	}
	text, err := json.Marshal([]any{p, d.Catalog().Export(), d.Diff()})
	if err != nil || strings.Contains(string(text), "token") || strings.Contains(strings.ToLower(string(text)), "grantstoken") {
		t.Errorf("shown: %s (%v)", text, err)
	}
}

// NAT-0, SCALE-2: what a project has is left as it is: processes of two
// versions would undo each other's changes.
func TestAddMissing(t *testing.T) {
	builtins := Builtins()
	builtins[0].Description = "newer"
	builtins = append(builtins, Tool{Name: "new", Provider: ProviderNative, Enabled: true, Origin: OriginBuiltin})
	d := empty().Draft(time.Now())
	d.AddMissing(builtins)
	if changes := d.Changes(); len(changes) != 1 || changes[0].Tool.Name != "new" || changes[0].Tool.Version != 1 {
		t.Errorf("changes %+v, want the new one only", changes)
	}
	d = d.Catalog().Draft(time.Now())
	d.AddBuiltins()
	if n := len(d.Changes()); n != 0 {
		t.Errorf("%d changes by the older version", n)
	}
}

// CAT-3: a built-in is never without a category: absent means its own.
func TestBuiltinCategory(t *testing.T) {
	d := empty().Draft(time.Now())
	for _, category := range []string{"mine", ""} {
		if _, err := d.UpdateTool("echo", func(t *Tool) error { t.Category = category; return nil }); err != nil {
			t.Fatal(err)
		}
	}
	if got := d.Tool("echo").Category; got != "built-in" {
		t.Errorf("category %q, want the built-in's own", got)
	}
}

// CAT-3: what an upstream offers cannot be deleted or rewritten, only set up.
func TestDiscoveredTool(t *testing.T) {
	d := empty().Draft(time.Now())
	if _, _, err := d.PutServer(Server{Name: "s", Transport: TransportStdio, Command: "x"}); err != nil {
		t.Fatal(err)
	}
	made, err := d.CreateTool(Tool{Name: "s__t", Server: "s", Enabled: true})
	if err != nil {
		t.Fatal(err)
	}
	found := *made
	found.Origin = OriginDiscovered
	c := d.Catalog()
	c = c.With(3, []Change{{Noun: NounTool, Key: found.ID, Tool: &found}})
	d = c.Draft(time.Now())
	if err := d.DeleteTool("s__t"); CodeOf(err) != CodeNotDeletable {
		t.Errorf("delete: %v", err)
	}
	_, err = d.UpdateTool("s__t", func(t *Tool) error { t.Name, t.Description = "x", "y"; return nil })
	if e, ok := errors.AsType[*Error](err); !ok || len(e.Faults) != 2 {
		t.Errorf("rewrite: %v", err)
	}
	if tool, err := d.UpdateTool("s__t", func(t *Tool) error { t.Enabled, t.Groups = false, []string{}; return nil }); err != nil || tool.Active() {
		t.Errorf("disable: %v", err)
	}
	if err := d.DeleteServer("s"); err != nil || d.Tool("s__t") != nil {
		t.Errorf("with its server: %v", err)
	}
}
