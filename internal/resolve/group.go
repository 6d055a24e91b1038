package resolve

import (
	"fmt"
	"slices"
	"strings"

	"github.com/RoaringBitmap/roaring/v2"

	"quartermaster"
)

// group passes tools that share a group with the request (GATE-4).
func group(q *request, _ candidates) (set, error) {
	g := &q.groups
	switch {
	case len(g.denied) > 0:
		return set{}, nil // only explain gets this far
	case g.any:
		return set{all: true}, nil
	}
	return set{one: g.first, more: g.more}, nil
}

// groups are what the request's groups come to.
type groups struct {
	effective []string // that count
	any       bool     // every group counts
	first     *roaring.Bitmap
	more      []*roaring.Bitmap
	granted   []string
	denied    []string // asked for without a grant
}

const anyGroup = "*"

var impliedGroups = []string{quartermaster.DefaultGroup}

// settleGroups checks what was asked for against what the user was granted. To
// ask for more refuses the request as a whole; the implied default is no ask.
func (q *request) settleGroups() error {
	g := &q.groups
	g.granted = q.granted()
	all := slices.Contains(g.granted, anyGroup)
	g.effective = q.caller.Groups
	if g.effective == nil {
		g.effective = impliedGroups
		if !all && !slices.Contains(g.granted, quartermaster.DefaultGroup) {
			g.effective = []string{}
		}
	} else if !all {
		for _, name := range g.effective {
			if !slices.Contains(g.granted, name) && !slices.Contains(g.denied, name) {
				g.denied = append(g.denied, name)
			}
		}
	}
	if len(g.denied) > 0 && !q.question.Explain {
		return notGranted(q.caller.User, g.denied)
	}
	for _, name := range g.effective {
		if name == anyGroup {
			g.any = true
			continue
		}
		q.addGroup(name)
	}
	return nil
}

func (q *request) addGroup(name string) {
	g := &q.groups
	switch tools := q.index.groups[name]; {
	case tools == nil:
		q.warnings = append(q.warnings, fmt.Sprintf("no tool is in group %q", name))
	case g.first == nil:
		g.first = tools
	default:
		g.more = append(g.more, tools)
	}
}

// granted are the groups that the user may ask for.
func (q *request) granted() []string {
	if q.caller.Granted != nil {
		return q.caller.Granted
	}
	if u := q.index.catalog.User(q.caller.User); u != nil {
		return u.Groups
	}
	return impliedGroups
}

func notGranted(user string, denied []string) error {
	e := quartermaster.Errorf(quartermaster.CodeGroupsNotGranted, "user %q was not granted the requested groups: %s", user, strings.Join(denied, ", "))
	e.Details = map[string]any{"groups": denied}
	return e
}

func groupReason(q *request, tool *quartermaster.Tool, passed bool) string {
	own := q.index.catalog.GroupsOf(tool)
	g := &q.groups
	switch {
	case len(g.denied) > 0:
		return fmt.Sprintf("user %q asked for %s and is granted %s: the whole request is refused", q.caller.User, words("group", g.denied), list(g.granted))
	case passed && g.any:
		return "every group was requested"
	case passed:
		return fmt.Sprintf("it is in %s, as requested", words("group", shared(own, g.effective)))
	case q.caller.Groups == nil && len(g.effective) == 0:
		return fmt.Sprintf("no group was requested, and user %q is not granted the group default that this implies", q.caller.User)
	case len(g.effective) == 0:
		return "the request asks for no group at all"
	case len(own) == 0:
		return "it is in no group: only a request for every group (*) reaches it"
	}
	asked := words("group", g.effective)
	if q.caller.Groups == nil {
		asked = "no group, which means default"
	}
	return fmt.Sprintf("it is in %s; the request asks for %s", words("group", own), asked)
}

// groupRemedy names only groups that the user may ask for, or says to grant
// them first.
func groupRemedy(q *request, tool *quartermaster.Tool) string {
	own := q.index.catalog.GroupsOf(tool)
	ask := own
	if len(own) == 0 {
		ask = []string{anyGroup}
	}
	first := ""
	if len(q.groups.denied) > 0 {
		first = "do not ask for " + words("group", q.groups.denied) + "; "
	}
	if slices.Contains(q.groups.granted, anyGroup) {
		return first + "request " + either("group", ask)
	}
	if may := shared(ask, q.groups.granted); len(may) > 0 {
		return first + "request " + either("group", may)
	}
	return first + fmt.Sprintf("grant user %q %s and request it, or put the tool into a group that the user has", q.caller.User, either("group", ask))
}

// shared are the names in both.
func shared(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(name string) bool { return !slices.Contains(b, name) })
}
