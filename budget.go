package quartermaster

import "time"

// Plan is what a project has paid for.
type Plan string

// The plans of BUD-1.
const (
	PlanFree       Plan = "free"
	PlanStarter    Plan = "starter"
	PlanTeam       Plan = "team"
	PlanEnterprise Plan = "enterprise"
)

// Unlimited is the limit of a metric that has none.
const Unlimited int64 = -1

var planLimits = map[Plan]int64{
	PlanFree:       100,
	PlanStarter:    1_000,
	PlanTeam:       10_000,
	PlanEnterprise: Unlimited,
}

// ToolCalls is how many successful calls a month the plan allows.
// An unknown plan allows none.
func (p Plan) ToolCalls() int64 { return planLimits[p] }

// MetricToolCalls counts successful tool calls.
const MetricToolCalls = "tool_calls"

// Budget is a project's use of one metric in the current calendar month (UTC).
type Budget struct {
	Metric   string    `json:"metric"`
	Plan     Plan      `json:"plan"`
	Limit    int64     `json:"limit" doc:"-1: unlimited"`
	Used     int64     `json:"used"`
	ResetsAt time.Time `json:"resetsAt"`
}
