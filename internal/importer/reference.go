package importer

import (
	"net/url"
	"strconv"
	"strings"
)

// maxHops is how many references may follow each other.
const maxHops = 32

// resolve follows the references of anything but a schema. It never leaves the
// document: no file and no network is asked, whatever a reference says.
func (a *api) resolve(f field) (field, bool) {
	for range maxHops {
		o, ok := f.value.(Object)
		if !ok {
			return f, true
		}
		ref, at, ok := reference(o, f.at)
		if !ok {
			return f, true
		}
		if f, ok = a.lookup(ref, at); !ok {
			return f, false
		}
	}
	a.fault(f.at, "is a reference that leads to itself")
	return f, false
}

// follow is resolve for a schema: one that only refers to itself is none of an
// object, but no fault.
func (a *api) follow(f field) (field, Object) {
	for range maxHops {
		o, _ := f.value.(Object)
		ref, at, ok := reference(o, f.at)
		if !ok {
			return f, o
		}
		if f, ok = a.lookup(ref, at); !ok {
			return f, nil
		}
	}
	return f, nil
}

func reference(o Object, at spot) (string, spot, bool) {
	i := o.index("$ref")
	if i < 0 {
		return "", at, false
	}
	ref, ok := o[i].Value.(string)
	return ref, at.below("$ref", o[i].Line), ok
}

// lookup finds what a reference names, and tells once what it cannot find.
func (a *api) lookup(ref string, at spot) (field, bool) {
	if f, ok := a.found[ref]; ok {
		if f == nil {
			return field{}, false
		}
		return *f, true
	}
	f, ok := a.find(ref)
	a.found[ref] = &f
	if !ok {
		a.found[ref] = nil
		if strings.HasPrefix(ref, "#") {
			a.fault(at, "refers to %q, which is not in the document", cut(ref, 200))
		} else {
			a.fault(at, "refers to something outside of the document, which is never opened; put it below components")
		}
	}
	return f, ok
}

// unescape reads a step of a pointer that stands in a URL.
func unescape(step string) string {
	if decoded, err := url.PathUnescape(step); err == nil {
		step = decoded
	}
	return strings.ReplaceAll(strings.ReplaceAll(step, "~1", "/"), "~0", "~")
}

// find walks a JSON pointer.
func (a *api) find(ref string) (field, bool) {
	pointer, ok := strings.CutPrefix(ref, "#")
	if !ok {
		return field{}, false
	}
	f := field{a.root.at, a.root.value}
	if pointer == "" {
		return f, true
	}
	if pointer[0] != '/' {
		return field{}, false
	}
	for step := range strings.SplitSeq(pointer[1:], "/") {
		step = unescape(step)
		switch v := f.value.(type) {
		case Object:
			i := v.index(step)
			if i < 0 {
				return field{}, false
			}
			f = field{f.at.below(step, v[i].Line), v[i].Value}
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(v) {
				return field{}, false
			}
			f = field{f.at.item(i, v[i]), v[i]}
		default:
			return field{}, false
		}
	}
	return f, true
}
