package storetest

import (
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"time"

	"quartermaster"
)

// tools makes enabled tools with these names and returns their ids.
func (f *fixture) tools(names ...string) []string {
	f.Helper()
	ids := make([]string, len(names))
	f.change(func(d *quartermaster.Draft) error {
		for i, name := range names {
			t, err := d.CreateTool(quartermaster.Tool{Name: name, Enabled: true})
			if err != nil {
				return err
			}
			ids[i] = t.ID
		}
		return nil
	})
	return ids
}

func update(ref string, edit func(*quartermaster.Tool)) func(*quartermaster.Draft) error {
	return func(d *quartermaster.Draft) error {
		_, err := d.UpdateTool(ref, func(t *quartermaster.Tool) error { edit(t); return nil })
		return err
	}
}

func enable(ref string, enabled bool) func(*quartermaster.Draft) error {
	return update(ref, func(t *quartermaster.Tool) { t.Enabled = enabled })
}

func rename(ref, name string) func(*quartermaster.Draft) error {
	return update(ref, func(t *quartermaster.Tool) { t.Name = name })
}

// CAT-1
func testTool(f *fixture) {
	f.change(func(d *quartermaster.Draft) error {
		_, _, err := d.PutServer(quartermaster.Server{Name: "files", Transport: quartermaster.TransportStdio, Command: "x"})
		return err
	})
	full := quartermaster.Tool{
		Name: "files__read", DisplayName: "Read <ü>", Description: "What & when\n\u2028", Category: "disk",
		Provider: quartermaster.ProviderMCP, Server: "files",
		InputSchema:  json.RawMessage(`{"type":"object","properties":{"<p>":{"type":"string"}}}`),
		OutputSchema: json.RawMessage(`{"type":"object"}`), Annotations: json.RawMessage(`{"readOnlyHint":true}`),
		Config: json.RawMessage(`{"a":[1.0,1e3,"\u0000"]}`), Enabled: true,
		Groups: []string{"b", "a"}, State: "read", AvailableInStates: []string{"z", "*"}, Timeout: 1500*quartermaster.Duration(time.Millisecond) + 1,
	}
	settable(f.T, full)
	variants := map[string]func(*quartermaster.Tool){
		"full":      func(*quartermaster.Tool) {},
		"disabled":  func(t *quartermaster.Tool) { t.Enabled = false },
		"no-groups": func(t *quartermaster.Tool) { t.Groups, t.AvailableInStates = nil, nil },
		"empty":     func(t *quartermaster.Tool) { t.Groups, t.AvailableInStates = []string{}, []string{} },
		"minimal":   func(t *quartermaster.Tool) { *t = quartermaster.Tool{Enabled: true} },
		"http":      func(t *quartermaster.Tool) { t.Provider, t.Server = quartermaster.ProviderHTTP, "" },
	}
	want := map[string]quartermaster.Tool{}
	c := f.change(func(d *quartermaster.Draft) error {
		for name, vary := range variants {
			t := full
			vary(&t)
			t.Name = name
			made, err := d.CreateTool(t)
			if err != nil {
				return err
			}
			want[name] = *made
		}
		return nil
	})
	for name, w := range want {
		t := full
		variants[name](&t)
		t.Name, t.ID, t.Origin, t.Version, t.CreatedAt, t.UpdatedAt = name, w.ID, quartermaster.OriginManual, 1, w.CreatedAt, w.CreatedAt
		if name == "minimal" {
			t.Provider, t.InputSchema = quartermaster.ProviderNative, json.RawMessage(`{"type":"object"}`)
		}
		if !reflect.DeepEqual(t, w) {
			f.Errorf("%s: made\n%s, want\n%s", name, show(w), show(t))
		}
		if len(w.ID) != 36 || time.Since(w.CreatedAt) > time.Minute {
			f.Errorf("%s: id %q, created %s", name, w.ID, w.CreatedAt)
		}
	}
	f.survives(c)
	for name, w := range want {
		if got := f.catalog().ToolByName(name); !reflect.DeepEqual(*got, w) {
			f.Errorf("%s: read\n%s, want\n%s", name, show(*got), show(w))
		}
	}
}

