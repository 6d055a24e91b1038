package main

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	"quartermaster"
)

// printDifference writes what changes, one line for each field.
func (a *app) printDifference(d quartermaster.Difference) error {
	for _, line := range differenceLines(d) {
		if _, err := fmt.Fprintln(a.out, a.color(signColors[line[0]], plainText(line))); err != nil {
			return err
		}
	}
	return nil
}

var signColors = map[byte]string{'+': green, '~': yellow, '-': red}

func differenceLines(d quartermaster.Difference) []string {
	what := string(d.Noun) + " " + d.Name
	if d.Noun == quartermaster.NounGrant {
		what = "grant " + grantWords(d.Name)
	}
	switch d.Action {
	case "create":
		return []string{"+ " + what}
	case "delete":
		return []string{"- " + what}
	}
	if d.Noun == quartermaster.NounBindings {
		return []string{"~ " + what + ": " + bindingChange(d.Fields["tools"])}
	}
	if d.Noun == quartermaster.NounSecret {
		return []string{"~ " + what + ": set again"} // whether to another value nobody can tell
	}
	if d.Noun == quartermaster.NounPolicy {
		rego := d.Fields["rego"]
		return []string{fmt.Sprintf("~ %s: %s → %s", what, lineWords(rego.From), lineWords(rego.To))}
	}
	lines := []string{}
	for _, field := range sorted(maps.Keys(d.Fields)) {
		change := d.Fields[field]
		lines = append(lines, fmt.Sprintf("~ %s: %s %s → %s", what, field,
			brief(change.From), brief(change.To)))
	}
	return lines
}

// grantWords are those of the grant command: of tool:echo#executor@user:alice they
// are user:alice executor echo.
func grantWords(key string) string {
	resource, rest, _ := strings.Cut(key, "#")
	relation, subject, _ := strings.Cut(rest, "@")
	tool, _ := strings.CutPrefix(resource, quartermaster.TypeTool+":")
	return subject + " " + relation + " " + tool
}

func lineWords(v any) string {
	text, _ := v.(string)
	return count(lineCount(text), "line")
}

// bindingChange names the tools that come and go.
func bindingChange(c quartermaster.FieldChange) string {
	from, to := texts(c.From), texts(c.To)
	var words []string
	for _, t := range to {
		if !slices.Contains(from, t) {
			words = append(words, "+"+t)
		}
	}
	for _, t := range from {
		if !slices.Contains(to, t) {
			words = append(words, "-"+t)
		}
	}
	return strings.Join(words, " ")
}

func texts(v any) []string {
	list, _ := v.([]any)
	words := make([]string, len(list))
	for i, item := range list {
		words[i] = fmt.Sprint(item)
	}
	return words
}

// brief writes a value in one short piece.
func brief(v any) string {
	if v == nil {
		return "(none)"
	}
	var b bytes.Buffer
	if err := appendJSON(&b, v); err != nil {
		return fmt.Sprint(v)
	}
	return shorten(b.String(), 120, true)
}
