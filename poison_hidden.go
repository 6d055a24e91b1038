package quartermaster

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// isInvisible finds characters that take no room of their own on a screen.
func isInvisible(r rune) bool {
	switch {
	case r < 0xad:
		return false
	case r == 0xad, r == 0x34f, r == 0x61c, r == 0x115f, r == 0x1160, r == 0x17b4, r == 0x17b5, r == 0x180e,
		0x200b <= r && r <= 0x200f, 0x202a <= r && r <= 0x202e, 0x2060 <= r && r <= 0x206f,
		r == 0x3164, r == 0xfeff, r == 0xffa0, isSelector(r), isTag(r), 0x1d173 <= r && r <= 0x1d17a:
		return true
	}
	return false
}

func isSelector(r rune) bool { return 0xfe00 <= r && r <= 0xfe0f || 0xe0100 <= r && r <= 0xe01ef }

func isTag(r rune) bool { return 0xe0000 <= r && r <= 0xe007f }

func isBidi(r rune) bool {
	return r == 0x61c || r == 0x200e || r == 0x200f || 0x202a <= r && r <= 0x202e || 0x2066 <= r && r <= 0x2069
}

// hidden flags what people do not see and models read, except where writing
// needs it: joiners in emoji and in scripts that join, marks of direction in
// texts with letters from right to left, one selector after what it selects.
func (s *scanner) hidden(text string) {
	if at, why := findHidden(text); why != "" {
		s.flag(RuleHidden, text, at, at+1, why)
	}
	if at := strings.Index(text, "<!--"); at >= 0 {
		s.flag(RuleHidden, text, at, at+4, "has a comment, which is not shown where the text is formatted")
	}
	if at := gap(text); at >= 0 {
		s.flag(RuleHidden, text, at, at+1, "has a long gap, behind which text is out of sight")
	}
	if from, to := mixedWord(text); to > 0 {
		s.flag(RuleHidden, text, from, to, "has a word of Latin letters and others that only look like them")
	}
}

func findHidden(text string) (at int, why string) {
	var before rune
	flag := false      // within the tags of an emoji flag
	leftwards := false // known to have letters from right to left
	for i, r := range text {
		switch {
		case r < 0x7f: // nearly all
		case r == utf8.RuneError:
			return i, "has characters that cannot be shown"
		case isTag(r):
			if !flag {
				return i, "has tag characters, which hide text from people"
			}
		case isSelector(r):
			if !selects(r, before) {
				return i, "has variation selectors where they select nothing, which can hide text"
			}
		case isBidi(r):
			leftwards = leftwards || hasRightToLeft(text)
			if r == 0x202d || r == 0x202e || !leftwards {
				return i, "has characters that change the direction of text, so that people read another one"
			}
		case r == 0x200c || r == 0x200d:
			if after, _ := utf8.DecodeRuneInString(text[i+3:]); !joins(before, after) {
				return i, "has characters of no width, which can hide text or break up words"
			}
		case r == 0xfeff && i == 0:
		case isInvisible(r):
			return i, "has characters of no width, which can hide text or break up words"
		}
		flag = r == 0x1f3f4 || flag && isTag(r) && r != 0xe007f
		before = r
	}
	return 0, ""
}

// selects reports whether a variation selector has something to select.
func selects(r, before rune) bool {
	switch {
	case isSelector(before):
		return false
	case r >= 0xe0100:
		return unicode.Is(unicode.Han, before)
	case r >= 0xfe0e:
		return before >= 0x203c || before == 0xa9 || before == 0xae || before == '#' || before == '*' || '0' <= before && before <= '9'
	}
	return before >= 0x1000
}

// joins reports whether a joiner stands where writing uses one.
func joins(before, after rune) bool {
	if 0x600 <= before && before <= 0x18af || 0xfb50 <= before && before <= 0xfefc {
		return true
	}
	return isPicture(before) && isPicture(after)
}

// isPicture finds what emoji are made of.
func isPicture(r rune) bool {
	return unicode.Is(unicode.So, r) || 0x1f000 <= r && r <= 0x1faff || r == 0xfe0f || 0x2190 <= r && r <= 0x2bff
}

func hasRightToLeft(text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool {
		return 0x590 <= r && r <= 0x8ff && unicode.IsLetter(r) || 0xfb1d <= r && r <= 0xfefc && unicode.IsLetter(r)
	})
}

// gap finds so much blank space that what follows is out of sight; -1: none.
func gap(text string) int {
	lines, spaces := 0, 0
	for i := range len(text) {
		switch text[i] {
		case '\n':
			lines, spaces = lines+1, 0
		case ' ', '\t', '\r':
			spaces++
		default:
			if lines >= 20 || spaces >= 120 {
				return max(0, i-1)
			}
			lines, spaces = 0, 0
		}
	}
	return -1
}

// mixedWord finds a word of Latin and Cyrillic letters; to is 0 if there is none.
func mixedWord(text string) (from, to int) {
	latin, cyrillic := false, false
	for i, r := range text {
		if !latin && !cyrillic {
			from = i
		}
		switch {
		case r < utf8.RuneSelf && isAlphanum(byte(r)):
			latin = latin || !isDigit(byte(r))
		case 0x400 <= r && r <= 0x52f:
			cyrillic = true
		default:
			latin, cyrillic = false, false
		}
		if latin && cyrillic {
			return from, i + utf8.RuneLen(r)
		}
	}
	return 0, 0
}
