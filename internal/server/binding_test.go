package server

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"quartermaster"
)

const builtinNames = "echo list_available_agents spawn_agents time_now"

type bound struct {
	AgentID        string   `json:"agentId"`
	BoundToolCount int      `json:"boundToolCount"`
	ToolIDs        []string `json:"toolIds"`
}

func (r rest) bind(agent string, ids ...string) bound {
	r.Helper()
	var b bound
	r.do("PUT", "bindings", map[string]any{"agentId": agent, "toolIds": append([]string{}, ids...)}).ok(200, &b)
	return b
}

// BIND-1, BIND-2, BIND-3, BIND-4: the stories of seed 002.
func TestBindings(t *testing.T) {
	onBoth(t, func(t *testing.T, r rest) {
		// An agent that nobody has heard of has nothing bound and all active tools unbound.
		if p := r.page("bindings/bound?agentId=agent-new"); p.TotalElements != 0 || p.TotalPages != 0 || !p.Last || !p.First {
			t.Errorf("bound of a new agent: %+v", p)
		}
		if p := r.page("bindings/unbound?agentId=agent-new"); names(p) != builtinNames {
			t.Errorf("unbound of a new agent: %s", names(p))
		}
		a, b, c := r.tool("a", "description", "Alpha", "category", "x"), r.tool("b", "displayName", "BETA"), r.tool("c", "category", "x")

		got := r.bind("agent-001", a.ID, b.ID, a.ID, strings.ToUpper(b.ID)) // duplicates are folded, in either case
		if got.AgentID != "agent-001" || got.BoundToolCount != 2 || !slices.Equal(got.ToolIDs, []string{a.ID, b.ID}) {
			t.Errorf("bound: %+v", got)
		}
		p := r.page("bindings/bound?agentId=agent-001")
		if names(p) != "a b" || p.Content[0].Description != "Alpha" || p.Content[0].BoundAt.IsZero() || p.Content[0].ID != a.ID {
			t.Errorf("bound: %+v", p)
		}
		if p := r.page("bindings/unbound?agentId=agent-001"); names(p) != "c "+builtinNames {
			t.Errorf("unbound: %s", names(p))
		}
		since := p.Content[1].BoundAt
		time.Sleep(2 * time.Millisecond)
		r.bind("agent-001", b.ID, c.ID) // full replacement; what stays keeps its time
		p = r.page("bindings/bound?agentId=agent-001")
		if names(p) != "b c" || !p.Content[0].BoundAt.Equal(since) || !p.Content[1].BoundAt.After(since) {
			t.Errorf("after replacement: %+v", p)
		}

		// A disabled tool hides from both lists and comes back.
		r.do("PATCH", "tools/b", `{"enabled": false}`).ok(200, nil)
		if p := r.page("bindings/bound?agentId=agent-001"); names(p) != "c" {
			t.Errorf("bound with b disabled: %s", names(p))
		}
		if p := r.page("bindings/unbound?agentId=agent-001"); names(p) != "a "+builtinNames {
			t.Errorf("unbound with b disabled: %s", names(p))
		}
		// It cannot be bound meanwhile, and everything bad is named at once.
		bad := r.do("PUT", "bindings", map[string]any{"agentId": "agent-001", "toolIds": []string{a.ID, b.ID, "no-uuid", quartermaster.NewID(), ""}}).
			fails(400, quartermaster.CodeInvalidToolIDs, "")
		if len(bad.InvalidIDs) != 4 || bad.InvalidIDs[0] != b.ID || bad.InvalidIDs[1] != "no-uuid" {
			t.Errorf("invalid ids: %v", bad.InvalidIDs)
		}
		if p := r.page("bindings/bound?agentId=agent-001"); names(p) != "c" {
			t.Errorf("a refused request changed: %s", names(p))
		}
		r.do("PATCH", "tools/b", `{"enabled": null}`).ok(200, nil) // absent is true
		if p := r.page("bindings/bound?agentId=agent-001"); names(p) != "b c" {
			t.Errorf("bound with b enabled: %s", names(p))
		}

		// Filters.
		for query, want := range map[string]string{
			"q=ALPH": "a", "q=beta": "b", "q=nothing": "", "category=x": "a c", "category=X": "", "q=C&category=x": "c", "q=": "a b c",
		} {
			r.bind("filter", a.ID, b.ID, c.ID)
			if p := r.page("bindings/bound?agentId=filter&" + query); names(p) != want {
				t.Errorf("bound?%s: %q, want %q", query, names(p), want)
			}
			r.bind("filter", r.byName("echo"), r.byName("list_available_agents"), r.byName("spawn_agents"), r.byName("time_now"))
			if p := r.page("bindings/unbound?agentId=filter&" + query); names(p) != want {
				t.Errorf("unbound?%s: %q, want %q", query, names(p), want)
			}
		}

		// CAT-3: deleting a tool removes its bindings.
		r.do("DELETE", "tools/b", nil).ok(204, nil)
		if p := r.page("bindings/bound?agentId=agent-001"); names(p) != "c" {
			t.Errorf("after deletion: %s", names(p))
		}
		r.do("PUT", "bindings", `{"agentId":"agent-001","toolIds":[]}`).ok(200, &got)
		if got.BoundToolCount != 0 || got.ToolIDs == nil {
			t.Errorf("unbinding all: %+v", got)
		}
	})
}

