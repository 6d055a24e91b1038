package server

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"quartermaster"
)

// QuestionInput says for whom and in which situation an operator asks.
type QuestionInput struct {
	Agent  string   `query:"agent" required:"true" doc:"1 to 255 characters" example:"responder"`
	User   string   `query:"user" doc:"Absent: you"`
	Groups []string `query:"group,explode" doc:"Requested groups; absent: default; once and empty: none; *: every group"`
	State  string   `query:"state" doc:"Absent: undefined"`
	Depth  int      `query:"depth" minimum:"0" doc:"How many agents led to this one"`
}

// Resolve keeps apart what huma does not: no group parameter, and an empty one
// (GATE-4).
func (q *QuestionInput) Resolve(ctx huma.Context) []error {
	u := ctx.URL()
	groups, asked := u.Query()["group"]
	if header := ctx.Header("Quartermaster-Group"); !asked && header != "" {
		groups, asked = strings.Split(header, ","), true
	}
	switch {
	case !asked:
		q.Groups = nil
	case len(groups) == 1 && groups[0] == "":
		q.Groups = []string{}
	case slices.Contains(groups, ""):
		return []error{&huma.ErrorDetail{Location: "query.group", Message: "must not be empty beside others"}}
	default:
		q.Groups = groups
	}
	return nil
}

// situation is the caller that an operator's question is about.
func situation(c quartermaster.Caller, q QuestionInput) (quartermaster.Caller, error) {
	if err := quartermaster.CheckAgentID("agent", q.Agent); err != nil {
		return c, err
	}
	if q.User != "" {
		var err error
		if c, err = actingFor(c, "user", q.User); err != nil {
			return c, err
		}
	}
	c.Agent, c.Groups, c.State, c.Depth = q.Agent, q.Groups, q.State, q.Depth
	return c, nil
}

type resolveInput struct {
	ProjectInput
	Body struct {
		Agent   string   `json:"agent" doc:"1 to 255 characters" example:"responder"`
		User    string   `json:"user,omitempty" doc:"Absent: you"`
		Groups  []string `json:"groups,omitempty" doc:"Requested groups; absent: default; []: none; *: every group"`
		State   string   `json:"state,omitempty" doc:"Absent: undefined"`
		Depth   int      `json:"depth,omitempty" minimum:"0"`
		Session string   `json:"session,omitempty"`
	}
}

type resolveOutput struct {
	Body struct {
		Tools    []quartermaster.Tool `json:"tools"`
		State    string               `json:"state"`
		Revision int64                `json:"revision"`
		Warnings []string             `json:"warnings,omitempty"`
	}
}

// resolve lists the tools that an agent has in a situation.
func (s *Server) resolve(ctx context.Context, in *resolveInput) (*resolveOutput, error) {
	b := in.Body
	if b.Session != "" {
		return nil, fault("body.session", "there are no sessions yet; name the state instead")
	}
	c, err := situation(in.caller, QuestionInput{b.Agent, b.User, b.Groups, b.State, b.Depth})
	if err != nil {
		return nil, below("body", err)
	}
	began := time.Now()
	res, err := s.Resolver.Resolve(ctx, c, quartermaster.Question{})
	if err != nil {
		s.denied(c, err)
		return nil, err
	}
	s.record(ctx, c, res, time.Since(began))
	out := &resolveOutput{}
	out.Body.State, out.Body.Revision, out.Body.Warnings = res.State, res.Revision, res.Warnings
	out.Body.Tools = make([]quartermaster.Tool, len(res.Tools))
	for i, t := range res.Tools {
		out.Body.Tools[i] = s.view(t)
	}
	return out, nil
}

// record writes seed 003's record of a request to the log.
func (s *Server) record(ctx context.Context, c quartermaster.Caller, res *quartermaster.Resolution, took time.Duration) {
	if !s.Log.Enabled(ctx, slog.LevelInfo) {
		return
	}
	const most = 50 // names of each kind: a line is for reading
	filtered := map[quartermaster.Gate][]string{quartermaster.GateGroup: {}, quartermaster.GateState: {}}
	for tool, refusal := range res.Refusals {
		if names, ok := filtered[refusal.Gate]; ok && len(names) < most {
			filtered[refusal.Gate] = append(names, tool.Name)
		}
	}
	available := make([]string, 0, min(most, len(res.Tools)))
	for _, t := range res.Tools[:min(most, len(res.Tools))] {
		available = append(available, t.Name)
	}
	s.Log.InfoContext(ctx, "tools resolved", "project", c.Project, "agent", c.Agent, "user", c.User,
		"requested_groups", res.Groups, "initial_state", res.State, "available", len(res.Tools), "available_tools", available,
		"filtered_by_group", filtered[quartermaster.GateGroup], "filtered_by_state", filtered[quartermaster.GateState],
		"execution_time", took.Round(time.Microsecond))
}

