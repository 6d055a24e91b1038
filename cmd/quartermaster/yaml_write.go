package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// writeYAML writes anything that encoding/json can write, in the same order.
// It writes few of the forms that YAML has, all of which every parser reads
// back as they were.
func writeYAML(w io.Writer, v any) error {
	var raw bytes.Buffer
	if err := appendJSON(&raw, v); err != nil {
		return err
	}
	value, err := readJSON(raw.Bytes())
	if err != nil {
		return err
	}
	var b bytes.Buffer
	writeNode(&b, value, 0)
	_, err = w.Write(b.Bytes())
	return err
}

// writeNode writes v where a line has just begun, indented by depth.
func writeNode(b *bytes.Buffer, v any, depth int) {
	indent := strings.Repeat("  ", depth)
	switch v := v.(type) {
	case object:
		if len(v) == 0 {
			b.WriteString(indent + "{}\n")
		}
		for _, m := range v {
			b.WriteString(indent + yamlKey(m.key) + ":")
			writeBelow(b, m.value, depth)
		}
	case []any:
		if len(v) == 0 {
			b.WriteString(indent + "[]\n")
		}
		for _, item := range v {
			b.WriteString(indent + "-")
			writeItem(b, item, depth)
		}
	default:
		b.WriteString(indent + yamlScalar(v, depth+1) + "\n")
	}
}

// writeBelow writes the value of a key, whose colon was the last character.
func writeBelow(b *bytes.Buffer, v any, depth int) {
	if isBlock(v) {
		b.WriteByte('\n')
		writeNode(b, v, depth+1)
		return
	}
	b.WriteString(" " + yamlScalar(v, depth+1) + "\n")
}

// writeItem writes an item of a list, whose dash was the last character. An
// object begins in the line of the dash.
func writeItem(b *bytes.Buffer, v any, depth int) {
	if !isBlock(v) {
		b.WriteString(" " + yamlScalar(v, depth+1) + "\n")
		return
	}
	var below bytes.Buffer
	writeNode(&below, v, depth+1)
	b.WriteString(" ")
	b.Write(below.Bytes()[2*(depth+1):])
}

// isBlock tells what needs lines of its own.
func isBlock(v any) bool {
	switch v := v.(type) {
	case object:
		return len(v) > 0
	case []any:
		return len(v) > 0
	}
	return false
}

func yamlScalar(v any, depth int) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case string:
		return yamlString(v, depth)
	case object:
		return "{}"
	case []any:
		return "[]"
	case json.Number:
		return yamlNumber(string(v))
	default: // bool
		return fmt.Sprint(v)
	}
}

// yamlNumber writes an exponent in the one way that YAML 1.1 takes for a
// number too: with a fraction before it and its sign.
func yamlNumber(s string) string {
	at := strings.IndexAny(s, "eE")
	if at < 0 {
		return s
	}
	mantissa, mark, exponent := s[:at], s[at:at+1], s[at+1:]
	if !strings.Contains(mantissa, ".") {
		mantissa += ".0"
	}
	if exponent[0] != '-' && exponent[0] != '+' {
		exponent = "+" + exponent
	}
	return mantissa + mark + exponent
}

func yamlKey(s string) string {
	if isBareWord(s) {
		return s
	}
	return quoted(s)
}

func yamlString(s string, depth int) string {
	switch {
	case isBareText(s):
		return s
	case isLines(s):
		return literal(s, depth)
	default:
		return quoted(s)
	}
}

var (
	bareWord = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_./-]*$`)
	bareText = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_./()+'-]*([,;]? [A-Za-z0-9_./()+'-]+)*[.]?$`)
	// What some reader of YAML takes for something else than text.
	otherThanText = []string{"true", "false", "yes", "no", "on", "off", "y", "n", "null", "nan", "inf"}
)

func isBareWord(s string) bool {
	return bareWord.MatchString(s) && !slices.Contains(otherThanText, strings.ToLower(s))
}

func isBareText(s string) bool {
	return bareText.MatchString(s) && !slices.Contains(otherThanText, strings.ToLower(s))
}

// isLines tells text of several lines that reads well as such, and survives it.
func isLines(s string) bool {
	body := strings.TrimSuffix(s, "\n")
	if !strings.Contains(body, "\n") {
		return false
	}
	for i, line := range strings.Split(body, "\n") {
		if strings.TrimRight(line, " \t") != line || i == 0 && (line == "" || line[0] == ' ' || line[0] == '\t') {
			return false
		}
		if strings.ContainsFunc(line, func(r rune) bool { return r != '\t' && !unicode.IsPrint(r) }) { // Rego is indented by tabs
			return false
		}
	}
	return !strings.HasSuffix(body, "\n")
}

func literal(s string, depth int) string {
	body, ended := strings.CutSuffix(s, "\n")
	head := "|-"
	if ended {
		head = "|"
	}
	indent := strings.Repeat("  ", depth)
	var b strings.Builder
	b.WriteString(head)
	for line := range strings.SplitSeq(body, "\n") {
		b.WriteByte('\n')
		if line != "" {
			b.WriteString(indent + line)
		}
	}
	return b.String()
}

// quoted is the double-quoted form, which JSON's strings are too. What cannot
// be seen is escaped.
func quoted(s string) string {
	var b bytes.Buffer
	_ = appendJSON(&b, s) // a string can always be written
	var out strings.Builder
	for _, r := range b.String() {
		switch {
		case unicode.IsPrint(r):
			out.WriteRune(r)
		case r > 0xffff:
			fmt.Fprintf(&out, `\U%08x`, r)
		default:
			fmt.Fprintf(&out, `\u%04x`, r)
		}
	}
	return out.String()
}
