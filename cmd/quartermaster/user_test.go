package main

import "testing"

// GATE-4, GATE-7: groups and roles are set apart from each other.
func TestUsersSet(t *testing.T) {
	s := newSpeaking(t, map[string]string{
		"GET users/alice":           `200 {"id":"alice","groups":["a","b"],"roles":["r"]}`,
		"PUT users/alice":           `200 {"id":"alice","groups":["a"],"roles":["r"]}`,
		"PUT users/new":             `201 {"id":"new","groups":["default"],"roles":["x"]}`,
		"GET users?page=1&size=100": `200 {"content":[{"id":"alice","groups":["a"],"roles":["r","s"]}],"last":true}`,
	})
	for _, c := range []struct {
		args []string
		body string
		says string
	}{
		{[]string{"alice", "a"}, `PUT users/alice {"groups":["a"],"roles":["r"]}`, "alice is granted: a"},
		{[]string{"alice"}, `PUT users/alice {"groups":[],"roles":["r"]}`, "alice is granted: a"},
		{[]string{"alice", "--role", "x", "--role", "y"}, `PUT users/alice {"groups":["a","b"],"roles":["x","y"]}`, "alice is granted: a; roles: r"},
		{[]string{"alice", "c", "--no-roles"}, `PUT users/alice {"groups":["c"]}`, "alice is granted: a; roles: r"},
		{[]string{"new", "--role", "x"}, `PUT users/new {"groups":["default"],"roles":["x"]}`, "new is granted: default; roles: x"},
	} {
		s.says(append([]string{"users", "set"}, c.args...), c.says+"\n")
		if s.asked[1] != c.body {
			t.Errorf("%q asked %q", c.args, s.asked)
		}
	}
	s.says([]string{"users"}, "ID     GROUPS  ROLES\nalice  a       r, s\n")
	s.fails([]string{"users", "set", "alice", "--role", "x", "--no-roles"}, exitUsage)
}