// CAT-1: version grows by one with every change and with nothing else.
func testToolVersion(f *fixture) {
	id := f.tools("a")[0]
	first := *f.catalog().ToolByID(id)
	c := f.change(update(id, func(t *quartermaster.Tool) { t.Description = "x" }))
	second := *c.ToolByID(id)
	if second.Version != 2 || !second.CreatedAt.Equal(first.CreatedAt) || second.UpdatedAt.Before(first.UpdatedAt) {
		f.Errorf("after a change: %+v, before %+v", second, first)
	}
	for name, edit := range map[string]func(*quartermaster.Tool){
		"nothing":     func(*quartermaster.Tool) {},
		"the same":    func(t *quartermaster.Tool) { t.Description = "x" },
		"read only":   func(t *quartermaster.Tool) { t.ID, t.Version, t.CreatedAt, t.Origin = "y", 9, time.Now(), "z" },
		"reformatted": func(t *quartermaster.Tool) { t.InputSchema = json.RawMessage("{\n \"type\": \"object\" }") },
		"run time":    func(t *quartermaster.Tool) { t.Available, t.UnavailableReason, t.Target = true, "r", "t" },
	} {
		if again := f.change(update(id, edit)); again.Revision() != c.Revision() {
			f.Errorf("%s: revision %d, want it to stay %d", name, again.Revision(), c.Revision())
		}
	}
	f.survives(c)
	f.change(enable(id, false))
	if v := f.change(enable(id, true)).ToolByID(id).Version; v != 4 {
		f.Errorf("version %d after two more changes, want 4", v)
	}
}

// CAT-2
func testToolNames(f *fixture) {
	f.tools("taken", "Taken", strings.Repeat("x", 128), "a.b-c_D9")
	f.refused(quartermaster.CodeAlreadyExists, func(d *quartermaster.Draft) error {
		_, err := d.CreateTool(quartermaster.Tool{Name: "taken"})
		return err
	})
	f.refused(quartermaster.CodeAlreadyExists, rename("Taken", "taken"))
	bad := []string{"", "a b", "a/b", "ä", strings.Repeat("x", 129), "a\x00", "find_tools", "call_tool", "spawn_agents", "list_available_agents"}
	for _, name := range bad {
		for what, edit := range map[string]func(*quartermaster.Draft) error{
			"create": func(d *quartermaster.Draft) error { _, err := d.CreateTool(quartermaster.Tool{Name: name}); return err },
			"rename": rename("taken", name),
		} {
			if e := f.refusal(quartermaster.CodeInvalidRequest, edit); len(e.Faults) != 1 || e.Faults[0].Location != "name" {
				f.Errorf("%s %q: faults %v, want one of the name", what, name, e.Faults)
			}
		}
	}
	// The same name in another project is another tool.
	if _, err := f.CreateProject(f.Context(), quartermaster.Project{ID: "other"}); err != nil {
		f.Fatal(err)
	}
	if _, err := f.Change(f.Context(), "other", func(d *quartermaster.Draft) error {
		_, err := d.CreateTool(quartermaster.Tool{Name: "taken"})
		return err
	}); err != nil {
		f.Error(err)
	}
}

