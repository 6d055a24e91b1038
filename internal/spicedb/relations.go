package spicedb

import (
	"context"
	"slices"
	"time"

	v1 "github.com/authzed/authzed-go/proto/authzed/api/v1"

	"quartermaster"
	"quartermaster/internal/spicedb/id"
)

// relations are what is granted in a project, the derived rows included, read as
// they are needed for one explanation.
type relations struct {
	ctx     context.Context
	world   *world
	project string
	on      map[string][]*quartermaster.Grant // by resource
	all     bool                              // those on every tool are read
	reached map[string]*way                   // what the one user that is asked about has, by resource#relation
}

func newRelations(ctx context.Context, w *world, project string) *relations {
	return &relations{ctx: ctx, world: w, project: project, on: map[string][]*quartermaster.Grant{}}
}

func (r *relations) read(filter *v1.RelationshipFilter) ([]*quartermaster.Grant, error) {
	var some []*quartermaster.Grant
	err := r.world.read(r.ctx, filter, func(row *v1.Relationship) {
		if g, ok := grantOf(r.project, row); ok {
			some = append(some, g)
		}
	})
	return some, err
}

// readTools reads what is granted on all tools at once.
func (r *relations) readTools() error {
	some, err := r.read(&v1.RelationshipFilter{ResourceType: quartermaster.TypeTool, OptionalResourceIdPrefix: r.project + "/"})
	for _, g := range some {
		r.on[g.Resource] = append(r.on[g.Resource], g)
	}
	r.all = err == nil
	return err
}

// grantsOn lists what is granted on something.
func (r *relations) grantsOn(o quartermaster.Object) ([]*quartermaster.Grant, error) {
	key := resourceText(o)
	some, ok := r.on[key]
	if ok || r.all && o.Type == quartermaster.TypeTool {
		return some, nil
	}
	some, err := r.read(&v1.RelationshipFilter{ResourceType: o.Type, OptionalResourceId: id.Of(r.project, o)})
	r.on[key] = some
	return some, err
}

// grantsTo lists what is granted to somebody.
func (r *relations) grantsTo(subject string) ([]*quartermaster.Grant, error) {
	to, relation := quartermaster.NewGrant("", "", subject, time.Time{}).To()
	return r.read(&v1.RelationshipFilter{OptionalSubjectFilter: &v1.SubjectFilter{
		SubjectType: to.Type, OptionalSubjectId: id.Of(r.project, to),
		OptionalRelation: &v1.SubjectFilter_RelationFilter{Relation: relation},
	}})
}

// wayTo finds how a user comes to execute a tool by the relations of the base
// schema; nil if they do not.
func (r *relations) wayTo(user, tool string) (*way, error) {
	if r.reached == nil {
		if err := r.reach(user); err != nil {
			return nil, err
		}
	}
	for _, have := range []string{
		quartermaster.TypeTool + ":" + tool + "#" + relationOwner,
		quartermaster.TypeTool + ":" + tool + "#" + relationExecutor,
		quartermaster.TypeProject + "#" + relationAdmin,
	} {
		if way := r.reached[have]; way != nil {
			return way, nil
		}
	}
	return nil, nil
}

// reach follows all that a user has, through groups and what they have.
func (r *relations) reach(user string) error {
	r.reached = map[string]*way{}
	type place struct {
		subject string
		through []step
	}
	places := []place{{subject: quartermaster.TypeUser + ":" + user}}
	for len(places) > 0 {
		at := places[0]
		places = places[1:]
		grants, err := r.grantsTo(at.subject)
		if err != nil {
			return err
		}
		for _, g := range grants {
			key := g.Resource + "#" + g.Relation
			if r.reached[key] != nil {
				continue
			}
			on := r.object(g)
			r.reached[key] = &way{g.Relation, on, at.through}
			if r.leads(on.Type, g.Relation) {
				places = append(places, place{subjectText(on, g.Relation), slices.Concat([]step{{g.Relation, on}}, at.through)})
			}
		}
	}
	return nil
}

// object is what a grant is on, with the id of the project where it is that.
func (r *relations) object(g *quartermaster.Grant) quartermaster.Object {
	on := g.On()
	if on.Type == quartermaster.TypeProject {
		on.ID = r.project
	}
	return on
}

// leads reports whether somebody can be granted something by having a relation
// to a type.
func (r *relations) leads(kind, relation string) bool {
	for _, d := range r.world.schema.Load().types {
		for _, other := range d.GetRelation() {
			if admits(other, kind, relation) {
				return true
			}
		}
	}
	return false
}

// holders names those who have a tool, or the project.
func (r *relations) holders(tool string) ([]string, error) {
	var names []string
	for _, o := range []quartermaster.Object{{Type: quartermaster.TypeTool, ID: tool}, {Type: quartermaster.TypeProject, ID: r.project}} {
		grants, err := r.grantsOn(o)
		if err != nil {
			return nil, err
		}
		for _, g := range grants {
			if gives(g) {
				names = append(names, subjectName(g))
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// gives reports whether in the base schema a grant lets its subjects execute.
func gives(g *quartermaster.Grant) bool {
	switch g.On().Type {
	case quartermaster.TypeTool:
		return g.Relation == relationOwner || g.Relation == relationExecutor
	case quartermaster.TypeProject:
		return g.Relation == relationAdmin
	}
	return false
}

// subjectName names whom something is granted to.
func subjectName(g *quartermaster.Grant) string {
	to, relation := g.To()
	switch relation {
	case "":
		return to.Type + " " + name(to.ID)
	case relationMember:
		return "members of " + to.Type + ":" + name(to.ID)
	}
	return "those who are " + relation + " of " + to.Type + ":" + name(to.ID)
}
