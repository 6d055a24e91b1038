package quartermaster

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
)

// plainWord is one that no shell reads as anything but itself.
var plainWord = regexp.MustCompile(`^[A-Za-z0-9_@%+:,./-]+$`)

// ShellWords writes words so that a shell reads them back as they are: ids are
// whatever somebody has written, and a person may paste them.
func ShellWords(words ...string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		switch {
		case plainWord.MatchString(w):
			quoted[i] = w
		case strings.ContainsFunc(w, unprintable):
			quoted[i] = escaped(w)
		default:
			quoted[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
	}
	return strings.Join(quoted, " ")
}

// unprintable is what could steer the terminal that it is shown on.
func unprintable(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) }

func escaped(word string) string {
	var b strings.Builder
	b.WriteString("$'")
	for _, r := range word {
		switch {
		case r == '\n':
			b.WriteString(`\n`)
		case unprintable(r):
			for _, c := range []byte(string(r)) {
				fmt.Fprintf(&b, `\x%02x`, c)
			}
		case r == '\'' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('\'')
	return b.String()
}
