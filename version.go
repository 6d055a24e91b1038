package quartermaster

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"
)

// KeptVersions is how many definitions of a tool are kept, the newest ones.
const KeptVersions = 50

// Historian remembers which definitions the tools of upstream servers had.
type Historian interface {
	// Versions lists the definitions of a tool, by its id, the newest first. A
	// tool that no server offers has none.
	Versions(ctx context.Context, project, toolID string) ([]ToolVersion, error)
}

// ToolVersion is a definition that an upstream server gave a tool (CAT-4).
type ToolVersion struct {
	Version    int64     `json:"version" doc:"The tool's version that brought it"`
	Hash       string    `json:"hash" doc:"SHA-256 of the definition, however it is spelled"`
	Definition Offer     `json:"definition"`
	FoundAt    time.Time `json:"foundAt"`
}

// DefinitionChange is one line of what differs between two definitions.
type DefinitionChange struct {
	Field string `json:"field" doc:"The field; within a schema, the path to it" example:"inputSchema.properties.path.description"`
	From  string `json:"from,omitempty" doc:"Absent: it was not there. Other values than texts are JSON"`
	To    string `json:"to,omitempty" doc:"Absent: it is no longer there"`
}

// The most that a diff tells: it is for people to read.
const (
	maxDiffLines = 100
	maxDiffText  = 400
)

// ChangesTo says in what the next definition differs from this one. Hidden
// characters in it are made visible.
func (o *Offer) ChangesTo(next *Offer) []DefinitionChange {
	var d definitionDiff
	from, _ := o.decode() // both were, when they were taken
	to, _ := next.decode()
	for _, field := range definitionFields {
		d.compare(field, lookUp(from, field), lookUp(to, field))
	}
	if d.more > 0 {
		d.lines = append(d.lines, DefinitionChange{Field: "and " + strconv.Itoa(d.more) + " more"})
	}
	return d.lines
}

// nowhere stands for a value that is not there, which null is.
type nowhere struct{}

func lookUp(m map[string]any, key string) any {
	if v, ok := m[key]; ok {
		return v
	}
	return nowhere{}
}

type definitionDiff struct {
	lines []DefinitionChange
	more  int
}

// compare goes down only where both sides do: what is wholly new or gone is one
// line.
func (d *definitionDiff) compare(path string, from, to any) {
	if sameValue(from, to) {
		return
	}
	switch from := from.(type) {
	case map[string]any:
		if to, ok := to.(map[string]any); ok {
			keys := maps.Clone(from)
			maps.Copy(keys, to)
			for _, key := range slices.Sorted(maps.Keys(keys)) {
				d.compare(path+"."+visible(key, 64), lookUp(from, key), lookUp(to, key))
			}
			return
		}
	case []any:
		if to, ok := to.([]any); ok && len(from) == len(to) {
			for i := range from {
				d.compare(path+"["+strconv.Itoa(i)+"]", from[i], to[i])
			}
			return
		}
	}
	if len(d.lines) == maxDiffLines {
		d.more++
		return
	}
	was, is := inWords(from), inWords(to)
	skip := agreement(was, is)
	d.lines = append(d.lines, DefinitionChange{Field: path, From: shown(was, skip), To: shown(is, skip)})
}

func shown(text string, skip int) string {
	if skip > 0 {
		text = "…" + text[skip:]
	}
	return visible(text, maxDiffText)
}

func inWords(v any) string {
	switch v := v.(type) {
	case nowhere:
		return ""
	case string:
		return v
	}
	raw, _ := json.Marshal(v) // decoded from JSON
	return string(raw)
}

// agreement is how much of the beginning of two long texts can be left out, so
// that where they begin to differ is what a person gets to see.
func agreement(a, b string) int {
	const context = 40
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	if max(len(a), len(b)) <= maxDiffText || n <= context {
		return 0
	}
	for n -= context; n > 0 && !utf8.RuneStart(a[n]); n-- {
	}
	return n
}
