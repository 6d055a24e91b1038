package resolve

import (
	"fmt"
	"maps"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"quartermaster"
)

// Check looks at an agent's definition in a catalog that follows from current,
// or is it. Conflicts must be mended before it is saved (AGT-5); warnings are
// for whoever edits it (AGT-2).
func (r *Resolver) Check(current, catalog *quartermaster.Catalog, agent string) (conflicts []quartermaster.Fault, warnings []string) {
	definition := catalog.Agent(agent)
	if definition == nil {
		return nil, nil
	}
	ix := r.draftOf(current, catalog)
	return ix.check(compile(ix, definition, catalog.Bindings(agent)))
}

func (ix *index) check(r *reach) (conflicts []quartermaster.Fault, warnings []string) {
	warnings = append(warnings, idle(ix, "tools", r.definition.Tools, r.definition.Aliases)...)
	warnings = append(warnings, idle(ix, "allowed", r.definition.Allowed, r.definition.Aliases)...)
	reached := roaring.Or(r.set, r.hidden())
	for _, alias := range slices.Sorted(maps.Keys(r.definition.Aliases)) {
		target := r.definition.Aliases[alias]
		slot, ok := ix.slot(target)
		// Whether the alias has a target now or not: one day it may.
		if named, taken := ix.slot(alias); taken && reached.Contains(named) && (!ok || named != slot) {
			message := fmt.Sprintf("is also the name of a tool that the agent reaches; choose another alias for %q", target)
			conflicts = append(conflicts, quartermaster.Fault{Location: "aliases." + alias, Message: message})
		}
		switch {
		case !ok:
			warnings = append(warnings, fmt.Sprintf("aliases: %q stands for %q, which does not exist", alias, target))
		case !r.set.Contains(slot):
			warnings = append(warnings, fmt.Sprintf("aliases: %q stands for %q, which the agent does not reach; an alias adds no reach", alias, target))
		}
	}
	warnings = append(warnings, r.warnings...)
	slices.Sort(warnings)
	return conflicts, warnings
}

// hidden are the tools that aliases have taken the names of.
func (r *reach) hidden() *roaring.Bitmap {
	m := roaring.New()
	for slot := range r.shadow {
		m.Add(slot)
	}
	return m
}

// idle warns of patterns that cannot be read or match nothing.
func idle(ix *index, field string, texts []string, aliases map[string]string) []string {
	patterns, warnings := parseAll(field, texts, aliases)
	for _, p := range patterns {
		if ix.matching([]pattern{p}).IsEmpty() {
			warnings = append(warnings, fmt.Sprintf("%s: %q matches no tool", field, p.text))
		}
	}
	return warnings
}
