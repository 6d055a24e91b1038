package spicedb

import (
	"context"
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"sync"

	v1 "github.com/authzed/authzed-go/proto/authzed/api/v1"
	core "github.com/authzed/spicedb/pkg/proto/core/v1"
	"github.com/authzed/spicedb/pkg/schemadsl/compiler"
	"github.com/authzed/spicedb/pkg/schemadsl/generator"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"quartermaster"
)

//go:embed base.zed
var baseSchema string

// base is what every schema must have: the rows that we write ourselves and the
// permission that we ask for depend on it.
var base = sync.OnceValue(func() *schema { return mustCompile(baseSchema) })

// schema is a schema's text and what it means for us.
type schema struct {
	text      string
	canonical string // the same for texts that mean the same
	types     map[string]*core.NamespaceDefinition
	// usersAlone: a user is nothing but a user, so that what is granted to one
	// concerns nobody else.
	usersAlone bool
	caveats    bool // some answers may be conditional
	expires    bool // some relationships end by themselves, and no watch tells
}

func compile(text string) (*schema, error) {
	compiled, err := compiler.Compile(compiler.InputSchema{Source: "schema", SchemaString: text},
		compiler.AllowUnprefixedObjectType(), compiler.DisallowImportFlag())
	if err != nil {
		e := quartermaster.Errorf(quartermaster.CodeInvalidRequest, "the schema is not valid: %v", err)
		e.Cause = err
		return nil, e
	}
	s := &schema{text: text, types: map[string]*core.NamespaceDefinition{}, caveats: len(compiled.CaveatDefinitions) > 0}
	for _, d := range compiled.ObjectDefinitions {
		s.types[d.GetName()] = d
		for _, r := range d.GetRelation() {
			s.expires = s.expires || slices.ContainsFunc(allowedOf(r), func(a *core.AllowedRelation) bool { return a.GetRequiredExpiration() != nil })
		}
	}
	user := s.types[quartermaster.TypeUser]
	s.usersAlone = user != nil && len(user.GetRelation()) == 0
	s.canonical, err = generator.ComputeSchemaHash(compiled.OrderedDefinitions)
	return s, err
}

func mustCompile(text string) *schema {
	s, err := compile(text)
	if err != nil {
		panic(err)
	}
	return s
}

// parseSchema compiles a schema and refuses one that lacks what the base has.
func parseSchema(text string) (*schema, error) {
	s, err := compile(text)
	if err != nil {
		return nil, err
	}
	return s, s.serves()
}

// serves fails if the schema lacks what the base has.
func (s *schema) serves() error {
	lacks := s.lacks()
	if len(lacks) == 0 {
		return nil
	}
	return quartermaster.Errorf(quartermaster.CodeInvalidRequest,
		"the schema lacks %s: it must hold the base schema, and may add to it", strings.Join(lacks, ", "))
}

func (s *schema) lacks() []string {
	var lacks []string
	for name, needed := range base().types {
		if s.types[name] == nil {
			lacks = append(lacks, "definition "+name)
			continue
		}
		for _, r := range needed.GetRelation() {
			switch has := s.relation(name, r.GetName()); {
			case has == nil:
				lacks = append(lacks, name+"#"+r.GetName())
			case isPermission(r) != isPermission(has):
				lacks = append(lacks, name+"#"+r.GetName()+" as the base schema has it")
			default:
				lacks = append(lacks, missingSubjects(name, r, has)...)
			}
		}
	}
	slices.Sort(lacks)
	return lacks
}

func missingSubjects(kind string, needed, has *core.Relation) []string {
	var lacks []string
	for _, a := range allowedOf(needed) {
		if !admits(has, a.GetNamespace(), a.GetRelation()) {
			lacks = append(lacks, fmt.Sprintf("%s in %s#%s", subjectWords(a), kind, needed.GetName()))
		}
	}
	return lacks
}

func (s *schema) relation(kind, name string) *core.Relation {
	d := s.types[kind]
	if d == nil {
		return nil
	}
	if i := slices.IndexFunc(d.GetRelation(), func(r *core.Relation) bool { return r.GetName() == name }); i >= 0 {
		return d.GetRelation()[i]
	}
	return nil
}

func isPermission(r *core.Relation) bool { return r.GetUsersetRewrite() != nil }

func allowedOf(r *core.Relation) []*core.AllowedRelation {
	return r.GetTypeInformation().GetAllowedDirectRelations()
}

// ellipsis is how SpiceDB writes that an object itself is meant.
const ellipsis = "..."

// admits reports whether a relation takes such subjects just so, with no
// condition and no end.
func admits(r *core.Relation, kind, relation string) bool {
	return slices.ContainsFunc(allowedOf(r), func(a *core.AllowedRelation) bool {
		return a.GetNamespace() == kind && a.GetPublicWildcard() == nil && a.GetRelation() == relation &&
			a.GetRequiredCaveat() == nil && a.GetRequiredExpiration() == nil
	})
}

// subjectWords writes an allowed subject as a schema does.
func subjectWords(a *core.AllowedRelation) string {
	words := a.GetNamespace()
	switch relation := a.GetRelation(); {
	case a.GetPublicWildcard() != nil:
		words += ":*"
	case relation != ellipsis:
		words += "#" + relation
	}
	if c := a.GetRequiredCaveat(); c != nil {
		words += " with " + c.GetCaveatName()
	}
	if a.GetRequiredExpiration() != nil {
		words += " with expiration"
	}
	return words
}

