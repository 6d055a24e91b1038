package main

import (
	"slices"

	"quartermaster"
)

// sections are the parts of a project file that hold entries by name.
var sections = []string{"servers", "tools", "agents", "bindings", "users"}

// readProject reads the files of a project and joins them into one document.
func (a *app) readProject(names []string) (document, error) {
	var docs []document
	for _, name := range names {
		files, err := filesIn(name)
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
	return mergeDocuments(docs)
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
	for _, field := range d.value {
		if field.value == nil && slices.Contains(sections, field.key) {
			continue // a section with nothing in it
		}
		m.addField(d, field)
	}
	for path, p := range d.places {
		if _, ok := m.doc.places[path]; !ok {
			m.doc.places[path] = p
		}
	}
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
