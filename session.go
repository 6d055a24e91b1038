package quartermaster

import (
	"encoding/json"
	"time"
)

// StateUndefined is the state of a session that has none.
const StateUndefined = "undefined"

// Session holds an agent's workflow state between calls.
type Session struct {
	ID          string            `json:"id"`
	Project     string            `json:"project"`
	Agent       string            `json:"agent"`
	User        string            `json:"user,omitempty"`
	Groups      []string          `json:"groups,omitzero"`
	State       string            `json:"state"`
	Question    string            `json:"question,omitempty"`
	History     []json.RawMessage `json:"history,omitempty"`
	Transitions []Transition      `json:"transitions,omitempty"`
	CreatedAt   time.Time         `json:"createdAt"`
	UpdatedAt   time.Time         `json:"updatedAt"`
}

// Transition is one move of a session's state.
type Transition struct {
	Tool string    `json:"tool"`
	From string    `json:"from"`
	To   string    `json:"to"`
	Time time.Time `json:"time"`
}

// Caller is who asks, for whom and in which situation. It is a parameter of
// everything that decides; it never travels in a context.
type Caller struct {
	Project string
	Agent   string
	User    string
	Groups  []string // requested; nil: the implied "default"; empty: none
	Granted []string // nil: those of the user's row; "*" in it: all
	Session string
	State   string // "" means StateUndefined
	Depth   int    // 0 for an agent that no other agent has spawned
	// MaxDepth is the smallest maxDepth of the agents that led to this one; 0:
	// there are none.
	MaxDepth int
	Role     Role
}

// Role is what a credential may do. The zero Role may do nothing.
type Role string

// The roles of SEC-2.
const (
	RoleAdmin    Role = "admin"
	RoleOperator Role = "operator"
	RoleAgent    Role = "agent"
	RoleViewer   Role = "viewer"
)

// LocalUser is the operator of a server that listens on loopback without
// authentication.
const LocalUser = "local"
