package spicedb

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	v1 "github.com/authzed/authzed-go/proto/authzed/api/v1"
	"google.golang.org/protobuf/types/known/timestamppb"
	"pgregory.net/rapid"

	"quartermaster"
)

// extended adds to the base schema: folders that tools lie in, robots beside
// users, people who are banned whatever else they are, permission on weekdays
// only, and for a time.
var extended = "use expiration\n" + strings.NewReplacer(
	"definition user {}", `definition user {}
definition robot {}
caveat on_weekdays(weekday int) { weekday < 6 }
definition folder {
	relation parent: folder
	relation viewer: user | robot | group#member | project#member
	permission view = viewer + parent->view
}`,
	"	relation executor: user | group#member\n", `	relation executor: user | group#member | user with on_weekdays | user with expiration | user:*
	relation folder: folder
	relation banned: user | group#member
`,
	"execute = owner + executor + project->admin", "execute = (owner + executor + project->admin + folder->view) - banned",
).Replace(baseSchema)

// PERM-2: the sample schema of the seed is a subset of the base schema: every
// relation and permission of its tool is there for users.
func TestSampleSchema(t *testing.T) {
	t.Parallel()
	files, err := os.ReadDir("../../../shared/seeds")
	if err != nil {
		t.Skip("the seeds are not here")
	}
	for _, f := range files {
		if !strings.HasPrefix(f.Name(), "004") {
			continue
		}
		text, err := os.ReadFile("../../../shared/seeds/" + f.Name())
		if err != nil {
			t.Fatal(err)
		}
		sample := regexp.MustCompile("(?s)```\n(definition user.*?)```").FindSubmatch(text)
		if sample == nil {
			t.Fatal("there is no schema in it")
		}
		for name, d := range mustCompile(string(sample[1])).types {
			for _, r := range d.GetRelation() {
				has := base().relation(name, r.GetName())
				if has == nil || isPermission(has) != isPermission(r) || len(missingSubjects(name, r, has)) > 0 {
					t.Errorf("%s#%s is not in the base schema", name, r.GetName())
				}
			}
		}
	}
}

// PERM-2: a schema may add to the base and must not lack what it has. It is said
// what is wrong.
func TestSchemaFaults(t *testing.T) {
	t.Parallel()
	without := func(old, new string) string {
		if !strings.Contains(baseSchema, old) {
			t.Fatalf("the base has no %q", old)
		}
		return strings.Replace(baseSchema, old, new, 1)
	}
	for _, tt := range []struct{ text, want string }{
		{baseSchema, ""},
		{extended, ""},
		{without("	relation owner: user | group#member\n	relation executor", "	relation executor"), "lacks tool#owner:"},
		{without("owner + ", ""), ""},
		{without("permission execute", "permission run"), "lacks tool#execute:"},
		{without("	relation member: user | group#member\n}\n\n/** tool", "}\n\n/** tool"), "lacks project#member:"},
		{without("relation executor: user | group#member", "relation executor: user"), "lacks group#member in tool#executor"},
		{without("relation executor: user | group#member", "relation executor: user:* | group#member"), "lacks user in tool#executor"},
		{without("permission execute = owner + executor + project->admin", "relation execute: user"), "lacks tool#execute as the base schema has it"},
		{"definition user {}", "lacks definition group, definition project, definition tool:"},
		{"", "lacks definition group"},
		{"definition user {", "not valid: parse error in `schema`, line 1"},
		{baseSchema + "\ndefinition folder {\n\trelation xyz: nothing\n}", "refuses the schema"},
	} {
		for how, set := range map[string]func() error{
			"opened": func() error {
				e, err := Open(t.Context(), Options{Schema: tt.text})
				if err == nil {
					err = e.Close()
				}
				return err
			},
			"set": func() error {
				s := open(t, Options{})
				return s.SetSchema(t.Context(), tt.text)
			},
		} {
			err := set()
			switch {
			case tt.want == "" || tt.text == "" && how == "opened":
				if err != nil {
					t.Errorf("%s: %v, with %q", how, err, tt.text)
				}
			case codeOf(err) != quartermaster.CodeInvalidRequest || !strings.Contains(err.Error(), tt.want):
				t.Errorf("%s: %v; want %q, with %q", how, err, tt.want, tt.text)
			}
		}
	}
}