// CAT-2: names can change hands within one draft, in any order of the ids.
func testToolNamesMove(f *fixture) {
	ids := f.tools("a", "b", "c")
	for range 2 { // there and back: whatever the order of the ids, one way is against it
		c := f.change(func(d *quartermaster.Draft) error {
			a, b := d.Tool(ids[0]).Name, d.Tool(ids[1]).Name
			return errors.Join(rename(ids[0], "between")(d), rename(ids[1], a)(d), rename(ids[0], b)(d))
		})
		f.survives(c)
	}
	f.refused(quartermaster.CodeAlreadyExists, rename("a", "b")) // directly there is no moment in which both are unique
	cycle := f.change(func(d *quartermaster.Draft) error {
		return errors.Join(rename(ids[0], "x")(d), rename(ids[1], "a")(d), rename(ids[2], "b")(d), rename(ids[0], "c")(d))
	})
	if got := cycle.ToolByID(ids[0]).Name + cycle.ToolByID(ids[1]).Name + cycle.ToolByID(ids[2]).Name; got != "cab" {
		f.Errorf("names %s, want cab", got)
	}
	f.survives(cycle)

	// A name that is given up, or whose bearer is deleted, is free at once.
	c := f.change(func(d *quartermaster.Draft) error {
		err := errors.Join(rename(ids[0], "old")(d), d.DeleteTool(ids[1]))
		for _, name := range []string{"a", "c"} {
			_, created := d.CreateTool(quartermaster.Tool{Name: name})
			err = errors.Join(err, created)
		}
		return err
	})
	f.survives(c)
}

// CAT-3
func testToolDelete(f *fixture) {
	ids := f.tools("a", "b")
	f.bind("x", ids...)
	f.bind("y", ids[0])
	c := f.change(func(d *quartermaster.Draft) error { return d.DeleteTool("a") })
	if got := boundIDs(c, "x"); !slices.Equal(got, ids[1:]) {
		f.Errorf("bindings of x %v, want %v", got, ids[1:])
	}
	if n := len(c.AllBindings()); n != 1 {
		f.Errorf("%d agents have bindings, want x only", n)
	}
	f.survives(c)
	f.refused(quartermaster.CodeToolNotFound, func(d *quartermaster.Draft) error { return d.DeleteTool(ids[0]) })
	f.refused(quartermaster.CodeToolNotFound, rename("a", "z"))
	// A new tool of that name is another one: nobody is bound to it.
	f.tools("a")
	if got := boundNames(f.reopen(), "x", quartermaster.ToolFilter{}); got != "b" {
		f.Errorf("x has %q, want b", got)
	}
}

// CAT-3, NAT-0, GATE-3
func testBuiltins(f *fixture) {
	if _, err := f.CreateProject(f.Context(), quartermaster.Project{ID: "second"}); err != nil {
		f.Fatal(err)
	}
	for _, project := range []string{quartermaster.DefaultProject, "second"} {
		c, err := f.Catalog(f.Context(), project)
		if err != nil {
			f.Fatal(err)
		}
		for _, name := range []string{"echo", "time_now", "spawn_agents", "list_available_agents"} {
			t := c.ToolByName(name)
			if t == nil || !t.Active() || t.Provider != quartermaster.ProviderNative || t.Origin != quartermaster.OriginBuiltin || t.Version != 1 {
				f.Errorf("%s in %s: %+v", name, project, t)
			}
		}
	}
	c := f.change(func(d *quartermaster.Draft) error {
		for _, b := range quartermaster.Builtins() {
			if code := quartermaster.CodeOf(d.DeleteTool(b.Name)); code != quartermaster.CodeNotDeletable {
				f.Errorf("delete %s: %s", b.Name, code)
			}
			if err := enable(b.Name, false)(d); err != nil {
				return err
			}
		}
		return nil
	})
	f.survives(c)
	if c := f.catalog(); c.ToolByName("echo").Active() || len(c.Tools()) != 4 {
		f.Errorf("after opening again: %d tools, echo %+v", len(c.Tools()), c.ToolByName("echo"))
	}
	for field, edit := range map[string]func(*quartermaster.Tool){
		"name":           func(t *quartermaster.Tool) { t.Name = "x" },
		"description":    func(t *quartermaster.Tool) { t.Description = "x" },
		"inputSchema":    func(t *quartermaster.Tool) { t.InputSchema = json.RawMessage(`{"type":"object","title":"x"}`) },
		"config.builtin": func(t *quartermaster.Tool) { t.Config = json.RawMessage(`{"builtin":"time_now"}`) },
	} {
		if e := f.refusal(quartermaster.CodeInvalidRequest, update("echo", edit)); e.Faults[0].Location != field {
			f.Errorf("%s: %v", field, e.Faults)
		}
	}
}
