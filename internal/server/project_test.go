package server

import (
	"encoding/json"
	"strings"
	"testing"

	"quartermaster"
)

// REST-2: projects.
func TestProjects(t *testing.T) {
	onBoth(t, func(t *testing.T, r rest) {
		var p quartermaster.Project
		r.do("POST", "/api/v1/projects", `{"id":"team-1","name":"Team","plan":"team"}`).ok(201, &p)
		if p.ID != "team-1" || p.Name != "Team" || p.Plan != "team" {
			t.Errorf("%+v", p)
		}
		r.do("POST", "/api/v1/projects", `{"id":"plain"}`).ok(201, &p)
		if p.Plan != "free" || p.Name != "plain" {
			t.Errorf("%+v", p)
		}
		r.do("POST", "/api/v1/projects", `{"id":"plain"}`).fails(409, quartermaster.CodeAlreadyExists, "")
		for body, at := range map[string]string{
			`{}`: "body.id", `{"id":""}`: "body.id", `{"id":"A"}`: "body.id", `{"id":"a_b"}`: "body.id", `{"id":"` + strings.Repeat("a", 41) + `"}`: "body.id",
			`{"id":"x","plan":"gold"}`: "body.plan", `{"id":"x","budget":1}`: "body.budget",
		} {
			r.do("POST", "/api/v1/projects", body).fails(422, quartermaster.CodeInvalidRequest, at)
		}
		var all quartermaster.Page[quartermaster.Project]
		r.do("GET", "/api/v1/projects?size=2", nil).ok(200, &all)
		if all.TotalElements != 3 || all.Content[0].ID != "default" || all.Content[1].ID != "plain" || all.Last {
			t.Errorf("%+v", all)
		}
		r.do("PATCH", "/api/v1/projects/plain", `{"plan":"starter","name":null}`).ok(200, &p)
		if p.Plan != "starter" || p.Name != "plain" {
			t.Errorf("%+v", p)
		}
		r.do("PATCH", "/api/v1/projects/plain", `{"id":"other"}`).fails(422, quartermaster.CodeInvalidRequest, "body.id")
		// Projects do not see each other.
		r.do("POST", "/api/v1/projects/plain/tools", `{"name":"only-here"}`).ok(201, nil)
		r.do("GET", "tools/only-here", nil).fails(404, quartermaster.CodeToolNotFound, "")
	})
}

const projectFile = `{"quartermaster":"v1","project":{"name":"Demo"},
	"servers":{"files":{"transport":"stdio","command":"npx","lazy":true,"groups":["read"]}},
	"tools":{"files__read":{"provider":"mcp","server":"files"},"greet":{"config":{"builtin":"echo"},"enabled":false,"groups":[]},"echo":{"groups":["basic"]}},
	"agents":{"writer":{"tools":["files__*"],"maxDepth":0}},
	"bindings":{"agent-001":["greet","@files/read","echo"]}}`

type applied struct {
	DryRun   bool                       `json:"dryRun"`
	Revision int64                      `json:"revision"`
	Changes  []quartermaster.Difference `json:"changes"`
}

// CAT-5: a project file is applied whole; its export is the same project.
func TestApplyAndExport(t *testing.T) {
	onBoth(t, func(t *testing.T, r rest) {
		var dry, wet, again applied
		r.do("POST", "apply?dryRun=true", projectFile).ok(200, &dry)
		if !dry.DryRun || len(dry.Changes) != 7 {
			t.Errorf("%+v", dry)
		}
		r.do("GET", "tools/greet", nil).fails(404, quartermaster.CodeToolNotFound, "")
		r.do("POST", "apply", projectFile).ok(200, &wet)
		if len(wet.Changes) != 7 || wet.Revision != dry.Revision+1 {
			t.Errorf("%+v", wet)
		}
		r.do("POST", "apply", projectFile).ok(200, &again)
		if len(again.Changes) != 0 || again.Revision != wet.Revision {
			t.Errorf("a second time: %+v", again)
		}
		export := r.do("GET", "export", nil)
		export.ok(200, nil)
		r.do("POST", "apply?prune=true", string(export.body)).ok(200, &again)
		if len(again.Changes) != 0 {
			t.Errorf("its own export: %+v", again)
		}
		// Into an empty project it gives the same.
		r.do("POST", "/api/v1/projects", `{"id":"copy"}`).ok(201, nil)
		r.do("POST", "/api/v1/projects/copy/apply", string(export.body)).ok(200, nil)
		copied := r.do("GET", "/api/v1/projects/copy/export", nil)
		var a, b any
		export.ok(200, &a)
		copied.ok(200, &b)
		if x, _ := json.Marshal(a); string(x) != marshal(b) {
			t.Errorf("export %s\ncopy %s", x, marshal(b))
		}
		r.do("POST", "/api/v1/projects/copy/apply?prune=true", `{"quartermaster":"v1"}`).ok(200, &again)
		if p := r.page("/api/v1/projects/copy/tools"); names(p) != builtinNames {
			t.Errorf("after pruning: %s", names(p))
		}
	})
}

