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

func groupWords(q *request, tool *quartermaster.Tool, passed bool) (reason, remedy string) {
	own := q.index.catalog.GroupsOf(tool)
	g := &q.groups
	switch {
	case len(g.denied) > 0:
		return fmt.Sprintf("user %q asked for %s and is granted %s: the whole request is refused", q.caller.User, words("group", g.denied), list(g.granted)),
			fmt.Sprintf("grant the user %s, or do not ask for it", words("group", g.denied))
	case passed && g.any:
		return "every group was requested", ""
	case passed:
		shared := slices.DeleteFunc(slices.Clone(own), func(name string) bool { return !slices.Contains(g.effective, name) })
		return fmt.Sprintf("it is in %s, as requested", words("group", shared)), ""
	case q.caller.Groups == nil && len(g.effective) == 0:
		return fmt.Sprintf("no group was requested, and user %q is not granted the group default that this implies", q.caller.User),
			"grant the user the group default, or request a group"
	case len(g.effective) == 0:
		return "the request asks for no group at all", "request one of its groups: " + list(own)
	case len(own) == 0:
		return "it is in no group", `request "*", or put it into a group`
	}
	asked := words("group", g.effective)
	if q.caller.Groups == nil {
		asked = "no group, which means default"
	}
	return fmt.Sprintf("it is in %s; the request asks for %s", words("group", own), asked),
		fmt.Sprintf("request %s, or put the tool into a requested group", either("group", own))
}

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
