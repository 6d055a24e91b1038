package storetest

import (
	"errors"
	"reflect"
	"slices"
	"time"

	"quartermaster"
)

func testServer(f *fixture) {
	full := quartermaster.Server{
		Name: "files", Transport: quartermaster.TransportStdio, Command: "/bin/<x>", Args: []string{"-a", "", "-a"},
		Env: map[string]string{"TOKEN": "${SECRET}"}, Cwd: "/tmp", Enabled: true, Scope: quartermaster.ScopeAgent, Prefix: true,
		Lazy: true, Pin: true, Quarantine: true, Timeouts: quartermaster.Timeouts{Startup: 1, Request: 90 * quartermaster.Duration(time.Second)},
		HealthCheck:   &quartermaster.HealthCheck{Kind: quartermaster.HealthCommand, Interval: quartermaster.Duration(time.Second), Command: []string{"true"}},
		MaxConcurrent: 3, Groups: []string{"b", "a"},
		URL: "-", Headers: map[string]string{"-": "-"}, // what a stdio server cannot have
	}
	settable(f.T, full)
	full.URL, full.Headers = "", nil
	remote := quartermaster.Server{
		Name: "web", Transport: quartermaster.TransportHTTP, URL: "https://example.com/<x>?a&b", Headers: map[string]string{"Authorization": "Bearer ${T}"},
		Scope: quartermaster.ScopeProject, Groups: []string{},
		HealthCheck: &quartermaster.HealthCheck{Kind: quartermaster.HealthHTTP, Path: "/<health>"},
	}
	empty := quartermaster.Server{ // absent and empty are the same here
		Name: "empty", Transport: "process", Command: "x", Args: []string{}, Env: map[string]string{}, Headers: map[string]string{},
		HealthCheck: &quartermaster.HealthCheck{Kind: quartermaster.HealthPing, Command: []string{}},
	}
	put := func(d *quartermaster.Draft) error {
		for _, s := range []quartermaster.Server{full, remote, empty} {
			if _, _, err := d.PutServer(s); err != nil {
				return err
			}
		}
		return nil
	}
	c := f.change(put)
	for _, want := range []quartermaster.Server{full, remote} {
		got := *c.Server(want.Name)
		if time.Since(got.CreatedAt) > time.Minute || !got.UpdatedAt.Equal(got.CreatedAt) {
			f.Errorf("created %s, updated %s", got.CreatedAt, got.UpdatedAt)
		}
		got.CreatedAt, got.UpdatedAt = time.Time{}, time.Time{}
		if !reflect.DeepEqual(got, want) {
			f.Errorf("put\n%s, want\n%s", show(got), show(want))
		}
	}
	if got := c.Server("empty").Transport; got != quartermaster.TransportStdio {
		f.Errorf("process was kept as %s, want stdio", got)
	}
	f.survives(c)
	if again := f.change(put); again.Revision() != c.Revision() {
		f.Error("putting the same servers again is a change")
	}

	next := f.change(func(d *quartermaster.Draft) error {
		full.Enabled = false
		_, created, err := d.PutServer(full)
		if created {
			f.Error("an existing server was created")
		}
		return err
	})
	if s := next.Server("files"); !s.CreatedAt.Equal(c.Server("files").CreatedAt) || s.Enabled {
		f.Errorf("updated %+v", s)
	}
	f.survives(next)

	// Another server of the same name, in one draft.
	c = f.change(func(d *quartermaster.Draft) error {
		if err := d.DeleteServer("files"); err != nil {
			return err
		}
		_, created, err := d.PutServer(full)
		if !created {
			f.Error("a deleted server was not created")
		}
		return err
	})
	f.survives(c)
	f.refused(quartermaster.CodeNotFound, func(d *quartermaster.Draft) error { return d.DeleteServer("nowhere") })
}

func putServer(name string) func(*quartermaster.Draft) error {
	return func(d *quartermaster.Draft) error {
		_, _, err := d.PutServer(quartermaster.Server{Name: name, Transport: quartermaster.TransportStdio, Command: "x", Enabled: true, Prefix: true})
		return err
	}
}

// CAT-3: with a server go its tools, and with them their bindings.
func testServerDelete(f *fixture) {
	f.change(putServer("files"))
	own := f.tools("own")[0]
	f.change(func(d *quartermaster.Draft) error {
		for _, name := range []string{"files__a", "files__b"} {
			t, err := d.CreateTool(quartermaster.Tool{Name: name, Server: "files", Enabled: true})
			if err != nil {
				return err
			}
			if _, err := d.ChangeBindings("x", []string{t.ID, own}, nil); err != nil {
				return err
			}
		}
		return nil
	})
	if n := len(boundIDs(f.catalog(), "x")); n != 3 {
		f.Fatalf("%d bindings, want 3", n)
	}
	if f.catalog().ToolByName("@files/a") == nil {
		f.Error("@files/a is not found")
	}
	c := f.change(func(d *quartermaster.Draft) error { return d.DeleteServer("files") })
	if got := boundIDs(c, "x"); !slices.Equal(got, []string{own}) || len(c.Tools()) != 5 || len(c.Servers()) != 0 {
		f.Errorf("bindings %v, %d tools, %d servers", got, len(c.Tools()), len(c.Servers()))
	}
	f.survives(c)
	if e := f.refusal(quartermaster.CodeInvalidRequest, func(d *quartermaster.Draft) error {
		_, err := d.CreateTool(quartermaster.Tool{Name: "t", Server: "files"})
		return err
	}); e.Faults[0].Location != "server" {
		f.Errorf("a tool of a server that is gone: %v", e.Faults)
	}
}

// BIND-7: a tool that leaves a server in the draft that deletes the server
// keeps its bindings.
func testServerDeleteAfterItsToolMoved(f *fixture) {
	f.change(putServer("old"))
	var id string
	f.change(func(d *quartermaster.Draft) error {
		t, err := d.CreateTool(quartermaster.Tool{Name: "t", Server: "old", Enabled: true})
		id = t.ID
		return err
	})
	f.bind("x", id)
	c := f.change(func(d *quartermaster.Draft) error {
		return errors.Join(putServer("new")(d), update(id, func(t *quartermaster.Tool) { t.Server = "new" })(d), d.DeleteServer("old"))
	})
	if got := boundIDs(c, "x"); !slices.Equal(got, []string{id}) {
		f.Errorf("bindings %v, want %s", got, id)
	}
	f.survives(c)
}