func (r rest) byName(name string) string {
	r.Helper()
	var t quartermaster.Tool
	r.do("GET", "tools/"+name, nil).ok(200, &t)
	return t.ID
}

// BIND-3: what is malformed is refused with the field's name; 10,000 ids are fine.
func TestReplaceBindingsInput(t *testing.T) {
	r := newRest(t, "")
	for body, want := range map[string]struct {
		status int
		at     string
	}{
		`{"agentId":"a"}`:                                   {422, "body.toolIds"},
		`{"agentId":"a","toolIds":null}`:                    {422, "body.toolIds"},
		`{"agentId":"a","toolIds":"x"}`:                     {422, "body.toolIds"},
		`{"agentId":"a","toolIds":[1]}`:                     {422, "body.toolIds[0]"},
		`{"agentId":"a","toolIds":[null]}`:                  {422, "body.toolIds[0]"},
		`{"toolIds":[]}`:                                    {422, "body.agentId"},
		`{"agentId":"","toolIds":[]}`:                       {422, "body.agentId"},
		`{"agentId":null,"toolIds":[]}`:                     {422, "body.agentId"},
		`{"agentId":7,"toolIds":[]}`:                        {422, "body.agentId"},
		`{"agentId":"a\u0000b","toolIds":[]}`:               {422, "body.agentId"},
		`{"agentId":"a","toolIds":[],"x":1}`:                {422, "body.x"},
		`{"AgentId":"a","toolIds":[]}`:                      {422, "body.AgentId"},
		`{"agentId":"a","agentId":"b","toolIds":[]}`:        {400, "body.agentId"},
		`{"agentId":"a","toolIds":[]`:                       {400, "body"},
		`{"agentId":"a","toolIds":[]} trailing`:             {400, "body"},
		`[]`:                                                {422, "body"},
		`null`:                                              {422, "body"},
		"{\"agentId\":\"\xff\",\"toolIds\":[]}":             {400, "body"},
		strings.Repeat("[", 200) + strings.Repeat("]", 200): {400, ""},
		``: {400, ""},
	} {
		code := quartermaster.CodeInvalidRequest
		if want.status == 400 {
			code = quartermaster.CodeMalformedRequest
		}
		r.do("PUT", "bindings", body).fails(want.status, code, want.at)
	}
	long := strings.Repeat("é", 255)
	r.bind(long)
	r.do("PUT", "bindings", map[string]any{"agentId": long + "e", "toolIds": []string{}}).fails(422, quartermaster.CodeInvalidRequest, "body.agentId")

	ids := make([]string, 10_000)
	for i := range ids {
		ids[i] = r.byName("echo")
		if i > 0 {
			ids[i] = ids[0]
		}
	}
	if got := r.bind("many", ids...); got.BoundToolCount != 1 {
		t.Errorf("%+v", got.BoundToolCount)
	}
}