// A schema that has no place for relationships that are there is refused, with
// what and how many, and the old one stays; a cluster's as well as ours.
func TestSetSchema(t *testing.T) {
	t.Parallel()
	for kind, options := range map[string]func(testing.TB) Options{"embedded": kinds["embedded"], "memory": kinds["memory"]} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s := open(t, options(t))
			s.tools(t, "a", "b")
			s.mustAllow(t, "alice", "")
			if err := s.SetSchema(t.Context(), extended); err != nil {
				t.Fatal(err)
			}
			s.grant(t, "tool:a#executor@user:alice", "tool:b#folder@folder:f", "folder:f#viewer@user:alice", "folder:f#viewer@robot:r", "tool:b#banned@user:bob")
			s.mustAllow(t, "alice", "a b")
			err := s.SetSchema(t.Context(), baseSchema)
			for _, want := range []string{"1 of tool#banned", "1 of tool#folder", "2 of folder#viewer"} {
				if codeOf(err) != quartermaster.CodeInvalidRequest || !strings.Contains(err.Error(), want) {
					t.Errorf("%v; want %q", err, want)
				}
			}
			err = s.SetSchema(t.Context(), strings.Replace(extended, "viewer: user | robot |", "viewer: user |", 1))
			if codeOf(err) != quartermaster.CodeInvalidRequest || !strings.Contains(err.Error(), "1 of folder#viewer") {
				t.Error(err)
			}
			s.mustAllow(t, "alice", "a b")
			if text, err := s.Schema(t.Context()); err != nil || !strings.Contains(text, "banned") {
				t.Errorf("%s, %v", text, err)
			}
			s.revoke(t, "folder:f#viewer@robot:r")
			if err := s.Load(t.Context(), []*quartermaster.Catalog{s.catalog(t)}); err != nil {
				t.Fatal(err)
			}
			if err := s.SetSchema(t.Context(), strings.Replace(extended, "viewer: user | robot |", "viewer: user |", 1)); err != nil {
				t.Error(err)
			}
			s.mustAllow(t, "alice", "a b")
			// What a schema gives changes with it.
			if err := s.SetSchema(t.Context(), strings.Replace(extended, "- banned", "- banned - folder->view", 1)); err != nil {
				t.Error(err)
			}
			s.mustAllow(t, "alice", "a")
		})
	}
}

// Grants that have no place in the schema are named, by their place in the list.
func TestCheckGrants(t *testing.T) {
	t.Parallel()
	s := open(t, Options{Schema: extended})
	for text, want := range map[string]string{
		"tool:a#executor@user:alice":       "",
		"tool:a#executor@group:ops#member": "",
		"folder:f#viewer@robot:r2":         "",
		"folder:f#viewer@project:x#member": "",
		"tool:a#execute@user:alice":        "grants[0].relation: execute follows from other relations; grant one of owner, executor, folder, banned",
		"tool:a#ruler@user:alice":          `grants[0].relation: tool has no relation "ruler"; it has owner, executor, folder, banned`,
		"tool:a#project@project:x":         "grants[0].relation: the server keeps this by itself",
		"project#admin@user:local":         "grants[0].relation: the server keeps this by itself",
		"shelf:a#viewer@user:alice":        "grants[0].resource: the schema has no shelf",
		"tool:a#executor@robot:r2":         "grants[0].subject: tool#executor is for user, group#member, user with on_weekdays, user with expiration, user:*",
		"group:ops#member@group:dev#owner": "grants[0].subject: group#member is for user, group#member",
		"group:ops#member@group:dev":       "grants[0].subject: group#member is for user, group#member",
	} {
		g := grantText(text)
		err := s.CheckGrants(t.Context(), []*quartermaster.Grant{&g})
		switch {
		case want == "" && err != nil:
			t.Errorf("%s: %v", text, err)
		case want != "" && (codeOf(err) != quartermaster.CodeInvalidRequest || !strings.HasSuffix(err.Error(), want)):
			t.Errorf("%s: %v; want %s", text, err, want)
		}
	}
	fine, bad := grantText("project#member@user:alice"), grantText("project#owner@user:alice")
	if err := s.CheckGrants(t.Context(), []*quartermaster.Grant{&fine, &bad, &fine}); err == nil || !strings.Contains(err.Error(), "grants[1].relation") {
		t.Error(err)
	}
}

