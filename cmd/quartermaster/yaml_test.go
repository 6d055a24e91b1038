package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// CAT-5: an export that is applied changes nothing, so YAML must carry every
// value and every order unchanged. Only an exponent may be spelled otherwise.
func TestYAMLCarriesEverything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		checkRoundTrip(t, anyValue(3).Draw(t, "value"))
	})
}

func anyValue(depth int) *rapid.Generator[any] {
	text := rapid.OneOf(
		rapid.String(),
		rapid.StringOf(rapid.RuneFrom([]rune("ab \n\t\r:#-'\"\\{}[],&*!|>%@`?~=<.01"))),
		rapid.SampledFrom([]string{"yes", "null", "~", "1e3", "0x1", "<<", "---", "...", "- a", "a: b", "2001-01-01", ".inf", "\u0085", "\ufeff", "a\nb\n", "a\n\n  b", "\n", " a\nb", "a {\n\tb\n\t\tc\n}\n"}),
	)
	scalars := []*rapid.Generator[any]{
		rapid.Map(text, func(s string) any { return s }),
		rapid.Map(rapid.Bool(), func(b bool) any { return b }),
		rapid.Map(rapid.SampledFrom([]string{"0", "-1", "1.50", "1e3", "-2.5E-7", "123456789012345678901234567890"}), func(s string) any { return json.Number(s) }),
		rapid.Just[any](nil),
	}
	if depth == 0 {
		return rapid.OneOf(scalars...)
	}
	return rapid.OneOf(append(scalars,
		rapid.Map(rapid.SliceOfN(anyValue(depth-1), 0, 4), func(l []any) any { return l }),
		rapid.Custom(func(t *rapid.T) any {
			o := object{}
			for _, k := range rapid.SliceOfNDistinct(text, 0, 4, rapid.ID).Draw(t, "keys") {
				o = append(o, member{k, anyValue(depth-1).Draw(t, "member")})
			}
			return o
		}),
	)...)
}

func checkRoundTrip(t interface{ Fatalf(string, ...any) }, v any) {
	var want, yaml, got bytes.Buffer
	if err := appendJSON(&want, spelled(v)); err != nil {
		t.Fatalf("%v", err)
	}
	if err := writeYAML(&yaml, v); err != nil {
		t.Fatalf("%v", err)
	}
	back, _, err := readYAML("f", yaml.Bytes())
	if err != nil {
		t.Fatalf("%s\nas YAML:\n%s\ncannot be read: %v", &want, &yaml, err)
	}
	if err := appendJSON(&got, back); err != nil {
		t.Fatalf("%v", err)
	}
	if got.String() != want.String() {
		t.Fatalf("%s\nas YAML:\n%s\ncame back as %s", &want, &yaml, &got)
	}
}

// spelled is v with its numbers as YAML gets them.
func spelled(v any) any {
	switch v := v.(type) {
	case object:
		o := object{}
		for _, m := range v {
			o = append(o, member{m.key, spelled(m.value)})
		}
		return o
	case []any:
		list := make([]any, len(v))
		for i, item := range v {
			list[i] = spelled(item)
		}
		return list
	case json.Number:
		return json.Number(yamlNumber(string(v)))
	}
	return v
}

// CAT-5: what YAML 1.1 would take for text is written so that it does not.
func TestYAMLNumbers(t *testing.T) {
	for number, want := range map[string]string{
		"1e-07": "1.0e-07", "1e3": "1.0e+3", "-2.5E-7": "-2.5E-7", "1.5e3": "1.5e+3", "-1E+3": "-1.0E+3",
		"0": "0", "-1": "-1", "1.50": "1.50", "123456789012345678901": "123456789012345678901",
	} {
		var got bytes.Buffer
		if err := writeYAML(&got, json.RawMessage(number)); err != nil || got.String() != want+"\n" {
			t.Errorf("%s: got %q %v, want %s", number, &got, err, want)
		}
	}
}

