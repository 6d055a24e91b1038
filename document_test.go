package quartermaster_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	. "quartermaster"
	"quartermaster/internal/store/storetest"
)

type fataler interface {
	Helper()
	Fatal(args ...any)
}

// written is what a file makes of an export: it keeps neither the order of
// keys nor the spelling of values.
func written(t fataler, c *Catalog) Document {
	t.Helper()
	return parsed(t, plain(t, c))
}

func plain(t fataler, c *Catalog) string {
	t.Helper()
	text, err := json.Marshal(c.Export())
	if err != nil {
		t.Fatal(err)
	}
	var v any
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	if text, err = json.Marshal(v); err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func parsed(t fataler, text string) Document {
	t.Helper()
	var doc Document
	if err := json.Unmarshal([]byte(text), &doc); err != nil {
		t.Fatal(err)
	}
	return doc
}

// CAT-5: import of an export is a no-op, pruning or not.
func TestApplyOfExportChangesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := random(t)
		for _, prune := range []bool{false, true} {
			d := c.Draft(time.Now())
			if err := d.Apply(written(t, c), prune); err != nil {
				t.Fatal(err)
			}
			if diff := d.Diff(); len(diff) > 0 {
				t.Fatalf("prune %t: %+v", prune, diff)
			}
			if changes := d.Changes(); len(changes) > 0 {
				t.Fatalf("prune %t: %+v", prune, changes)
			}
		}
	})
}

// CAT-5: an export makes the same project elsewhere, disabled and bound tools
// too.
func TestApplyOfExportMakesTheSameProject(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := random(t)
		d := empty().Draft(time.Now())
		if err := d.Apply(written(t, c), false); err != nil {
			t.Fatal(err)
		}
		if want, got := plain(t, c), plain(t, d.Catalog()); got != want {
			t.Fatalf("got\n%s\nwant\n%s", got, want)
		}
	})
}

// CAT-5: with prune, the file is all there is.
func TestApplyPrunes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, other := random(t), random(t)
		d := other.Draft(time.Now())
		if err := d.Apply(written(t, c), true); err != nil {
			t.Fatal(err)
		}
		if want, got := plain(t, c), plain(t, d.Catalog()); got != want {
			t.Fatalf("got\n%s\nwant\n%s", got, want)
		}
	})
}

