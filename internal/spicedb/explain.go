package spicedb

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"unicode"

	v1 "github.com/authzed/authzed-go/proto/authzed/api/v1"

	"quartermaster"
)

// traceable is how many tools are explained by SpiceDB's own trace, one question
// each. Of more, the reasons are found in what is granted, in a few questions
// for all.
const traceable = 8

// explain says why each judgment is as it is, and what would change it.
func (e *Engine) explain(ctx context.Context, c *quartermaster.Catalog, user string, tools []*quartermaster.Tool, judgments []quartermaster.Judgment) error {
	if len(tools) == 0 {
		return nil
	}
	w, err := e.enter()
	if err != nil {
		return err
	}
	defer w.leave()
	x := &explainer{ctx: ctx, world: w, project: c.Project().ID, user: user, relations: newRelations(ctx, w, c.Project().ID)}
	if len(tools) > traceable {
		if err := x.relations.readTools(); err != nil {
			return err
		}
	}
	for i, t := range tools {
		var why quartermaster.Why
		if judgments[i].Allowed {
			why.Reason, err = x.passed(t.Name)
		} else {
			why.Reason, err = x.refused(t.Name)
			why.Remedy = x.remedy(t.Name)
		}
		if err != nil {
			return err
		}
		judgments[i].Why = &why
	}
	return nil
}

type explainer struct {
	ctx           context.Context
	world         *world
	project, user string
	relations     *relations
	traced        int
}

// passed says by which relation the user may execute a tool.
func (x *explainer) passed(tool string) (string, error) {
	way, err := x.way(tool)
	switch {
	case err != nil:
		return "", err
	case way == nil:
		return fmt.Sprintf("the schema gives %s %s on %s", name(x.user), permissionToUse, tool), nil
	}
	return name(x.user) + " is " + way.words(tool), nil
}

// way finds how the user comes to execute a tool: of a few tools as SpiceDB
// traces it, of many as it can be seen in the relations of the base schema, and
// each in the other's place where that tells nothing.
func (x *explainer) way(tool string) (*way, error) {
	seen := func() (*way, error) { return x.relations.wayTo(x.user, tool) }
	traced := func() (*way, error) {
		t, err := x.trace(tool)
		return t.way, err
	}
	first, second := traced, seen
	if x.relations.all {
		first, second = seen, traced
	}
	if way, err := first(); way != nil || err != nil {
		return way, err
	}
	return second()
}

// refused says what the user lacks and who has it.
func (x *explainer) refused(tool string) (string, error) {
	way, err := x.relations.wayTo(x.user, tool)
	if err != nil {
		return "", err
	}
	if way != nil || x.world.schema.Load().caveats {
		traced, err := x.trace(tool)
		switch {
		case err != nil:
			return "", err
		case len(traced.missing) > 0:
			return fmt.Sprintf("%s may execute %s only under a condition (on %s), and what is conditional is refused",
				name(x.user), tool, strings.Join(traced.missing, ", ")), nil
		case way != nil:
			return fmt.Sprintf("%s is %s, but the schema does not give them %s", name(x.user), way.words(tool), permissionToUse), nil
		}
	}
	holders, err := x.relations.holders(tool)
	if err != nil {
		return "", err
	}
	if len(holders) == 0 {
		return fmt.Sprintf("%s is no owner or executor of %s; nobody is", name(x.user), tool), nil
	}
	return fmt.Sprintf("%s is no owner or executor of %s; %s", name(x.user), tool, areWords(holders)), nil
}

func (x *explainer) remedy(tool string) string {
	words := []string{"quartermaster", "grant", quartermaster.TypeUser + ":" + x.user, relationExecutor, tool}
	if x.project != quartermaster.DefaultProject {
		words = append(words, "--project", x.project)
	}
	return quartermaster.ShellWords(words...)
}

// areWords names a few of those who have a relation.
func areWords(holders []string) string {
	const most = 3
	if len(holders) == 1 {
		verb := " is"
		if strings.HasPrefix(holders[0], "members of ") {
			verb = " are"
		}
		return holders[0] + verb
	}
	if more := len(holders) - most; more > 0 {
		holders = append(holders[:most:most], count(more, "other"))
	}
	last := len(holders) - 1
	return strings.Join(holders[:last], ", ") + " and " + holders[last] + " are"
}

// name writes an id so that it can be told from the words around it.
func name(id string) string {
	plain := func(r rune) bool {
		return r < unicode.MaxASCII && (unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("._@+-/:|", r))
	}
	if strings.ContainsFunc(id, func(r rune) bool { return !plain(r) }) {
		return strconv.QuoteToASCII(id)
	}
	return id
}

// traced is what SpiceDB's own trace tells of one check.
type traced struct {
	way     *way
	missing []string // what a condition would have to know
}

// trace asks SpiceDB how it comes to its answer. Only of a few tools in one
// explanation: of the rest it is left open.
func (x *explainer) trace(tool string) (traced, error) {
	if x.traced++; x.traced > 2*traceable {
		return traced{}, nil
	}
	ctx, cancel := context.WithTimeout(x.ctx, timeout)
	defer cancel()
	r, err := x.world.client.CheckPermission(ctx, &v1.CheckPermissionRequest{
		Consistency: fullyConsistent, Resource: object(quartermaster.TypeTool, toolID(x.project, tool)),
		Permission: permissionToUse, Subject: userSubject(x.user), WithTracing: true,
	})
	if err != nil {
		return traced{}, unavailable(err)
	}
	return traced{way: wayIn(r.GetDebugTrace().GetCheck()), missing: r.GetPartialCaveatInfo().GetMissingRequiredContext()}, nil
}
