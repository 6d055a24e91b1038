package quartermaster

import "time"

// AuditRecord is one line in the books: who did what to which tool, what was
// decided and why, and how it ended. It holds names of arguments, never their
// values unless the operator has switched that on.
type AuditRecord struct {
	ID           string    `json:"id"`
	Time         time.Time `json:"time"`
	Project      string    `json:"project"`
	Agent        string    `json:"agent,omitempty"`
	User         string    `json:"user,omitempty"`
	Session      string    `json:"session,omitempty"`
	CallID       string    `json:"callId,omitempty"`
	Action       Action    `json:"action"`
	Tool         string    `json:"tool,omitempty"`
	Groups       []string  `json:"groups,omitzero"`
	State        string    `json:"state,omitempty"`
	NextState    string    `json:"nextState,omitempty"`
	ArgumentKeys []string  `json:"argumentKeys,omitempty"`
	Outcome      Outcome   `json:"outcome"`
	Code         Code      `json:"code,omitempty"`
	Gate         string    `json:"gate,omitempty"`
	Reason       string    `json:"reason,omitempty"`
	DurationMS   float64   `json:"durationMs"`
}

// Action is what was attempted.
type Action string

// The actions that reach the audit (OBS-1).
const (
	ActionList       Action = "list"
	ActionCall       Action = "call"
	ActionTransition Action = "transition"
	ActionAdmin      Action = "admin"
)

// Outcome is how it ended. A record whose process died in between stays
// unfinished.
type Outcome string

// The outcomes of an audited action.
const (
	OutcomeAllowed    Outcome = "allowed"
	OutcomeDenied     Outcome = "denied"
	OutcomeFailed     Outcome = "failed"
	OutcomeUnfinished Outcome = "unfinished"
)