// CAT-5: pruning sets back what people have changed in a built-in tool, all of
// it where the file is silent and the rest where it is not.
func TestApplyPruneSetsBuiltinsBack(t *testing.T) {
	d := empty().Draft(time.Now())
	for _, name := range []string{"echo", "time_now"} {
		if _, err := d.UpdateTool(name, func(t *Tool) error {
			t.DisplayName, t.Category, t.Enabled, t.Groups, t.State, t.AvailableInStates, t.Timeout = "D", "mine", false, []string{"g"}, "s", []string{}, 5
			t.Config = json.RawMessage(`{"builtin":"` + name + `","more":1}`)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	d = d.Catalog().Draft(time.Now())
	if err := d.Apply(parsed(t, `{"quartermaster": "v1", "tools": {"echo": {"enabled": false}}}`), true); err != nil {
		t.Fatal(err)
	}
	want := `{"project":{"name":"p","plan":"free"},"quartermaster":"v1","tools":{"echo":{"enabled":false}}}`
	if got := plain(t, d.Catalog()); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// CAT-2, CAT-5: what counts is whether references are clear in the end, not on
// the way there.
func TestApplyMovesReferences(t *testing.T) {
	const head = `{"quartermaster": "v1", "servers": {"s": {"transport": "stdio", "command": "x"}}, "tools": `
	d := empty().Draft(time.Now())
	if err := d.Apply(parsed(t, head+`{"t": {"server": "s"}, "s__t": {}}}`), false); err != nil {
		t.Fatal(err)
	}
	c := d.Catalog()
	for tools, want := range map[string]map[bool]bool{ // by prune: whether it is taken
		`{"s__t": {"server": "s"}, "t": {}}`: {false: true, true: true},
		`{"s__t": {"server": "s"}}`:          {false: false, true: true},
	} {
		for prune, taken := range want {
			err := c.Draft(time.Now()).Apply(parsed(t, head+tools+`}`), prune)
			e, ok := errors.AsType[*Error](err)
			if taken && err != nil || !taken && (!ok || len(e.Faults) != 1 || e.Faults[0] != Fault{Location: "tools.s__t.name", Message: "@s/t already means t"}) {
				t.Errorf("%s, prune %t: %v", tools, prune, err)
			}
		}
	}
}

// CAT-5: all or nothing, and every fault is told with its place.
func TestApplyTellsAllFaults(t *testing.T) {
	d := empty().Draft(time.Now())
	err := d.Apply(parsed(t, `{
		"quartermaster": "v9",
		"project": {"plan": "gold", "policyQuery": "allow"},
		"servers": {"bad__name": {"transport": "stdio", "command": "x"}, "s": {"transport": "http", "url": "ftp://x"}, "t": {"name": "u", "transport": "stdio", "command": "x"}},
		"tools": {"a b": {}, "find_tools": {}, "echo": {"description": "other"}, "m": {"server": "nowhere"}, "n": {"name": "o"}, "p": {"timeout": "-1s", "state": "\u0000"}, "fine": {}},
		"agents": {".": {}, "a": {"maxDepth": 101, "aliases": {"x y": "z"}}},
		"bindings": {"": ["echo"], "a": ["echo", "unknown", "fine", "@s/t"]},
		"users": {"u": {"id": "v", "groups": []}, "w": {"groups": [], "roles": [""]}},
		"policies": {"p": {"name": "q", "rego": "package p"}, "r/s": {"rego": " "}},
		"grants": [
			{"tool": "fine", "relation": "executor", "subject": "user:alice"},
			{"tool": "unknown", "relation": "executor", "subject": "user:alice"},
			{"tool": "echo", "resource": "project", "relation": "x", "subject": "user:*"},
			{"relation": "executor", "subject": "user:alice"}
		]
	}`), false)
	e, ok := errors.AsType[*Error](err)
	if !ok || e.Code != CodeInvalidRequest {
		t.Fatalf("error %v", err)
	}
	var got []string
	for _, f := range e.Faults {
		got = append(got, f.Location)
	}
	want := []string{
		"quartermaster", "project.plan", "project.policyQuery", "servers.bad__name.name", "servers.s.url", "servers.t.name",
		"tools.a b.name", "tools.echo.description", "tools.find_tools.name", "tools.m.server", "tools.n.name", "tools.p.state", "tools.p.timeout",
		"agents...id", "agents.a.aliases.x y", "agents.a.maxDepth", "bindings.", "bindings.a[1]", "bindings.a[3]",
		"users.u.id", "users.w.roles[0]", "policies.p.name", "policies.r/s.name", "policies.r/s.rego",
		"grants[1]", "grants[2].resource", "grants[2].relation", "grants[2].subject", "grants[3].tool",
	}
	if !slices.Equal(got, want) {
		t.Errorf("faults at\n%q, want\n%q", got, want)
	}
}

func TestApply(t *testing.T) {
	c := empty()
	d := c.Draft(time.Now())
	doc := parsed(t, `{
		"quartermaster": "v1",
		"servers": {"files": {"transport": "process", "command": "x"}},
		"tools": {"files__read": {"server": "files", "enabled": false}, "echo": {"groups": ["g"]}, "own": {"name": "own"}},
		"agents": {"a": {"tools": ["*"]}},
		"bindings": {"a": ["own", "@files/read", "own", "files__read"], "b": []}
	}`)
	if err := d.Apply(doc, false); err != nil {
		t.Fatal(err)
	}
	first := d.Catalog()
	if echo := first.ToolByName("echo"); echo.Groups[0] != "g" || echo.Origin != OriginBuiltin || echo.Description == "" || len(echo.Config) == 0 {
		t.Errorf("echo %+v", echo)
	}
	if n := len(first.Bindings("a").Tools); n != 2 || len(first.AllBindings()) != 1 {
		t.Errorf("%d bindings of a, want 2", n)
	}
	var lines []string
	for _, diff := range d.Diff() {
		lines = append(lines, fmt.Sprint(diff.Action, " ", diff.Noun, " ", diff.Name))
	}
	slices.Sort(lines)
	if got := strings.Join(lines, ", "); got != "create agent a, create bindings a, create server files, create tool files__read, create tool own, update tool echo" {
		t.Errorf("difference: %s", got)
	}

	// The file speaks for a whole entry: what it leaves out is absent.
	d = first.Draft(time.Now())
	if err := d.Apply(parsed(t, `{"quartermaster": "v1", "tools": {"files__read": {"server": "files"}, "own": {"description": "d"}}, "bindings": {"a": ["own"]}}`), false); err != nil {
		t.Fatal(err)
	}
	want := []Difference{
		{Action: "update", Noun: NounTool, Name: "files__read", Fields: map[string]FieldChange{"enabled": {From: false, To: true}}},
		{Action: "update", Noun: NounTool, Name: "own", Fields: map[string]FieldChange{"description": {To: "d"}}},
		{Action: "update", Noun: NounBindings, Name: "a", Fields: map[string]FieldChange{"tools": {From: []string{"files__read", "own"}, To: []string{"own"}}}},
	}
	got := d.Diff()
	slices.SortStableFunc(got[:2], func(a, b Difference) int { return strings.Compare(a.Name, b.Name) })
	if !reflect.DeepEqual(got, want) {
		t.Errorf("difference %+v\nwant %+v", got, want)
	}

	// Pruned by a file that holds nothing, all is gone but what every project has.
	d = first.Draft(time.Now())
	if err := d.Apply(Document{Version: DocumentVersion}, true); err != nil {
		t.Fatal(err)
	}
	if last := d.Catalog(); len(last.Tools()) != len(Builtins()) || len(last.Servers())+len(last.Agents())+len(last.AllBindings()) != 0 {
		t.Errorf("left: %v", last.Export())
	}
	if n := len(d.Diff()); n != 5 { // echo is set back; bindings go with their tools
		t.Errorf("difference %+v", d.Diff())
	}
}

// CAT-5, PERM-2, GATE-7: a file holds grants, policies, roles and the rule that
// decides; what it leaves out stays, or goes where the file is all there is.
func TestApplyRules(t *testing.T) {
	d := empty().Draft(time.Now())
	if err := d.Apply(parsed(t, `{
		"quartermaster": "v1",
		"project": {"policyQuery": "data.own.allow"},
		"servers": {"files": {"transport": "stdio", "command": "x"}},
		"tools": {"files__read": {"server": "files"}, "own": {}},
		"users": {"alice": {"groups": ["g"], "roles": ["admin", "admin"]}},
		"policies": {"own": {"rego": "package own"}, "own_test": {"rego": "package own_test"}},
		"grants": [
			{"tool": "own", "relation": "executor", "subject": "user:alice"},
			{"tool": "own", "relation": "executor", "subject": "user:alice"},
			{"tool": "@files/read", "relation": "owner", "subject": "group:ops#member"},
			{"tool": "@files/later", "relation": "owner", "subject": "group:ops#member"},
			{"resource": "project", "relation": "admin", "subject": "user:bob"}
		]
	}`), false); err != nil {
		t.Fatal(err)
	}
	c := d.Catalog()
	want := `{"grants":[{"relation":"admin","resource":"project","subject":"user:bob"},` +
		`{"relation":"owner","subject":"group:ops#member","tool":"files__later"},` +
		`{"relation":"owner","subject":"group:ops#member","tool":"files__read"},` +
		`{"relation":"executor","subject":"user:alice","tool":"own"}],` +
		`"policies":{"own":{"rego":"package own"},"own_test":{"rego":"package own_test"}},` +
		`"project":{"name":"p","plan":"free","policyQuery":"data.own.allow"},"quartermaster":"v1",` +
		`"servers":{"files":{"command":"x","transport":"stdio"}},` +
		`"tools":{"files__read":{"provider":"mcp","server":"files"},"own":{}},` +
		`"users":{"alice":{"groups":["g"],"roles":["admin"]}}}`
	if got := plain(t, c); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	labels := func(prune bool, doc string) string {
		t.Helper()
		d := c.Draft(time.Now())
		if err := d.Apply(parsed(t, doc), prune); err != nil {
			t.Fatal(err)
		}
		var lines []string
		for _, diff := range d.Diff() {
			lines = append(lines, fmt.Sprint(diff.Action, " ", diff.Noun, " ", diff.Name))
		}
		return strings.Join(lines, ", ")
	}
	if got := labels(false, `{"quartermaster": "v1", "project": {"name": "p"}}`); got != "" {
		t.Errorf("a file that is silent changes %s", got)
	}
	const rest = `"servers": {"files": {"transport": "stdio", "command": "x"}}, "tools": {"files__read": {"server": "files"}, "own": {}}, "users": {"alice": {"groups": ["g"]}}`
	got := labels(true, `{"quartermaster": "v1", "project": {"name": "p"}, `+rest+`,
		"policies": {"own": {"rego": "package own"}}, "grants": [{"tool": "own", "relation": "executor", "subject": "user:alice"}, {"tool": "echo", "relation": "owner", "subject": "user:new"}]}`)
	if want := "update project p, update user alice, delete policy own_test, " +
		"delete grant project#admin@user:bob, delete grant tool:files__later#owner@group:ops#member, delete grant tool:files__read#owner@group:ops#member, " +
		"create grant tool:echo#owner@user:new"; got != want {
		t.Errorf("pruned\n%s\nwant\n%s", got, want)
	}
	// A tool that is pruned takes its grants with it, and one that the same file
	// grants is missed.
	err := c.Draft(time.Now()).Apply(parsed(t, `{"quartermaster": "v1", "grants": [{"tool": "own", "relation": "executor", "subject": "user:alice"}, {"tool": "files__later", "relation": "owner", "subject": "user:x"}]}`), true)
	e, ok := errors.AsType[*Error](err)
	if !ok || !slices.Equal(e.Faults, []Fault{{Location: "grants[0]", Message: `there is no tool "own"`}, {Location: "grants[1]", Message: `there is no tool "files__later"`}}) {
		t.Errorf("granted and pruned: %v", err)
	}
}

// CAT-5: a zero is a value, and so are a switch that is off and a list that is
// empty where that differs from absent; what was never said is absent.
func TestDiffTellsZeroFromAbsent(t *testing.T) {
	d := empty().Draft(time.Now())
	if err := d.Apply(parsed(t, `{"quartermaster": "v1",
		"servers": {"s": {"transport": "stdio", "command": "x", "maxConcurrent": 4, "cwd": "/srv", "timeouts": {"startup": "1s"}, "healthCheck": {"kind": "ping"}}},
		"tools": {"t": {"groups": ["g"], "timeout": "5s", "availableInStates": ["a"]}},
		"agents": {"a": {"maxDepth": 3, "maxSteps": 7, "timeout": "1m", "fixed": true, "model": "m", "aliases": {"x": "t"}, "servers": ["s"]}}
	}`), false); err != nil {
		t.Fatal(err)
	}
	c := d.Catalog()
	d = c.Draft(time.Now())
	if err := d.Apply(parsed(t, `{"quartermaster": "v1",
		"servers": {"s": {"transport": "stdio", "command": "x"}},
		"tools": {"t": {"groups": []}},
		"agents": {"a": {"maxDepth": 0}}
	}`), false); err != nil {
		t.Fatal(err)
	}
	got := map[string]FieldChange{}
	for _, diff := range d.Diff() {
		for field, change := range diff.Fields {
			got[diff.Name+"."+field] = change
		}
	}
	for field, want := range map[string]any{
		"a.maxDepth": 0, "a.maxSteps": 0, "a.fixed": false, "s.maxConcurrent": 0, "t.groups": []string{},
		"a.timeout": nil, "a.model": nil, "a.aliases": nil, "a.servers": nil,
		"s.cwd": nil, "s.timeouts": nil, "s.healthCheck": nil, "t.timeout": nil, "t.availableInStates": nil,
	} {
		if change, ok := got[field]; !ok || !reflect.DeepEqual(change.To, want) || change.From == nil {
			t.Errorf("%s: %#v, want to %#v", field, change, want)
		}
	}
	text, err := json.Marshal(got["a.maxDepth"])
	if err != nil || string(text) != `{"from":3,"to":0}` {
		t.Errorf("%s %v", text, err)
	}
}

// CAT-5: a file that names what pruning by it would remove contradicts itself.
func TestApplyPruneRefusesContradictions(t *testing.T) {
	d := empty().Draft(time.Now())
	if err := d.Apply(parsed(t, `{"quartermaster": "v1", "servers": {"s": {"transport": "stdio", "command": "x"}}, "tools": {"s__t": {"server": "s"}, "u": {}}}`), false); err != nil {
		t.Fatal(err)
	}
	c := d.Catalog()
	doc := parsed(t, `{"quartermaster": "v1", "tools": {"s__t": {"server": "s"}}, "bindings": {"a": ["u", "echo"]}}`)
	if err := c.Draft(time.Now()).Apply(doc, false); err != nil {
		t.Errorf("without prune: %v", err)
	}
	err := c.Draft(time.Now()).Apply(doc, true)
	e, ok := errors.AsType[*Error](err)
	if !ok || len(e.Faults) != 2 || e.Faults[0].Location != "tools.s__t.server" || e.Faults[1].Location != "bindings.a[0]" {
		t.Errorf("with prune: %v", err)
	}
}

// CAT-5: bindings in a file are names, even where one looks like the id that
// another tool happens to have here.
func TestApplyBindsNames(t *testing.T) {
	d := empty().Draft(time.Now())
	twin, err := d.CreateTool(Tool{Name: "twin", Enabled: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.ReplaceBindings("a", []string{twin.ID}); err != nil {
		t.Fatal(err)
	}
	c := d.Catalog()
	named := *c.ToolByID(twin.ID)
	named.Name = c.ToolByName("echo").ID
	c = c.With(c.Revision()+1, []Change{{Noun: NounTool, Key: named.ID, Tool: &named}})
	d = c.Draft(time.Now())
	if err := d.Apply(written(t, c), false); err != nil || len(d.Changes()) != 0 {
		t.Errorf("%v, changes %+v", err, d.Diff())
	}
}

// CAT-5: no file makes it panic, and what it accepts it can write back.
func FuzzApply(f *testing.F) {
	for _, seed := range []string{
		`{}`, `null`, `{"quartermaster":"v1"}`,
		`{"quartermaster":"v1","servers":{"s":{"transport":"stdio","command":"x","healthCheck":null}},"tools":{"s__t":{"server":"s","inputSchema":{"type":["object"]}}}}`,
		`{"quartermaster":"v1","tools":{"echo":{"config":{"builtin":"echo","x":1}},"a":{"groups":[],"timeout":"1ns"}},"bindings":{"x":["echo","a","@s/t"]}}`,
		`{"quartermaster":"v1","agents":{"x":{"aliases":{"a":"b"},"memory":{"<":1}}},"project":{"name":"n","plan":"team"}}`,
		`{"quartermaster":"v1","servers":{"s":{"transport":"stdio","command":"x","args":["-e","A=1"],"env":{"API_KEY":"a","api-key":"Bearer b","X":"${S_API_KEY}","Y":"https://u:p@x/?k=1"}}}}`,
		`{"quartermaster":"v1","servers":{"9":{"transport":"http","url":"https://x/?q=1","headers":{"Authorization":"Token  c","Cookie":"a=b; c=${D}"}}}}`,
		`{"quartermaster":"v1","tools":{"time_now":null,"":{},"x":{"config":[1]}},"bindings":{"\u0000":null}}`,
		`{"quartermaster":"v1","project":{"policyQuery":"data.a.b"},"users":{"u":{"groups":[],"roles":["r","r"]}},"policies":{"p":{"rego":"package p"},"p.rego":{"rego":"x"}}}`,
		`{"quartermaster":"v1","servers":{"s":{"transport":"stdio","command":"x"}},"grants":[{"tool":"echo","relation":"executor","subject":"user:a#b@c"},{"tool":"@s/later","relation":"owner","subject":"group:g#member"},{"tool":"s__later","relation":"owner","subject":"group:g#member"}]}`,
		`{"quartermaster":"v1","grants":[{"resource":"project","relation":"admin","subject":"user:\u2028"},{"resource":"group:a:b","relation":"member","subject":"group:\u0000#member"},{"resource":"x/y:#","relation":"viewer","subject":"x/y:z#"}]}`,
	} {
		f.Add(seed, true)
		f.Add(seed, false)
	}
	base := empty()
	f.Fuzz(func(t *testing.T, text string, prune bool) {
		var doc Document
		if json.Unmarshal([]byte(text), &doc) != nil {
			return
		}
		d := base.Draft(time.Now())
		if err := d.Apply(doc, prune); err != nil {
			if CodeOf(err) != CodeInvalidRequest || err.Error() == "" {
				t.Errorf("error %#v", err)
			}
			return
		}
		c := d.Catalog()
		again := c.Draft(time.Now())
		if err := again.Apply(written(t, c), prune); err != nil {
			t.Fatal(err)
		}
		if diff := storetest.Difference(c, again.Catalog().With(c.Revision(), nil)); diff != "" {
			t.Errorf("written and read again: %s", diff)
		}
	})
}
