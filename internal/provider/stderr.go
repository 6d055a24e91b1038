package provider

import (
	"bytes"
	"io"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"
)

const (
	tailLines = 200
	tailWidth = 4096 // bytes of a line

	leastHidden = 4 // shorter values are in too many words
)

// tail keeps the last lines that are written to it, harmless to show: valid
// text without control characters, and without what must be hidden.
type tail struct {
	hidden  []string // longest first: one may begin with another
	replace *strings.Replacer

	mu     sync.Mutex
	lines  []string // a ring once it is full
	oldest int
	rest   []byte // of the line that is being written
	cut    bool   // it was too long
}

func newTail(hidden []string) *tail {
	t := &tail{}
	for _, value := range hidden {
		for part := range strings.Lines(value) { // as it would come out
			if part = strings.TrimSpace(part); len(part) >= leastHidden {
				t.hidden = append(t.hidden, part)
			}
		}
	}
	slices.SortFunc(t.hidden, func(a, b string) int { return len(b) - len(a) })
	var pairs []string
	for _, value := range t.hidden {
		pairs = append(pairs, value, "[hidden]")
	}
	t.replace = strings.NewReplacer(pairs...)
	return t
}

// follow reads to the end.
func (t *tail) follow(r io.Reader) {
	buffer := make([]byte, tailWidth)
	for {
		n, err := r.Read(buffer)
		_, _ = t.Write(buffer[:n])
		if err != nil {
			return
		}
	}
}

// Write implements io.Writer and never fails.
func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := len(b)
	for {
		line, after, ended := bytes.Cut(b, []byte("\n"))
		t.append(line)
		if !ended {
			return n, nil
		}
		t.endLine()
		b = after
	}
}

// append adds to the unfinished line as far as there is room for it.
func (t *tail) append(b []byte) {
	if room := tailWidth - len(t.rest); len(b) > room {
		b, t.cut = b[:room], true
	}
	t.rest = append(t.rest, b...)
}

func (t *tail) endLine() {
	line := t.shown(t.cut)
	t.rest, t.cut = t.rest[:0], false
	if len(t.lines) < tailLines {
		t.lines = append(t.lines, line)
		return
	}
	t.lines[t.oldest] = line
	t.oldest = (t.oldest + 1) % tailLines
}

// Lines returns what is kept, oldest first, with an unfinished line at its end.
func (t *tail) Lines() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := slices.Concat(t.lines[t.oldest:], t.lines[:t.oldest])
	if len(t.rest) > 0 {
		all = append(all, t.shown(true))
	}
	return all[max(0, len(all)-tailLines):]
}

// escapes are the sequences that color and move text on a terminal.
var escapes = regexp.MustCompile(`\x1b(\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(\x07|\x1b\\)|[@-Z\\^_])`)

// shown is the unfinished line as people may see it; partial, when more of it
// was or will be written.
func (t *tail) shown(partial bool) string {
	line := escapes.ReplaceAllString(strings.ToValidUTF8(string(t.rest), "\uFFFD"), "")
	line = strings.TrimRight(line, "\r")
	line = line[strings.LastIndexByte(line, '\r')+1:] // as on a terminal: the rest was overwritten
	line = t.replace.Replace(strings.Map(harmless, line))
	if partial {
		line = t.withoutBeginning(line)
	}
	if t.cut || len(line) > tailWidth {
		const mark = " [cut]"
		line = strings.ToValidUTF8(line[:min(len(line), tailWidth-len(mark))], "") + mark
	}
	return line
}

// withoutBeginning cuts the beginning of a hidden value off the end of a line.
func (t *tail) withoutBeginning(line string) string {
	line = strings.TrimSuffix(line, "\uFFFD") // half a character
	for _, value := range t.hidden {
		for n := min(len(value)-1, len(line)); n > 0; n-- {
			if strings.HasSuffix(line, value[:n]) {
				return line[:len(line)-n]
			}
		}
	}
	return line
}

// harmless replaces what does not show but acts: control characters, and those
// that turn the direction of text.
func harmless(r rune) rune {
	if r != '\t' && unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) {
		return '\uFFFD'
	}
	return r
}
