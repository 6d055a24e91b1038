package storetest

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"pgregory.net/rapid"

	"quartermaster"
)

func testFailedEdit(f *fixture) {
	ids := f.tools("a", "b")
	before := f.bind("x", ids[0])
	wreck := func(d *quartermaster.Draft) error {
		return errors.Join(d.DeleteTool("a"), rename("b", "c")(d), putServer("s")(d), d.SetProject(quartermaster.Project{Name: "wrecked"}),
			putPolicy("p", "package p")(d), grant("project", "admin", "user:x")(d))
	}
	own := errors.New("the caller's own")
	_, err := f.Change(f.Context(), quartermaster.DefaultProject, func(d *quartermaster.Draft) error { return errors.Join(wreck(d), own) })
	if !errors.Is(err, own) {
		f.Errorf("error %v, want the caller's own", err)
	}
	f.same(before, f.catalog())
	func() {
		defer func() {
			if r := recover(); r != "out" {
				f.Errorf("recovered %v, want the panic", r)
			}
		}()
		_, _ = f.Change(f.Context(), quartermaster.DefaultProject, func(d *quartermaster.Draft) error {
			if err := wreck(d); err != nil {
				f.Error(err)
			}
			panic("out")
		})
	}()
	f.same(before, f.catalog())
	f.survives(f.bind("x", ids...)) // still usable
	if c := f.catalog(); c.Revision() != before.Revision()+1 || c.ToolByName("a") == nil {
		f.Errorf("something was left behind: revision %d", c.Revision())
	}
}

func testCanceledContext(f *fixture) {
	ids := f.tools("a")
	before := f.catalog()
	for name, when := range map[string]func(cancel func()){
		"before": func(cancel func()) { cancel() },
		"within": func(func()) {},
	} {
		ctx, cancel := context.WithCancel(f.Context())
		when(cancel)
		_, err := f.Change(ctx, quartermaster.DefaultProject, func(d *quartermaster.Draft) error {
			cancel()
			_, err := d.ReplaceBindings("x", ids)
			return err
		})
		cancel()
		if !errors.Is(err, context.Canceled) {
			f.Errorf("%s: error %v, want that it was canceled", name, err)
		}
		if _, err := f.CreateProject(ctx, quartermaster.Project{ID: "p"}); !errors.Is(err, context.Canceled) {
			f.Errorf("%s: create a project: %v", name, err)
		}
	}
	f.survives(before)
	if _, err := f.Catalog(f.Context(), "p"); quartermaster.CodeOf(err) != quartermaster.CodeNotFound {
		f.Errorf("a project of a canceled request: %v", err)
	}
	f.survives(f.bind("x", ids...))
}

// An edit that comes to nothing writes nothing, however it went there.
func testNoChange(f *fixture) {
	ids := f.tools("a", "b")
	f.change(grant("tool:a", "executor", "user:x"))
	c := f.bind("x", ids[0])
	was := c.Project()
	for name, edit := range map[string]func(*quartermaster.Draft) error{
		"nothing": func(*quartermaster.Draft) error { return nil },
		"tool made and deleted": func(d *quartermaster.Draft) error {
			t, err := d.CreateTool(quartermaster.Tool{Name: "t"})
			if err != nil {
				return err
			}
			return d.DeleteTool(t.ID)
		},
		"server": func(d *quartermaster.Draft) error { return errors.Join(putServer("s")(d), d.DeleteServer("s")) },
		"agent": func(d *quartermaster.Draft) error {
			_, _, err := d.PutAgent(quartermaster.Agent{ID: "a"})
			return errors.Join(err, d.DeleteAgent("a"))
		},
		"secret": func(d *quartermaster.Draft) error {
			return errors.Join(putSecret("NEW", "v")(d), d.DeleteSecret("NEW"))
		},
		"policy": func(d *quartermaster.Draft) error {
			return errors.Join(putPolicy("new", "package p")(d), d.DeletePolicy("new"))
		},
		"grants": func(d *quartermaster.Draft) error {
			d.Revoke(quartermaster.GrantFilter{})
			err := errors.Join(grant("tool:a", "executor", "user:x")(d), grant("tool:b", "executor", "user:x")(d))
			d.Revoke(quartermaster.GrantFilter{Resource: "tool:b"})
			return err
		},
		"bindings": func(d *quartermaster.Draft) error {
			_, err := d.ReplaceBindings("x", ids)
			_, back := d.ReplaceBindings("x", ids[:1])
			_, other := d.ReplaceBindings("y", ids)
			_, none := d.ReplaceBindings("y", nil)
			return errors.Join(err, back, other, none)
		},
		"project": func(d *quartermaster.Draft) error {
			return errors.Join(d.SetProject(quartermaster.Project{Name: "other", Plan: quartermaster.PlanTeam}), d.SetProject(was))
		},
	} {
		if got := f.change(edit); got.Revision() != c.Revision() {
			f.Errorf("%s: revision %d, want %d", name, got.Revision(), c.Revision())
		}
	}
	f.survives(c)
}

// Invariant 7: the snapshot that a change returns, made from the one before
// it, is what the database holds.
func testIncrementalIsFull(f *fixture) {
	ctx := f.Context()
	number := 0
	rapid.Check(f, func(t *rapid.T) {
		number++
		project := fmt.Sprint("p", number)
		if _, err := f.CreateProject(ctx, quartermaster.Project{ID: project}); err != nil {
			t.Fatal(err)
		}
		versions := map[string]int64{}
		for range rapid.IntRange(1, 8).Draw(t, "edits") {
			c, err := f.Change(ctx, project, func(d *quartermaster.Draft) error { Edit(t, d); return nil })
			if err != nil {
				t.Fatalf("%v, because of %v", err, errors.Unwrap(err))
			}
			next := map[string]int64{}
			for _, tool := range c.Tools() {
				next[tool.ID] = tool.Version
				if tool.Version < versions[tool.ID] {
					t.Fatalf("version of %s fell", tool.Name)
				}
			}
			versions = maps.Clone(next)
		}
		have, err := f.Catalog(ctx, project)
		if err != nil {
			t.Fatal(err)
		}
		f.reopen()
		loaded, err := f.Catalog(ctx, project)
		if err != nil {
			t.Fatal(err)
		}
		if d := Difference(have, loaded); d != "" {
			t.Fatalf("in memory and in the database: %s", d)
		}
	})
}
