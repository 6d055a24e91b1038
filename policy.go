package quartermaster

import (
	"strings"
	"time"
)

// DefaultPolicyQuery is the rule that the policy gate asks where a project does
// not name another (GATE-7).
const DefaultPolicyQuery = "data.quartermaster.tools.allow"

// maxPolicy is how long a module may be: what is compiled for every change must
// stay small.
const maxPolicy = 1 << 20

// Policy is one Rego module of a project. All of them compile together.
type Policy struct {
	Name      string    `json:"name,omitempty" doc:"1 to 128 of A-Z, a-z, 0-9, _, . and -. One that ends in _test is for the tests of the others" example:"office-hours"`
	Rego      string    `json:"rego" doc:"The module's text, in Rego v1 or v0"`
	CreatedAt time.Time `json:"createdAt" readOnly:"true"`
	UpdatedAt time.Time `json:"updatedAt" readOnly:"true"`
}

// File is the name under which compilers and traces speak of the policy.
func (p *Policy) File() string { return strings.TrimSuffix(p.Name, ".rego") + ".rego" }

// Test reports whether the policy is there to test the others.
func (p *Policy) Test() bool { return strings.HasSuffix(p.File(), "_test.rego") }

func (p *Policy) faults() faults {
	var f faults
	if !ValidToolName(p.Name) {
		f.add("name", "must be 1 to 128 of A-Z, a-z, 0-9, _, . and -")
	}
	if strings.TrimSpace(p.Rego) == "" {
		f.add("rego", "must be a Rego module")
	}
	if len(p.Rego) > maxPolicy {
		f.add("rego", "must have at most %d bytes, has %d", maxPolicy, len(p.Rego))
	} else {
		checkText(&f, "rego", p.Rego, maxPolicy)
	}
	return f
}

// PutPolicy adds or replaces a module. Whether it compiles with the others is
// for the policy engine to say.
func (d *Draft) PutPolicy(p Policy) (policy *Policy, created bool, err error) {
	if err := p.faults().err("policy %q is not valid", p.Name); err != nil {
		return nil, false, err
	}
	old := d.Policy(p.Name)
	p.CreatedAt, p.UpdatedAt = d.now, d.now
	if old != nil {
		if p.Rego == old.Rego {
			return old, false, nil
		}
		p.CreatedAt = old.CreatedAt
	}
	d.policies[p.Name] = &p
	return &p, old == nil, nil
}

// DeletePolicy removes a module.
func (d *Draft) DeletePolicy(name string) error {
	if d.Policy(name) == nil {
		return Errorf(CodeNotFound, "there is no policy %q", name)
	}
	d.policies[name] = nil
	return nil
}

// Policy finds a module in the draft.
func (d *Draft) Policy(name string) *Policy {
	if p, ok := d.policies[name]; ok {
		return p
	}
	return d.base.Policy(name)
}

// Policy finds a module by name; nil if there is none.
func (c *Catalog) Policy(name string) *Policy { return find(c.policies, name, policyName) }

// Policies returns all modules, by name.
func (c *Catalog) Policies() []*Policy { return c.policies }

func policyName(p *Policy) string { return p.Name }

// validQuery reports whether a query names one rule: data.a.b.c.
func validQuery(query string) bool {
	parts := strings.Split(query, ".")
	if len(parts) < 3 || parts[0] != "data" {
		return false
	}
	for _, p := range parts[1:] {
		word := within(p, 128, func(c byte) bool { return isAlphanum(c) || c == '_' })
		if !word || isDigit(p[0]) {
			return false
		}
	}
	return true
}
