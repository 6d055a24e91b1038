package server

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"quartermaster"
)

const desk = `{"quartermaster":"v1",
	"tools":{
		"ticket_read":{"config":{"builtin":"echo"},"groups":["default","read-only"],"state":"triage"},
		"reply_draft":{"config":{"builtin":"echo"},"groups":["write"],"availableInStates":["triage"]},
		"hidden":{"config":{"builtin":"echo"},"enabled":false}},
	"agents":{"responder":{"tools":["ticket_*","reply_*","nothing_*"],"aliases":{"read":"ticket_read"}}},
	"users":{"alice":{"groups":["default","write"]},"bob":{"groups":[]},"root":{"groups":["*"]}}}`

type resolved struct {
	Tools    []quartermaster.Tool `json:"tools"`
	State    string               `json:"state"`
	Revision int64                `json:"revision"`
	Warnings []string             `json:"warnings"`
}

func (r resolved) names() string {
	var all []string
	for _, t := range r.Tools {
		all = append(all, t.Name)
	}
	return strings.Join(all, " ")
}

// GATE-4, GATE-5, AGT-5, REST-2: POST /resolve.
func TestResolve(t *testing.T) {
	onBoth(t, func(t *testing.T, r rest) {
		r.do("POST", "apply", desk).ok(200, nil)
		for body, want := range map[string]string{
			`{"agent":"responder"}`: "read",
			`{"agent":"responder","user":"alice","groups":["write"],"state":"triage"}`: "reply_draft",
			`{"agent":"responder","groups":["*"],"state":"triage"}`:                    "read reply_draft",
			`{"agent":"responder","groups":[]}`:                                        "",
			`{"agent":"responder","user":"bob"}`:                                       "", // the implied default is no ask
			`{"agent":"responder","user":"root","groups":["read-only"]}`:               "read",
			`{"agent":"responder","user":"stranger"}`:                                  "read",
			`{"agent":"nobody"}`:                                                       "",
			`{"agent":"responder","groups":["no such group"]}`:                         "",
		} {
			var got resolved
			r.do("POST", "resolve", body).ok(200, &got)
			if got.names() != want || got.Tools == nil || got.State == "" || got.Revision == 0 {
				t.Errorf("%s: %q, want %q", body, got.names(), want)
			}
			if want == "read" && got.Tools[0].Target != "ticket_read" {
				t.Errorf("%s: the alias has no target", body)
			}
			if strings.Contains(body, "no such group") && !strings.Contains(fmt.Sprint(got.Warnings), "no such group") {
				t.Errorf("%s: warnings %v", body, got.Warnings)
			}
		}
		for _, body := range []string{
			`{"agent":"responder","user":"alice","groups":["admin"]}`,
			`{"agent":"responder","user":"alice","groups":["write","admin"]}`,
			`{"agent":"responder","user":"alice","groups":["*"]}`,
			`{"agent":"responder","user":"bob","groups":["default"]}`,
			`{"agent":"responder","user":"stranger","groups":["write"]}`,
		} {
			p := r.do("POST", "resolve", body).fails(403, quartermaster.CodeGroupsNotGranted, "")
			if !strings.Contains(p.Detail, "was not granted") {
				t.Errorf("%s: %s", body, p.Detail)
			}
		}
		m := string(r.do("GET", "/metrics", nil).body)
		for _, line := range []string{
			`agent_group_access_denied_total{group="admin",project="default"} 2`,
			`agent_group_access_denied_total{group="*",project="default"} 1`,
			`agent_privilege_escalation_attempts_total{project="default",reason="groups_not_granted"} 5`,
		} {
			if !strings.Contains(m, line) {
				t.Errorf("no %s in the metrics", line)
			}
		}
		for body, at := range map[string]string{
			`{}`: "body.agent", `{"agent":""}`: "body.agent", `{"agent":"a","depth":-1}`: "body.depth", `{"agent":"a","groups":"x"}`: "body.groups",
			`{"agent":"a","user":"` + strings.Repeat("ü", 128) + `"}`: "body.user", `{"agent":"a","session":"x"}`: "body.session",
		} {
			r.do("POST", "resolve", body).fails(422, quartermaster.CodeInvalidRequest, at)
		}
	})
}

