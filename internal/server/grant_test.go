package server

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"quartermaster"
)

type grantPage = quartermaster.Page[quartermaster.Grant]

func (r rest) grants(query string) (keys []string) {
	r.Helper()
	var p grantPage
	r.do("GET", "grants?size=100&"+query, nil).ok(200, &p)
	for _, g := range p.Content {
		keys = append(keys, g.Key())
	}
	return keys
}

// REST-2, PERM-2
func TestGrants(t *testing.T) {
	onBoth(t, func(t *testing.T, r rest) {
		r.do("PUT", "servers/files", `{"transport":"stdio","command":"x"}`).ok(201, nil)
		r.tool("files__read", "provider", "mcp", "server", "files", "config", nil)
		var g, again quartermaster.Grant
		r.do("POST", "grants", `{"subject":"user:alice","relation":"executor","tool":"@files/read"}`).ok(201, &g)
		if g.Subject != "user:alice" || g.Relation != "executor" || g.Tool != "files__read" || g.Resource != "tool:files__read" || g.CreatedAt.IsZero() {
			t.Errorf("%+v", g)
		}
		r.do("POST", "grants", `{"subject":"user:alice","relation":"executor","resource":"tool:files__read"}`).ok(200, &again)
		if !again.CreatedAt.Equal(g.CreatedAt) {
			t.Errorf("%v, then %v", g.CreatedAt, again.CreatedAt)
		}
		r.do("POST", "grants", g).ok(200, nil) // as it was answered
		for _, body := range []string{
			`{"subject":"group:ops#member","relation":"executor","tool":"echo"}`,
			`{"subject":"user:bob","relation":"member","resource":"group:ops"}`,
			`{"subject":"user:eve","relation":"admin","resource":"project"}`,
			`{"subject":"user:a@b.example","relation":"owner","tool":"files__later"}`, // of a server that may offer it yet
		} {
			r.do("POST", "grants", body).ok(201, nil)
		}
		for query, want := range map[string]string{
			"":                                     "[group:ops#member@user:bob project#admin@user:eve tool:echo#executor@group:ops#member tool:files__later#owner@user:a@b.example tool:files__read#executor@user:alice]",
			"subject=user:alice":                   "[tool:files__read#executor@user:alice]",
			"tool=@files/read":                     "[tool:files__read#executor@user:alice]",
			"tool=echo&relation=owner":             "[]",
			"resource=group:ops":                   "[group:ops#member@user:bob]",
			"relation=executor&subject=user:alice": "[tool:files__read#executor@user:alice]",
			"subject=group:ops%23member":           "[tool:echo#executor@group:ops#member]",
			"tool=none":                            "[]",
			"tool=@files/later":                    "[tool:files__later#owner@user:a@b.example]",
			"tool=@none/later":                     "[]",
			"tool=@files":                          "[]",
		} {
			if got := fmt.Sprint(r.grants(query)); got != want {
				t.Errorf("%s: %s, want %s", query, got, want)
			}
		}
		var p grantPage
		r.do("GET", "grants?size=2&page=3", nil).ok(200, &p)
		if p.TotalElements != 5 || len(p.Content) != 1 || !p.Last { // BIND-5
			t.Errorf("%+v", p)
		}
		r.do("GET", "grants?tool=echo&resource=tool:echo", nil).fails(422, quartermaster.CodeInvalidRequest, "query.resource")
		r.do("GET", "grants?size=0", nil).fails(422, quartermaster.CodeInvalidRequest, "query.size")

		for body, at := range map[string]string{
			`{"relation":"executor","tool":"echo"}`:                                           "body.subject",
			`{"subject":"alice","relation":"executor","tool":"echo"}`:                         "body.subject",
			`{"subject":"group:ops","relation":"executor","tool":"echo"}`:                     "body.subject",
			`{"subject":"user:*","relation":"executor","tool":"echo"}`:                        "body.subject",
			`{"subject":"user:alice","relation":"","tool":"echo"}`:                            "body.relation",
			`{"subject":"user:alice","relation":"executor"}`:                                  "body.tool",
			`{"subject":"user:alice","relation":"executor","resource":"project:other"}`:       "body.resource",
			`{"subject":"user:alice","relation":"executor","tool":"echo","resource":"group"}`: "body.resource",
			`{"subject":"user:alice","relation":"executor","tool":"echo","more":1}`:           "body.more",
		} {
			r.do("POST", "grants", body).fails(422, quartermaster.CodeInvalidRequest, at)
		}
		r.do("POST", "grants", `{"subject":"user:alice","relation":"executor","tool":"none"}`).fails(404, quartermaster.CodeToolNotFound, "")
		r.do("POST", "/api/v1/projects/none/grants", `{"subject":"user:alice","relation":"executor","tool":"echo"}`).fails(404, quartermaster.CodeNotFound, "")

		r.do("DELETE", "grants", nil).fails(422, quartermaster.CodeInvalidRequest, "query")
		r.do("DELETE", "grants?subject=", nil).fails(422, quartermaster.CodeInvalidRequest, "query")
		r.do("DELETE", "grants?subject=user:nobody", nil).fails(404, quartermaster.CodeNotFound, "")
		r.do("DELETE", "grants?tool=@files/read&relation=executor", nil).ok(204, nil)
		r.do("DELETE", "grants?tool=@files/read&relation=executor", nil).fails(404, quartermaster.CodeNotFound, "")
		r.do("DELETE", "grants?subject=group:ops%23member", nil).ok(204, nil)
		if got := len(r.grants("")); got != 3 {
			t.Errorf("%d are left", got)
		}
	})
}

