package resolve

import (
	"strings"

	"quartermaster"
)

// words is "group a" or "groups a, b".
func words(noun string, names []string) string {
	if len(names) == 1 {
		return noun + " " + names[0]
	}
	return noun + "s " + list(names)
}

// either is "group a" or "one of the groups a, b".
func either(noun string, names []string) string {
	if len(names) == 1 {
		return noun + " " + names[0]
	}
	return "one of the " + noun + "s " + list(names)
}

func list(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// command is what a person can paste into a shell. Agents and users may be
// called anything.
func (q *request) command(args ...string) string {
	line := []string{"quartermaster"}
	if project := q.index.catalog.Project().ID; project != quartermaster.DefaultProject {
		line = append(line, "--project", project)
	}
	for i, a := range args {
		if i == len(args)-1 && strings.HasPrefix(a, "-") {
			line = append(line, "--") // the last word is a name, not a flag
		}
		line = append(line, a)
	}
	return quartermaster.ShellWords(line...)
}