func marshal(v any) string {
	b, _ := json.Marshal(v)
	return string(b)
}

// CAT-5: one bad entry changes nothing, and the error names entry and field.
func TestApplyAllOrNothing(t *testing.T) {
	onBoth(t, func(t *testing.T, r rest) {
		for bad, at := range map[string]string{
			`{"quartermaster":"v1","tools":{"fine":{},"bad name":{}}}`:                         "body.tools.bad name.name",
			`{"quartermaster":"v1","tools":{"fine":{},"x":{"inputSchema":{"type":"banana"}}}}`: "body.tools.x.inputSchema",
			`{"quartermaster":"v1","tools":{"fine":{},"x":{"groups":"a"}}}`:                    "body.tools.x.groups",
			`{"quartermaster":"v1","tools":{"fine":{},"x":{"server":"none"}}}`:                 "body.tools.x.server",
			`{"quartermaster":"v1","tools":{"fine":{},"x":{"name":"y"}}}`:                      "body.tools.x.name",
			`{"quartermaster":"v1","tools":{"fine":{},"echo":{"description":"mine"}}}`:         "body.tools.echo.description",
			`{"quartermaster":"v1","tools":{"fine":{}},"servers":{"s":{"transport":"stdio"}}}`: "body.servers.s.command",
			`{"quartermaster":"v1","tools":{"fine":{}},"bindings":{"a":["fine","none"]}}`:      "body.bindings.a[1]",
			`{"quartermaster":"v1","tools":{"fine":{}},"agents":{"a":{"maxDepth":-1}}}`:        "body.agents.a.maxDepth",
			`{"quartermaster":"v2","tools":{"fine":{}}}`:                                       "body.quartermaster",
			`{"tools":{"fine":{}}}`:                     "body.quartermaster",
			`{"quartermaster":"v1","tool":{"fine":{}}}`: "body.tool",
		} {
			r.do("POST", "apply", bad).fails(422, quartermaster.CodeInvalidRequest, at)
		}
		if p := r.page("tools"); names(p) != builtinNames {
			t.Errorf("something was applied: %s", names(p))
		}
	})
}

// CAT-5: all that is wrong in a file is told at once: schemas, names and
// references.
func TestApplyTellsAll(t *testing.T) {
	r := newRest(t, "")
	const wrong = `{"quartermaster":"v1","tools":{"bad name":{},"x":{"inputSchema":{"type":"banana"}},"y":{"server":"none","outputSchema":{"type":7}}},
		"bindings":{"a":["none"]}}`
	for _, path := range []string{"apply", "apply?dryRun=true", "whatif"} {
		for _, at := range []string{
			"body.tools.bad name.name", "body.tools.x.inputSchema", "body.tools.y.server", "body.tools.y.outputSchema", "body.bindings.a[0]",
		} {
			r.do("POST", path, wrong).fails(422, quartermaster.CodeInvalidRequest, at)
		}
	}
}

// REST-1: a number that does not fit is refused with its place.
func TestNumbersThatDoNotFit(t *testing.T) {
	r := newRest(t, "")
	for body, at := range map[string]string{
		`{"maxDepth":1e1}`: "body.maxDepth", `{"maxSteps":1e30}`: "body.maxSteps", `{"maxSteps":99999999999999999999}`: "body.maxSteps",
		`{"maxDepth":1.5}`: "body.maxDepth",
	} {
		r.do("PUT", "agents/a", body).fails(422, quartermaster.CodeInvalidRequest, at)
	}
	r.do("POST", "apply", `{"quartermaster":"v1","agents":{"a.b":{"maxSteps":1e30}}}`).fails(422, quartermaster.CodeInvalidRequest, "body.agents.a.b.maxSteps")
	r.do("PUT", "agents/a", `{"memory":{"n":1e30,"m":99999999999999999999}}`).ok(201, nil)
}
