package workflow

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// names is a list for a sentence: all are counted, the first few are told.
type names struct {
	first []string
	count int
}

const toldNames = 5

func (n *names) add(name string) {
	if n.count++; len(n.first) < toldNames {
		n.first = append(n.first, word(name))
	}
}

func (n *names) list() string {
	s := strings.Join(n.first, ", ")
	if more := n.count - len(n.first); more > 0 {
		s += fmt.Sprintf(" and %d more", more)
	}
	return s
}

// word writes a name into a sentence: in quotes where it could be taken for
// several words or for none.
func word(name string) string {
	for _, r := range name {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("_.-/:@#+*", r) {
			return strconv.Quote(name)
		}
	}
	if name == "" || !utf8.ValidString(name) {
		return strconv.Quote(name)
	}
	return name
}

// show makes a name fit for a picture: one line, no control characters, none
// that turn the direction of what follows, and never nothing at all.
func show(name string) string {
	shown := strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case !printable(r):
			return -1
		}
		return r
	}, name)
	if strings.TrimSpace(shown) == "" {
		return strconv.QuoteToASCII(name)
	}
	return shown
}

// printable refuses what XML does not allow and what would change how the text
// around it reads.
func printable(r rune) bool {
	switch {
	case unicode.IsControl(r), r == 0xFFFE, r == 0xFFFF:
		return false
	case r == 0x061C, r == 0x200E, r == 0x200F, 0x202A <= r && r <= 0x202E, 0x2066 <= r && r <= 0x2069:
		return false
	}
	return true
}

// columns is how wide a text is in a font in which all characters are alike:
// East Asian ones and emoji take two, marks on top of others none.
func columns(s string) int {
	n := 0
	for _, r := range s {
		n += runeColumns(r)
	}
	return n
}

func runeColumns(r rune) int {
	switch {
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		return 0
	case unicode.Is(wide, r):
		return 2
	}
	return 1
}

var wide = &unicode.RangeTable{
	R16: []unicode.Range16{
		{0x1100, 0x115F, 1},
		{0x2E80, 0xA4CF, 1},
		{0xAC00, 0xD7A3, 1},
		{0xF900, 0xFAFF, 1},
		{0xFE30, 0xFE6F, 1},
		{0xFF00, 0xFF60, 1},
		{0xFFE0, 0xFFE6, 1},
	},
	R32: []unicode.Range32{{0x1F000, 0x1FAFF, 1}, {0x20000, 0x3FFFD, 1}},
}

// clip cuts a text to so many columns. Marks take no column, but no text needs
// many of them.
func clip(s string, most int) string {
	if columns(s) <= most && utf8.RuneCountInString(s) <= 2*most {
		return s
	}
	n, runes := 0, 0
	for i, r := range s {
		n += runeColumns(r)
		if runes++; n > most-1 || runes > 2*most {
			return strings.TrimRight(s[:i], " ") + "…"
		}
	}
	return s
}

// plural counts things, as people do.
func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return thousands(n) + " " + many
}

func thousands(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