type explained struct {
	Tools    []quartermaster.Explanation `json:"tools"`
	Warnings []string                    `json:"warnings"`
}

// GATE-9, REST-2: GET /explain names gate, reason and remedy.
func TestExplain(t *testing.T) {
	r := newRest(t, "")
	r.do("POST", "apply", desk).ok(200, nil)
	one := func(query string) quartermaster.Explanation {
		t.Helper()
		var e explained
		r.do("GET", "explain?"+query, nil).ok(200, &e)
		if len(e.Tools) != 1 {
			t.Fatalf("%s: %+v", query, e)
		}
		return e.Tools[0]
	}
	for query, want := range map[string]struct {
		gate           quartermaster.Gate
		reason, remedy string
	}{
		"agent=responder&tool=hidden":                           {"registry", "disabled", "tools enable hidden"},
		"agent=responder&tool=echo":                             {"capsule", "no pattern", "quartermaster bind --add echo responder"},
		"agent=stranger&tool=echo":                              {"capsule", "no definition", "quartermaster bind --add echo stranger"},
		"agent=responder&tool=reply_draft":                      {"group", "group write", "request group write"},
		"agent=responder&tool=reply_draft&group=write":          {"state", "state triage; the state is undefined", "by calling ticket_read"},
		"agent=responder&tool=reply_draft&group=":               {"group", "no group at all", "write"},
		"agent=responder&tool=reply_draft&user=bob&group=write": {"group", "is granted none", "grant user \"bob\" group write"},
		"agent=responder&tool=none":                             {"registry", "no tool of the project has this name", "tools list"},
		"agent=responder&tool=read&user=bob":                    {"group", "not granted the group default", "grant"},
	} {
		e := one(query)
		if e.Allowed || e.Gate != want.gate || !strings.Contains(e.Reason, want.reason) || !strings.Contains(e.Remedy, want.remedy) {
			t.Errorf("%s: %+v", query, e)
		}
	}
	for _, query := range []string{"agent=responder&tool=read", "agent=responder&tool=ticket_read", "agent=responder&tool=reply_draft&group=write&state=triage&user=alice"} {
		if e := one(query); !e.Allowed || len(e.Gates) != 5 || e.Gate != "" {
			t.Errorf("%s: %+v", query, e)
		}
	}
	// What else would refuse it stands there too.
	e := one("agent=responder&tool=reply_draft")
	var refusing []quartermaster.Gate
	for _, g := range e.Gates {
		if g.Verdict != quartermaster.VerdictPass {
			refusing = append(refusing, g.Gate)
		}
	}
	if fmt.Sprint(refusing) != "[group state]" {
		t.Errorf("refusing: %v", refusing)
	}
	var all explained
	r.do("GET", "explain?agent=responder&group=*", nil).ok(200, &all)
	if len(all.Tools) != 7 || !strings.Contains(fmt.Sprint(all.Warnings), `"nothing_*" matches no tool`) {
		t.Errorf("%d tools, warnings %v", len(all.Tools), all.Warnings)
	}
	r.do("GET", "explain", nil).fails(422, quartermaster.CodeInvalidRequest, "query.agent")
	r.do("GET", "explain?agent=a&group=a&group=", nil).fails(422, quartermaster.CodeInvalidRequest, "query.group")
	r.do("GET", "explain?agent=a&depth=-1", nil).fails(422, quartermaster.CodeInvalidRequest, "query.depth")
}

