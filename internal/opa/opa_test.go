package opa

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"quartermaster"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// open starts an engine that ends with the test.
func open(t testing.TB, o Options) *Engine {
	t.Helper()
	e, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

var day = time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)

// edit makes the next catalog.
func edit(t testing.TB, c *quartermaster.Catalog, change func(d *quartermaster.Draft) error) *quartermaster.Catalog {
	t.Helper()
	d := c.Draft(day)
	if err := change(d); err != nil {
		t.Fatal(err)
	}
	return d.Catalog()
}

// catalogOf is a project with tools and policies, by name.
func catalogOf(t testing.TB, tools []string, policies map[string]string) *quartermaster.Catalog {
	t.Helper()
	return projectOf(t, "acme", tools, policies)
}

func projectOf(t testing.TB, id string, tools []string, policies map[string]string) *quartermaster.Catalog {
	t.Helper()
	project := quartermaster.Project{ID: id}
	if err := project.Validate(); err != nil {
		t.Fatal(err)
	}
	return edit(t, quartermaster.NewCatalog(project), func(d *quartermaster.Draft) error {
		for _, name := range tools {
			if _, err := d.CreateTool(quartermaster.Tool{Name: name, Enabled: true}); err != nil {
				return err
			}
		}
		for name, text := range policies {
			if _, _, err := d.PutPolicy(quartermaster.Policy{Name: name, Rego: text}); err != nil {
				return err
			}
		}
		return nil
	})
}

func withPolicy(t testing.TB, c *quartermaster.Catalog, name, text string) *quartermaster.Catalog {
	t.Helper()
	return edit(t, c, func(d *quartermaster.Draft) error {
		_, _, err := d.PutPolicy(quartermaster.Policy{Name: name, Rego: text})
		return err
	})
}

func withQuery(t testing.TB, c *quartermaster.Catalog, query string) *quartermaster.Catalog {
	t.Helper()
	return edit(t, c, func(d *quartermaster.Draft) error {
		p := d.Project()
		p.PolicyQuery = query
		return d.SetProject(p)
	})
}

func withRolesOf(t testing.TB, c *quartermaster.Catalog, user string, roles ...string) *quartermaster.Catalog {
	t.Helper()
	return edit(t, c, func(d *quartermaster.Draft) error {
		_, _, err := d.PutUser(quartermaster.User{ID: user, Groups: []string{"default"}, Roles: roles})
		return err
	})
}

func caller(user string) quartermaster.Caller {
	return quartermaster.Caller{Project: "acme", Agent: "coder", User: user}
}

func call(arguments string) quartermaster.Question {
	return quartermaster.Question{Arguments: json.RawMessage(arguments)}
}

// judged are the names of the tools that pass.
func judged(t testing.TB, j quartermaster.Judge, c *quartermaster.Catalog, who quartermaster.Caller, q quartermaster.Question) string {
	t.Helper()
	names, err := passing(t.Context(), j, c, who, q, c.Tools())
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(names, " ")
}

func passing(ctx context.Context, j quartermaster.Judge, c *quartermaster.Catalog, who quartermaster.Caller, q quartermaster.Question, tools []*quartermaster.Tool) ([]string, error) {
	said, err := j.Judge(ctx, c, who, q, tools)
	if err != nil {
		return nil, err
	}
	var names []string
	for i, tool := range tools {
		if said[i].Allowed {
			names = append(names, tool.Name)
		}
	}
	return names, nil
}

func mustRead(t testing.TB, file string) string {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// Open refuses what cannot be meant.
func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	for says, o := range map[string]Options{
		"give one of them, not 2":             {Path: dir, URL: "http://localhost:1"},
		"give one of them, not 3":             {Path: dir, URL: "http://localhost:1", Bundle: "http://localhost:1/b.tar.gz"},
		"no such file":                        {Path: dir + "/missing"},
		"there is no .rego file":              {Path: dir},
		"address of the remote OPA":           {URL: "localhost:8181"},
		"address of the bundle":               {Bundle: "ftp://localhost/b.tar.gz"},
		"without a password":                  {URL: "http://u:secret@localhost"},
		"\"host:80\" must be a host's name":   {Hosts: []string{"example.com", "::1", "host:80"}},
		"\"http://host\" must be a host's":    {Hosts: []string{"http://host"}},
		"\"\" must be a host's name":          {Hosts: []string{""}},
		"\"allow\" must name one rule":        {Query: "allow"},
		"\"data.a[x].b\" must name one rule":  {Query: "data.a[x].b"},
		"\"data.a\" must name one rule":       {Query: "data.a"},
		"\"input.a.b\" must name one rule":    {Query: "input.a.b"},
		"\"data.a.b; x\" must name one rule":  {Query: "data.a.b; x"},
		"\"data.a.b[0]\" must name one rule":  {Query: "data.a.b[0]"},
		"\"data.a.b[{}]\" must name one rule": {Query: "data.a.b[{}]"},
	} {
		e, err := Open(t.Context(), o)
		if e != nil || err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%v, %v; want %q", e, err, says)
		}
	}
}
