package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"quartermaster"
)

// sections are the parts of a project file that hold entries by name.
var sections = []string{"servers", "tools", "agents", "bindings", "users", "policies"}

// lists are the parts that hold entries without names. What stands in two files
// is meant once.
var lists = []string{"grants", "revoke"}

// readProject reads the files of a project and joins them into one document, with
// what was said beside them.
func (a *app) readProject(names []string, beside ...document) (document, error) {
	var docs []document
	for _, name := range names {
		files, err := filesIn(name, ".yaml", ".yml", ".json")
		if err != nil {
			return document{}, err
		}
		for _, file := range files {
			d, err := a.readFile(file)
			if err != nil {
				return document{}, err
			}
			docs = append(docs, d)
		}
	}
	return mergeDocuments(append(docs, beside...))
}

// mergeDocuments joins project files. An entry that stands in two of them is
// an error, because which one is meant is anybody's guess.
func mergeDocuments(docs []document) (document, error) {
	m := merger{doc: document{places: places{}}}
	for _, d := range docs {
		m.add(d)
	}
	if len(m.faults) > 0 {
		e := quartermaster.Errorf(quartermaster.CodeInvalidRequest, "the files do not fit together; nothing was changed")
		e.Faults = m.faults
		return document{}, e
	}
	return m.doc, nil
}

type merger struct {
	doc    document
	faults []quartermaster.Fault
}

func (m *merger) fault(d document, path, message string) {
	m.faults = append(m.faults, quartermaster.Fault{Location: d.locate("body." + path), Message: message})
}

func (m *merger) add(d document) {
	had := map[string]int{} // how many entries a list begins with
	for _, name := range lists {
		v, _ := m.doc.value.get(name)
		list, _ := v.([]any)
		had[name] = len(list)
	}
	for _, field := range d.value {
		if field.value == nil && (slices.Contains(sections, field.key) || slices.Contains(lists, field.key)) {
			continue // a section with nothing in it
		}
		m.addField(d, field)
	}
	for path, p := range d.places {
		path = shifted(path, had)
		if _, ok := m.doc.places[path]; !ok {
			m.doc.places[path] = p
		}
	}
}

// shifted is the path of what was an entry of a list and has others before it now.
func shifted(path string, had map[string]int) string {
	name, rest, ok := strings.Cut(path, "[")
	if !ok || had[name] == 0 {
		return path
	}
	number, rest, _ := strings.Cut(rest, "]")
	i, err := strconv.Atoi(number)
	if err != nil {
		return path
	}
	return fmt.Sprintf("%s[%d]%s", name, had[name]+i, rest)
}

func (m *merger) addField(d document, field member) {
	i := slices.IndexFunc(m.doc.value, func(x member) bool { return x.key == field.key })
	if i < 0 {
		m.doc.value = append(m.doc.value, field)
		return
	}
	have := m.doc.value[i].value
	switch {
	case field.key == "quartermaster":
		if have != field.value {
			m.fault(d, field.key, "another version than in "+m.doc.places[field.key].String())
		}
	case slices.Contains(sections, field.key):
		m.addEntries(d, i, field)
	case slices.Contains(lists, field.key):
		m.addList(d, i, field)
	default:
		m.fault(d, field.key, "stands in "+m.doc.places[field.key].String()+" already")
	}
}

func (m *merger) addEntries(d document, i int, field member) {
	into, ok := m.doc.value[i].value.(object)
	from, ok2 := field.value.(object)
	if !ok || !ok2 {
		m.fault(d, field.key, "must be a mapping of names to entries")
		return
	}
	joined := slices.Clone(into)
	for _, entry := range from {
		at := join(field.key, entry.key)
		if _, taken := into.get(entry.key); taken {
			m.fault(d, at, "stands in "+m.doc.places[at].String()+" already")
			continue
		}
		joined = append(joined, entry)
	}
	m.doc.value[i].value = joined
}

func (m *merger) addList(d document, i int, field member) {
	into, ok := m.doc.value[i].value.([]any)
	from, ok2 := field.value.([]any)
	if !ok || !ok2 {
		m.fault(d, field.key, "must be a list of entries")
		return
	}
	m.doc.value[i].value = slices.Concat(into, from)
}
