package quartermaster

import "context"

// Permission is the engine behind the permission gate: who is related to what.
type Permission interface {
	Judge
	Engine

	// CheckGrants says which grants the schema has no place for, by their index:
	// grants[0].relation.
	CheckGrants(ctx context.Context, grants []*Grant) error

	// Grants lists the grants of a catalog's project that a filter chooses, by
	// key: those of the catalog, or those of the cluster that keeps them.
	Grants(ctx context.Context, catalog *Catalog, filter GrantFilter) ([]*Grant, error)

	// Holders lists the users that may execute a tool, by id.
	Holders(ctx context.Context, catalog *Catalog, tool *Tool) ([]Holder, error)

	// Users lists the users that some grant of the project names, by id.
	Users(ctx context.Context, catalog *Catalog) ([]string, error)

	// Schema is the text that says which relations there are.
	Schema(ctx context.Context) (string, error)
}

// Holder is a user that may execute a tool.
type Holder struct {
	User string `json:"user"`
	Via  string `json:"via" doc:"By which relation" example:"executor, as member of group:ops"`
}

// PolicyEngine is the engine behind the policy gate: the rules of the house.
type PolicyEngine interface {
	Judge
	Engine

	// Test compiles the policies of a catalog and runs their tests. Policies that
	// do not compile are an *Error with CodeInvalidRequest, whose faults say
	// where: policies.NAME:LINE. Tests that fail are in the report.
	Test(ctx context.Context, catalog *Catalog) (PolicyReport, error)
}

// PolicyReport is what a look at a project's policies has brought to light.
type PolicyReport struct {
	Tests    []PolicyTest `json:"tests" nullable:"false"`
	Warnings []string     `json:"warnings,omitempty"`
}

// PolicyTest is one test of a policy and how it went.
type PolicyTest struct {
	Name     string   `json:"name" example:"data.quartermaster.tools_test.test_alice"`
	Location string   `json:"location" example:"access_test.rego:7"`
	Passed   bool     `json:"passed"`
	Reason   string   `json:"reason,omitempty" doc:"Why it failed"`
	Duration Duration `json:"duration"`
}

// Failed lists the tests that did not pass.
func (r PolicyReport) Failed() []PolicyTest {
	var failed []PolicyTest
	for _, t := range r.Tests {
		if !t.Passed {
			failed = append(failed, t)
		}
	}
	return failed
}

// Engine is what every engine can say of itself.
type Engine interface {
	// Status says how the engine is doing. It does no I/O.
	Status() EngineStatus
}

// EngineStatus is how an engine is doing.
type EngineStatus struct {
	Detail  string // which engine it is and what it knows, in words
	Trouble string // why it cannot answer, or answers by old rules; "": all is well
	Loaded  int    // of Total things it has to know before it can answer
	Total   int
}

// Ready reports whether the engine knows what it has to know.
func (s EngineStatus) Ready() bool { return s.Loaded >= s.Total }
