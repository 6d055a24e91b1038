package resolve

import (
	"path"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"quartermaster"
)

// reference is SPEC 6 in plain loops: no index, no sets, nothing kept.
type reference struct {
	catalog *quartermaster.Catalog
	caller  quartermaster.Caller
}

// tool finds what a name means by itself: a tool's own name, or @server/tool.
func (r reference) tool(name string) *quartermaster.Tool {
	for _, t := range r.catalog.Tools() {
		if t.Name == name {
			return t
		}
	}
	var found *quartermaster.Tool
	for _, t := range r.catalog.Tools() {
		// Where two tools have the name, the one with the server's in front.
		if refOf(t) == name && (found == nil || strings.HasPrefix(t.Name, t.Server+"__")) {
			found = t
		}
	}
	return found
}

// refOf is a tool's name as @server/tool; "" for a tool without a server.
func refOf(t *quartermaster.Tool) string {
	if t.Server == "" {
		return ""
	}
	return "@" + t.Server + "/" + strings.TrimPrefix(t.Name, t.Server+"__")
}

func (r reference) definition() quartermaster.Agent {
	for _, a := range r.catalog.Agents() {
		if a.ID == r.caller.Agent {
			return *a
		}
	}
	return quartermaster.Agent{MaxDepth: quartermaster.DefaultMaxDepth}
}

// matches is AGT-2.
func (r reference) matches(patterns []string, t *quartermaster.Tool) bool {
	for _, p := range patterns {
		if target, ok := r.definition().Aliases[p]; ok {
			if target == t.Name || target == refOf(t) || p == t.Name { // a name stays a name
				return true
			}
			continue
		}
		name := t.Name
		if strings.HasPrefix(p, "@") {
			name = refOf(t)
		}
		if ok, err := path.Match(p, name); ok && err == nil {
			return true
		}
	}
	return false
}

// inReach is AGT-3 and AGT-4, before any alias has hidden anything.
func (r reference) inReach(t *quartermaster.Tool) bool {
	d := r.definition()
	reached := r.matches(d.Tools, t)
	for _, all := range r.catalog.AllBindings() {
		for _, b := range all.Tools {
			reached = reached || all.Agent == r.caller.Agent && b.ToolID == t.ID
		}
	}
	return reached && (len(d.Allowed) == 0 || r.matches(d.Allowed, t))
}

// aliases are those that mean something, with what they mean (AGT-5).
func (r reference) aliases() map[string]*quartermaster.Tool {
	all := map[string]*quartermaster.Tool{}
	for alias, target := range r.definition().Aliases {
		if t := r.tool(target); t != nil && r.inReach(t) {
			all[alias] = t
		}
	}
	return all
}

// seenAs is how a tool in reach is listed; "": an alias of another has its name.
func (r reference) seenAs(t *quartermaster.Tool) string {
	first := ""
	for alias, target := range r.aliases() {
		if target == t && alias != t.Name && (first == "" || alias < first) {
			first = alias
		}
	}
	if first != "" {
		return first
	}
	if other := r.aliases()[t.Name]; other != nil && other != t {
		return ""
	}
	return t.Name
}

// means finds the tool that the caller means by a name.
func (r reference) means(name string) *quartermaster.Tool {
	if t := r.aliases()[name]; t != nil {
		return t
	}
	return r.tool(name)
}

// refusedBy is the first gate of SPEC 6 that refuses a tool; "": none.
func (r reference) refusedBy(t *quartermaster.Tool) quartermaster.Gate {
	switch {
	case !t.Enabled || t.Held != "" || r.serverOff(t):
		return quartermaster.GateRegistry
	case !r.inReach(t) || r.seenAs(t) == "":
		return quartermaster.GateCapsule
	case !r.deepEnough(t):
		return quartermaster.GateDepth
	case !r.groupShared(t):
		return quartermaster.GateGroup
	case !r.stateFits(t):
		return quartermaster.GateState
	}
	return ""
}

