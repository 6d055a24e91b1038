package importer

import "slices"

// kept are the fields that a file may be silent about without meaning their
// defaults: an import must not undo what people have set in the project, least
// of all what they have taken away.
var kept = map[string][]string{
	"servers": {"enabled", "scope", "prefix", "lazy", "pin", "quarantine", "timeouts", "healthCheck", "maxConcurrent", "groups"},
	"tools":   {"enabled", "groups", "state", "availableInStates", "timeout"},
}

// existing is an entry of the project as it is now; nil if there is none.
func (b *build) existing(section, name string) Object {
	v, _ := b.options.Existing.Get(section)
	entries, _ := v.(Object)
	v, _ = entries.Get(name)
	entry, _ := v.(Object)
	return entry
}

// keep leaves the project's own settings where the files say nothing.
func (b *build) keep() {
	for _, section := range sections {
		for _, r := range b.rows[section] {
			if now := b.existing(section, r.name); now != nil && !r.whole {
				b.keepFields(r, now)
			}
		}
	}
}

func (b *build) keepFields(r *row, now Object) {
	for _, name := range kept[r.section] {
		v, ok := now.Get(name)
		switch {
		case !ok:
		case r.get(name) == nil:
			r.set(name, v, r.at)
			if v == false && name == "enabled" {
				b.warn(r.at, "%s stays disabled, as it is in the project", r.label())
			}
		case name == "timeouts": // a file knows one of them at most
			said, _ := r.get(name).(Object)
			times, _ := v.(Object)
			for _, m := range times {
				if !contains(said, m.Key) {
					said = append(slices.Clone(said), Member{Key: m.Key, Value: m.Value})
				}
			}
			r.set(name, said, r.origins[name].at)
		}
	}
}

// keepMapping leaves what runs a tool as somebody has set it, where its file
// does not know; false: nobody has.
func (b *build) keepMapping(r *row) bool {
	now := b.existing("tools", r.name)
	config, _ := now.Get("config")
	own, _ := config.(Object)
	if !contains(now, "provider", "server") && !contains(own, "builtin") {
		return false
	}
	fields, _ := r.value.(Object)
	r.value = slices.DeleteFunc(slices.Clone(fields), func(m Member) bool { return m.Key == "config" || m.Key == "provider" })
	for _, name := range []string{"provider", "server", "config"} {
		if v, ok := now.Get(name); ok {
			r.set(name, v, r.at)
		}
	}
	return true
}