// denied counts requests for groups that the user was not granted (GATE-4).
func (s *Server) denied(c quartermaster.Caller, err error) {
	if quartermaster.CodeOf(err) != quartermaster.CodeGroupsNotGranted {
		return
	}
	e, _ := errors.AsType[*quartermaster.Error](err)
	groups, _ := e.Details["groups"].([]string)
	s.metrics.groupsDenied(c.Project, groups)
	s.Log.Warn("groups not granted", "project", c.Project, "agent", c.Agent, "user", c.User, "groups", groups)
}

type explainInput struct {
	ProjectInput
	QuestionInput
	Tool string `query:"tool" doc:"Name, alias or @server/tool; absent: all tools"`
}

type explainOutput struct {
	Body struct {
		Tools    []quartermaster.Explanation `json:"tools"`
		State    string                      `json:"state"`
		Revision int64                       `json:"revision"`
		Warnings []string                    `json:"warnings,omitempty"`
	}
}

// explain says of each tool why the agent has it or has not.
func (s *Server) explain(ctx context.Context, in *explainInput) (*explainOutput, error) {
	c, err := situation(in.caller, in.QuestionInput)
	if err != nil {
		return nil, below("query", err)
	}
	res, err := s.Resolver.Resolve(ctx, c, quartermaster.Question{Tool: in.Tool, Explain: true})
	if err != nil {
		return nil, err
	}
	out := &explainOutput{}
	out.Body.Tools, out.Body.State, out.Body.Revision, out.Body.Warnings = res.Explanations, res.State, res.Revision, res.Warnings
	if cat, err := s.Store.Catalog(ctx, in.Project); err == nil {
		_, warnings := s.Advisor.Check(cat, cat, in.Agent)
		out.Body.Warnings = append(warnings, out.Body.Warnings...)
	}
	return out, nil
}

type whatIfOutput struct {
	Body struct {
		Changes []quartermaster.Difference `json:"changes" doc:"What the file changes"`
		quartermaster.Impact
		Warnings map[string][]string `json:"warnings,omitempty" doc:"Of the changed definitions, by agent"`
	}
}

// whatIf says who would gain and lose what if a project file were applied.
func (s *Server) whatIf(ctx context.Context, in *struct {
	ProjectInput
	Prune bool `query:"prune" doc:"As if what the file does not hold were removed"`
	Body  quartermaster.Document
},
) (*whatIfOutput, error) {
	if err := s.checkDocument(in.Body); err != nil {
		return nil, err
	}
	before, err := s.Store.Catalog(ctx, in.Project)
	if err != nil {
		return nil, err
	}
	d := before.Draft(time.Now())
	if err := d.Apply(in.Body, in.Prune); err != nil {
		return nil, below("body", err)
	}
	after := d.Catalog()
	out := &whatIfOutput{}
	out.Body.Changes = d.Diff()
	out.Body.Impact = s.Advisor.ImpactOf(before, after)
	for id := range in.Body.Agents {
		if conflicts, warnings := s.Advisor.Check(before, after, id); len(conflicts)+len(warnings) > 0 {
			if out.Body.Warnings == nil {
				out.Body.Warnings = map[string][]string{}
			}
			out.Body.Warnings[id] = warnings
		}
	}
	return out, nil
}

type whoCanOutput struct{ Body quartermaster.Reachers }

// whoCan lists who gets at a tool.
func (s *Server) whoCan(ctx context.Context, in *struct {
	ProjectInput
	Tool string `query:"tool" required:"true" doc:"Id, name or @server/tool"`
},
) (*whoCanOutput, error) {
	c, err := s.Store.Catalog(ctx, in.Project)
	if err != nil {
		return nil, err
	}
	who, err := s.Advisor.WhoCan(c, in.Tool)
	return &whoCanOutput{who}, err
}
