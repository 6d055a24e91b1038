package opa

import (
	"strings"
	"testing"
)

// POL-1: what a policy's answer can depend on is found, never too little of it.
func TestReads(t *testing.T) {
	e := open(t, Options{Hosts: []string{"localhost"}})
	const call = fieldEvery
	for rules, want := range map[string]reads{
		`allow := true`:                                {},
		`allow if input.user_id == "a"`:                {fields: fieldUser},
		`allow if input["agent_id"] == "a"`:            {fields: fieldAgent},
		`allow if input.action == "execute"`:           {},
		`allow if input.context.tenant_id == "a"`:      {},
		`allow if input.arguments.path`:                {fields: fieldArguments},
		`allow if input.phase == "list"`:               {fields: fieldPhase},
		`allow if { input.depth < 2; input.state }`:    {fields: fieldDepth | fieldState},
		`allow if "ops" in input.groups`:               {fields: fieldGroups},
		`allow if { k := "user_id"; input[k] == "a" }`: {fields: call},
		`allow if input`:                               {fields: call},
		`allow if { x := input; x.user_id == "a" }`:    {fields: call},
		`allow if f(input)

f(x) if x.user_id == "a"`: {fields: call},
		`allow if f(input.user_id)

f(x) if { x == "a"; input.state == "b" }`: {fields: fieldUser | fieldState},
		`allow if not other

other if input.user_id == "a"`: {fields: fieldUser},
		`default allow := false

allow if false else if input.user_id == "a" else := true if input.state == "b"`: {fields: fieldUser | fieldState},
		`allow if count([x | x := input.groups[_]; input.depth == 1]) > 0`: {fields: fieldGroups | fieldDepth},
		`allow if every g in input.groups { g == input.state }`:            {fields: fieldGroups | fieldState},
		`allow if other with input.user_id as "bob"

other if input.user_id == "bob"`: {fields: fieldUser},
		`allow if other with input as {"user_id": "bob"}

other if input.user_id == "bob"`: {fields: call},
		"allow if $\"{input.user_id}!\" == \"a!\"":                                                      {fields: fieldUser},
		`allow if data.tools[input.tool_name].enabled`:                                                  {fields: fieldTool, docs: docTools},
		`allow if input.tool_name in data.groups.ops`:                                                   {fields: fieldTool, docs: docGroups},
		`allow if "admin" in data.roles[input.user_id]`:                                                 {fields: fieldUser, docs: docRoles},
		`allow if user_has_role[input.user_id].admin`:                                                   {fields: fieldUser, docs: docRoles},
		`allow if data.project.plan == "team"`:                                                          {docs: docProject},
		`allow if { some x; data[x].plan == "team" }`:                                                   {docs: docEvery},
		`allow if time.now_ns() > 0`:                                                                    {volatile: true},
		`allow if count(data.lib.x) > 0`:                                                                {},
		`allow if other with data.project as {} with time.now_ns as 1` + "\n\nother if data.project.id": {docs: docProject, volatile: true},
		`allow if http.send({"method": "get", "url": "http://localhost"}).body`:                         {volatile: true},
		`allow if rand.intn("x", 2) == 1`:                                                               {volatile: true},
		`allow if uuid.rfc4122("x")`:                                                                    {volatile: true},
		`allow if io.jwt.decode_verify("x", {})[0]`:                                                     {volatile: true},
		`allow if crypto.x509.parse_and_verify_certificates("x")[0]`:                                    {volatile: true},
		`allow if time.parse_rfc3339_ns("2026-11-15T12:00:00Z") > 0`:                                    {},
		`allow if f("x")

f(x) if now > 0

now := time.now_ns()`: {volatile: true},
	} {
		c := catalogOf(t, nil, map[string]string{"p": "package quartermaster.tools\n\n" + rules})
		p := e.compileProject(c)
		if p.err != nil {
			t.Errorf("%s: %v", rules, p.err)
			continue
		}
		got := p.allow.reads
		if want.fields == call {
			got.docs = want.docs
		}
		if got.fields != want.fields || got.docs != want.docs || got.volatile != want.volatile {
			t.Errorf("%s:\n%+v, want %+v", rules, got, want)
		}
	}
}

