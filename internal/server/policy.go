package server

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"quartermaster"
)

// PolicyView is a policy with what its editor should know.
type PolicyView struct {
	quartermaster.Policy
	Warnings []string `json:"warnings,omitempty" readOnly:"true" doc:"What is odd about the project's policies, after a change"`
}

type policyOutput struct {
	Status int
	Body   PolicyView
}

type policiesOutput struct {
	Body quartermaster.Page[*quartermaster.Policy]
}

// PolicyInput names a policy.
type PolicyInput struct {
	ProjectInput
	Policy string `path:"policy" example:"office-hours"`
}

func (s *Server) listPolicies(ctx context.Context, in *listInput) (*policiesOutput, error) {
	c, err := s.Store.Catalog(ctx, in.Project)
	if err != nil {
		return nil, err
	}
	return &policiesOutput{quartermaster.PageOf(slices.Values(c.Policies()), in.Page, in.Size)}, nil
}

func (s *Server) getPolicy(ctx context.Context, in *PolicyInput) (*policyOutput, error) {
	c, err := s.Store.Catalog(ctx, in.Project)
	if err != nil {
		return nil, err
	}
	p := c.Policy(in.Policy)
	if p == nil {
		return nil, quartermaster.Errorf(quartermaster.CodeNotFound, "there is no policy %q", in.Policy)
	}
	return &policyOutput{http.StatusOK, PolicyView{Policy: *p}}, nil
}

func (s *Server) putPolicy(ctx context.Context, in *struct {
	PolicyInput
	Body PolicyView
},
) (*policyOutput, error) {
	if !quartermaster.ValidToolName(in.Policy) {
		return nil, fault("path.policy", "must be 1 to 128 of A-Z a-z 0-9 _ . -")
	}
	if err := asInPath("name", &in.Body.Name, in.Policy); err != nil {
		return nil, err
	}
	var (
		policy  *quartermaster.Policy
		created bool
	)
	rules := &ruleCheck{server: s}
	_, err := rules.change(ctx, in.Project, func(d *quartermaster.Draft) (err error) {
		policy, created, err = d.PutPolicy(in.Body.Policy)
		return below("body", err)
	})
	if err != nil {
		return nil, err
	}
	return &policyOutput{createdOrOK(created), PolicyView{*policy, rules.warnings()}}, nil
}

func (s *Server) deletePolicy(ctx context.Context, in *PolicyInput) (*struct{}, error) {
	rules := &ruleCheck{server: s}
	_, err := rules.change(ctx, in.Project, func(d *quartermaster.Draft) error { return d.DeletePolicy(in.Policy) })
	return nil, err
}

type policyReportOutput struct{ Body quartermaster.PolicyReport }

// testPolicies tests the project's policies as they would be with those given,
// and keeps nothing.
func (s *Server) testPolicies(ctx context.Context, in *struct {
	ProjectInput
	Body *struct {
		Policies map[string]string `json:"policies,omitempty" doc:"Rego modules by name, added to those that are kept or in place of them"`
	}
},
) (*policyReportOutput, error) {
	if s.Policy == nil {
		return nil, quartermaster.Errorf(quartermaster.CodeUnsupportedProvider, "this server has no policy engine, so nothing can be tested")
	}
	c, err := s.Store.Catalog(ctx, in.Project)
	if err != nil {
		return nil, err
	}
	if in.Body != nil {
		if c, err = withPolicies(c, in.Body.Policies); err != nil {
			return nil, err
		}
	}
	report, err := s.Policy.Test(ctx, c)
	if report.Tests == nil {
		report.Tests = []quartermaster.PolicyTest{}
	}
	return &policyReportOutput{report}, err
}

func withPolicies(c *quartermaster.Catalog, policies map[string]string) (*quartermaster.Catalog, error) {
	d := c.Draft(time.Now())
	var faults []quartermaster.Fault
	for _, name := range slices.Sorted(maps.Keys(policies)) {
		_, _, err := d.PutPolicy(quartermaster.Policy{Name: name, Rego: policies[name]})
		faults = append(faults, faultsOf(below("body.policies."+name, err))...)
	}
	return d.Catalog(), invalid(faults, "the policies are not valid")
}

