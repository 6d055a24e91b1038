package spicedb

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	v1 "github.com/authzed/authzed-go/proto/authzed/api/v1"

	"quartermaster"
)

// rowsIn yields the relationships of a catalog: what follows from it, and its
// grants.
func (w *world) rowsIn(c *quartermaster.Catalog) iter.Seq[*v1.Relationship] {
	project := c.Project().ID
	return func(yield func(*v1.Relationship) bool) {
		if w.engine.options.LocalOperator && !yield(operatorRow(project)) {
			return
		}
		for _, t := range c.Tools() {
			if !yield(toolRow(project, t.Name)) {
				return
			}
		}
		for _, g := range c.AllGrants() {
			if !derived(g) && !yield(relationship(project, g)) {
				return
			}
		}
	}
}

// rowsOf counts the relationships of a catalog.
func (w *world) rowsOf(c *quartermaster.Catalog) int {
	n := len(c.Tools()) + len(c.AllGrants())
	if w.engine.options.LocalOperator {
		n++
	}
	return n
}

// difference is what has to be written for one catalog to become another, and
// whom it concerns.
type difference struct {
	updates      []*v1.RelationshipUpdate
	added, gone  []string // tools
	more         int      // rows, if negative fewer
	concerns     concern
	misfits      int
	firstMisfits []string
}

// concern is whose answers a change may have made untrue.
type concern struct {
	all   bool
	users []string
}

var everyone = concern{all: true}

func (c *concern) add(other concern) {
	c.all = c.all || other.all
	c.users = append(c.users, other.users...)
}

// difference compares two catalogs of a project; the first may be nil.
func (w *world) difference(was, is *quartermaster.Catalog) difference {
	var grants []*quartermaster.Grant
	if was != nil {
		grants = was.AllGrants()
	}
	s, project := w.schema.Load(), is.Project().ID
	d := toolDifference(was, is)
	if was == nil && w.engine.options.LocalOperator {
		d.update(touch(operatorRow(project)), 1)
	}
	compare(grants, is.AllGrants(), (*quartermaster.Grant).Key, func(g *quartermaster.Grant) {
		if !derived(g) {
			d.update(remove(relationship(project, g)), -1)
			d.concerns.add(s.concern(g))
		}
	}, func(g *quartermaster.Grant) {
		if !derived(g) {
			d.update(touch(relationship(project, g)), 1)
			d.concerns.add(s.concern(g))
			d.check(s, g)
		}
	})
	return d
}

// toolDifference is the part that follows from the tools.
func toolDifference(was, is *quartermaster.Catalog) difference {
	var (
		d       difference
		tools   []*quartermaster.Tool
		project = is.Project().ID
	)
	if was != nil {
		tools = was.Tools()
	}
	compare(tools, is.Tools(), func(t *quartermaster.Tool) string { return t.Name }, func(t *quartermaster.Tool) {
		d.update(remove(toolRow(project, t.Name)), -1)
		d.gone = append(d.gone, t.Name)
	}, func(t *quartermaster.Tool) {
		d.update(touch(toolRow(project, t.Name)), 1)
		d.added = append(d.added, t.Name)
	})
	d.concerns.all = len(d.added)+len(d.gone) > 0 // every answer is one about all tools
	return d
}

func (d *difference) update(u *v1.RelationshipUpdate, more int) {
	d.updates = append(d.updates, u)
	d.more += more
}

// concern says whose answers a grant bears on: those of the one user that it is
// made to, or of everybody.
func (s *schema) concern(g *quartermaster.Grant) concern {
	if user, ok := g.User(); ok && s.usersAlone {
		return concern{users: []string{user}}
	}
	return everyone
}

func (d *difference) check(s *schema, g *quartermaster.Grant) {
	if _, reason := s.fault(g); reason != "" {
		d.misfits++
		if len(d.firstMisfits) < 3 {
			d.firstMisfits = append(d.firstMisfits, fmt.Sprintf("%s (%s)", g.Key(), reason))
		}
	}
}

// misfit is the error for grants that the schema has no place for.
func (d *difference) misfit(project string) error {
	if d.misfits == 0 {
		return nil
	}
	return quartermaster.Errorf(quartermaster.CodeUnavailable,
		"the schema has no place for %d of the grants of project %s: %s; put back what they need, or revoke them",
		d.misfits, project, strings.Join(d.firstMisfits, "; "))
}

// compare walks two slices that are sorted by key. What both share, as versions
// of a catalog do, costs no look at the keys.
func compare[T any](was, is []*T, key func(*T) string, gone, added func(*T)) {
	if same(was, is) {
		return
	}
	for len(was) > 0 || len(is) > 0 {
		switch {
		case len(was) > 0 && len(is) > 0 && was[0] == is[0]:
			was, is = was[1:], is[1:]
			continue
		case len(was) == 0:
			added(is[0])
			is = is[1:]
			continue
		case len(is) == 0:
			gone(was[0])
			was = was[1:]
			continue
		}
		switch order := strings.Compare(key(was[0]), key(is[0])); {
		case order == 0:
			was, is = was[1:], is[1:]
		case order < 0:
			gone(was[0])
			was = was[1:]
		default:
			added(is[0])
			is = is[1:]
		}
	}
}

// same reports whether two slices are one: catalogs share what did not change.
func same[T any](was, is []*T) bool {
	return len(was) == len(is) && (len(was) == 0 || &was[0] == &is[0])
}

// checkGrants says which grants have no place in the schema, by index.
func (s *schema) checkGrants(grants []*quartermaster.Grant) error {
	var faults []quartermaster.Fault
	for i, g := range grants {
		field, reason := s.fault(g)
		if reason == "" && derived(g) {
			field, reason = "relation", "the server keeps this by itself"
		}
		if reason != "" {
			faults = append(faults, quartermaster.Fault{Location: fmt.Sprintf("grants[%d].%s", i, field), Message: reason})
		}
	}
	if len(faults) == 0 {
		return nil
	}
	e := quartermaster.Errorf(quartermaster.CodeInvalidRequest, "the schema has no place for %s", count(len(faults), "grant"))
	e.Faults = slices.Clip(faults)
	return e
}
