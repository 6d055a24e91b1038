package client

import (
	"context"
	"net/http"

	"quartermaster"
)

const nounPolicies = "policies"

// Policy is a policy, and after a change what is odd about all of them.
type Policy struct {
	quartermaster.Policy
	Warnings []string `json:"warnings,omitempty"`
}

// Policies lists the project's policies, by name.
func (p *Project) Policies() List[quartermaster.Policy] {
	return List[quartermaster.Policy]{get: p.getter("/" + nounPolicies)}
}

// Policy reads one policy.
func (p *Project) Policy(ctx context.Context, name string) (quartermaster.Policy, error) {
	var answer quartermaster.Policy
	err := p.at(ctx, nounPolicies, name, request{method: http.MethodGet}, &answer)
	return answer, err
}

// PutPolicy adds or replaces a policy, if all of them compile and pass their
// tests. The faults of an error say where: policies.NAME:LINE.
func (p *Project) PutPolicy(ctx context.Context, name, rego string) (Policy, error) {
	var answer Policy
	err := p.at(ctx, nounPolicies, name, request{method: http.MethodPut, body: map[string]string{"rego": rego}}, &answer)
	return answer, err
}

// DeletePolicy removes a policy that the others do without.
func (p *Project) DeletePolicy(ctx context.Context, name string) error {
	return p.at(ctx, nounPolicies, name, request{method: http.MethodDelete}, nil)
}

// TestPolicies tests the project's policies as they would be with these, Rego by
// name, and keeps nothing. Tests that fail are in the report; policies that do not
// compile are an error.
func (p *Project) TestPolicies(ctx context.Context, policies map[string]string) (quartermaster.PolicyReport, error) {
	body := map[string]any{}
	if len(policies) > 0 {
		body["policies"] = policies
	}
	var answer quartermaster.PolicyReport
	err := p.do(ctx, request{method: http.MethodPost, path: "/" + nounPolicies + "/test", body: body}, &answer)
	return answer, err
}