// AGT-2, AGT-5: the editor of a definition is warned, and stopped where an
// alias would hide a tool.
func TestAgentWarnings(t *testing.T) {
	r := newRest(t, "")
	var a quartermaster.Agent
	r.do("PUT", "agents/x", `{"tools":["echo","time_*","nope","[","@none/*"],"allowed":["*"],"aliases":{"now":"time_now","lost":"nowhere","far":"spawn_agents"}}`).ok(201, &a)
	text := strings.Join(a.Warnings, "\n")
	for _, want := range []string{`"nope" matches no tool`, `"[" cannot be parsed`, `"@none/*" matches no tool`, `"nowhere", which does not exist`, `"spawn_agents", which the agent does not reach`} {
		if !strings.Contains(text, want) {
			t.Errorf("no warning with %s in\n%s", want, text)
		}
	}
	r.do("GET", "agents/x", nil).ok(200, &a)
	if len(a.Warnings) != 5 {
		t.Errorf("%v", a.Warnings)
	}
	r.do("PUT", "agents/x", `{"tools":["ec*","time_now"],"aliases":{"echo":"time_now"}}`).fails(422, quartermaster.CodeInvalidRequest, "body.aliases.echo")
	r.do("PUT", "agents/x", `{"tools":["time_now"],"aliases":{"echo":"time_now"}}`).ok(200, nil) // echo is out of reach
	r.do("POST", "apply", `{"quartermaster":"v1","agents":{"a.b":{"tools":["*"],"aliases":{"echo":"time_now"}}}}`).
		fails(422, quartermaster.CodeInvalidRequest, "body.agents.a.b.aliases.echo")
	r.do("GET", "agents/a.b", nil).fails(404, quartermaster.CodeNotFound, "")
}

// AGT-2: whoever applies a file hears what its definitions do not reach: all of
// it for those that change, only what is new for the others.
func TestApplyWarnsOfDefinitions(t *testing.T) {
	r := newRest(t, "")
	apply := func(query, body string) string {
		t.Helper()
		var got struct {
			Warnings []string `json:"warnings"`
		}
		r.do("POST", "apply"+query, `{"quartermaster":"v1",`+body+`}`).ok(200, &got)
		return strings.Join(got.Warnings, "\n")
	}
	const (
		hello = `"tools":{"hello":{"config":{"builtin":"echo"},"enabled":%t}}`
		first = `"agents":{"b":{"tools":["echo"]},"a":{"tools":["gone_*","hello"]}}`
		both  = "agent a: tools: \"gone_*\" matches no tool\nagent a: tools: \"hello\" matches no tool"
	)
	for _, query := range []string{"?dryRun=true", ""} {
		if got := apply(query, first); got != both {
			t.Errorf("%s: %s", query, got)
		}
	}
	if got := apply("", first); got != "" {
		t.Errorf("nothing has changed: %s", got)
	}
	// Another definition changes; that of a is as it was, and so are its warnings.
	if got := apply("", `"agents":{"b":{"tools":["echo","lost"]},"a":{"tools":["gone_*","hello"]}}`); got != `agent b: tools: "lost" matches no tool` {
		t.Errorf("%s", got)
	}
	// A definition that is not in the file is nobody's business here.
	if got := apply("", `"agents":{"c":{"tools":["echo"]}}`); got != "" {
		t.Errorf("%s", got)
	}
	// The definition is as it was, but loses what it matched.
	apply("", fmt.Sprintf(hello, true))
	if got := apply("?prune=true", first); got != `agent a: tools: "hello" matches no tool` {
		t.Errorf("%s", got)
	}
	var would struct {
		Warnings map[string][]string `json:"warnings"`
	}
	r.do("POST", "whatif", `{"quartermaster":"v1","agents":{"a":{"tools":["gone_*","hello"]},"b":{"tools":["new_*"]}}}`).ok(200, &would)
	if fmt.Sprint(would.Warnings) != `map[b:[tools: "new_*" matches no tool]]` {
		t.Errorf("%v", would.Warnings)
	}
}