func (r reference) serverOff(t *quartermaster.Tool) bool {
	for _, s := range r.catalog.Servers() {
		if s.Name == t.Server && !s.Enabled {
			return true
		}
	}
	return false
}

func (r reference) deepEnough(t *quartermaster.Tool) bool {
	if t.Name != "spawn_agents" && t.Name != "list_available_agents" || r.caller.Depth == 0 {
		return true
	}
	most := r.definition().MaxDepth
	if r.caller.MaxDepth > 0 && r.caller.MaxDepth < most {
		most = r.caller.MaxDepth
	}
	return r.caller.Depth < most && slices.Contains(r.definition().Tools, t.Name)
}

func (r reference) granted() []string {
	if r.caller.Granted != nil {
		return r.caller.Granted
	}
	for _, u := range r.catalog.Users() {
		if u.ID == r.caller.User {
			return u.Groups
		}
	}
	return []string{"default"}
}

// overreaches reports whether the caller asks for groups without a grant.
func (r reference) overreaches() bool {
	if slices.Contains(r.granted(), "*") {
		return false
	}
	for _, g := range r.caller.Groups {
		if !slices.Contains(r.granted(), g) {
			return true
		}
	}
	return false
}

func (r reference) groupShared(t *quartermaster.Tool) bool {
	asked := r.caller.Groups
	if asked == nil {
		if !slices.Contains(r.granted(), "*") && !slices.Contains(r.granted(), "default") {
			return false
		}
		asked = []string{"default"}
	}
	own := t.Groups
	if own == nil {
		own = []string{"default"}
		for _, s := range r.catalog.Servers() {
			if s.Name == t.Server && s.Groups != nil {
				own = s.Groups
			}
		}
	}
	for _, g := range asked {
		if g == "*" || slices.Contains(own, g) {
			return true
		}
	}
	return false
}

func (r reference) stateFits(t *quartermaster.Tool) bool {
	state := r.caller.State
	if state == "" {
		state = "undefined"
	}
	return t.AvailableInStates == nil || slices.Contains(t.AvailableInStates, "*") || slices.Contains(t.AvailableInStates, state)
}

// GATE-1 to GATE-5, AGT-2 to AGT-5: the resolver says what plain loops say: the
// list, the gate of each refusal, and what every name gets.
func TestResolveEqualsReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		catalog := randomCatalog(t)
		r := New(fixed{catalog}, nil, nil)
		for range 4 {
			caller := randomCaller(t)
			checkReference(t, r, reference{catalog, caller})
		}
	})
}

func checkReference(t *rapid.T, r *Resolver, ref reference) {
	res, err := r.Resolve(t.Context(), ref.caller, quartermaster.Question{})
	if ref.overreaches() {
		if quartermaster.CodeOf(err) != quartermaster.CodeGroupsNotGranted {
			t.Fatalf("%v, want %s", err, quartermaster.CodeGroupsNotGranted)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	want := []string{}
	refused := map[string]quartermaster.Gate{}
	for _, tool := range ref.catalog.Tools() {
		if gate := ref.refusedBy(tool); gate != "" {
			refused[tool.Name] = gate
		} else {
			want = append(want, ref.seenAs(tool))
		}
	}
	slices.Sort(want)
	if got := seenNames(res.Tools); !slices.Equal(got, want) {
		t.Errorf("listed %v, want %v", got, want)
	}
	for name, refusal := range agree(t, r, ref.caller, ref.catalog, res) {
		if refusal.Gate != refused[name] {
			t.Errorf("%s is refused by %s, want %q", name, refusal.Gate, refused[name])
		}
	}
	for _, name := range everyName(ref.catalog) {
		if name == "" {
			continue
		}
		means := ref.means(name)
		got := admit(t, r, ref.caller, name)
		if (got != nil) != (means != nil && ref.refusedBy(means) == "") {
			t.Errorf("%s means %v and is admitted as %v", name, means, got)
		}
		if got != nil && got.Name != ref.seenAs(means) {
			t.Errorf("%s is admitted as %s, want %s", name, got.Name, ref.seenAs(means))
		}
	}
}