func TestReadYAML(t *testing.T) {
	tests := map[string]struct{ yaml, want string }{
		"order stays":       {"b: 1\na: 2\n", `{"b":1,"a":2}`},
		"JSON":              {"{\n\t\"a\": [1, {\"b\": null}]\n}\n", `{"a":[1,{"b":null}]}`},
		"numbers as text":   {"a: 1.50\nb: 1e3\nc: 0x10\nd: 1_000\ne: 123456789012345678901\n", `{"a":1.50,"b":1e3,"c":16,"d":1000,"e":123456789012345678901}`},
		"keys as text":      {"1.50: a\ntrue: b\nnull: c\n", `{"1.50":"a","true":"b","null":"c"}`},
		"no old booleans":   {"a: yes\nb: off\n", `{"a":"yes","b":"off"}`},
		"dates are text":    {"a: 2001-01-01\n", `{"a":"2001-01-01"}`},
		"blocks":            {"a: |\n  x\n  y\nb: >-\n  x\n  y\n", `{"a":"x\ny\n","b":"x y"}`},
		"anchors":           {"a: &x [1, 2]\nb: *x\n", `{"a":[1,2],"b":[1,2]}`},
		"tag of text":       {"a: !!str 1\n", `{"a":"1"}`},
		"nothing is null":   {"a:\nb: ~\n", `{"a":null,"b":null}`},
		"comments":          {"# one\na: 1 # two\n\n# three\nb: 2\n", `{"a":1,"b":2}`},
		"a document's mark": {"---\na: 1\n", `{"a":1}`},
		"Windows":           {"a: 1\r\nb:\r\n  - x\r\n", `{"a":1,"b":["x"]}`},
		"a byte order mark": {"\uFEFFa: 1\n", `{"a":1}`},
		"no HTML escapes":   {"a: \"<&>\"\n", `{"a":"<&>"}`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			v, _, err := readYAML("f.yaml", []byte(tt.yaml))
			if err != nil {
				t.Fatal(err)
			}
			var got bytes.Buffer
			if err := appendJSON(&got, v); err != nil {
				t.Fatal(err)
			}
			if got.String() != tt.want {
				t.Errorf("got  %s\nwant %s", &got, tt.want)
			}
		})
	}
}

func TestReadYAMLRefuses(t *testing.T) {
	tests := map[string]struct{ yaml, at, says string }{
		"nothing":            {"", "f.yaml:1", "empty"},
		"only a comment":     {"# a\n", "f.yaml:1", "empty"},
		"key twice":          {"a: 1\nb: 2\na: 3\n", "f.yaml:3", "already"},
		"key twice in JSON":  {"{\"a\": 1,\n \"a\": 2}", "f.yaml:2", "already"},
		"same key otherwise": {"1: a\n\"1\": b\n", "f.yaml:2", "already"},
		"tab as indent":      {"a:\n\tb: 1\n", "f.yaml:2", "'\t'"},
		"tab in plain text":  {"a: x\ty\n", "f.yaml:1", "quotes"},
		"open bracket":       {"a: 1\nb: [1, 2\n", "f.yaml:2", "not found"},
		"unknown anchor":     {"a: 1\nb: *x\n", "f.yaml:2", "no anchor"},
		"anchor in itself":   {"a: &x [*x]\n", "f.yaml:1", "itself"},
		"merge":              {"a: &x {b: 1}\nc:\n  <<: *x\n", "f.yaml:3", "merge"},
		"two documents":      {"a: 1\n---\nb: 2\n", "f.yaml:3", "second document"},
		"infinite":           {"a: .inf\n", "f.yaml:1", "cannot stand"},
		"a tag":              {"a: !secret x\n", "f.yaml:1", "not supported"},
		"key that is a list": {"? [a]\n: 1\n", "f.yaml:2", "invalid key"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, _, err := readYAML("f.yaml", []byte(tt.yaml))
			if err == nil {
				t.Fatal("no error")
			}
			p := describe(err)
			if p.code != "malformed_request" || len(p.faults) != 1 || p.faults[0].Location != tt.at || !strings.Contains(p.faults[0].Message, tt.says) {
				t.Errorf("got %s %v, want one fault at %s that says %q", p.code, p.faults, tt.at, tt.says)
			}
		})
	}
}

// A few lines of aliases must not become gigabytes.
func TestReadYAMLBoundsAliases(t *testing.T) {
	var b strings.Builder
	b.WriteString("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n")
	for i := range 9 {
		from, to := string(rune('0'+i)), string(rune('1'+i))
		b.WriteString("a" + to + ": &a" + to + " [" + strings.Repeat("*a"+from+", ", 9) + "*a" + from + "]\n")
	}
	_, _, err := readYAML("f.yaml", []byte(b.String()))
	if err == nil || !strings.Contains(err.Error(), "too large") {
		t.Errorf("got %v", err)
	}
}

func FuzzReadYAML(f *testing.F) {
	for _, s := range []string{"a: 1\n", "- &x a\n- *x\n", "a: |\n  b\n", "{a: [b, 'c', \"d\"]}", "? a\n: b\n", "a: >+\n\n  b\n\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		v, _, err := readYAML("f", []byte(s))
		if err == nil {
			checkRoundTrip(t, v)
		}
	})
}
