package resolve

import (
	"fmt"
	"maps"
	"slices"
	"strings"

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
	ix := r.indexOf(current)
	if catalog != current {
		ix = ix.aside(catalog)
	}
	return ix.check(compile(ix, definition, catalog.Bindings(agent)))
}

func (ix *index) check(r *reach) (conflicts []quartermaster.Fault, warnings []string) {
	warnings = append(warnings, idle(ix, "tools", r.definition.Tools, r.definition.Aliases)...)
	warnings = append(warnings, idle(ix, "allowed", r.definition.Allowed, r.definition.Aliases)...)
	for _, alias := range slices.Sorted(maps.Keys(r.definition.Aliases)) {
		target := r.definition.Aliases[alias]
		slot, ok := ix.slot(target)
		switch {
		case !ok:
			warnings = append(warnings, fmt.Sprintf("aliases: %q stands for %q, which does not exist", alias, target))
		case !r.set.Contains(slot):
			warnings = append(warnings, fmt.Sprintf("aliases: %q stands for %q, which the agent does not reach; an alias adds no reach", alias, target))
		}
	}
	for _, alias := range r.shadow {
		message := fmt.Sprintf("is also the name of a tool that the agent reaches; choose another alias for %q", r.definition.Aliases[alias])
		conflicts = append(conflicts, quartermaster.Fault{Location: "aliases." + alias, Message: message})
	}
	warnings = append(warnings, r.warnings...)
	slices.SortFunc(conflicts, func(a, b quartermaster.Fault) int { return strings.Compare(a.Location, b.Location) })
	slices.Sort(warnings)
	return conflicts, warnings
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
