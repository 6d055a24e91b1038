package quartermaster

import "strings"

// disguises flags text that is dressed up as a message of someone else.
func (s *scanner) disguises(text string) {
	for _, speaker := range []string{"SYSTEM:", "ASSISTANT:"} {
		if at := strings.Index(text, speaker); at >= 0 && (at == 0 || !isAlphanum(text[at-1])) {
			s.flag(RuleDisguise, text, at, at+len(speaker), "is dressed up as a message of the system or of someone else")
		}
	}
	for at := 0; ; {
		next := strings.IndexAny(text[at:], "<[")
		if next < 0 {
			return
		}
		at += next
		if n := disguise(text[at:min(len(text), at+24)]); n > 0 {
			s.flag(RuleDisguise, text, at, at+n, "is dressed up as a message of the system or of someone else")
			return
		}
		at++
	}
}

// disguise returns the length of the mark that text begins with; 0: there is none.
func disguise(text string) int {
	folded := lowerASCII(text)
	for _, mark := range []string{"<important", "<system", "<assistant", "</important", "</system", "[inst", "[/inst", "[system", "<<sys"} {
		if rest, ok := strings.CutPrefix(folded, mark); ok && rest != "" && strings.IndexByte(">]: ", rest[0]) >= 0 {
			return len(mark) + 1
		}
	}
	if rest, ok := strings.CutPrefix(folded, "<|"); ok {
		if end := strings.Index(rest, "|>"); end > 0 && within(rest[:end], 20, func(c byte) bool { return isAlphanum(c) || c == '_' }) {
			return end + 4
		}
	}
	return 0
}

// The shortest runs that nobody writes by hand. A SHA-256 has 64 digits.
const (
	minBase64  = 80
	minHex     = 80
	minEscapes = 16
)

// payloads flags text that only a machine can read, and pictures that carry
// text away when they are shown.
func (s *scanner) payloads(text string) {
	if from, to := encoded(text); to > 0 {
		s.flag(RuleEncoded, text, from, min(to, from+60), "has a long encoded text, which people cannot read")
	}
	for at := strings.Index(text, "!["); at >= 0; at = indexFrom(text, "![", at+2) {
		if carrier(text[at:min(len(text), at+600)]) {
			s.flag(RuleExfiltration, text, at, at+2, "has a picture whose address carries text away when it is shown")
			return
		}
	}
}

func indexFrom(text, part string, from int) int {
	if i := strings.Index(text[from:], part); i >= 0 {
		return from + i
	}
	return -1
}

// carrier finds a picture, as Markdown writes it, whose address has room for
// what is to be carried away.
func carrier(text string) bool {
	_, rest, ok := strings.Cut(text, "](")
	address, _, closed := strings.Cut(rest, ")")
	return ok && closed && strings.Contains(address, "://") && strings.ContainsAny(address, "?{$")
}

// encoded finds a run of base64, of hexadecimal digits or of escapes; to is 0 if
// there is none.
func encoded(text string) (from, to int) {
	for i := 0; i < len(text); {
		switch {
		case isBase64(text[i]):
			end := i
			for end < len(text) && isBase64(text[end]) {
				end++
			}
			if unreadable(text[i:end]) {
				return i, end
			}
			i = end
		case text[i] == '%' || text[i] == '\\' || text[i] == '&':
			end, count := escapes(text[i:])
			if count >= minEscapes {
				return i, i + end
			}
			i += max(1, end)
		default:
			i++
		}
	}
	return 0, 0
}

func isBase64(c byte) bool {
	return isAlphanum(c) || c == '+' || c == '/' || c == '=' || c == '-' || c == '_'
}

// unreadable tells an encoded run from a long path or name: in it letters of
// both cases and digits take turns.
func unreadable(run string) bool {
	if len(run) < min(minBase64, minHex) {
		return false
	}
	turns, hex := 0, true
	for i := range len(run) {
		c := lower(run[i])
		hex = hex && (isDigit(c) || 'a' <= c && c <= 'f')
		if i > 0 && kind(run[i]) != kind(run[i-1]) {
			turns++
		}
	}
	return hex && len(run) >= minHex && turns > 0 || len(run) >= minBase64 && turns*4 >= len(run)
}

func kind(c byte) int {
	switch {
	case isDigit(c):
		return 1
	case 'a' <= c && c <= 'z':
		return 2
	case 'A' <= c && c <= 'Z':
		return 3
	}
	return 4
}

// escapes counts escapes such as %41, \x41, \u0041 and &#65; in a row.
func escapes(text string) (end, count int) {
	for end < len(text) {
		n := escape(text[end:])
		if n == 0 {
			break
		}
		end, count = end+n, count+1
	}
	return end, count
}

// escape is the length of the escape that text begins with; 0: there is none.
func escape(text string) int {
	digits := func(from, least, most int) int {
		n := from
		for n < len(text) && n-from < most && strings.IndexByte("0123456789abcdefABCDEF", text[n]) >= 0 {
			n++
		}
		if n-from < least {
			return 0
		}
		return n
	}
	switch {
	case strings.HasPrefix(text, `\u`):
		return digits(2, 4, 4)
	case strings.HasPrefix(text, `\x`):
		return digits(2, 2, 2)
	case strings.HasPrefix(text, "%"):
		return digits(1, 2, 2)
	case strings.HasPrefix(text, "&#"):
		n := digits(2+len(text[2:])-len(strings.TrimPrefix(text[2:], "x")), 1, 6)
		if n > 0 && n < len(text) && text[n] == ';' {
			return n + 1
		}
	}
	return 0
}

// placeAt tells whether a word goes on as a place that things can be sent to.
// Places that are there to be examples are none.
func placeAt(before, rest string) string {
	switch {
	case strings.HasPrefix(rest, "://") && (before == "http" || before == "https" || before == "ftp" || before == "ws" || before == "wss"):
		if host := hostIn(rest[3:]); host != "" && !isExample(host) {
			return wordURL
		}
	case strings.HasPrefix(rest, "@"):
		if host := hostIn(rest[1:]); strings.Contains(host, ".") && !isExample(host) {
			return wordEmail
		}
	}
	return ""
}

// hostIn is the name of a host that text begins with.
func hostIn(text string) string {
	n := 0
	for n < min(len(text), 254) && (isAlphanum(text[n]) || text[n] == '.' || text[n] == '-') {
		n++
	}
	return strings.Trim(lowerASCII(text[:n]), ".")
}

func isExample(host string) bool {
	for _, name := range []string{"example.com", "example.org", "example.net", "localhost", "127.0.0.1", "test", "example", "invalid"} {
		if host == name || strings.HasSuffix(host, "."+name) {
			return true
		}
	}
	return false
}
