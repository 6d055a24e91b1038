package importer

import (
	"fmt"
	"slices"
)

// readProject takes a project file over as it is: what is wrong in it the
// server knows best.
func (b *build) readProject(e *entry) {
	for _, m := range e.value {
		at := e.at.below(m.Key, m.Line)
		switch {
		case m.Value == nil:
		case m.Key == "quartermaster":
			b.put(&row{name: m.Key, at: at, value: m.Value})
		case slices.Contains(sections, m.Key):
			b.readSection(field{at, m.Value}, m.Key)
		case m.Key == "grants":
			b.addGrants(field{at, m.Value})
		default:
			b.put(&row{name: m.Key, at: at, value: m.Value})
		}
	}
}

func (b *build) readSection(f field, section string) {
	e := b.entryOf(f)
	if e == nil {
		return
	}
	for _, m := range e.value {
		b.put(&row{section: section, name: m.Key, at: e.at.below(m.Key, m.Line), value: m.Value, whole: true})
		if section == "servers" {
			b.servers[m.Key] = m.Key
		}
	}
}

// addGrants joins the lists of several files.
func (b *build) addGrants(f field) {
	list, ok := f.value.([]any)
	if !ok {
		b.fault(f.at, "must be a list")
		return
	}
	all := b.index[".grants"]
	if all == nil {
		all = &row{name: "grants", at: f.at, value: []any{}}
		b.put(all)
	}
	grants, _ := all.value.([]any)
	for i, g := range list {
		b.origins[fmt.Sprintf("grants[%d]", len(grants)+i)] = field{f.at.item(i, g), g}
	}
	all.value = slices.Concat(grants, list)
}
