package importer

import (
	"strings"
	"time"

	"quartermaster"
)

// checkOpen refuses secrets where nobody hides them: the config of a tool and
// the memory of an agent are shown to whoever may read the project.
func (b *build) checkOpen(f field) {
	switch v := f.value.(type) {
	case Object:
		for _, m := range v {
			at := f.at.below(m.Key, m.Line)
			if s, ok := m.Value.(string); ok && looksSecret(m.Key, s) {
				b.fault(at, "looks like a secret, and is shown here; write ${NAME} in its place, and set that with: quartermaster secrets set NAME")
				continue
			}
			b.checkOpen(field{at, m.Value})
		}
	case []any:
		for i, item := range v {
			if s, ok := item.(string); ok && looksSecret("", s) {
				b.fault(f.at.item(i, item), "looks like a secret, and is shown here; write ${NAME} in its place, and set that with: quartermaster secrets set NAME")
				continue
			}
			b.checkOpen(field{f.at.item(i, item), item})
		}
	}
}

// looksSecret asks whether a server's variable of this name and value would be
// hidden, so that one judgment holds everywhere.
func looksSecret(key, value string) bool {
	const longest = 32_768 // no variable is longer
	if len(value) > longest {
		return false
	}
	key = strings.Map(func(r rune) rune {
		if r == '=' || r == 0 {
			return '_'
		}
		return r
	}, "_"+key)
	probe := quartermaster.Server{Name: "probe", Transport: quartermaster.TransportStdio, Command: "probe", Env: map[string]string{key: value}}
	hidden, _, err := quartermaster.NewCatalog(quartermaster.Project{}).Draft(time.Time{}).PutServer(probe)
	return err != nil || hidden.Env[key] != value
}
