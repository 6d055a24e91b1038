package spicedb

import (
	"slices"

	v1 "github.com/authzed/authzed-go/proto/authzed/api/v1"

	"quartermaster"
	"quartermaster/internal/spicedb/id"
)

// way is how somebody comes to a relation: on what it is, and through which
// groups, or other things, it reaches them; the nearest to the relation first.
type way struct {
	relation string
	on       quartermaster.Object
	through  []step
}

// step is a relation to something on the way.
type step struct {
	relation string
	on       quartermaster.Object
}

// words say what somebody is: executor of TOOL, as member of group:ops.
func (w *way) words(tool string) string {
	words := w.relation + " of "
	switch w.on.Type {
	case quartermaster.TypeTool:
		words += tool
	case quartermaster.TypeProject:
		words += "project " + w.on.ID
	default:
		words += w.on.Type + ":" + name(w.on.ID)
	}
	return words + w.throughWords(" ")
}

// via says the same where it is clear of which tool.
func (w *way) via() string {
	if w.on.Type == quartermaster.TypeTool {
		return w.relation + w.throughWords(", ")
	}
	return w.words("")
}

func (w *way) throughWords(separator string) string {
	var words string
	for i, s := range w.through {
		thing := s.on.Type + ":" + name(s.on.ID)
		switch {
		case i == 0:
			words = separator + "as " + s.relation + " of " + thing
		case s.relation == w.through[i-1].relation:
			words += " through " + thing
		default:
			words += " as " + s.relation + " of " + thing
		}
	}
	return words
}

// wayIn follows a trace down to where the permission comes from. Where several
// relations lead there, the first is enough; a permission on the way is not
// told, what it follows from is.
func wayIn(t *v1.CheckDebugTrace) *way {
	var steps []step
	for t != nil && t.GetResult() == v1.CheckDebugTrace_PERMISSIONSHIP_HAS_PERMISSION {
		if t.GetPermissionType() == v1.CheckDebugTrace_PERMISSION_TYPE_RELATION {
			_, on, ok := id.Object(t.GetResource().GetObjectType(), t.GetResource().GetObjectId())
			if !ok {
				return nil
			}
			steps = append(steps, step{t.GetPermission(), on})
		}
		t = nextInTrace(t)
	}
	// An arrow goes by way of a relation that is no part of what the user is.
	for len(steps) > 1 && steps[0].on.Type == quartermaster.TypeTool && steps[0].relation == relationProject {
		steps = steps[1:]
	}
	if len(steps) == 0 {
		return nil
	}
	return &way{steps[0].relation, steps[0].on, steps[1:]}
}

func nextInTrace(t *v1.CheckDebugTrace) *v1.CheckDebugTrace {
	problems := t.GetSubProblems().GetTraces()
	i := slices.IndexFunc(problems, func(p *v1.CheckDebugTrace) bool {
		return p.GetResult() == v1.CheckDebugTrace_PERMISSIONSHIP_HAS_PERMISSION
	})
	if i < 0 {
		return nil
	}
	return problems[i]
}
