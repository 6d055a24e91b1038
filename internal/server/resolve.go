package server

import (
	"context"
	"errors"
	"fmt"
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
// (GATE-4). A parameter wins over the header.
func (q *QuestionInput) Resolve(ctx huma.Context) []error {
	u := ctx.URL()
	groups, asked := u.Query()["group"]
	var err error
	if asked {
		q.Groups, err = askedGroups("query.group", groups)
	} else {
		q.Groups, err = groupHeaderOf(ctx).groups()
	}
	return details(err)
}

// askedGroups are groups as a query or a header has them, where a list of
// nothing is written as one that is empty.
func askedGroups(location string, values []string) ([]string, error) {
	switch {
	case len(values) == 1 && values[0] == "":
		return []string{}, nil
	case slices.Contains(values, ""):
		return nil, fault(location, "must not be empty beside others")
	}
	return values, nil
}

// GroupHeaderInput are the groups asked for by header, where the body may ask
// too. Only who looks at both can tell whether the header counts.
type GroupHeaderInput struct{ header groupHeader }

// Resolve keeps the header for later.
func (g *GroupHeaderInput) Resolve(ctx huma.Context) []error {
	g.header = groupHeaderOf(ctx)
	return nil
}

// groupHeader are the lines of the header Quartermaster-Group; nil: there are
// none.
type groupHeader []string

func groupHeaderOf(ctx huma.Context) groupHeader {
	var lines groupHeader
	ctx.EachHeader(func(name, value string) {
		if name == "Quartermaster-Group" {
			lines = append(lines, value)
		}
	})
	return lines
}

// groups are those of all lines; nil: nothing was asked.
func (h groupHeader) groups() ([]string, error) {
	var all []string
	for _, line := range h {
		for group := range strings.SplitSeq(line, ",") {
			all = append(all, strings.TrimSpace(group))
		}
	}
	return askedGroups("header.Quartermaster-Group", all)
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
	GroupHeaderInput
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
	if i := slices.Index(b.Groups, ""); i >= 0 {
		return nil, fault(fmt.Sprintf("body.groups[%d]", i), "must not be empty")
	}
	if b.Groups == nil {
		var err error
		if b.Groups, err = in.header.groups(); err != nil {
			return nil, err
		}
	}
	c, err := situation(in.caller, QuestionInput{b.Agent, b.User, b.Groups, b.State, b.Depth})
	if err != nil {
		return nil, below("body", err)
	}
	began := time.Now()
	res, err := s.Resolver.Resolve(ctx, c, quartermaster.Question{})
	if err != nil {
		s.denied(c, err)
		return nil, s.unanswered(c.Project, err)
	}
	s.record(ctx, in.request, c, res, time.Since(began))
	out := &resolveOutput{}
	out.Body.State, out.Body.Revision, out.Body.Warnings = res.State, res.Revision, res.Warnings
	out.Body.Tools = make([]quartermaster.Tool, len(res.Tools))
	for i, t := range res.Tools {
		out.Body.Tools[i] = s.view(in.Project, t)
	}
	return out, nil
}

// record writes to the log what was asked for, what is available and which gate
// took away what (OBS-3).
func (s *Server) record(ctx context.Context, request string, c quartermaster.Caller, res *quartermaster.Resolution, took time.Duration) {
	if !s.Log.Enabled(ctx, slog.LevelInfo) {
		return
	}
	const most = 50 // names of each kind: a line is for reading
	requested := c.Groups
	if requested == nil {
		requested = []string{quartermaster.DefaultGroup}
	}
	line := []any{
		"request_id", request, "project", c.Project, "agent", c.Agent, "user", c.User,
		"requested_groups", requested, "initial_state", res.State,
		"available", len(res.Tools), "available_tools", toolNames(res.Tools[:min(most, len(res.Tools))]),
	}
	for _, gate := range []quartermaster.Gate{quartermaster.GateGroup, quartermaster.GateState, quartermaster.GatePermission, quartermaster.GatePolicy} {
		tools, total := res.Filtered(gate, most)
		line = append(line, "filtered_by_"+string(gate), toolNames(tools), "filtered_by_"+string(gate)+"_count", total)
	}
	s.Log.InfoContext(ctx, "tools resolved", append(line, "execution_time", took.Round(time.Microsecond).String())...)
}

func toolNames(tools []*quartermaster.Tool) []string {
	names := make([]string, len(tools))
	for i, t := range tools {
		names[i] = t.Name
	}
	return names
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

// unanswered counts err if it is that of a gate that could not answer (GATE-1).
func (s *Server) unanswered(project string, err error) error {
	if e, ok := errors.AsType[*quartermaster.Error](err); ok && e.Code == quartermaster.CodeUnavailable {
		if gate, ok := e.Details["gate"]; ok {
			s.metrics.unanswered.WithLabelValues(project, fmt.Sprint(gate)).Inc()
		}
	}
	return err
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
		return nil, s.unanswered(c.Project, err)
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
		Warnings map[string][]string `json:"warnings,omitempty" doc:"Of the file's definitions, by agent: all of one that changes, else what is new"`
	}
}

// WhatIfDocument is a project file, and beside it what a file cannot say.
type WhatIfDocument struct {
	quartermaster.Document
	Revoke []quartermaster.Grant `json:"revoke,omitempty" doc:"As if these grants were revoked"`
}

// whatIf says who would gain and lose what if a project file were applied.
func (s *Server) whatIf(ctx context.Context, in *struct {
	ProjectInput
	Prune bool `query:"prune" doc:"As if what the file does not hold were removed"`
	Body  WhatIfDocument
},
) (*whatIfOutput, error) {
	before, err := s.wholeCatalog(ctx, in.Project)
	if err != nil {
		return nil, err
	}
	d := before.Draft(time.Now())
	if err := s.suppose(ctx, d, in.Body, in.Prune); err != nil {
		return nil, below("body", err)
	}
	after := d.Catalog()
	out := &whatIfOutput{}
	out.Body.Changes = d.Diff()
	out.Body.Warnings = s.definitionWarnings(d, after, in.Body.Document)
	out.Body.Impact, err = s.Advisor.ImpactOf(ctx, before, after)
	return out, s.unanswered(in.Project, err)
}

// suppose puts what is asked about into a draft, or says why it cannot be.
func (s *Server) suppose(ctx context.Context, d *quartermaster.Draft, doc WhatIfDocument, prune bool) error {
	known, err := s.documentFaults(ctx, d.Base().Project().ID, doc.Document)
	if err != nil {
		return err
	}
	err = joined(revokeAll(d, doc.Revoke), s.applyTo(d, doc.Document, prune, known))
	rules := &ruleCheck{server: s}
	return rules.checkNow(ctx, d, err)
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
	who, err := s.Advisor.WhoCan(ctx, c, in.Tool)
	return &whoCanOutput{who}, s.unanswered(in.Project, err)
}
