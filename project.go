package quartermaster

import "time"

// DefaultProject exists from the start.
const DefaultProject = "default"

// Project is the tenant: everything else lives in one.
type Project struct {
	ID   string `json:"id" doc:"1 to 40 of a-z, 0-9 and -" example:"default"`
	Name string `json:"name,omitempty" doc:"For people; the id where absent" maxLength:"255"`
	Plan Plan   `json:"plan,omitempty" enum:"free,starter,team,enterprise" doc:"Sets the monthly budget. A new project is free"`
	// PolicyQuery is the rule that the policy gate asks.
	PolicyQuery string `json:"policyQuery,omitempty" doc:"Rule of the project's policies that decides; data.quartermaster.tools.allow where absent" example:"data.quartermaster.tools.allow"`
	// GrantsToken says how fresh the grants must at least be read from the
	// cluster that keeps them; "" where they are kept here.
	GrantsToken string    `json:"-"`
	Revision    int64     `json:"revision" readOnly:"true" doc:"Grows with every change of the project's catalog"`
	CreatedAt   time.Time `json:"createdAt" readOnly:"true"`
}

func (p *Project) normalize() {
	if p.Name == "" {
		p.Name = p.ID
	}
	if p.Plan == "" {
		p.Plan = PlanFree
	}
	if p.PolicyQuery == "" {
		p.PolicyQuery = DefaultPolicyQuery
	}
}

// Validate fills in the defaults of p and says what is wrong with the rest.
func (p *Project) Validate() error {
	p.normalize()
	var f faults
	if !ValidProjectID(p.ID) {
		f.add("id", "must be 1 to 40 of a-z, 0-9 and -")
	}
	checkText(&f, "name", p.Name, 255)
	if _, ok := planLimits[p.Plan]; !ok {
		f.add("plan", "must be one of free, starter, team, enterprise")
	}
	if !validQuery(p.PolicyQuery) {
		f.add("policyQuery", "must name one rule, such as %s", DefaultPolicyQuery)
	}
	return f.err("project %q is not valid", p.ID)
}

// ValidProjectID reports whether id could be a project's.
func ValidProjectID(id string) bool {
	return within(id, 40, func(c byte) bool {
		return 'a' <= c && c <= 'z' || isDigit(c) || c == '-'
	})
}
