package spicedb

import (
	"context"

	"quartermaster"
)

// maxUser is the longest id of a user, in bytes (GATE-6).
const maxUser = 255

// Judge implements quartermaster.Judge. Asked about no tool it answers as about
// any other: whether it could answer at all does not depend on the tools.
func (e *Engine) Judge(ctx context.Context, c *quartermaster.Catalog, caller quartermaster.Caller, q quartermaster.Question, tools []*quartermaster.Tool) ([]quartermaster.Judgment, error) {
	judgments := make([]quartermaster.Judgment, len(tools))
	if caller.User == "" || len(caller.User) > maxUser {
		refuseNobody(judgments, caller.User, q)
		return judgments, nil
	}
	found, err := e.permitted(ctx, c, caller.User)
	if err != nil {
		return nil, err
	}
	found.verdicts(tools, judgments)
	if q.Explain {
		if err := e.explain(ctx, c, caller.User, tools, judgments); err != nil {
			return nil, err
		}
	}
	return judgments, nil
}

// permitted is what a user may execute, now.
func (e *Engine) permitted(ctx context.Context, c *quartermaster.Catalog, user string) (answer, error) {
	id := c.Project().ID
	if p, ok := e.world.Load().projects.Load(id); ok {
		if st, set := p.(*project).kept(c, user); set != nil {
			return answer{st, set}, nil
		}
	}
	w, err := e.enter()
	if err != nil {
		return answer{}, err
	}
	defer w.leave()
	if err := w.reached(); err != nil {
		return answer{}, err
	}
	p := w.project(id)
	if err := p.follow(ctx, e.closed, c); err != nil {
		return answer{}, err
	}
	if st, set := p.kept(c, user); set != nil {
		return answer{st, set}, nil
	}
	return p.ask(ctx, user)
}

func refuseNobody(judgments []quartermaster.Judgment, user string, q quartermaster.Question) {
	if !q.Explain {
		return
	}
	why := quartermaster.Why{Reason: "no user was given, and nothing is granted to nobody", Remedy: "say for whom the agent acts"}
	if user != "" {
		why = quartermaster.Why{Reason: "the user's id is longer than 255 bytes", Remedy: "use a shorter id"}
	}
	for i := range judgments {
		judgments[i].Why = &why
	}
}
