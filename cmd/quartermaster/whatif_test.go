package main

import (
	"strings"
	"testing"
)

// GATE-9: files, grants, revocations and policies are one change.
func TestWhatIfOfRules(t *testing.T) {
	regoFiles(t, map[string]string{
		"hours.rego":  "package h",
		"change.yaml": "quartermaster: v1\nusers:\n  alice: {groups: []}\ngrants:\n  - {subject: \"user:carol\", relation: owner, tool: x}\n",
	})
	s := newSpeaking(t, map[string]string{
		"POST whatif?prune=false": `200 {"changes":[{}],"agents":[],"users":[{"user":"alice","agents":[{"agent":"writer","gained":["echo"],"lost":["time_now"]}]}]}`,
	})
	s.says([]string{
		"whatif", "--grant", "user:alice executor echo", "--grant", "user:o hara member group:ops", "--revoke", "user:eve admin project",
		"--policy", "hours.rego", "-f", "change.yaml",
	}, "user alice\n    + echo by agent writer\n    - time_now by agent writer\n",
		`POST whatif?prune=false {"quartermaster":"v1","users":{"alice":{"groups":[]}},"grants":[{"subject":"user:carol","relation":"owner","tool":"x"},{"subject":"user:alice","relation":"executor","tool":"echo"},`+
			`{"subject":"user:o hara","relation":"member","resource":"group:ops"}],"policies":{"hours":{"rego":"package h"}},"revoke":[{"subject":"user:eve","relation":"admin","resource":"project"}]}`)
	s.answers["POST whatif?prune=false"] = `422 {"code":"invalid_request","detail":"no","errors":[{"location":"body.grants[0].tool","message":"none"},
		{"location":"body.grants[1].relation","message":"unknown"},{"location":"body.revoke[0].subject","message":"empty"}]}`
	s.fails([]string{"whatif", "-f", "change.yaml", "--grant", "user:alice janitor echo", "--revoke", "user:eve admin project"}, 18,
		"  change.yaml:5: grants[0].tool: none\n", "  --grant 'user:alice janitor echo': grants[1].relation: unknown\n", "  --revoke 'user:eve admin project': revoke[0].subject: empty\n")
	s.fails([]string{"whatif"}, exitUsage)
	s.fails([]string{"whatif", "--grant", "user:alice executor"}, exitUsage, "must be SUBJECT RELATION TOOL")
}

// GATE-9: who-can tells the users, by what, and whom the policy refuses.
func TestWhoCanUsers(t *testing.T) {
	const reachers = `200 {"tool":"echo","groups":["default"],"states":["*"],"agents":[{"agent":"writer","name":"say","via":"it is bound to the agent"}],
		"users":[{"user":"alice","via":"executor, as member of group:ops","groups":["default"],"refused":["writer"]},{"user":"bob","via":"owner","groups":[]}]}`
	const head = "echo is in group default and available in every state\n\nAGENT   SEES IT AS  BECAUSE\nwriter  say         it is bound to the agent\n"
	s := newSpeaking(t, map[string]string{
		"GET who-can?tool=echo": reachers,
		"GET /api/v1/status":    `200 {"gates":[{"name":"permission","on":true}]}`,
	})
	s.says([]string{"who-can", "echo"}, head+"\nUSER   MAY ASK FOR  NOT BY AGENTS  BECAUSE\nalice  default      writer         executor, as member of group:ops\nbob    none         -              owner\n")
	s.answers["GET who-can?tool=echo"] = `200 {"tool":"echo","groups":["default"],"states":["*"],"agents":[],"users":[]}`
	code, out, errOut := s.run("", "who-can", "echo")
	if code != 0 || strings.Contains(out, "every user without a row") || !strings.Contains(errOut, "no user may execute it; grant it with: quartermaster grant user:ID executor echo") {
		t.Errorf("%d %s %s", code, out, errOut)
	}
	// Without the gate everybody may who may ask for the group.
	s.answers["GET /api/v1/status"] = `200 {"gates":[{"name":"permission","on":false}]}`
	s.answers["GET who-can?tool=echo"] = strings.NewReplacer("executor, as member of group:ops", "", "owner", "").Replace(reachers)
	s.says([]string{"who-can", "echo"}, head+"\nevery user without a row may ask for it, by group default\n\nUSER   MAY ASK FOR  NOT BY AGENTS\nalice  default      writer\nbob    none         -\n")
}
