package storetest

import (
	"strings"
	"time"

	"quartermaster"
)

func testProjects(f *fixture) {
	ctx := f.Context()
	p := f.catalog().Project()
	if p.ID != quartermaster.DefaultProject || p.Plan != quartermaster.PlanEnterprise || p.Revision != 1 || p.CreatedAt.IsZero() {
		f.Errorf("default project %+v", p)
	}
	before := time.Now().Add(-time.Second)
	made, err := f.CreateProject(ctx, quartermaster.Project{ID: "team-1", Revision: 99})
	if err != nil {
		f.Fatal(err)
	}
	if made.Name != "team-1" || made.Plan != quartermaster.PlanFree || made.PolicyQuery != quartermaster.DefaultPolicyQuery || made.Revision != 1 || made.CreatedAt.Before(before) {
		f.Errorf("created %+v", made)
	}
	if own, err := f.CreateProject(ctx, quartermaster.Project{ID: "own", PolicyQuery: "data.own.allow"}); err != nil || own.PolicyQuery != "data.own.allow" {
		f.Errorf("created %+v: %v", own, err)
	}
	for id, want := range map[string]quartermaster.Code{
		"team-1":                quartermaster.CodeAlreadyExists,
		"default":               quartermaster.CodeAlreadyExists,
		"":                      quartermaster.CodeInvalidRequest,
		"Team":                  quartermaster.CodeInvalidRequest,
		"a/b":                   quartermaster.CodeInvalidRequest,
		strings.Repeat("x", 41): quartermaster.CodeInvalidRequest,
	} {
		if _, err := f.CreateProject(ctx, quartermaster.Project{ID: id}); quartermaster.CodeOf(err) != want {
			f.Errorf("project %q: %v, want %s", id, err, want)
		}
	}
	if _, err := f.CreateProject(ctx, quartermaster.Project{ID: "x", Plan: "gold"}); quartermaster.CodeOf(err) != quartermaster.CodeInvalidRequest {
		f.Errorf("unknown plan: %v", err)
	}
	if _, err := f.Catalog(ctx, "nowhere"); quartermaster.CodeOf(err) != quartermaster.CodeNotFound {
		f.Errorf("catalog of an unknown project: %v", err)
	}
	if _, err := f.Change(ctx, "nowhere", func(*quartermaster.Draft) error { return nil }); quartermaster.CodeOf(err) != quartermaster.CodeNotFound {
		f.Errorf("change of an unknown project: %v", err)
	}
	// What no project could be called is unknown too, whatever the database
	// makes of it.
	for _, id := range []string{"\x00", "\xff", "a\x00b", "", "Team", "a/b", strings.Repeat("x", 1<<20)} {
		if _, err := f.Catalog(ctx, id); quartermaster.CodeOf(err) != quartermaster.CodeNotFound {
			f.Errorf("catalog of %.9q: %v", id, err)
		}
		if _, err := f.Change(ctx, id, func(*quartermaster.Draft) error { return nil }); quartermaster.CodeOf(err) != quartermaster.CodeNotFound {
			f.Errorf("change of %.9q: %v", id, err)
		}
		if _, err := f.CreateProject(ctx, quartermaster.Project{ID: id}); quartermaster.CodeOf(err) != quartermaster.CodeInvalidRequest {
			f.Errorf("create %.9q: %v", id, err)
		}
		for _, place := range [][2]string{{id, "NAME"}, {quartermaster.DefaultProject, id}} {
			if _, err := f.Secret(ctx, place[0], place[1]); quartermaster.CodeOf(err) != quartermaster.CodeNotFound {
				f.Errorf("secret of %.9q: %v", id, err)
			}
		}
	}

	c, err := f.Change(ctx, "team-1", func(d *quartermaster.Draft) error {
		return d.SetProject(quartermaster.Project{ID: "other", Name: "Team <1>", Plan: quartermaster.PlanTeam, PolicyQuery: "data.team.allow", GrantsToken: "no", Revision: 77, CreatedAt: time.Unix(1, 0)})
	})
	if err != nil {
		f.Fatal(err)
	}
	want := quartermaster.Project{ID: "team-1", Name: "Team <1>", Plan: quartermaster.PlanTeam, PolicyQuery: "data.team.allow", Revision: 2, CreatedAt: made.CreatedAt}
	if c.Project() != want {
		f.Errorf("set %+v, want %+v", c.Project(), want)
	}
	want.GrantsToken, want.Revision = "GhUKEzE3 <&>", 3
	c, err = f.Change(ctx, "team-1", func(d *quartermaster.Draft) error { d.SetGrantsToken(want.GrantsToken); return nil })
	if err != nil || c.Project() != want {
		f.Errorf("token: %+v (%v), want %+v", c.Project(), err, want)
	}
	f.reopen()
	all, err := f.Projects(ctx)
	if err != nil {
		f.Fatal(err)
	}
	if len(all) != 3 || all[0] != p || all[1].PolicyQuery != "data.own.allow" || all[2] != want {
		f.Errorf("projects %+v, want default, own and %+v", all, want)
	}
}