// GATE-4: groups can be asked for by header; a parameter or the body wins.
func TestGroupHeader(t *testing.T) {
	r := newRest(t, "")
	r.do("POST", "apply", desk).ok(200, nil)
	send := func(method, path, body string, lines ...string) answer {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, r.url+"/api/v1/projects/default/"+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if body != "" {
			req.Header.Set("Content-Type", "application/json")
		}
		for _, line := range lines {
			req.Header.Add("Quartermaster-Group", line)
		}
		return r.send(req)
	}
	const all = "read reply_draft"
	for _, c := range []struct {
		query, body string // that ask for the same
		lines       []string
		want        string
	}{
		{"", ``, nil, "read"},
		{"", ``, []string{"write"}, "reply_draft"},
		{"", ``, []string{"write,read-only"}, all},
		{"", ``, []string{" write ,\tread-only "}, all},
		{"", ``, []string{"write", "read-only"}, all},
		{"", ``, []string{"nope, write", "read-only"}, all},
		{"", ``, []string{"*"}, all},
		{"", ``, []string{""}, ""},
		{"", ``, []string{"  "}, ""},
		{"&group=read-only", `,"groups":["read-only"]`, []string{"write"}, "read"},
		{"&group=", `,"groups":[]`, []string{"write"}, ""},
		{"&group=write", `,"groups":["write"]`, []string{""}, "reply_draft"},
		{"&group=write", `,"groups":["write"]`, []string{"a,,b"}, "reply_draft"},
	} {
		var got resolved
		send("POST", "resolve", `{"agent":"responder","state":"triage"`+c.body+`}`, c.lines...).ok(200, &got)
		if got.names() != c.want {
			t.Errorf("resolve %s with %q: %q, want %q", c.body, c.lines, got.names(), c.want)
		}
		var why explained
		send("GET", "explain?agent=responder&state=triage"+c.query, "", c.lines...).ok(200, &why)
		var allowed []string
		for _, e := range why.Tools {
			if e.Allowed {
				allowed = append(allowed, e.Name)
			}
		}
		if names := strings.Join(allowed, " "); names != c.want {
			t.Errorf("explain %s with %q: %q, want %q", c.query, c.lines, names, c.want)
		}
	}
	for _, lines := range [][]string{{"a,,b"}, {","}, {"a,"}, {"a", ""}, {"", ""}} {
		send("POST", "resolve", `{"agent":"a"}`, lines...).fails(422, quartermaster.CodeInvalidRequest, "header.Quartermaster-Group")
		send("GET", "explain?agent=a", "", lines...).fails(422, quartermaster.CodeInvalidRequest, "header.Quartermaster-Group")
	}
	for _, query := range []string{"&group=&group=a", "&group=a&group=", "&group=&group="} {
		send("GET", "explain?agent=a"+query, "").fails(422, quartermaster.CodeInvalidRequest, "query.group")
	}
	send("POST", "resolve", `{"agent":"a","groups":[""]}`).fails(422, quartermaster.CodeInvalidRequest, "body.groups[0]")
	send("POST", "resolve", `{"agent":"a","groups":["a","","b"]}`).fails(422, quartermaster.CodeInvalidRequest, "body.groups[1]")
}

