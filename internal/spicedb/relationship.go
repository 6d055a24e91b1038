package spicedb

import (
	"time"

	v1 "github.com/authzed/authzed-go/proto/authzed/api/v1"

	"quartermaster"
	"quartermaster/internal/spicedb/id"
)

// The relations that the base schema has (PERM-2).
const (
	relationProject  = "project"
	relationAdmin    = "admin"
	relationMember   = "member"
	relationOwner    = "owner"
	relationExecutor = "executor"
	permissionToUse  = "execute"
)

func object(kind, id string) *v1.ObjectReference {
	return &v1.ObjectReference{ObjectType: kind, ObjectId: id}
}

func userSubject(user string) *v1.SubjectReference {
	return &v1.SubjectReference{Object: object(quartermaster.TypeUser, id.Encode(user))}
}

func toolID(project, name string) string {
	return id.Of(project, quartermaster.Object{Type: quartermaster.TypeTool, ID: name})
}

// toolRow ties a tool to its project. It follows the catalog and is no grant.
func toolRow(project, name string) *v1.Relationship {
	return &v1.Relationship{
		Resource: object(quartermaster.TypeTool, toolID(project, name)),
		Relation: relationProject,
		Subject:  &v1.SubjectReference{Object: object(quartermaster.TypeProject, project)},
	}
}

// operatorRow makes the local operator admin of a project. It is there or not as
// the server is started, and is no grant.
func operatorRow(project string) *v1.Relationship {
	return &v1.Relationship{
		Resource: object(quartermaster.TypeProject, project),
		Relation: relationAdmin,
		Subject:  userSubject(quartermaster.LocalUser),
	}
}

// derived reports whether a grant speaks of what follows from the catalog or
// from how the server is started.
func derived(g *quartermaster.Grant) bool {
	on := g.On().Type
	return on == quartermaster.TypeTool && g.Relation == relationProject ||
		on == quartermaster.TypeProject && g.Relation == relationAdmin && g.Subject == quartermaster.TypeUser+":"+quartermaster.LocalUser
}

// relationship is a grant as SpiceDB knows it.
func relationship(project string, g *quartermaster.Grant) *v1.Relationship {
	on := g.On()
	to, relation := g.To()
	return &v1.Relationship{
		Resource: object(on.Type, id.Of(project, on)),
		Relation: g.Relation,
		Subject:  &v1.SubjectReference{Object: object(to.Type, id.Of(project, to)), OptionalRelation: relation},
	}
}

// grantOf reads a relationship of a project as a grant. It is none if it depends
// on more than that it is there (a caveat, a time), or if it does not speak of
// the project alone.
func grantOf(project string, r *v1.Relationship) (*quartermaster.Grant, bool) {
	if r.GetOptionalCaveat() != nil || r.GetOptionalExpiresAt() != nil {
		return nil, false
	}
	home, on, ok := id.Object(r.GetResource().GetObjectType(), r.GetResource().GetObjectId())
	if !ok || home != project {
		return nil, false
	}
	subject := r.GetSubject()
	home, to, ok := id.Object(subject.GetObject().GetObjectType(), subject.GetObject().GetObjectId())
	if !ok || home != project && to.Type != quartermaster.TypeUser {
		return nil, false
	}
	return quartermaster.NewGrant(resourceText(on), r.GetRelation(), subjectText(to, subject.GetOptionalRelation()), time.Time{}), true
}

func resourceText(o quartermaster.Object) string {
	if o.Type == quartermaster.TypeProject {
		return o.Type
	}
	return o.Type + ":" + o.ID
}

func subjectText(o quartermaster.Object, relation string) string {
	if relation == "" {
		return o.Type + ":" + o.ID
	}
	return o.Type + ":" + o.ID + "#" + relation
}

func touch(r *v1.Relationship) *v1.RelationshipUpdate {
	return &v1.RelationshipUpdate{Operation: v1.RelationshipUpdate_OPERATION_TOUCH, Relationship: r}
}

func remove(r *v1.Relationship) *v1.RelationshipUpdate {
	return &v1.RelationshipUpdate{Operation: v1.RelationshipUpdate_OPERATION_DELETE, Relationship: r}
}
