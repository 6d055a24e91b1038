package importer

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"time"
)

// entry is an object of a file, read field by field. A field that is null is
// absent. What nobody has read in the end is unknown.
type entry struct {
	*build
	at    spot
	value Object
	seen  map[string]bool
}

// entryOf is nil, and a fault, where the field holds no object.
func (b *build) entryOf(f field) *entry {
	o, ok := f.value.(Object)
	if !ok {
		b.fault(f.at, "must be an object, with fields and values")
		return nil
	}
	return &entry{build: b, at: f.at, value: o, seen: map[string]bool{}}
}

// field finds the first of several words for the same that has a value.
func (e *entry) field(keys ...string) (field, bool) {
	var found *Member
	for _, key := range keys {
		i := e.value.index(key)
		if i < 0 {
			continue
		}
		e.seen[key] = true
		m := &e.value[i]
		switch {
		case m.Value == nil:
		case found == nil:
			found = m
		case !sameValue(found.Value, m.Value):
			e.fault(e.at.below(key, m.Line), "means the same as %s; give one of them", found.Key)
		}
	}
	if found == nil {
		return field{at: e.at}, false
	}
	return field{e.at.below(found.Key, found.Line), found.Value}, true
}

// ignore marks fields that mean nothing here and harm nobody.
func (e *entry) ignore(keys ...string) {
	for _, key := range keys {
		e.seen[key] = true
	}
}

// others are the members that nobody has asked for.
func (e *entry) others() Object {
	var rest Object
	for _, m := range e.value {
		if !e.seen[m.Key] && m.Value != nil {
			rest = append(rest, m)
		}
	}
	return rest
}

// warnOthers tells of fields that have no place here.
func (e *entry) warnOthers() {
	var names []string
	for _, m := range e.others() {
		if !strings.HasPrefix(m.Key, "_") && !strings.HasPrefix(m.Key, "$") && !strings.HasPrefix(m.Key, "//") { // comments
			names = append(names, m.Key)
		}
	}
	if len(names) > 0 {
		e.warn(e.at, "%s %s no counterpart here and %s left out", strings.Join(names, ", "), grammar(names, "has", "have"), grammar(names, "is", "are"))
	}
}

func grammar(list []string, one, many string) string {
	if len(list) == 1 {
		return one
	}
	return many
}

// text reads a field that holds text.
func (e *entry) text(keys ...string) (string, field) {
	f, ok := e.field(keys...)
	if !ok {
		return "", f
	}
	s, ok := f.value.(string)
	if !ok {
		e.fault(f.at, "must be text")
	}
	return s, f
}

// scalarText is how a value that people write without quotes reads as text.
func scalarText(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case json.Number:
		return string(v), true
	case bool:
		if v {
			return "true", true
		}
		return "false", true
	}
	return "", false
}

// texts reads a list of text; one text alone is a list too. ok is false where
// the field is absent; an empty list is present.
func (e *entry) texts(keys ...string) (list []string, f field, ok bool) {
	f, ok = e.field(keys...)
	if !ok {
		return nil, f, false
	}
	if s, ok := f.value.(string); ok {
		return []string{s}, f, true
	}
	return e.listOf(f), f, true
}

func (b *build) listOf(f field) []string {
	items, ok := f.value.([]any)
	if !ok {
		b.fault(f.at, "must be a list of text")
		return nil
	}
	list := make([]string, 0, len(items))
	for i, item := range items {
		s, ok := scalarText(item)
		if !ok {
			b.fault(f.at.item(i, item), "must be text")
		}
		list = append(list, s)
	}
	return list
}

// truth reads a field that is true or false.
func (e *entry) truth(keys ...string) (v bool, f field, ok bool) {
	f, ok = e.field(keys...)
	if !ok {
		return false, f, false
	}
	v, isBool := f.value.(bool)
	if !isBool {
		e.fault(f.at, "must be true or false")
	}
	return v, f, isBool
}

// object reads a field that holds an object; nil where it is absent or none.
func (e *entry) object(keys ...string) *entry {
	f, ok := e.field(keys...)
	if !ok {
		return nil
	}
	return e.entryOf(f)
}

// list reads a field that holds a list, with the place of every item.
func (e *entry) list(keys ...string) []field {
	f, ok := e.field(keys...)
	if !ok {
		return nil
	}
	items, ok := f.value.([]any)
	if !ok {
		e.fault(f.at, "must be a list")
		return nil
	}
	list := make([]field, len(items))
	for i, item := range items {
		list[i] = field{f.at.item(i, item), item}
	}
	return list
}

// unit says what a number without one counts.
type unit int

const (
	seconds unit = iota
	// guessed is for fields that some programs count in seconds and others in
	// milliseconds: nobody waits 1000 seconds, nor less than a second.
	guessed
)

// duration reads a time such as 30, 2.5 or "30s"; "" where it is absent.
func (e *entry) duration(u unit, keys ...string) (string, field) {
	f, ok := e.field(keys...)
	if !ok {
		return "", f
	}
	switch v := f.value.(type) {
	case string:
		if _, err := time.ParseDuration(v); err == nil {
			return v, f
		}
	case json.Number:
		n, err := v.Float64()
		if err != nil || n < 0 || n > 1e9 {
			break
		}
		if u == guessed && n >= 1000 {
			e.warn(f.at, "was read as milliseconds")
			n /= 1000
		}
		return time.Duration(math.Round(n * float64(time.Second))).String(), f
	}
	e.fault(f.at, "must be a time such as 30 (seconds) or \"30s\"")
	return "", f
}

// copyText takes a text over under a name of ours.
func (e *entry) copyText(r *row, name string, keys ...string) {
	if s, f := e.text(keys...); s != "" {
		r.set(name, s, f.at)
	}
}

// copyTexts takes a list of text over. An empty list is one.
func (e *entry) copyTexts(r *row, name string, keys ...string) {
	if list, f, ok := e.texts(keys...); ok {
		r.set(name, words(list), f.at)
	}
}

// copyTruth takes a switch over.
func (e *entry) copyTruth(r *row, name string, keys ...string) {
	if v, f, ok := e.truth(keys...); ok {
		r.set(name, v, f.at)
	}
}

// copyObject takes an object over as it is.
func (e *entry) copyObject(r *row, name string, keys ...string) {
	if o := e.object(keys...); o != nil {
		r.set(name, o.value, o.at)
	}
}

// copyNumber takes a whole number over.
func (e *entry) copyNumber(r *row, name string, keys ...string) {
	f, ok := e.field(keys...)
	if !ok {
		return
	}
	n, ok := f.value.(json.Number)
	if _, err := n.Int64(); !ok || err != nil {
		e.fault(f.at, "must be a whole number")
		return
	}
	r.set(name, n, f.at)
}

// keys are those of an object in their order.
func keys(o Object) []string {
	list := make([]string, len(o))
	for i, m := range o {
		list[i] = m.Key
	}
	return list
}

func contains(o Object, anyOf ...string) bool {
	return slices.ContainsFunc(anyOf, func(key string) bool { return o.index(key) >= 0 })
}
