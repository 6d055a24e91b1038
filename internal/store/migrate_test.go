package store

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"quartermaster"
	"quartermaster/internal/store/storetest"
)

// openBare opens a database and leaves its schema as it is.
func openBare(t *testing.T, o Options) *Store {
	t.Helper()
	s := &Store{}
	var err error
	if o.Database != "" {
		err = s.openPostgres(t.Context(), o.Database)
	} else {
		err = s.openSQLite(t.Context(), o.Data)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// beforeGrants is the newest schema without grants, policies in use and roles.
const beforeGrants = 3

// rowsBeforeGrants are what a program of that schema has written.
var rowsBeforeGrants = []string{
	`INSERT INTO projects (id, name, plan, revision, created_at) VALUES ('default', 'Default', 'enterprise', 7, 1000001), ('team', 'Team <1>', 'free', 2, 1000002)`,
	`INSERT INTO changes (project, revision, noun, key) VALUES ('default', 7, 'tool', 't1')`,
	`INSERT INTO servers (project, name, settings, created_at, updated_at) VALUES ('default', 'files', '{"name":"files","transport":"stdio","command":"x","enabled":true,"prefix":true}', 1, 2)`,
	`INSERT INTO tools (project, id, name, display_name, description, category, provider, server, origin, input_schema, output_schema, annotations, config, enabled, groups, state, states, timeout, version, created_at, updated_at)
		VALUES ('default', 't1', 'files__read', 'R', 'D', 'c', 'mcp', 'files', 'manual', '{"type":"object"}', NULL, NULL, NULL, TRUE, '["a"]', '', NULL, 0, 3, 1, 2)`,
	`INSERT INTO agents (project, id, definition, created_at, updated_at) VALUES ('default', 'writer', '{"id":"writer","tools":["*"],"maxDepth":2}', 1, 2)`,
	`INSERT INTO bindings (project, agent, tool, created_at) VALUES ('default', 'writer', 't1', 5)`,
	`INSERT INTO users (project, id, groups, created_at, updated_at) VALUES ('default', 'alice', '["a","b"]', 1, 2), ('team', 'bob', '[]', 3, 4)`,
	`INSERT INTO relations (project, resource_type, resource_id, relation, subject_type, subject_id, subject_relation, created_at) VALUES ('default', 'tool', 'x', 'y', 'user', 'z', '', 1)`,
	`INSERT INTO sessions (project, id, agent, user_id, groups, state, question, history, created_at, updated_at) VALUES ('team', 's', 'a', 'u', NULL, 'x', '', '[]', 1, 1)`,
	`INSERT INTO audit (project, number, time, record, hash) VALUES ('team', 1, 2, '{}', 'h')`,
}

// PERM-1, GATE-7: a database from before grants keeps all it has, and can be
// worked with.
func TestUpgradeFromBeforeGrants(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, o Options) {
		old := openBare(t, o)
		p, err := old.migrations()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.UpTo(t.Context(), beforeGrants); err != nil {
			t.Fatal(err)
		}
		for _, row := range rowsBeforeGrants {
			if _, err := old.write.Exec(row); err != nil {
				t.Fatalf("%s: %v", row, err)
			}
		}
		if err := old.Close(); err != nil {
			t.Fatal(err)
		}

		s := open(t, o)
		projects, err := s.Projects(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		want := []quartermaster.Project{
			{ID: "default", Name: "Default", Plan: "enterprise", PolicyQuery: quartermaster.DefaultPolicyQuery, Revision: 7, CreatedAt: fromMicros(1000001)},
			{ID: "team", Name: "Team <1>", Plan: "free", PolicyQuery: quartermaster.DefaultPolicyQuery, Revision: 2, CreatedAt: fromMicros(1000002)},
		}
		if !slices.Equal(projects, want) {
			t.Errorf("projects %+v, want %+v", projects, want)
		}
		c, err := s.Catalog(t.Context(), quartermaster.DefaultProject)
		if err != nil {
			t.Fatal(err)
		}
		got := fmt.Sprintln(c.Server("files").Command, c.Tool("@files/read").Version, c.Agent("writer").Tools, c.Bindings("writer").Tools[0].ToolID,
			c.User("alice").Groups, c.User("alice").Roles == nil, len(c.AllGrants()), len(c.Policies()))
		if got != "x 3 [*] t1 [a b] true 0 0\n" {
			t.Errorf("the catalog has %s", got)
		}
		for _, table := range []string{"sessions", "audit"} {
			var n int
			if err := s.read.QueryRow(`SELECT count(*) FROM ` + table).Scan(&n); err != nil || n != 1 {
				t.Errorf("%s: %d rows (%v), want 1", table, n, err)
			}
		}
		if _, err := s.read.Exec(`SELECT 1 FROM relations`); err == nil {
			t.Error("the table relations is left")
		}

		c, err = s.Change(t.Context(), quartermaster.DefaultProject, func(d *quartermaster.Draft) error {
			_, _, err := d.Grant(quartermaster.Grant{Tool: "@files/read", Relation: "executor", Subject: "user:alice"})
			_, _, errUser := d.PutUser(quartermaster.User{ID: "alice", Groups: []string{"a"}, Roles: []string{"admin"}})
			_, _, errPolicy := d.PutPolicy(quartermaster.Policy{Name: "p", Rego: "package p"})
			return errors.Join(err, errUser, errPolicy)
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if d := storetest.Difference(c, catalogOf(t, o)); d != "" {
			t.Errorf("changed after the upgrade and opened again: %s", d)
		}
	})
}

// The way back to the schema before grants keeps what that one can hold.
func TestDowngradeToBeforeGrants(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, o Options) {
		s := open(t, o)
		edit := func(edit func(d *quartermaster.Draft) error) *quartermaster.Catalog {
			c, err := s.Change(t.Context(), quartermaster.DefaultProject, edit)
			if err != nil {
				t.Fatal(err)
			}
			return c
		}
		kept := edit(func(d *quartermaster.Draft) error {
			tool, err := d.CreateTool(quartermaster.Tool{Name: "a", Enabled: true})
			if err != nil {
				return err
			}
			_, err = d.ReplaceBindings("x", []string{tool.ID})
			_, _, errUser := d.PutUser(quartermaster.User{ID: "alice", Groups: []string{"a"}})
			_, _, errPolicy := d.PutPolicy(quartermaster.Policy{Name: "p", Rego: "package p"})
			return errors.Join(err, errUser, errPolicy)
		})
		lost := edit(func(d *quartermaster.Draft) error {
			_, _, err := d.Grant(quartermaster.Grant{Tool: "a", Relation: "executor", Subject: "user:alice"})
			p := d.Project()
			p.PolicyQuery = "data.own.allow"
			d.SetGrantsToken("token")
			return errors.Join(err, d.SetProject(p))
		})
		p, err := s.migrations()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.DownTo(t.Context(), beforeGrants); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if d := storetest.Difference(kept.With(lost.Revision(), nil), catalogOf(t, o)); d != "" {
			t.Errorf("down and up again: %s", d)
		}
	})
}