// ruleCheck lets a change of a project's policies, or of the rule that is asked
// of them, through if all of them together compile and pass their tests.
//
// That takes long, and must not happen while others wait for the project. So the
// change is made up to the point of keeping it, what it comes to is tested with
// nobody waiting, and then it is made again: it is kept if it comes to the same.
type ruleCheck struct {
	server *Server
	dryRun bool // nobody waits: what is changed is a draft that is thrown away

	next   *quartermaster.Catalog // what must be tested
	tested *quartermaster.Catalog
	report quartermaster.PolicyReport
	fault  error
}

// errUntested stops a change whose policies nobody has tested yet.
var errUntested = errors.New("the policies are not tested yet")

// maxRounds bounds how often policies are tested that others keep changing.
const maxRounds = 5

// change is Store.Change for edits that may change rules.
func (r *ruleCheck) change(ctx context.Context, project string, edit func(*quartermaster.Draft) error) (*quartermaster.Catalog, error) {
	return r.run(ctx, project, func(d *quartermaster.Draft) error { return r.check(d, edit(d)) })
}

// run is change for an edit that calls check by itself.
func (r *ruleCheck) run(ctx context.Context, project string, edit func(*quartermaster.Draft) error) (*quartermaster.Catalog, error) {
	for range maxRounds {
		c, err := r.server.change(ctx, project, r.dryRun, edit)
		if !errors.Is(err, errUntested) {
			return c, err
		}
		if err := r.test(ctx); err != nil {
			return nil, err
		}
	}
	return nil, quartermaster.Errorf(quartermaster.CodeUnavailable, "others keep changing the policies; nothing was changed, try again")
}

// check says whether a draft may be kept, after edits that ended with err. Where
// both the edit and the rules have faults, all of them are told.
func (r *ruleCheck) check(d *quartermaster.Draft, err error) error {
	if r.server.Policy == nil || err != nil && len(faultsOf(err)) == 0 {
		return err
	}
	next := d.Catalog()
	switch {
	case sameRules(next, d.Base()):
		return err
	case r.tested == nil || !sameRules(next, r.tested):
		r.next = next
		return errUntested
	}
	return joined(err, r.fault)
}

// checkNow is check for a draft that nobody waits for.
func (r *ruleCheck) checkNow(ctx context.Context, d *quartermaster.Draft, err error) error {
	checked := r.check(d, err)
	if !errors.Is(checked, errUntested) {
		return checked
	}
	if err := r.test(ctx); err != nil {
		return err
	}
	return r.check(d, err)
}

// test finds out what is wrong with the rules that a change comes to.
func (r *ruleCheck) test(ctx context.Context) error {
	report, err := r.server.Policy.Test(ctx, r.next)
	if err != nil && quartermaster.CodeOf(err) != quartermaster.CodeInvalidRequest {
		return err
	}
	if err == nil {
		err = failedTests(r.next, report)
	}
	r.tested, r.report, r.fault = r.next, report, err
	return nil
}

func (r *ruleCheck) warnings() []string {
	if r.server.Policy == nil {
		return []string{"this server has no policy engine: the policy is kept, but nobody asks it"}
	}
	return r.report.Warnings
}

// sameRules reports whether the policy gate goes by the same in both.
func sameRules(a, b *quartermaster.Catalog) bool {
	return a.Project().PolicyQuery == b.Project().PolicyQuery &&
		slices.EqualFunc(a.Policies(), b.Policies(), func(p, q *quartermaster.Policy) bool {
			return p == q || p.Name == q.Name && p.Rego == q.Rego
		})
}

func failedTests(c *quartermaster.Catalog, report quartermaster.PolicyReport) error {
	var faults []quartermaster.Fault
	for _, t := range report.Failed() {
		faults = append(faults, quartermaster.Fault{Location: policyPlace(c, t.Location), Message: t.Name + " fails: " + t.Reason})
	}
	return invalid(faults, "%d of %d tests of the policies fail; nothing was changed", len(faults), len(report.Tests))
}

// policyPlace turns FILE:LINE into policies.NAME:LINE, which is where a project
// file has it.
func policyPlace(c *quartermaster.Catalog, location string) string {
	for _, p := range c.Policies() {
		if line, ok := strings.CutPrefix(location, p.File()+":"); ok {
			return "policies." + p.Name + ":" + line
		}
	}
	return location
}
