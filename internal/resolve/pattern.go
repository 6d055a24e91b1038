package resolve

import (
	"fmt"
	"path"
	"strings"

	"quartermaster"
)

// pattern is one entry of a definition's tools or allowed (AGT-2).
type pattern struct {
	text  string // as it was written
	glob  string // what is matched; an alias is replaced by its target
	exact bool   // no wildcard in it
	all   bool   // "*"
}

// parse reads a pattern. An alias stands for its target, which is a name and
// never a glob; but a tool of that very name is meant too, so that it cannot be
// overlooked when the definition is checked (AGT-5).
func parse(text string, aliases map[string]string) (pattern, error) {
	if target, ok := aliases[text]; ok {
		return pattern{text: text, glob: target, exact: true}, nil
	}
	p := pattern{text: text, glob: text, exact: !strings.ContainsAny(text, meta), all: text == "*"}
	if _, err := path.Match(text, ""); err != nil {
		return p, fmt.Errorf("the pattern %q cannot be parsed", text)
	}
	return p, nil
}

// meta are the characters that mean something in a glob.
const meta = `*?[\`

// matches reports whether the pattern means this tool.
func (p pattern) matches(t *quartermaster.Tool) bool {
	if p.exact && p.text == t.Name {
		return true
	}
	name := t.Name
	if strings.HasPrefix(p.glob, "@") {
		if t.Server == "" {
			return false
		}
		name = "@" + t.Server + "/" + strings.TrimPrefix(t.Name, t.Server+"__")
	}
	if p.exact {
		return p.glob == name
	}
	if p.all {
		return true
	}
	ok, _ := path.Match(p.glob, name)
	return ok
}

// names reports whether the pattern is this tool's own name, letter by letter.
func (p pattern) names(tool string) bool { return p.exact && p.text == tool && p.glob == tool }

// each calls visit for every tool that the pattern matches. It looks only
// where such tools can be: at the name, at the servers, or in the run of names
// that starts as the pattern does.
func (p pattern) each(ix *index, visit func(slot uint32)) {
	if p.exact {
		p.eachNamed(ix, visit)
		return
	}
	prefix := p.glob[:strings.IndexAny(p.glob, meta)]
	if rest, ok := strings.CutPrefix(prefix, "@"); ok {
		p.eachOfServers(ix, rest, visit)
		return
	}
	tools := ix.catalog.Tools()
	from, _ := ix.catalog.Position(prefix)
	for i := from; i < len(tools) && strings.HasPrefix(tools[i].Name, prefix); i++ {
		if p.matches(tools[i]) {
			visit(ix.slots[i])
		}
	}
}

// eachNamed looks at the names that a tool can have for the pattern to be its.
func (p pattern) eachNamed(ix *index, visit func(slot uint32)) {
	look := func(name string) {
		if i, ok := ix.catalog.Position(name); ok && p.matches(ix.catalog.Tools()[i]) {
			visit(ix.slots[i])
		}
	}
	if p.text != p.glob {
		look(p.text)
	}
	ref, ok := strings.CutPrefix(p.glob, "@")
	if !ok {
		look(p.glob)
		return
	}
	server, tool, _ := strings.Cut(ref, "/")
	look(server + "__" + tool)
	look(tool) // the server says prefix: false
}

func (p pattern) eachOfServers(ix *index, prefix string, visit func(slot uint32)) {
	name, _, whole := strings.Cut(prefix, "/")
	for server, slots := range ix.servers {
		if whole && server != name || !strings.HasPrefix(server, name) {
			continue
		}
		for it := slots.Iterator(); it.HasNext(); {
			if slot := it.Next(); p.matches(ix.tool(slot)) {
				visit(slot)
			}
		}
	}
}

// parseAll reads a list of patterns and warns of those that cannot be read.
func parseAll(field string, texts []string, aliases map[string]string) (patterns []pattern, warnings []string) {
	for _, text := range texts {
		p, err := parse(text, aliases)
		if err != nil {
			warnings = append(warnings, fmt.Sprintf("%s: %v; it is skipped", field, err))
			continue
		}
		patterns = append(patterns, p)
	}
	return patterns, warnings
}