type grantsChange struct{ Added, Removed int }

// manyGrants are those of users from a number up to another.
func manyGrants(from, to int) (all []map[string]string) {
	for i := range to - from {
		all = append(all, map[string]string{"subject": fmt.Sprintf("user:u%05d", from+i), "relation": "executor", "tool": "echo"})
	}
	return all
}

// REST-2: as many as bindings (BIND-3).
func TestTenThousandGrants(t *testing.T) {
	r := newRest(t, "")
	var got grantsChange
	for _, want := range []grantsChange{{Added: 10000}, {}} {
		r.do("PATCH", "grants", map[string]any{"add": manyGrants(0, 10000)}).ok(200, &got)
		if got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
	r.do("DELETE", "grants?relation=executor", nil).ok(204, nil)
	if left := r.grants(""); left != nil {
		t.Errorf("%d are left", len(left))
	}
}

// REST-2: many at once, or none.
func TestChangeGrants(t *testing.T) {
	onBoth(t, func(t *testing.T, r rest) {
		for _, c := range []struct {
			add, remove []map[string]string
			want        grantsChange
		}{
			{add: manyGrants(0, 100), want: grantsChange{100, 0}},
			{add: manyGrants(90, 110), remove: manyGrants(0, 50), want: grantsChange{10, 50}},
			{add: manyGrants(50, 51), remove: manyGrants(0, 51), want: grantsChange{0, 0}}, // what is added stays
			{remove: manyGrants(0, 109), want: grantsChange{0, 59}},
			{want: grantsChange{0, 0}},
		} {
			body := map[string]any{}
			if c.add != nil {
				body["add"] = c.add
			}
			if c.remove != nil {
				body["remove"] = c.remove
			}
			var got grantsChange
			r.do("PATCH", "grants", body).ok(200, &got)
			if got != c.want {
				t.Errorf("%+v, want %+v", got, c.want)
			}
		}
		good := `{"subject":"user:alice","relation":"executor","tool":"echo"}`
		for body, at := range map[string]string{
			`{"add":[` + good + `,{"subject":"alice","relation":"executor","tool":"echo"}]}`:                                                       "body.add[1].subject",
			`{"add":[` + good + `,{"subject":"alice","relation":"executor","tool":"echo"},{"subject":"user:a","relation":"owner","tool":"none"}]}`: "body.add[2].tool",
			`{"add":[` + good + `,{"subject":"user:alice","relation":"executor"}]}`:                                                                "body.add[1].tool",
			`{"add":[` + good + `],"remove":[{"subject":"","relation":"executor","tool":"echo"}]}`:                                                 "body.remove[0].subject",
			`{"add":[` + good + `],"remove":[{"subject":"user:alice","relation":"","tool":"echo"}]}`:                                               "body.remove[0].relation",
			`{"add":[` + good + `],"remove":[{"subject":"user:alice","relation":"executor"}]}`:                                                     "body.remove[0].tool",
			`{"add":[` + good + `],"remove":[{"subject":"user:a","relation":"executor","tool":"echo","resource":"project"}]}`:                      "body.remove[0].resource",
		} {
			r.do("PATCH", "grants", body).fails(422, quartermaster.CodeInvalidRequest, at)
		}
		p := r.do("PATCH", "grants", `{"add":[`+good+`,{"subject":"user:a","relation":"owner","tool":"none"},{"subject":"user:a","relation":"owner","resource":"tool:nor_this"}]}`).
			fails(404, quartermaster.CodeToolNotFound, "body.add[1].tool")
		if !strings.Contains(p.Detail, "none, nor_this") {
			t.Errorf("%s", p.Detail)
		}
		if got := fmt.Sprint(r.grants("")); got != "[tool:echo#executor@user:u00109]" {
			t.Errorf("something was changed: %s", got)
		}
	})
}

// PERM-2: what the schema has no place for is refused, with its place, by all
// ways in; and nothing is changed.
func TestGrantsFitTheSchema(t *testing.T) {
	p, _, r := withEngines(t, "")
	const wrong = `{"subject":"user:alice","relation":"janitor","tool":"echo"}`
	const right = `{"subject":"user:alice","relation":"executor","tool":"echo"}`
	document := `{"quartermaster":"v1","tools":{"x":{"inputSchema":{"type":"banana"}}},"grants":[` + right + `,` + wrong + `,{"subject":"alice","relation":"janitor","tool":"echo"}]}`
	for _, c := range []struct{ method, path, body, at string }{
		{"POST", "grants", wrong, "body.relation"},
		{"PATCH", "grants", `{"add":[` + right + `,` + wrong + `]}`, "body.add[1].relation"},
		{"POST", "apply", document, "body.grants[1].relation"},
		{"POST", "apply", document, "body.grants[2].subject"},
		{"POST", "apply", document, "body.tools.x.inputSchema"},
		{"POST", "apply?dryRun=true", document, "body.grants[1].relation"},
		{"POST", "whatif", document, "body.grants[1].relation"},
	} {
		r.do(c.method, c.path, c.body).fails(422, quartermaster.CodeInvalidRequest, c.at)
	}
	if got := r.grants(""); got != nil {
		t.Errorf("kept: %v", got)
	}
	r.do("POST", "grants", right).ok(201, nil)
	p.down = errGone
	for _, c := range [][3]string{
		{"POST", "grants", right},
		{"PATCH", "grants", `{"add":[` + right + `]}`},
		{"POST", "apply", `{"quartermaster":"v1","grants":[` + right + `]}`},
		{"GET", "/api/v1/schema", ""},
		{"GET", "grants", ""},
	} {
		var body any
		if c[2] != "" {
			body = c[2]
		}
		r.do(c[0], c[1], body).fails(503, quartermaster.CodeUnavailable, "")
	}
	// What needs no engine does not wait for one: above all to revoke.
	r.do("DELETE", "grants?subject=user:alice", nil).ok(204, nil)
	r.do("PATCH", "grants", `{"remove":[`+right+`]}`).ok(200, nil)
}

// PERM-1: grants that a cluster keeps are listed and exported from there.
func TestGrantsKeptElsewhere(t *testing.T) {
	p, _, r := withEngines(t, "")
	p.kept = []*quartermaster.Grant{
		quartermaster.NewGrant("project", "admin", "user:eve", time.Now()),
		quartermaster.NewGrant("tool:echo", "executor", "user:alice", time.Now()),
	}
	if got := fmt.Sprint(r.grants("tool=echo")); got != "[tool:echo#executor@user:alice]" {
		t.Errorf("%s", got)
	}
	var export struct{ Grants []map[string]string }
	r.do("GET", "export", nil).ok(200, &export)
	if fmt.Sprint(export.Grants) != "[map[relation:admin resource:project subject:user:eve] map[relation:executor subject:user:alice tool:echo]]" {
		t.Errorf("%v", export.Grants)
	}
	// What is there is no change, and can be supposed to be gone.
	var would struct {
		Changes []quartermaster.Difference `json:"changes"`
	}
	for path, want := range map[string]string{
		`apply?dryRun=true {"quartermaster":"v1","grants":[{"subject":"user:alice","relation":"executor","tool":"echo"}]}`: "[]",
		`apply?dryRun=true&prune=true {"quartermaster":"v1"}`:                                                              "[{delete grant project#admin@user:eve map[]} {delete grant tool:echo#executor@user:alice map[]}]",
		`whatif {"quartermaster":"v1","revoke":[{"subject":"user:alice","relation":"executor","tool":"echo"}]}`:            "[{delete grant tool:echo#executor@user:alice map[]}]",
	} {
		path, body, _ := strings.Cut(path, " ")
		r.do("POST", path, body).ok(200, &would)
		if got := fmt.Sprint(would.Changes); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
	p.down = errGone
	r.do("GET", "export", nil).fails(503, quartermaster.CodeUnavailable, "") // never half of it
	r.do("POST", "whatif", `{"quartermaster":"v1"}`).fails(503, quartermaster.CodeUnavailable, "")
}

// PERM-1: that a cluster does not answer is no reason to believe that nothing is
// granted.
func TestRevokeNeedsAnAnswer(t *testing.T) {
	srv := httptest.NewServer(New(Config{Store: brokenStore{}, Version: "test"}))
	t.Cleanup(srv.Close)
	rest{t, srv.URL}.do("DELETE", "grants?subject=user:alice", nil).fails(503, quartermaster.CodeUnavailable, "")
}

// PERM-2
func TestSchema(t *testing.T) {
	newRest(t, "").do("GET", "/api/v1/schema", nil).fails(501, quartermaster.CodeUnsupportedProvider, "")
	_, _, r := withEngines(t, "")
	var got map[string]string
	r.do("GET", "/api/v1/schema", nil).ok(200, &got)
	if got["schema"] != "definition user {}" {
		t.Errorf("%v", got)
	}
}

// GATE-9, CAT-5: a project file holds grants, and a question may revoke some.
func TestGrantsInFiles(t *testing.T) {
	onBoth(t, func(t *testing.T, r rest) {
		const file = `{"quartermaster":"v1","grants":[
			{"subject":"user:alice","relation":"executor","tool":"echo"},
			{"subject":"user:eve","relation":"admin","resource":"project"}]}`
		var applied applied
		r.do("POST", "apply", file).ok(200, &applied)
		if len(applied.Changes) != 2 {
			t.Errorf("%+v", applied)
		}
		export := r.do("GET", "export", nil)
		r.do("POST", "apply?prune=true", string(export.body)).ok(200, &applied)
		if len(applied.Changes) != 0 {
			t.Errorf("its own export: %+v", applied)
		}
		var would struct {
			Changes []quartermaster.Difference `json:"changes"`
		}
		r.do("POST", "whatif", `{"quartermaster":"v1","revoke":[{"subject":"user:alice","relation":"executor","tool":"echo"},{"subject":"user:none","relation":"executor","tool":"echo"}],
			"grants":[{"subject":"user:bob","relation":"executor","tool":"echo"}]}`).ok(200, &would)
		if len(would.Changes) != 2 || would.Changes[0].Action != "delete" || would.Changes[1].Action != "create" {
			t.Errorf("%+v", would)
		}
		r.do("POST", "whatif", `{"quartermaster":"v1","revoke":[{"subject":"","relation":"executor","tool":"echo"}],"tools":{"a b":{}}}`).
			fails(422, quartermaster.CodeInvalidRequest, "body.revoke[0].subject")
		r.do("POST", "apply?prune=true", `{"quartermaster":"v1"}`).ok(200, nil)
		if got := r.grants(""); got != nil {
			t.Errorf("%v", got)
		}
	})
}
