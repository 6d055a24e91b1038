// Package id writes our names as the ids of SpiceDB's objects, and reads them
// back.
package id

import (
	"strings"

	"quartermaster"
)

// Encode writes a name in the small alphabet of object ids. Every byte outside
// of it, and the sign that it is done with, becomes =XX: two names never become one,
// most of them stay readable, and * never becomes the wildcard. 255 bytes become
// 765 at most, which with a project's id before them fit into the 1024 allowed.
func Encode(name string) string {
	plain := true
	for i := 0; i < len(name) && plain; i++ {
		plain = keeps(name[i])
	}
	if plain {
		return name
	}
	const hex = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(name) {
		if c := name[i]; keeps(c) {
			b.WriteByte(c)
		} else {
			b.Write([]byte{'=', hex[c>>4], hex[c&15]})
		}
	}
	return b.String()
}

func keeps(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("/_|+-", c) >= 0
}

// Decode reads back what Encode has written. What others have written
// otherwise into a cluster is told by false.
func Decode(text string) (string, bool) {
	if !strings.Contains(text, "=") {
		return text, Encode(text) == text
	}
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] != '=' {
			b.WriteByte(text[i])
			continue
		}
		if i+2 >= len(text) {
			return "", false
		}
		b.WriteByte(nibble(text[i+1])<<4 | nibble(text[i+2]))
		i += 2
	}
	return b.String(), Encode(b.String()) == text
}

func nibble(c byte) byte {
	if c <= '9' {
		return c - '0'
	}
	return c - 'A' + 10
}

// Of is the id of an object in SpiceDB. All but users belong to a project,
// whose id stands before theirs: what one project grants never reaches into
// another. The project itself bears its plain id; a grant that names another
// project means something that nobody is part of.
func Of(project string, o quartermaster.Object) string {
	switch {
	case o.Type == quartermaster.TypeUser:
		return Encode(o.ID)
	case o.Type == quartermaster.TypeProject && (o.ID == "" || o.ID == project):
		return project
	}
	return project + "/" + Encode(o.ID)
}

// Object reads an id of SpiceDB. A user belongs to no project: "".
func Object(kind, text string) (project string, o quartermaster.Object, ok bool) {
	o.Type = kind
	if kind == quartermaster.TypeUser {
		o.ID, ok = Decode(text)
		return "", o, ok && o.ID != ""
	}
	project, rest, within := strings.Cut(text, "/")
	switch {
	case !quartermaster.ValidProjectID(project):
		return "", o, false
	case !within:
		o.ID = project
		return project, o, kind == quartermaster.TypeProject
	}
	o.ID, ok = Decode(rest)
	return project, o, ok && o.ID != ""
}
