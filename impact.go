package quartermaster

import "context"

// Advisor answers operators' questions about the decision, for agents that no
// other agent has started.
type Advisor interface {
	// Check looks at an agent's definition in a catalog that follows from
	// current, or is it. Conflicts must be mended before it is saved; warnings
	// are for whoever edits it.
	Check(current, catalog *Catalog, agent string) (conflicts []Fault, warnings []string)

	// ImpactOf says who gains and loses what from one catalog to the other.
	// after may never come to be.
	ImpactOf(ctx context.Context, before, after *Catalog) (Impact, error)

	// WhoCan lists who gets at a tool, found by name, id or @server/tool.
	WhoCan(ctx context.Context, catalog *Catalog, tool string) (Reachers, error)

	// Gates names the gates that are asked, in order.
	Gates() []Gate
}

// Impact is what a change would give to and take from whom, before it is made
// (GATE-9).
type Impact struct {
	Agents []AgentImpact `json:"agents" nullable:"false"`
	Users  []UserImpact  `json:"users" nullable:"false"`
}

// AgentImpact is what an agent gains and loses.
type AgentImpact struct {
	Agent  string         `json:"agent"`
	Gained []Availability `json:"gained,omitempty"`
	Lost   []Availability `json:"lost,omitempty"`
}

// Availability says in which groups and states a tool can be had. It can be had
// in each of the groups in each of the states.
type Availability struct {
	Tool   string   `json:"tool"`
	Groups []string `json:"groups" nullable:"false" doc:"Groups to ask for by name; * alone: only by asking for every group"`
	States []string `json:"states" nullable:"false" doc:"* is every state; (any other) is every state that no tool names"`
}

// OtherStates stands for all states that no tool names, where the named ones
// differ from them.
const OtherStates = "(any other)"

// UserImpact is what a user gains and loses by other granted groups, grants and
// policies.
type UserImpact struct {
	User   string        `json:"user"`
	Gained []string      `json:"gained,omitempty" doc:"Groups"`
	Lost   []string      `json:"lost,omitempty" doc:"Groups"`
	Agents []AgentChange `json:"agents,omitempty" doc:"What the change brings for the agents that act for the user"`
}

// AgentChange is what an agent can do more and less for a user.
type AgentChange struct {
	Agent  string   `json:"agent"`
	Gained []string `json:"gained,omitempty" doc:"Tools"`
	Lost   []string `json:"lost,omitempty" doc:"Tools"`
}

// Reachers answers the question from the other side: who can get at a tool?
type Reachers struct {
	Tool   string       `json:"tool"`
	Nobody string       `json:"nobody,omitempty" doc:"Why nobody can, whoever they are"`
	Groups []string     `json:"groups" nullable:"false" doc:"A request must ask for one of them, or for *"`
	States []string     `json:"states" nullable:"false" doc:"In which it is available; * is every state"`
	Agents []AgentReach `json:"agents" nullable:"false"`
	Users  []UserReach  `json:"users" nullable:"false" doc:"Users that the permission gate lets through"`
}

// AgentReach is an agent that reaches the tool.
type AgentReach struct {
	Agent string `json:"agent"`
	Name  string `json:"name" doc:"Under which it sees the tool"`
	Via   string `json:"via" doc:"By which pattern or binding"`
}

// UserReach is a user that may execute the tool.
type UserReach struct {
	User    string   `json:"user"`
	Via     string   `json:"via" doc:"By which relation" example:"executor, as member of group:ops"`
	Groups  []string `json:"groups" nullable:"false" doc:"Those of the tool's groups that the user may ask for; none: no request of theirs reaches it"`
	Refused []string `json:"refused,omitempty" doc:"Agents that the policy refuses it to when they act for the user"`
}