// GATE-9: what a change would do, before it is made.
func TestWhatIf(t *testing.T) {
	onBoth(t, func(t *testing.T, r rest) {
		r.do("POST", "apply", desk).ok(200, nil)
		var got struct {
			Changes []quartermaster.Difference `json:"changes"`
			quartermaster.Impact
		}
		r.do("POST", "whatif", `{"quartermaster":"v1",
			"tools":{"hidden":{},"reply_draft":{"groups":["admin"],"availableInStates":["triage"]}},
			"agents":{"responder":{"tools":["reply_*","hidden"]}},
			"bindings":{"fresh":["echo"]},
			"users":{"alice":{"groups":["default"]}}}`).ok(200, &got)
		if len(got.Changes) != 5 || len(got.Agents) != 2 || len(got.Users) != 1 {
			t.Fatalf("%+v", got)
		}
		fresh, responder, alice := got.Agents[0], got.Agents[1], got.Users[0]
		if fmt.Sprint(fresh) != "{fresh [{echo [default] [*]}] []}" {
			t.Errorf("%+v", fresh)
		}
		if fmt.Sprint(responder.Gained) != "[{hidden [default] [*]} {reply_draft [admin] [triage]}]" ||
			fmt.Sprint(responder.Lost) != "[{reply_draft [write] [triage]} {ticket_read [default read-only] [*]}]" {
			t.Errorf("%+v", responder)
		}
		if fmt.Sprint(alice) != "{alice [] [write] [{fresh [echo] []} {responder [hidden] [reply_draft ticket_read]}]}" {
			t.Errorf("%+v", alice)
		}
		var now resolved
		r.do("POST", "resolve", `{"agent":"responder"}`).ok(200, &now)
		if now.names() != "read" {
			t.Errorf("the question changed the project: %s", now.names())
		}
		r.do("POST", "whatif", `{"quartermaster":"v1","tools":{"a b":{}}}`).fails(422, quartermaster.CodeInvalidRequest, "body.tools.a b.name")
		// What apply refuses has no impact to tell of (AGT-5).
		clash := `{"quartermaster":"v1","agents":{"a.b":{"tools":["*"],"aliases":{"echo":"time_now"}}}}`
		for _, verb := range []string{"whatif", "apply"} {
			r.do("POST", verb, clash).fails(422, quartermaster.CodeInvalidRequest, "body.agents.a.b.aliases.echo")
		}
	})
}

// GATE-9: who gets at a tool.
func TestWhoCan(t *testing.T) {
	r := newRest(t, "")
	r.do("POST", "apply", desk).ok(200, nil)
	r.bind("watch", r.byName("reply_draft"))
	var who quartermaster.Reachers
	r.do("GET", "who-can?tool=reply_draft", nil).ok(200, &who)
	if who.Nobody != "" || fmt.Sprint(who.Groups, who.States) != "[write] [triage]" ||
		fmt.Sprint(who.Agents) != `[{responder reply_draft the pattern "reply_*" of the definition matches it} {watch reply_draft it is bound to the agent}]` ||
		fmt.Sprint(who.Users) != "[{alice  [write] []} {root  [* write] []}]" {
		t.Errorf("%+v", who)
	}
	r.do("GET", "who-can?tool=hidden", nil).ok(200, &who)
	if who.Nobody != "it is disabled" || len(who.Agents) != 0 {
		t.Errorf("%+v", who)
	}
	r.do("GET", "who-can?tool=none", nil).fails(404, quartermaster.CodeToolNotFound, "")
}

// GATE-4: granted groups are rows.
func TestUsers(t *testing.T) {
	onBoth(t, func(t *testing.T, r rest) {
		var u quartermaster.User
		r.do("PUT", "users/alice%2Fsmith", `{"groups":["a","b","a"]}`).ok(201, &u)
		if u.ID != "alice/smith" || fmt.Sprint(u.Groups) != "[a b]" {
			t.Errorf("%+v", u)
		}
		r.do("PUT", "users/alice%2Fsmith", `{"groups":[]}`).ok(200, &u)
		r.do("GET", "users/alice%2Fsmith", nil).ok(200, &u)
		if u.Groups == nil || len(u.Groups) != 0 {
			t.Errorf("%+v", u)
		}
		var page quartermaster.Page[quartermaster.User]
		r.do("GET", "users", nil).ok(200, &page)
		if page.TotalElements != 1 {
			t.Errorf("%+v", page)
		}
		r.do("PUT", "users/x", `{}`).fails(422, quartermaster.CodeInvalidRequest, "body.groups")
		r.do("PUT", "users/x", `{"groups":[""]}`).fails(422, quartermaster.CodeInvalidRequest, "body.groups[0]")
		r.do("PUT", "users/"+strings.Repeat("x", 256), `{"groups":[]}`).fails(422, quartermaster.CodeInvalidRequest, "path.user")
		r.do("DELETE", "users/alice%2Fsmith", nil).ok(204, nil)
		r.do("DELETE", "users/alice%2Fsmith", nil).fails(404, quartermaster.CodeNotFound, "")
	})
}