// PERM-2: an extended schema is judged, kept true and explained as the base is.
func TestExtendedSchema(t *testing.T) {
	t.Parallel()
	for kind, options := range map[string]func(testing.TB) Options{"embedded": kinds["embedded"], "memory": kinds["memory"]} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			o := options(t)
			o.Schema = extended
			s := open(t, o)
			s.tools(t, "a", "b")
			s.grant(t, "tool:a#folder@folder:in.ner", "folder:in.ner#parent@folder:outer", "folder:outer#viewer@user:alice",
				"tool:a#executor@user:bob", "tool:a#banned@group:out#member", "group:out#member@user:bob",
				"folder:outer#viewer@project:"+s.project+"#member", "project#member@user:carol")
			s.mustAllow(t, "alice", "a")
			s.mustAllow(t, "bob", "")
			s.mustAllow(t, "carol", "a")
			s.mustExplain(t, "alice", "a", "alice is viewer of folder:outer", "")
			s.mustExplain(t, "bob", "a", "bob is executor of a, but the schema does not give them execute", "quartermaster grant user:bob executor a --project "+s.project)
			s.revoke(t, "group:out#member@user:bob")
			s.mustAllow(t, "bob", "a")
			s.property(t, func(t *rapid.T, tools []string) string {
				if rapid.Bool().Draw(t, "base") {
					return drawGrant(t, tools)
				}
				more := []string{"folder:in.ner#parent@folder:outer", "folder:outer#viewer@user:alice", "folder:in.ner#viewer@group:ops#member"}
				for _, tool := range tools {
					more = append(more, "tool:"+tool+"#folder@folder:in.ner", "tool:"+tool+"#banned@user:alice", "tool:"+tool+"#banned@group:d.ev#member")
				}
				return rapid.SampledFrom(more).Draw(t, "grant")
			})
		})
	}
}

// GATE-6: what is conditional is refused, and said to be; what ends by itself
// ends in what is kept too; a wildcard that others write is for everybody. None
// of them is a grant, and where a tool goes they go with it.
func TestConditional(t *testing.T) {
	t.Parallel()
	o := own(t).options()
	o.Schema = extended
	s := open(t, o)
	s.tools(t, "a", "b", "c")
	s.mustAllow(t, "alice", "")
	caveated := s.row("tool:a#executor@user:alice")
	caveated.OptionalCaveat = &v1.ContextualizedCaveat{CaveatName: "on_weekdays"}
	expiring := s.row("tool:b#executor@user:bob")
	expiring.OptionalExpiresAt = timestamppb.New(time.Now().Add(3 * time.Second))
	s.write(t, touch(caveated), touch(expiring))
	eventually(t, "bob has it", func() bool { return s.allowed(t, "bob") == "b" })
	s.mustAllow(t, "alice", "")
	s.mustExplain(t, "alice", "a", "alice may execute a only under a condition (on weekday), and what is conditional is refused",
		"quartermaster grant user:alice executor a --project "+s.project)
	eventually(t, "bob's time is over", func() bool { return s.allowed(t, "bob") == "" })
	if grants, err := s.Grants(t.Context(), s.catalog(t), quartermaster.GrantFilter{}); err != nil || len(grants) != 0 {
		t.Errorf("%s, %v", keys(grants), err)
	}
	s.change(t, func(d *quartermaster.Draft) error {
		_, err := d.UpdateTool("a", func(tool *quartermaster.Tool) error { tool.Name = "z"; return nil })
		return err
	})
	if got := s.rows(t, "a"); got != "" {
		t.Errorf("left behind: %s", got)
	}
	if got := s.rows(t, "z"); !strings.Contains(got, "on_weekdays") {
		t.Errorf("not moved: %s", got)
	}
	s.mustAllow(t, "alice", "")
	s.change(t, func(d *quartermaster.Draft) error { return d.DeleteTool("z") })
	if got := s.rows(t, "z"); got != "" {
		t.Errorf("left behind: %s", got)
	}
	everybody := s.row("tool:c#executor@user:x")
	everybody.Subject.Object.ObjectId = "*"
	s.write(t, touch(everybody))
	eventually(t, "everybody has it", func() bool { return s.allowed(t, "zoë") == "c" && s.allowed(t, "*") == "c" })
}

// rows writes the relationships of a tool that are in SpiceDB.
func (s *site) rows(t *testing.T, tool string) string {
	t.Helper()
	var all []string
	err := s.world.Load().read(t.Context(), &v1.RelationshipFilter{ResourceType: "tool", OptionalResourceId: toolID(s.project, tool)}, func(r *v1.Relationship) {
		all = append(all, keyOf(r)+" "+r.GetOptionalCaveat().GetCaveatName())
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(all, ", ")
}