// fault says where a grant does not fit the schema, and why; "" if it does.
func (s *schema) fault(g *quartermaster.Grant) (field, reason string) {
	on := g.On()
	d := s.types[on.Type]
	if d == nil {
		return "resource", fmt.Sprintf("the schema has no %s", on.Type)
	}
	r := s.relation(on.Type, g.Relation)
	switch {
	case r == nil:
		return "relation", fmt.Sprintf("%s has no relation %q; it has %s", on.Type, g.Relation, strings.Join(relationsOf(d), ", "))
	case isPermission(r):
		return "relation", fmt.Sprintf("%s follows from other relations; grant one of %s", g.Relation, strings.Join(relationsOf(d), ", "))
	}
	to, relation := g.To()
	if relation == "" {
		relation = ellipsis
	}
	if !admits(r, to.Type, relation) {
		var words []string
		for _, a := range allowedOf(r) {
			words = append(words, subjectWords(a))
		}
		return "subject", fmt.Sprintf("%s#%s is for %s", on.Type, g.Relation, strings.Join(words, ", "))
	}
	return "", ""
}

// relationsOf names what can be granted on a type.
func relationsOf(d *core.NamespaceDefinition) []string {
	var names []string
	for _, r := range d.GetRelation() {
		if !isPermission(r) && (d.GetName() != quartermaster.TypeTool || r.GetName() != relationProject) {
			names = append(names, r.GetName())
		}
	}
	return names
}

// Schema implements quartermaster.Permission.
func (e *Engine) Schema(context.Context) (string, error) {
	w := e.world.Load()
	if err := w.reached(); err != nil {
		return "", err
	}
	return w.schema.Load().text, nil
}

// SetSchema replaces the schema. It is refused, and the old one stays, if it
// lacks what the base schema has or has no place for relationships that are
// there. Where they are ours, those of the catalogs that were last seen count:
// Load shows it newer ones.
func (e *Engine) SetSchema(ctx context.Context, text string) error {
	next, err := parseSchema(text)
	if err != nil {
		return err
	}
	e.schemas.Lock()
	defer e.schemas.Unlock()
	w, err := e.enter()
	if err != nil {
		return err
	}
	defer w.leave()
	if err := w.reached(); err != nil {
		return err
	}
	return w.setSchema(ctx, next)
}

func (w *world) setSchema(ctx context.Context, next *schema) error {
	if err := w.checkOrphans(ctx, w.schema.Load(), next); err != nil {
		return err
	}
	asking, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	_, err := w.schemas.WriteSchema(asking, &v1.WriteSchemaRequest{Schema: next.text})
	if code := status.Code(err); code == codes.InvalidArgument || code == codes.FailedPrecondition {
		e := quartermaster.Errorf(quartermaster.CodeInvalidRequest, "SpiceDB refuses the schema, the old one stays: %s", status.Convert(err).Message())
		e.Cause = err
		return e
	}
	if err != nil {
		return unavailable(err)
	}
	w.schema.Store(next)
	w.forgetAnswers()
	return nil
}

// checkOrphans refuses a schema that has no place for relationships that are
// there. SpiceDB would refuse it too, but not say how many there are.
func (w *world) checkOrphans(ctx context.Context, old, next *schema) error {
	if old == nil {
		return nil
	}
	var orphans []string
	for kind, d := range old.types {
		for _, r := range d.GetRelation() {
			if isPermission(r) {
				continue
			}
			n, err := w.countOrphans(ctx, kind, r, next.relation(kind, r.GetName()))
			if err != nil {
				return err
			}
			if n > 0 {
				orphans = append(orphans, fmt.Sprintf("%d of %s#%s", n, kind, r.GetName()))
			}
		}
	}
	if len(orphans) == 0 {
		return nil
	}
	slices.Sort(orphans)
	return quartermaster.Errorf(quartermaster.CodeInvalidRequest,
		"the schema has no place for relationships that are there: %s; revoke them first. The old schema stays", strings.Join(orphans, ", "))
}

// countOrphans counts the relationships of one relation that would have no place.
func (w *world) countOrphans(ctx context.Context, kind string, was, is *core.Relation) (int, error) {
	var lost []*core.AllowedRelation
	for _, a := range allowedOf(was) {
		if is == nil || isPermission(is) || !slices.ContainsFunc(allowedOf(is), func(b *core.AllowedRelation) bool { return subjectWords(a) == subjectWords(b) }) {
			lost = append(lost, a)
		}
	}
	if len(lost) == 0 {
		return 0, nil
	}
	n := 0
	err := w.read(ctx, &v1.RelationshipFilter{ResourceType: kind, OptionalRelation: was.GetName()}, func(r *v1.Relationship) {
		if slices.ContainsFunc(lost, func(a *core.AllowedRelation) bool { return allows(a, r) }) {
			n++
		}
	})
	return n, err
}

// allows reports whether a relationship is there because of this subject in the
// schema.
func allows(a *core.AllowedRelation, r *v1.Relationship) bool {
	subject := r.GetSubject()
	relation := subject.GetOptionalRelation()
	if relation == "" {
		relation = ellipsis
	}
	wildcard := subject.GetObject().GetObjectId() == "*"
	return a.GetNamespace() == subject.GetObject().GetObjectType() &&
		(a.GetPublicWildcard() != nil) == wildcard && (wildcard || a.GetRelation() == relation) &&
		a.GetRequiredCaveat().GetCaveatName() == r.GetOptionalCaveat().GetCaveatName() &&
		(a.GetRequiredExpiration() != nil) == (r.GetOptionalExpiresAt() != nil)
}
