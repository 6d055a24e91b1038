package id

import (
	"regexp"
	"strings"
	"testing"

	"quartermaster"
)

// objectIDs is SpiceDB's own grammar of them.
var objectIDs = regexp.MustCompile(`^[a-zA-Z0-9/_|\-=+]+$`)

// GATE-6: the encoding is injective, fits SpiceDB's alphabet, stays readable and
// never makes the wildcard.
func TestEncode(t *testing.T) {
	t.Parallel()
	for id, want := range map[string]string{
		"alice":             "alice",
		"files__read_file":  "files__read_file",
		"files.read":        "files=2Eread",
		"alice@example.com": "alice=40example=2Ecom",
		"*":                 "=2A",
		"=2A":               "=3D2A",
		"Zoë":               "Zo=C3=AB",
		"a/b|c+d-e_f":       "a/b|c+d-e_f",
		"auth0|6123: x":     "auth0|6123=3A=20x",
	} {
		if got := Encode(id); got != want {
			t.Errorf("%q becomes %q, want %q", id, got, want)
		}
	}
	for _, text := range []string{"*", "a.b", "=", "=4", "=zz", "=2a", "=41", "a=", "a b"} {
		if id, ok := Decode(text); ok {
			t.Errorf("%q was read as %q", text, id)
		}
	}
}

func FuzzEncode(f *testing.F) {
	for _, id := range []string{"alice", "*", "=2A", "a.b@c", "Zoë", "\x00\xff", strings.Repeat("é", 127)} {
		f.Add(id, "p")
	}
	f.Fuzz(func(t *testing.T, id, project string) {
		if got, ok := Decode(Encode(id)); !ok || got != id {
			t.Fatalf("%q came back as %q", id, got)
		}
		if other, ok := Decode(id); ok && Encode(other) != id {
			t.Fatalf("%q and another are both read as %q", id, other)
		}
		if id == "" || len(id) > 255 || !quartermaster.ValidProjectID(project) {
			return
		}
		for _, kind := range []string{"user", "tool", "group", "folder", "project"} {
			o := quartermaster.Object{Type: kind, ID: id}
			text := Of(project, o)
			if !objectIDs.MatchString(text) || len(text) > 1024 {
				t.Fatalf("%s:%q becomes %q", kind, id, text)
			}
			home, got, ok := Object(kind, text)
			if !ok || got != o || home != project && kind != "user" {
				t.Fatalf("%s:%q of %s came back as %s:%q of %s", kind, id, project, got.Type, got.ID, home)
			}
		}
	})
}