// BIND-5, BIND-6: page and agentId are checked, never bent.
func TestListBindingsInput(t *testing.T) {
	r := newRest(t, "")
	for query, at := range map[string]string{
		"":                                    "query.agentId",
		"agentId=":                            "query.agentId",
		"agentId=a&agentId=b":                 "query.agentId",
		"agentId=" + strings.Repeat("x", 256): "query.agentId",
		"agentId=a%00b":                       "query.agentId",
		"agentId=%ff":                         "query.agentId",
		"agentId=a&page=0":                    "query.page",
		"agentId=a&page=-1":                   "query.page",
		"agentId=a&page=x":                    "query.page",
		"agentId=a&page=":                     "query.page",
		"agentId=a&page=1.5":                  "query.page",
		"agentId=a&page=9223372036854775808":  "query.page",
		"agentId=a&size=0":                    "query.size",
		"agentId=a&size=101":                  "query.size",
		"agentId=a&size=1&size=2":             "query.size",
		"agentId=a&Size=1":                    "query.Size",
		"agentId=a&pageSize=1":                "query.pageSize",
	} {
		for _, list := range []string{"bound", "unbound"} {
			r.do("GET", "bindings/"+list+"?"+query, nil).fails(422, quartermaster.CodeInvalidRequest, at)
		}
	}
	r.do("GET", "bindings/bound?agentId=%zz", nil).fails(400, quartermaster.CodeMalformedRequest, "")

	for i := range 25 {
		r.tool(fmt.Sprintf("t%02d", i))
	}
	p := r.page("bindings/unbound?agentId=a&q=t&page=2&size=10&category=")
	if p.TotalElements != 29 || p.TotalPages != 3 || p.First || p.Last || p.Page != 2 || p.Size != 10 || len(p.Content) != 10 || p.Content[0].Name != "t07" {
		t.Errorf("page 2: %d elements, %d pages, %s", p.TotalElements, p.TotalPages, names(p))
	}
	for _, past := range []string{"4", "9223372036854775807"} {
		p := r.page("bindings/unbound?agentId=a&page=" + past)
		if len(p.Content) != 0 || p.Content == nil || !p.Last || p.First {
			t.Errorf("page %s: %+v", past, p)
		}
	}
	if p := r.page("bindings/unbound?agentId=a"); p.Size != 20 || p.Page != 1 || !p.First || p.Last {
		t.Errorf("defaults: %+v", p)
	}
	// Ordered by bytes, whatever the database's language thinks.
	for _, n := range []string{"Zz", "_z", "aB", "ab", "a-b", "a.b"} {
		r.tool(n)
	}
	all := names(r.page("bindings/unbound?agentId=a&size=100"))
	sorted := strings.Fields(all)
	if !slices.IsSorted(sorted) || len(sorted) != 35 {
		t.Errorf("not in byte order: %s", all)
	}
}

// BIND-6: an agent's id is any string; in a path it is percent-encoded.
func TestAgentIDs(t *testing.T) {
	onBoth(t, func(t *testing.T, r rest) {
		for _, id := range []string{"a/b", "a%2Fb", "ü&=?#+ ", "..x", "agents", "工具", "a//b", "%", "\"quoted\"", "-"} {
			path := "agents/" + url.PathEscape(id)
			r.do("PUT", path, `{"tools":["echo"]}`).ok(201, nil)
			var a quartermaster.Agent
			r.do("GET", path, nil).ok(200, &a)
			if a.ID != id || a.MaxDepth != 2 {
				t.Errorf("%q came back as %q", id, a.ID)
			}
			r.bind(id, r.byName("echo"))
			if p := r.page("bindings/bound?agentId=" + url.QueryEscape(id)); names(p) != "echo" {
				t.Errorf("bound to %q: %s", id, names(p))
			}
			r.do("DELETE", path, nil).ok(204, nil)
			r.do("GET", path, nil).fails(404, quartermaster.CodeNotFound, "")
		}
		r.do("PUT", "agents/%2E", `{}`).fails(422, quartermaster.CodeInvalidRequest, "body.id")
		r.do("PUT", "agents/%2E%2E", `{}`).fails(422, quartermaster.CodeInvalidRequest, "body.id")
		r.do("PUT", "agents/a%00", `{}`).fails(422, quartermaster.CodeInvalidRequest, "path.agent")
		r.do("PUT", "agents/"+strings.Repeat("x", 256), `{}`).fails(422, quartermaster.CodeInvalidRequest, "path.agent")
	})
}

func TestChangeBindings(t *testing.T) {
	r := newRest(t, "")
	a, b, c := r.tool("a"), r.tool("b"), r.tool("c")
	r.bind("x", a.ID, b.ID)
	r.do("PATCH", "tools/b", `{"enabled":false}`).ok(200, nil)
	var got bound
	r.do("PATCH", "bindings", map[string]any{"agentId": "x", "add": []string{c.ID}, "remove": []string{a.ID, "never bound"}}).ok(200, &got)
	if got.BoundToolCount != 2 { // b is disabled, but nobody asked to unbind it
		t.Errorf("%+v", got)
	}
	r.do("PATCH", "bindings", map[string]any{"agentId": "x", "add": []string{b.ID}}).fails(400, quartermaster.CodeInvalidToolIDs, "")
}
