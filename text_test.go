package quartermaster

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestDuration(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := Duration(rapid.Int64().Draw(t, "ns"))
		text, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		var back Duration
		if err := json.Unmarshal(text, &back); err != nil || back != d {
			t.Fatalf("%s became %s (%v)", d, back, err)
		}
	})
	var d Duration
	// Too long for an int64: still durations, for whoever knows the field to refuse.
	for text, want := range map[string]Duration{
		"99999999999h": math.MaxInt64, "+99999999999h": math.MaxInt64, "-99999999999h1.5s": math.MinInt64,
		"9223372036854775808ns": math.MaxInt64, "2562047h48m": math.MaxInt64, "99999999999999999999.5µs": math.MaxInt64,
	} {
		if err := json.Unmarshal([]byte(`"`+text+`"`), &d); err != nil || d != want {
			t.Errorf("%s: %s (%v), want %s", text, d, err, want)
		}
	}
	for _, bad := range []string{`"30"`, `"soon"`, `""`, `30`, `"99999999999"`, `"99999999999hours"`, `"--99999999999h"`, `".h"`} {
		if err := json.Unmarshal([]byte(bad), &d); err == nil {
			t.Errorf("%s was read as %s", bad, d)
		}
	}
}

// CAT-1: an id is a UUID, and no two are alike.
func TestNewID(t *testing.T) {
	form := regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	seen := map[string]bool{}
	for range 10_000 {
		id := NewID()
		if !form.MatchString(id) || seen[id] {
			t.Fatalf("id %q", id)
		}
		seen[id] = true
	}
	early := NewID()
	time.Sleep(2 * time.Millisecond)
	if late := NewID(); late <= early {
		t.Errorf("%s was made after %s and sorts before it", late, early)
	}
}

// BIND-4: ASCII letters are folded, and nothing else.
func TestContainsFold(t *testing.T) {
	word := rapid.StringOf(rapid.SampledFrom([]rune("abABäÄ_")))
	rapid.Check(t, func(t *rapid.T) {
		s, part := word.Draw(t, "s"), word.Draw(t, "part")
		fold := func(s string) string {
			return strings.Map(func(r rune) rune {
				if 'A' <= r && r <= 'Z' {
					return r + 'a' - 'A'
				}
				return r
			}, s)
		}
		if got, want := containsFold(s, lowerASCII(part)), strings.Contains(fold(s), fold(part)); got != want {
			t.Fatalf("%q contains %q: %t, want %t", s, part, got, want)
		}
	})
}

func TestCheckObject(t *testing.T) {
	tests := map[string]struct{ raw, want string }{
		"absent":         {"", ""},
		"space":          {" \n", ""},
		"null":           {" null ", ""},
		"empty":          {" { } ", "{}"},
		"compacted":      {"{ \"b\" : 1.0,\n\"a\": \"<&>\" }", `{"b":1.0,"a":"<&>"}`},
		"no object":      {"[1]", "!must be a JSON object"},
		"string":         {`"{}"`, "!must be a JSON object"},
		"no JSON":        {"{", "!must be valid JSON: unexpected end of JSON input"},
		"two":            {"{}{}", "!must be valid JSON: invalid character '{' after top-level value"},
		"no UTF-8":       {"{\"a\":\"\xff\"}", "!must be valid UTF-8"},
		"escaped NUL":    {`{"a":"\u0000"}`, `{"a":"\u0000"}`},
		"raw NUL":        {"{\"a\":\"\x00\"}", "!must be valid JSON: invalid character '\\x00' in string literal"},
		"line separator": {"{\"a\":\"\u2028\"}", "{\"a\":\"\u2028\"}"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var f faults
			raw := json.RawMessage(tt.raw)
			checkObject(&f, "x", &raw)
			got := string(raw)
			if len(f) > 0 {
				got = "!" + f[0].Message
			}
			if got != tt.want || tt.want == "" && raw != nil {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// CAT-5: what a YAML file does to JSON is no change; what a person does is one.
func TestRespell(t *testing.T) {
	tests := []struct {
		a, b string
		same bool
	}{
		{`{"a":1,"b":2}`, `{"b":2,"a":1}`, true},
		{`{"a":1.0}`, `{"a":1}`, true},
		{`{"a":1e3}`, `{"a":1000}`, true},
		{`{"a":"\u003c"}`, `{"a":"<"}`, true},
		{`{"a":[1,2]}`, `{"a":[2,1]}`, false},
		{`{"a":1}`, `{"a":"1"}`, false},
		{`{"a":null}`, `{}`, false},
		{`{"a":{}}`, `{"a":[]}`, false},
		{`{"a":9007199254740993}`, `{"a":9007199254740992}`, false},
		{`{"a":99999999999999999999}`, `{"a":99999999999999999998}`, false},
		{`{"a":1e999}`, `{"a":1e998}`, false},
		{`{"a":true}`, `{"a":true,"b":true}`, false},
	}
	for _, tt := range tests {
		for _, pair := range [][2]string{{tt.a, tt.b}, {tt.b, tt.a}} {
			raw := json.RawMessage(pair[0])
			respell(&raw, json.RawMessage(pair[1]))
			if got := string(raw) == pair[1]; got != tt.same {
				t.Errorf("%s and %s: same %t, want %t", pair[0], pair[1], got, tt.same)
			}
		}
	}
	for _, old := range []json.RawMessage{nil, {}, json.RawMessage("{}")} {
		raw := json.RawMessage(`{"a":1}`)
		if respell(&raw, old); string(raw) != `{"a":1}` {
			t.Errorf("%q became %q", old, raw)
		}
	}
}

// Every code is in Codes, once: then a table that maps all of Codes is whole.
func TestCodesAreWhole(t *testing.T) {
	tree, err := parser.ParseFile(token.NewFileSet(), "error.go", nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var declared []string
	ast.Inspect(tree, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || !strings.HasPrefix(spec.Names[0].Name, "Code") || spec.Names[0].Name == "Codes" {
			return true
		}
		value, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		if err != nil {
			t.Errorf("%s: %v", spec.Names[0].Name, err)
		}
		declared = append(declared, value)
		return true
	})
	var listed []string
	for _, code := range Codes {
		listed = append(listed, string(code))
	}
	slices.Sort(declared)
	slices.Sort(listed)
	if len(declared) < 20 || !slices.Equal(declared, listed) {
		t.Errorf("declared %q\nlisted   %q", declared, listed)
	}
	if unique := slices.Compact(slices.Clone(listed)); len(unique) != len(listed) {
		t.Errorf("one is listed twice: %q", listed)
	}
}
