package quartermaster

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// Duration is a time.Duration that is written as "30s" or "1m30s".
type Duration time.Duration

// MarshalText writes d as Go does, which ParseDuration reads back.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalText reads a duration such as "30s". One that is too long to be kept
// becomes the longest: whoever checks it can name its field, as a decoder cannot.
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	switch {
	case err == nil:
		*d = Duration(v)
	case !durationForm.Match(text):
		return fmt.Errorf("%q is not a duration such as 30s or 1m30s", text)
	case text[0] == '-':
		*d = math.MinInt64
	default:
		*d = math.MaxInt64
	}
	return nil
}

// durationForm is what ParseDuration reads, but for the limits of an int64.
var durationForm = regexp.MustCompile(`^[-+]?(([0-9]+[.]?[0-9]*|[.][0-9]+)(ns|us|µs|μs|ms|s|m|h))+$`)

func (d Duration) String() string { return time.Duration(d).String() }

const maxHours = 24 * 366

func checkDuration(f *faults, location string, d Duration) {
	switch {
	case d < 0:
		f.add(location, "must not be negative")
	case d > Duration(maxHours*time.Hour):
		f.add(location, "must be at most %dh", maxHours)
	}
}

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

// absent makes nil of an empty list, where both mean the same: otherwise what
// was given and what is read back would differ.
func absent(list []string) []string {
	if len(list) == 0 {
		return nil
	}
	return list
}

// absentMap is absent for a map.
func absentMap(m map[string]string) map[string]string {
	if len(m) == 0 {
		return nil
	}
	return m
}

// checkObject normalizes raw to a compact JSON object, or nil where absent.
func checkObject(f *faults, location string, raw *json.RawMessage) {
	trimmed := bytes.TrimSpace(*raw)
	if len(trimmed) == 0 || string(trimmed) == "null" {
		*raw = nil
		return
	}
	if !utf8.Valid(trimmed) {
		f.add(location, "must be valid UTF-8")
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

// member decodes the member of a JSON object that has this very key, where
// encoding/json would take one in another letter case for it. v stays as it is
// where there is none.
func member(object json.RawMessage, key string, v any) error {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(object, &members); err != nil {
		return err
	}
	raw, ok := members[key]
	if !ok {
		return nil
	}
	return json.Unmarshal(raw, v)
}

// respell replaces raw by old where both are the same JSON but for the order of
// keys and the spelling of strings and numbers: a YAML file between the two
// keeps none of that, and reading it back is no change (CAT-5).
func respell(raw *json.RawMessage, old json.RawMessage) {
	if bytes.Equal(*raw, old) || sameJSON(*raw, old) {
		*raw = old
	}
}

func sameJSON(a, b json.RawMessage) bool {
	var x, y any
	return decodeJSON(a, &x) == nil && decodeJSON(b, &y) == nil && sameValue(x, y)
}

func decodeJSON(raw json.RawMessage, v any) error {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	return decoder.Decode(v)
}

func sameValue(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		return ok && maps.EqualFunc(a, b, sameValue)
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, sameValue)
	case json.Number:
		b, ok := b.(json.Number)
		return ok && sameNumber(a, b)
	default:
		return a == b
	}
}

// sameNumber takes 1, 1.0 and 1e0 for the same, but never two large integers
// that only look alike as floating point.
func sameNumber(a, b json.Number) bool {
	_, errA := a.Int64()
	_, errB := b.Int64()
	if a == b || errA == nil && errB == nil {
		return a == b
	}
	x, errA := a.Float64()
	y, errB := b.Float64()
	return errA == nil && errB == nil && x == y && math.Abs(x) < 1<<53
}

// containsFold reports whether s contains needle, which is in lower case,
// ignoring the case of ASCII letters.
func containsFold(s, needle string) bool {
	if needle == "" {
		return true
	}
	first, other := needle[0], upper(needle[0]) // nearly every place is ruled out by its first byte
	for i := range len(s) - len(needle) + 1 {
		if c := s[i]; (c == first || c == other) && beginsFold(s[i+1:], needle[1:]) {
			return true
		}
	}
	return false
}

func beginsFold(s, needle string) bool {
	for i := range len(needle) {
		if lower(s[i]) != needle[i] {
			return false
		}
	}
	return true
}

func upper(c byte) byte {
	if 'a' <= c && c <= 'z' {
		return c - 'a' + 'A'
	}
	return c
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
