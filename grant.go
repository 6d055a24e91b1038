package quartermaster

import (
	"iter"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Grant is a relationship: a subject has a relation to something of the
// project. Which relations there are, and what they permit, the permission
// engine's schema says (PERM-2).
//
// Names in it are as people write them. What the engine's own alphabet lacks is
// encoded where the engine is spoken to, and nowhere else.
type Grant struct {
	Subject   string    `json:"subject" doc:"user:ID or group:NAME#member" example:"user:alice"`
	Relation  string    `json:"relation" doc:"owner or executor of a tool, member of a group, admin or member of the project" example:"executor"`
	Resource  string    `json:"resource,omitempty" doc:"What it is granted on, if no tool: group:NAME or project" example:"tool:files__read_file"`
	Tool      string    `json:"tool,omitempty" doc:"Name of the tool that it is granted on, or @server/tool; the same as the resource tool:NAME" example:"files__read_file"`
	CreatedAt time.Time `json:"createdAt" readOnly:"true"`

	key string // Key, kept: there may be a million of them to sort
}

// NewGrant makes a grant as it is kept.
func NewGrant(resource, relation, subject string, createdAt time.Time) *Grant {
	key := resource + "#" + relation + "@" + subject
	at := len(resource) + 1 + len(relation)
	g := &Grant{Resource: key[:len(resource)], Relation: key[len(resource)+1 : at], Subject: key[at+1:], CreatedAt: createdAt, key: key}
	if on := g.On(); on.Type == TypeTool {
		g.Tool = on.ID
	}
	return g
}

// The types of the base schema that every deployment has.
const (
	TypeUser    = "user"
	TypeGroup   = "group"
	TypeProject = "project"
	TypeTool    = "tool"
)

// Key names the grant within its project. It can be read back: a resource has
// no #, a relation no @.
func (g *Grant) Key() string {
	if g.key != "" {
		return g.key
	}
	return g.Resource + "#" + g.Relation + "@" + g.Subject
}

// Object is something that a grant speaks of.
type Object struct{ Type, ID string }

// On is what the grant is on. The project has no id here: it is the grant's own.
func (g *Grant) On() Object {
	kind, id, _ := strings.Cut(g.Resource, ":")
	return Object{kind, id}
}

// To is who it is granted to: one object, or with a relation all that have it.
func (g *Grant) To() (subject Object, relation string) {
	kind, id, _ := strings.Cut(g.Subject, ":")
	if kind == TypeUser {
		return Object{kind, id}, "" // a user's id may hold anything
	}
	if i := strings.LastIndexByte(id, '#'); i >= 0 {
		id, relation = id[:i], id[i+1:]
	}
	return Object{kind, id}, relation
}

// User is the id of the one user that it is granted to; false: it is to others.
func (g *Grant) User() (string, bool) { return strings.CutPrefix(g.Subject, TypeUser+":") }

func toolResource(name string) string { return TypeTool + ":" + name }

// relationName is SpiceDB's grammar for the names of types and relations.
var (
	relationName = regexp.MustCompile(`^[a-z][a-z0-9_]{1,62}[a-z0-9]$`)
	typeName     = regexp.MustCompile(`^([a-z][a-z0-9_]{1,61}[a-z0-9]/)*[a-z][a-z0-9_]{1,62}[a-z0-9]$`)
)

func validType(name string) bool { return len(name) <= 128 && typeName.MatchString(name) }

func (g *Grant) faults() faults {
	var f faults
	if !relationName.MatchString(g.Relation) {
		f.add("relation", "must be the name of a relation, such as executor")
	}
	on := g.On()
	switch {
	case g.Resource == TypeProject:
	case on.Type == TypeProject:
		f.add("resource", "must be %s alone: a grant is always on its own project", TypeProject)
	case !validType(on.Type) || on.ID == "":
		f.add("resource", "must be tool:NAME, group:NAME or project")
	default:
		checkObjectID(&f, "resource", on)
	}
	to, relation := g.To()
	switch {
	case !validType(to.Type) || to.ID == "":
		f.add("subject", "must be user:ID or group:NAME#member")
	case to.ID == "*":
		f.add("subject", "* is nobody: grant it to a group")
	case to.Type == TypeUser:
		checkUserID(&f, "subject", to.ID)
	case to.Type == TypeGroup && relation == "":
		f.add("subject", "a group as such can do nothing: write %s:%s#member", to.Type, to.ID)
	case relation == "" && strings.HasSuffix(g.Subject, "#"): // it would be a second key of the same grant
		f.add("subject", "must have the name of a relation after #, or no #")
	case relation != "" && !relationName.MatchString(relation):
		f.add("subject", "%q is no name of a relation", relation)
	default:
		checkObjectID(&f, "subject", to)
	}
	return f
}

// checkObjectID keeps ids short enough for the engine when all of it is encoded.
func checkObjectID(f *faults, location string, o Object) {
	checkText(f, location, o.ID, 255)
	switch {
	case len(o.ID) > 255:
		f.add(location, "the id must have at most 255 bytes, has %d", len(o.ID))
	case strings.ContainsAny(o.ID, "#"):
		f.add(location, "the id must not contain #")
	case o.ID == "*":
		f.add(location, "* is nothing: name what it is granted on")
	case o.Type == TypeTool && !ValidToolName(o.ID):
		f.add(location, "%q is no name of a tool", o.ID)
	}
}

// Grant adds a grant. One that is there already stays as it is.
func (d *Draft) Grant(g Grant) (grant *Grant, created bool, err error) {
	grant, created, err = d.addGrant(g)
	if err != nil || !created {
		return grant, created, err
	}
	if err := d.checkCircle(grant, map[string][]*Grant{}); err != nil {
		d.Revoke(GrantFilter{Subject: grant.Subject, Relation: grant.Relation, Resource: grant.Resource})
		return nil, false, err
	}
	return grant, created, nil
}

// checkCircle refuses a grant to those who have it by having it: a group that
// is, maybe by way of others, part of itself. No engine comes to an end with it.
// known keeps from one look to the next what is granted to whom.
func (d *Draft) checkCircle(g *Grant, known map[string][]*Grant) error {
	on := g.Resource + "#" + g.Relation
	seen := map[string]bool{}
	var reaches func(g *Grant) bool
	reaches = func(g *Grant) bool {
		to, relation := g.To()
		resource := to.Type + ":" + to.ID
		if to.Type == TypeProject {
			resource = to.Type
		}
		set := resource + "#" + relation
		if relation == "" || seen[set] {
			return false
		}
		seen[set] = true
		if _, ok := known[set]; !ok {
			known[set] = d.Grants(GrantFilter{Resource: resource, Relation: relation})
		}
		return set == on || slices.ContainsFunc(known[set], reaches)
	}
	if !reaches(g) {
		return nil
	}
	var f faults
	f.add("subject", "%s has it from %s already: nothing can be part of itself", g.Subject, on)
	return f.err("the grant %s is not valid", g.Key())
}

// addGrant leaves it to others to look for circles.
func (d *Draft) addGrant(g Grant) (grant *Grant, created bool, err error) {
	if err := d.settleGrant(&g); err != nil {
		return nil, false, err
	}
	grant = NewGrant(g.Resource, g.Relation, g.Subject, d.now)
	if old := d.grant(grant.Key()); old != nil {
		return old, false, nil
	}
	if on := grant.On(); on.Type == TypeTool && !d.mayExist(on.ID) {
		return nil, false, toolMissing(on.ID)
	}
	return d.putGrant(grant), true, nil
}

// putGrant adds a grant. One that the project has already is that one, even if
// the draft had let go of it meanwhile.
func (d *Draft) putGrant(g *Grant) *Grant {
	if old := d.keptGrant(g.Key()); old != nil {
		g = old
	}
	d.grants.set(g.Key(), g)
	return g
}

// grantEdits are the grants that a draft gives or, where nil, takes away: by
// resource, so that whoever asks for one does not look at those on all others,
// and by key.
type grantEdits map[string]map[string]*Grant

func (e grantEdits) set(key string, g *Grant) {
	resource, _, _ := strings.Cut(key, "#")
	if e[resource] == nil {
		e[resource] = map[string]*Grant{}
	}
	e[resource][key] = g
}

func (e grantEdits) get(key string) (g *Grant, edited bool) {
	resource, _, _ := strings.Cut(key, "#")
	g, edited = e[resource][key]
	return g, edited
}

// on yields those on a resource, with "" on all.
func (e grantEdits) on(resource string) iter.Seq[*Grant] {
	if resource != "" {
		return maps.Values(e[resource])
	}
	return func(yield func(*Grant) bool) {
		for _, some := range e {
			for _, g := range some {
				if !yield(g) {
					return
				}
			}
		}
	}
}

// settleGrant spells a grant as it is kept, and says what is wrong with it.
func (d *Draft) settleGrant(g *Grant) error {
	var f faults
	if g.Tool != "" {
		switch resource := toolResource(d.toolMeant(g.Tool)); g.Resource {
		case "", resource, toolResource(g.Tool):
			g.Resource = resource
		default:
			f.add("resource", "is %q, but tool is %q", g.Resource, g.Tool)
		}
	}
	if g.Resource == "" {
		f.add("tool", "must be the name of a tool, or resource something else")
		return f.err("the grant is not valid")
	}
	f = append(f, g.faults()...)
	return f.err("the grant %s#%s@%s is not valid", g.Resource, g.Relation, g.Subject)
}

// toolMeant is the name of the tool that a grant refers to. As in bindings of a
// file, the name goes before the id: an export writes names.
func (d *Draft) toolMeant(ref string) string {
	if d.toolByName(ref) != nil {
		return ref
	}
	if t := d.Tool(ref); t != nil {
		return t.Name
	}
	if server, upstream, ok := splitServerRef(ref); ok && upstream != "" {
		if s := d.Server(server); s != nil {
			return ToolName(s, upstream)
		}
	}
	return ref
}

// mayExist reports whether a tool is there, or could be one that a server of
// the project has not offered yet: a project file names both at once.
func (d *Draft) mayExist(tool string) bool {
	if d.toolByName(tool) != nil {
		return true
	}
	server, rest, ok := strings.Cut(tool, "__")
	return ok && rest != "" && d.Server(server) != nil
}

// revokeUnoffered takes away what is granted on tools that a server might have
// offered yet: another server of that name must not find it. What a cluster
// keeps is not looked for: it would have to be read as a whole.
func (d *Draft) revokeUnoffered(server string) {
	prefix := toolResource(server + "__")
	resources := map[string]bool{}
	for _, g := range d.base.grantsBelow(prefix) {
		resources[g.Resource] = true
	}
	for resource := range d.grants {
		resources[resource] = strings.HasPrefix(resource, prefix)
	}
	for resource, below := range resources {
		if name := strings.TrimPrefix(resource, toolResource("")); below && d.toolByName(name) == nil {
			d.moveGrants(name, "")
		}
	}
}

// GrantFilter chooses grants; what is empty chooses all.
type GrantFilter struct{ Subject, Relation, Resource string }

// Match reports whether the filter chooses g.
func (f GrantFilter) Match(g *Grant) bool {
	return (f.Subject == "" || f.Subject == g.Subject) && (f.Relation == "" || f.Relation == g.Relation) &&
		(f.Resource == "" || f.Resource == g.Resource)
}

// key is that of the one grant that the filter can choose; false: it may choose
// several.
func (f GrantFilter) key() (string, bool) {
	g := Grant{Resource: f.Resource, Relation: f.Relation, Subject: f.Subject}
	return g.Key(), f.Subject != "" && f.Relation != "" && f.Resource != ""
}

// Revoke removes the grants that a filter chooses and returns them.
func (d *Draft) Revoke(f GrantFilter) []*Grant {
	var gone []*Grant
	for _, g := range d.Grants(f) {
		d.grants.set(g.Key(), nil)
		gone = append(gone, g)
	}
	return gone
}

// Grants lists the grants of the draft that a filter chooses, by key.
func (d *Draft) Grants(f GrantFilter) []*Grant {
	var all []*Grant
	if key, one := f.key(); one { // a group may have many thousands of members
		if g := d.grant(key); g != nil && f.Match(g) {
			all = append(all, g)
		}
		return all
	}
	for _, g := range d.keptGrants(f) {
		if _, edited := d.grants.get(g.Key()); !edited {
			all = append(all, g)
		}
	}
	for g := range d.grants.on(f.Resource) {
		if g != nil && f.Match(g) {
			all = append(all, g)
		}
	}
	slices.SortFunc(all, func(a, b *Grant) int { return strings.Compare(a.Key(), b.Key()) })
	return all
}

func (d *Draft) grant(key string) *Grant {
	if g, edited := d.grants.get(key); edited {
		return g
	}
	return d.keptGrant(key)
}

// keptGrants lists the grants that the draft starts from.
func (d *Draft) keptGrants(f GrantFilter) []*Grant {
	if d.cluster == nil {
		return d.base.Grants(f)
	}
	return chosen(d.cluster.on(f.Resource), f)
}

func (d *Draft) keptGrant(key string) *Grant {
	if d.cluster == nil {
		return d.base.grant(key)
	}
	resource, _, _ := strings.Cut(key, "#")
	return find(d.cluster.on(resource), key, (*Grant).Key)
}

// clusterGrants are those that a cluster keeps, read as they are needed: a
// change of a tool's description needs none of a million.
type clusterGrants struct {
	read  func(resource string) ([]*Grant, error)
	known map[string][]*Grant // by resource; "" has all
	err   error
}

func (c *clusterGrants) on(resource string) []*Grant {
	some, ok := c.known[resource]
	_, all := c.known[""]
	if ok || all || c.err != nil {
		return some
	}
	some, c.err = c.read(resource)
	c.known[resource] = some
	if resource == "" {
		for _, g := range some {
			c.known[g.Resource] = nil // what was read of it before is read again
		}
		for _, g := range some {
			c.known[g.Resource] = append(c.known[g.Resource], g)
		}
	}
	return some
}

// ReadGrants lets the draft see grants that the permission engine's own cluster
// keeps: read returns those on a resource by key, with "" those on all. If it
// fails, the draft sees none and TakeGrants says so.
func (d *Draft) ReadGrants(read func(resource string) ([]*Grant, error)) {
	d.cluster = &clusterGrants{read: read, known: map[string][]*Grant{}}
}

// TakeGrants takes the changes of grants out of the draft, for a cluster to keep
// them in place of the store.
func (d *Draft) TakeGrants() (add, remove []*Grant, err error) {
	for _, ch := range d.grantChanges() {
		if ch.Grant != nil {
			add = append(add, ch.Grant)
		} else {
			remove = append(remove, d.keptGrant(ch.Key))
		}
	}
	if d.cluster != nil {
		err = d.cluster.err
	}
	d.grants = grantEdits{}
	return add, remove, err
}

// moveGrants lets what is granted on a tool go with it: to its next name, or
// with "" away. Whatever bears the old name next begins without grants.
func (d *Draft) moveGrants(from, to string) {
	for _, g := range d.Revoke(GrantFilter{Resource: toolResource(from)}) {
		if to == "" {
			continue
		}
		d.putGrant(NewGrant(toolResource(to), g.Relation, g.Subject, g.CreatedAt))
	}
}

func (d *Draft) grantChanges() []Change {
	var removals, rest []Change
	for _, resource := range sortedKeys(d.grants) {
		edits := d.grants[resource]
		for _, k := range sortedKeys(edits) {
			switch g, old := edits[k], d.keptGrant(k); {
			case g == nil && old != nil:
				removals = append(removals, Change{Noun: NounGrant, Key: k})
			case g != nil && old == nil:
				rest = append(rest, Change{Noun: NounGrant, Key: k, Grant: g})
			}
		}
	}
	return append(removals, rest...)
}

// AllGrants returns every grant, by key. With a cluster of its own the permission
// engine keeps them, and there are none here.
func (c *Catalog) AllGrants() []*Grant { return c.grants }

// Grants lists the grants that a filter chooses, by key. Those on one resource
// are found without looking at the others.
func (c *Catalog) Grants(f GrantFilter) []*Grant {
	if f.Resource == "" {
		return chosen(c.grants, f)
	}
	return chosen(c.grantsBelow(f.Resource+"#"), f)
}

// grantsBelow returns the grants whose keys begin with prefix.
func (c *Catalog) grantsBelow(prefix string) []*Grant {
	from, _ := slices.BinarySearchFunc(c.grants, prefix, func(g *Grant, prefix string) int { return strings.Compare(g.Key(), prefix) })
	some := c.grants[from:]
	if to := slices.IndexFunc(some, func(g *Grant) bool { return !strings.HasPrefix(g.Key(), prefix) }); to >= 0 {
		some = some[:to]
	}
	return some
}

func chosen(some []*Grant, f GrantFilter) []*Grant {
	var all []*Grant
	for _, g := range some {
		if f.Match(g) {
			all = append(all, g)
		}
	}
	return all
}

// WithGrants returns the catalog with all grants that a cluster keeps for it,
// for questions that need to see them: what a change would bring, an export.
func (c *Catalog) WithGrants(all []*Grant) *Catalog {
	next := *c
	next.grants, next.informed = all, true
	return &next
}

// Informed reports whether a catalog has been given its cluster's grants.
func (c *Catalog) Informed() bool { return c.informed }

func (c *Catalog) grant(key string) *Grant { return find(c.grants, key, (*Grant).Key) }
