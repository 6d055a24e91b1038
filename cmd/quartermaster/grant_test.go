package main

import (
	"strings"
	"testing"
)

// CLI-1: grant, revoke and grants.
func TestGrantCommands(t *testing.T) {
	s := newSpeaking(t, map[string]string{
		"PATCH grants":                                              `200 {"added":1,"removed":1}`,
		"DELETE grants?subject=user%3Aalice":                        "204 ",
		"GET grants?page=1&resource=group%3Aops&size=100":           `200 {"content":[{"subject":"user:bob","relation":"member","resource":"group:ops","createdAt":"2026-01-02T03:04:05Z"}],"last":true}`,
		"GET grants?page=1&size=100&subject=user%3Aalice&tool=echo": `200 {"content":[{"subject":"user:alice","relation":"owner","resource":"tool:echo","tool":"echo","createdAt":"2026-01-02T03:04:05Z"}],"last":true}`,
		"GET grants?page=1&size=100":                                `200 {"content":[],"last":true}`,
		"GET /api/v1/schema":                                        `200 {"schema":"definition user {}\n\ndefinition tool {\n\trelation owner: user\n}"}`,
	})
	s.says([]string{"grant", "user:alice", "executor", "files__read_file"}, "user:alice is executor of files__read_file\n",
		`PATCH grants {"add":[{"relation":"executor","subject":"user:alice","tool":"files__read_file"}]}`)
	s.says([]string{"grant", "user:bob", "member", "group:ops"}, "user:bob is member of group:ops\n",
		`PATCH grants {"add":[{"relation":"member","resource":"group:ops","subject":"user:bob"}]}`)
	s.says([]string{"grant", "user:eve", "admin", "project"}, "user:eve is admin of project\n",
		`PATCH grants {"add":[{"relation":"admin","resource":"project","subject":"user:eve"}]}`)
	code, out, errOut := s.run("", "grant", "group:ops#member", "executor", "a", "@files/b")
	if code != 0 || out != "group:ops#member is executor of a, @files/b\n" || errOut != "1 of 2 granted already\n" ||
		s.asked[0] != `PATCH grants {"add":[{"relation":"executor","subject":"group:ops#member","tool":"a"},{"relation":"executor","subject":"group:ops#member","tool":"@files/b"}]}` {
		t.Errorf("%d %q %q %q", code, out, errOut, s.asked)
	}
	s.says([]string{"revoke", "user:alice", "executor", "tool:project"}, "user:alice is no longer executor of tool:project\n",
		`PATCH grants {"remove":[{"relation":"executor","resource":"tool:project","subject":"user:alice"}]}`)
	s.says([]string{"revoke", "--all", "user:alice"}, "revoked all that was granted to user:alice\n", "DELETE grants?subject=user%3Aalice")
	s.says([]string{"grants", "--resource", "group:ops"}, "SUBJECT   RELATION  ON         SINCE\nuser:bob  member    group:ops  2026-01-02 03:04:05Z\n")
	s.says([]string{"grants", "--subject", "user:alice", "--tool", "echo"}, "SUBJECT     RELATION  ON    SINCE\nuser:alice  owner     echo  2026-01-02 03:04:05Z\n")
	s.says([]string{"grants", "-o", "json"}, "[]\n")
	s.says([]string{"schema"}, "definition user {}\n\ndefinition tool {\n\trelation owner: user\n}\n")

	for _, args := range [][]string{
		{"grant", "user:alice", "executor"},
		{"revoke", "user:alice", "executor"},
		{"revoke", "--all"},
		{"revoke", "--all", "user:alice", "executor", "x"},
		{"grants", "user:alice"},
		{"grants", "--tool", "a", "--resource", "project"},
	} {
		s.fails(args, exitUsage)
	}
	s.answers["PATCH grants"] = `200 {"added":0,"removed":0}`
	s.fails([]string{"revoke", "user:alice", "executor", "echo"}, 15, "user:alice is not granted executor of echo; nothing was revoked")
}

// EXE-2: what is wrong is told of the arguments, once.
func TestGrantFaults(t *testing.T) {
	s := newSpeaking(t, map[string]string{"PATCH grants": `422 {"code":"invalid_request","detail":"the grants are not valid","errors":[
		{"location":"body.add[0].subject","message":"must be user:ID"},{"location":"body.add[1].subject","message":"must be user:ID"},
		{"location":"body.add[1].tool","message":"there is no tool"},{"location":"body.add[0].relation","message":"no such relation"}]}`})
	code, _, errOut := s.run("", "grant", "alice", "janitor", "a", "b")
	want := "quartermaster: the grants are not valid\n  SUBJECT: must be user:ID\n  b: there is no tool\n  RELATION: no such relation\n"
	if code != 18 || errOut != want {
		t.Errorf("%d\n%s\nwant\n%s", code, errOut, want)
	}
	s.answers["PATCH grants"] = `404 {"code":"tool_not_found","detail":"there is no tool b; nothing was changed","errors":[{"location":"body.add[0].tool","message":"there is no tool \"b\""}]}`
	s.fails([]string{"grant", "user:alice", "executor", "b"}, 3, "there is no tool b; nothing was changed")
}

func TestGrantCompletion(t *testing.T) {
	s := newSpeaking(t, map[string]string{
		"GET users?page=1&size=100":                  `200 {"content":[{"id":"alice"}],"last":true}`,
		"GET grants?page=1&relation=member&size=100": `200 {"content":[{"resource":"group:ops","subject":"user:a"},{"resource":"group:ops","subject":"user:b"},{"resource":"project","subject":"user:b"}],"last":true}`,
		"GET tools?page=1&q=ec&size=100":             `200 {"content":[{"name":"echo"}],"last":true}`,
		"GET policies?page=1&size=100":               `200 {"content":[{"name":"access"}],"last":true}`,
	})
	for words, want := range map[string]string{
		"grant ": "user:alice group:ops#member", "revoke user:alice ": "executor owner member admin", "grant user:alice executor ec": "echo",
		"policy show ": "access", "policy delete access ": "access",
	} {
		_, out, _ := s.run("", append([]string{"__complete"}, strings.Split(words, " ")...)...)
		got, _, _ := strings.Cut(out, "\n:")
		if strings.Join(strings.Fields(got), " ") != want {
			t.Errorf("%s: %q, want %s", words, got, want)
		}
	}
}