// POL-1: a rule that is named only when the question is there can be any.
func TestReadsElsewhere(t *testing.T) {
	e := open(t, Options{})
	for where, want := range map[string]fields{
		"data.lib[input.agent_id]": fieldAgent | fieldUser | fieldState,
		"data.lib.one":             fieldUser,
		"data.lib":                 fieldUser | fieldState,
	} {
		p := e.compileProject(catalogOf(t, nil, map[string]string{
			"p":   "package quartermaster.tools\n\nallow if " + where,
			"lib": "package lib\n\none if input.user_id == \"a\"\n\ntwo if input.state == \"a\"\n",
		}))
		if p.err != nil || p.allow.reads.fields != want {
			t.Errorf("%s: %b, want %b, %v", where, p.allow.reads.fields, want, p.err)
		}
	}
}

// POL-1: a set rule whose answer about one tool could depend on the others is
// recognized; its answers are not kept.
func TestApart(t *testing.T) {
	e := open(t, Options{})
	for rules, want := range map[string]bool{
		`allowed contains t if some t in input.tools`:                                                        true,
		`allowed contains t if { some t in input.tools; t != "a"; data.tools[t].enabled }`:                   true,
		`allowed contains input.tools[_] if input.user_id == "a"`:                                            true,
		`allowed contains t if { t := input.tools[_]; startswith(t, "a") }`:                                  true,
		`allowed contains t if { input.tools[_] = t; not bad[t] }` + "\n\nbad contains \"x\"":                true,
		`allowed := {t | some t in input.tools; t != input.user_id}`:                                         true,
		`allowed := {t | some t in input.tools} if input.user_id == "a" else := {"x"}`:                       true,
		`allowed := {t | some t in input.tools; t != "x"} if input.depth == 0` + "\n\ndefault allowed := {}": true,
		`allowed contains t if { some t, v in data.tools; v.enabled }`:                                       true,
		`allowed := {"a", "b"}`: true,
		`allowed contains t if { some t in input.tools; t == "a" }` + "\n\nallowed contains t if { some t in input.tools; t == \"b\" }": true,

		`allowed contains t if { some t in input.tools; count(input.tools) < 3 }`:                                false,
		`allowed contains t if { some i, t in input.tools; i < 3 }`:                                              false,
		`allowed contains t if { t := input.tools[0] }`:                                                          false,
		`allowed contains t if { some t in input.tools; "x" in input.tools }`:                                    false,
		`allowed contains t if { some t in input.tools; not other }` + "\n\nother if input.tools[_] == \"x\"":    false,
		`allowed contains t if { some t in input.tools; some u in input.tools; t != u }`:                         false,
		`allowed contains t if { some t in input.tools; every u in input.tools { u != "x" } }`:                   false,
		`allowed contains t if { x := input; some t in x.tools }`:                                                false,
		`allowed := s if { s := {t | some t in input.tools}; count(s) < 3 }`:                                     false,
		`allowed contains "a" if { some t in input.tools; t == "b" }`:                                            false,
		`allowed contains t if { some t in ["a", "b"]; t != input.tools[_] }`:                                    false,
		`allowed contains t if { some t in all }` + "\n\nall := input.tools":                                     false,
		`allowed := {t | some t in input.tools; count(input.tools) < 3}`:                                         false,
		`allowed := {"a"} if { count({t | some t in input.tools}) < 3 }`:                                         false,
		`allowed contains t if { some t in input.tools with input.tools as ["a"] }`:                              false,
		`allowed contains t if { some t in input.tools; other with input as {} }` + "\n\nother if input.user_id": false,
	} {
		p := e.compileProject(catalogOf(t, nil, map[string]string{"p": "package quartermaster.tools\n\n" + rules}))
		if p.err != nil {
			t.Errorf("%s: %v", rules, p.err)
		} else if p.allowed.reads.apart != want {
			t.Errorf("%s: %t", rules, !want)
		}
	}
	old := e.compileProject(catalogOf(t, nil, map[string]string{"p": "package quartermaster.tools\n\nallowed[t] { t = input.tools[_]; t != \"b\" }"}))
	if old.err != nil || !old.allowed.reads.apart {
		t.Errorf("in v0: %v", old.err)
	}
}

// Fields that are never there are named, with the rule that looks at them.
func TestUnknownFields(t *testing.T) {
	e := open(t, Options{})
	c := catalogOf(t, nil, map[string]string{"p": "package quartermaster.tools\n\nallow if input.userid == \"a\"\n\nallow if { input.user.name; input.user_id }"})
	report, err := e.Test(t.Context(), c)
	if got := strings.Join(report.Warnings, "; "); err != nil || got != "input.user at p.rego:5 is never there; input.userid at p.rego:3 is never there" {
		t.Error(got, err)
	}
}
