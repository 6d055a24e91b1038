package quartermaster

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// Flag is a sign that a definition may be meant to mislead a model. It is no
// proof and blocks nothing: pins and quarantine do.
type Flag struct {
	Rule    Rule   `json:"rule" enum:"hidden-text,override,secrecy,preference,disguise,secrets,encoded,exfiltration,other-tool"`
	Field   string `json:"field" doc:"Where it stands" example:"inputSchema.properties.path.description"`
	Excerpt string `json:"excerpt" doc:"The text around it, with hidden characters made visible"`
	Reason  string `json:"reason" doc:"What is suspicious about it"`
}

// Rule names a kind of sign.
type Rule string

// The kinds of signs.
const (
	RuleHidden       Rule = "hidden-text"  // what people do not see and models read
	RuleOverride     Rule = "override"     // orders to set other orders aside
	RuleSecrecy      Rule = "secrecy"      // orders to keep something from people
	RulePreference   Rule = "preference"   // meddling with the use of other tools
	RuleDisguise     Rule = "disguise"     // text dressed up as someone else's
	RuleSecrets      Rule = "secrets"      // reaching for keys, prompts and conversations
	RuleEncoded      Rule = "encoded"      // text that only a machine can read
	RuleExfiltration Rule = "exfiltration" // sending things away
	RuleOtherTool    Rule = "other-tool"   // naming tools of other servers
)

// maxFlags is enough to make anyone look.
const maxFlags = 16

// Scan looks for signs of poisoning in all texts of an offer. It needs no
// network and finds the same in the same offer, always. others says which tool
// from elsewhere is called by a name, "" if none; nil knows of none.
func (o *Offer) Scan(others func(name string) string) []Flag {
	values, err := o.decode()
	if err != nil {
		values = map[string]any{"name": o.Name, "title": o.Title, "description": o.Description}
	}
	return scan(values, others)
}

func scan(values map[string]any, others func(name string) string) []Flag {
	s := scanner{others: others, own: map[string]bool{}}
	for _, v := range values {
		s.collectKeys(v)
	}
	for _, field := range definitionFields {
		s.value(field, values[field])
	}
	return s.flags
}

// scanner is one scan under way.
type scanner struct {
	others func(name string) string
	own    map[string]bool // names of the tool's own parameters
	path   []string        // to the text that is looked at, each with what joins it to the next
	flags  []Flag
}

func (s *scanner) collectKeys(v any) {
	switch v := v.(type) {
	case map[string]any:
		for key, item := range v {
			s.own[key] = true
			s.collectKeys(item)
		}
	case []any:
		for _, item := range v {
			s.collectKeys(item)
		}
	}
}

// value scans every text in a decoded value: a model reads all of it.
func (s *scanner) value(step string, v any) {
	if len(s.flags) >= maxFlags {
		return
	}
	s.path = append(s.path, step)
	switch v := v.(type) {
	case map[string]any:
		for _, key := range sortedKeys(v) {
			s.value(key, key)
			s.value(key, v[key])
		}
	case []any:
		for _, item := range v {
			s.value("[]", item)
		}
	case string:
		s.text(v)
	}
	s.path = s.path[:len(s.path)-1]
}

func (s *scanner) text(text string) {
	if len(text) < 4 {
		return
	}
	// A pattern is made of characters that nobody has to see.
	if s.path[len(s.path)-1] != "pattern" {
		s.hidden(text)
	}
	s.phrases(text)
	s.disguises(text)
	s.payloads(text)
	if s.others != nil && s.path[0] != "name" {
		s.references(text)
	}
}

// field is where the scanner looks, in words.
func (s *scanner) field() string {
	var b strings.Builder
	for i, step := range s.path {
		if i > 0 && step != "[]" {
			b.WriteByte('.')
		}
		b.WriteString(visible(step, 64))
	}
	return cut(b.String(), 255)
}

// flag notes a sign once for each field and reason.
func (s *scanner) flag(rule Rule, text string, from, to int, reason string) {
	f := Flag{Rule: rule, Field: s.field(), Excerpt: excerpt(text, from, to), Reason: reason}
	same := func(o Flag) bool { return o.Rule == f.Rule && o.Field == f.Field && o.Reason == f.Reason }
	if len(s.flags) < maxFlags && !slices.ContainsFunc(s.flags, same) {
		s.flags = append(s.flags, f)
	}
}

// references finds names of tools from elsewhere. A word that anyone may use,
// such as search, is none.
func (s *scanner) references(text string) {
	for from := 0; from < len(text); {
		if !isToolNameByte(text[from]) {
			from++
			continue
		}
		to := from
		for to < len(text) && isToolNameByte(text[to]) {
			to++
		}
		name := strings.Trim(text[from:to], ".-")
		if madeUp(name) && !s.own[name] {
			if tool := s.others(name); tool != "" {
				s.flag(RuleOtherTool, text, from, to, "speaks of "+tool)
			}
		}
		from = to
	}
}

// madeUp tells the name of a tool from an ordinary word: it is made of several.
func madeUp(name string) bool {
	if len(name) < 6 || len(name) > maxToolName {
		return false
	}
	for i := 1; i < len(name); i++ {
		if name[i] == '_' || name[i] == '-' || 'A' <= name[i] && name[i] <= 'Z' && 'a' <= name[i-1] && name[i-1] <= 'z' {
			return true
		}
	}
	return false
}

// toolsBeside says which tools a server could meddle with that are not its own,
// by their names here and at their servers. It is made when first asked for.
func (c *Catalog) toolsBeside(server string, own map[string]bool) func(name string) string {
	names := sync.OnceValue(func() map[string]string {
		all := map[string]string{}
		for _, t := range c.tools {
			if t.Server == server {
				continue
			}
			for _, name := range []string{t.Name, t.Upstream, t.shortName()} {
				if all[name] == "" {
					all[name] = t.Name
				}
			}
		}
		return all
	})
	return func(name string) string {
		if own[strings.TrimPrefix(name, server+"__")] {
			return ""
		}
		if tool := names()[name]; tool != "" {
			return "the tool " + tool + ", which is not of its server"
		}
		if other, _, ok := strings.Cut(name, "__"); ok && other != server && c.Server(other) != nil {
			return "a tool of the server " + other
		}
		return ""
	}
}

// excerpt is the text around a sign, made harmless: neither a person nor a
// model that reads about it should fall for it.
func excerpt(text string, from, to int) string {
	from, to = max(0, from-20), min(len(text), max(to, from+40)+20)
	for from > 0 && !utf8.RuneStart(text[from]) {
		from--
	}
	for to < len(text) && !utf8.RuneStart(text[to]) {
		to++
	}
	return defang.Replace(visible(text[from:to], 160))
}

var defang = strings.NewReplacer("<", "‹", ">", "›", "http://", "hxxp://", "https://", "hxxps://", "`", "'")

// visible writes text on one line of at most so many characters, with what
// could not be seen spelled out.
func visible(text string, most int) string {
	var b strings.Builder
	n := 0
	for _, r := range text {
		word := string(r)
		switch {
		case r == '\n' || r == '\t' || r == '\r':
			word = " "
		case isControl(r) || isInvisible(r) || !unicode.IsGraphic(r):
			word = fmt.Sprintf("‹U+%04X›", r)
		}
		if n += utf8.RuneCountInString(word); n > most {
			return cut(b.String()+word, most)
		}
		b.WriteString(word)
	}
	return b.String()
}
