package provider

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// UP-2: the last 200 lines are kept, however they arrive.
func TestTailKeepsTheLastLines(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 450).Draw(t, "lines")
		var want []string
		for i := range n {
			want = append(want, fmt.Sprintf("line %d", i))
		}
		text := strings.Join(want, "\n")
		if rapid.Bool().Draw(t, "ended") && n > 0 {
			text += "\n"
		}
		kept := newTail(nil)
		for len(text) > 0 {
			size := rapid.IntRange(1, min(len(text), 500)).Draw(t, "size")
			_, _ = kept.Write([]byte(text[:size]))
			text = text[size:]
		}
		want = want[max(0, n-tailLines):]
		if got := kept.Lines(); strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Fatalf("kept %d lines from %.20q, want %d", len(got), got, len(want))
		}
	})
}

func TestTailShowsHarmlessText(t *testing.T) {
	tests := map[string]struct{ in, want string }{
		"plain":              {"ready\tnow", "ready\tnow"},
		"empty":              {"", ""},
		"windows":            {"ready\r", "ready"},
		"progress":           {"10%\r20%\r100% done", "100% done"},
		"colors":             {"\x1b[1;31merror\x1b[0m: no", "error: no"},
		"title":              {"\x1b]0;owned\x07text\x1b]8;;http://x\x1b\\link", "textlink"},
		"lone escape":        {"a\x1bz", "a\uFFFDz"},
		"bell, null, delete": {"a\x07b\x00c\x7fd", "a\uFFFDb\uFFFDc\uFFFDd"},
		"C1":                 {"a\u009b31mb", "a\uFFFD31mb"},
		"right to left":      {"a\u202egnp.exe\u2066", "a\uFFFDgnp.exe\uFFFD"},
		"line separator":     {"a\u2028b", "a\uFFFDb"},
		"not UTF-8":          {"a\xffb\xc3", "a\uFFFDb\uFFFD"},
		"other languages":    {"Größe 日本 🚢", "Größe 日本 🚢"},
		"long":               {strings.Repeat("x", tailWidth+1), strings.Repeat("x", tailWidth-6) + " [cut]"},
		"as long as may be":  {strings.Repeat("x", tailWidth), strings.Repeat("x", tailWidth)},
		"long, half a rune":  {strings.Repeat("é", tailWidth), strings.Repeat("é", tailWidth/2-3) + " [cut]"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			kept := newTail(nil)
			_, _ = kept.Write([]byte(tt.in + "\n"))
			if got := kept.Lines(); len(got) != 1 || got[0] != tt.want {
				t.Errorf("shows %q, want %q", got, tt.want)
			}
		})
	}
}

// SEC-3: what must be hidden is not shown, not even the beginning of it where a
// line is cut or still being written.
func TestTailHides(t *testing.T) {
	const key = "sk-0123456789"
	tests := map[string]struct{ in, want string }{
		"in a line":          {"bad key " + key + "!\n", "bad key [hidden]!"},
		"colored":            {"bad key sk-\x1b[1m0123456789\n", "bad key [hidden]"},
		"one begins another": {key + "-more " + key + "\n", "[hidden] [hidden]"},
		"being written":      {"bad key sk-01", "bad key "},
		"a line of many":     {"key: MIIEpAIBAAKC\n", "key: [hidden]"},
		"too short to hide":  {"ab abc\n", "ab abc"},
		"where it is cut":    {strings.Repeat("x", tailWidth-5) + key + "\n", strings.Repeat("x", tailWidth-6) + " [cut]"},
		"cut behind colors":  {strings.Repeat("\x1b[0m", 1023) + key + "\n", " [cut]"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			kept := newTail([]string{key, key + "-more", "-----BEGIN\nMIIEpAIBAAKC\n-----END\n", "abc", ""})
			_, _ = kept.Write([]byte(tt.in))
			if got := kept.Lines(); len(got) != 1 || got[0] != tt.want {
				t.Errorf("shows %q, want %q", got, tt.want)
			}
		})
	}
}

// A flood without a newline costs no more memory than a line.
func TestTailIsBounded(t *testing.T) {
	kept := newTail(nil)
	flood := []byte(strings.Repeat("\xff", 1<<16))
	for range 100 {
		_, _ = kept.Write(flood)
	}
	if n := cap(kept.rest); n > 2*tailWidth {
		t.Errorf("holds %d bytes", n)
	}
	if got := kept.Lines(); len(got) != 1 || len(got[0]) > tailWidth {
		t.Errorf("shows %d lines, the first of %d bytes", len(got), len(got[0]))
	}
}

// plainSecret is one that no mark of ours contains.
var plainSecret = regexp.MustCompile(`^[A-Z0-9]{4,}$`)

func FuzzTail(f *testing.F) {
	f.Add([]byte("a\r\nb\x1b[31mc\xff\n\n"), "SECRET")
	f.Add([]byte("a SECSECRETRET, SEC"), "SECRET")
	f.Add([]byte("\x1b]0;\xe2\x80"), "\x1b]0;")
	f.Fuzz(func(t *testing.T, text []byte, hidden string) {
		kept := newTail([]string{hidden})
		_, _ = kept.Write(text)
		got := kept.Lines()
		if len(got) > tailLines {
			t.Fatalf("%d lines", len(got))
		}
		for _, line := range got {
			bad := strings.IndexFunc(line, func(r rune) bool { return r != '\t' && unicode.IsControl(r) })
			if bad >= 0 || len(line) > tailWidth || !utf8.ValidString(line) {
				t.Fatalf("shows %q", line)
			}
			if plainSecret.MatchString(hidden) && strings.Contains(line, hidden) {
				t.Fatalf("shows %q in %q", hidden, line)
			}
		}
	})
}
