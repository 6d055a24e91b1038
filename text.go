package quartermaster

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// Duration is a time.Duration that is written as "30s" or "1m30s".
type Duration time.Duration

// MarshalText writes d as Go does, which ParseDuration reads back.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalText reads a duration such as "30s".
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	if err != nil {
		return fmt.Errorf("%q is not a duration such as 30s or 1m30s", text)
	}
	*d = Duration(v)
	return nil
}

func (d Duration) String() string { return time.Duration(d).String() }

// NewID makes a UUID of version 7: unique everywhere, and ordered by time so
// that rows made together lie together in an index.
func NewID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails: crypto/rand ends the process instead
	ms := time.Now().UnixMilli()
	for i := range 6 {
		b[i] = byte(ms >> (40 - 8*i))
	}
	b[6] = b[6]&0x0f | 0x70
	b[8] = b[8]&0x3f | 0x80
	var s [36]byte
	hex.Encode(s[0:8], b[0:4])
	hex.Encode(s[9:13], b[4:6])
	hex.Encode(s[14:18], b[6:8])
	hex.Encode(s[19:23], b[8:10])
	hex.Encode(s[24:36], b[10:16])
	s[8], s[13], s[18], s[23] = '-', '-', '-', '-'
	return string(s[:])
}

// within reports whether s has 1 to most bytes, each of which is ok.
func within(s string, most int, ok func(byte) bool) bool {
	if s == "" || len(s) > most {
		return false
	}
	for i := range len(s) {
		if !ok(s[i]) {
			return false
		}
	}
	return true
}

func isDigit(c byte) bool    { return '0' <= c && c <= '9' }
func isAlphanum(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' || isDigit(c) }

// checkText finds what no database and no protocol would carry unchanged.
func checkText(f *faults, location, s string, most int) {
	switch {
	case !utf8.ValidString(s):
		f.add(location, "must be valid UTF-8")
	case strings.ContainsRune(s, 0):
		f.add(location, "must not contain a NUL character")
	case utf8.RuneCountInString(s) > most:
		f.add(location, "must have at most %d characters", most)
	}
}

// checkNames checks a list of words such as groups or states.
func checkNames(f *faults, location string, names []string) {
	for i, name := range names {
		at := fmt.Sprintf("%s[%d]", location, i)
		if name == "" {
			f.add(at, "must not be empty")
			continue
		}
		checkText(f, at, name, 255)
	}
}

// checkObject normalizes raw to a compact JSON object, or nil where absent.
func checkObject(f *faults, location string, raw *json.RawMessage) {
	trimmed := bytes.TrimSpace(*raw)
	if len(trimmed) == 0 || string(trimmed) == "null" {
		*raw = nil
		return
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, trimmed); err != nil {
		f.add(location, "must be valid JSON: %v", err)
		return
	}
	if compact.Bytes()[0] != '{' {
		f.add(location, "must be a JSON object")
		return
	}
	*raw = compact.Bytes()
}

// containsFold reports whether s contains needle, which is in lower case,
// ignoring the case of ASCII letters.
func containsFold(s, needle string) bool {
	for i := 0; i+len(needle) <= len(s); i++ {
		j := 0
		for j < len(needle) && lower(s[i+j]) == needle[j] {
			j++
		}
		if j == len(needle) {
			return true
		}
	}
	return false
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

func lowerASCII(s string) string {
	b := []byte(s)
	for i, c := range b {
		b[i] = lower(c)
	}
	return string(b)
}
