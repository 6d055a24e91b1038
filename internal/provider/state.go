package provider

import (
	"slices"
	"time"
)

// state is what a connection to an upstream server is doing.
type state string

const (
	stateStarting state = "starting" // connecting, or about to
	stateReady    state = "ready"    // connected and answering
	stateDegraded state = "degraded" // connected, with something a person should know
	stateFailed   state = "failed"   // not connected; tried again soon
	stateResting  state = "resting"  // not connected; left alone for a while
	stateStopped  state = "stopped"  // not wanted at the moment
)

// transitions is every move that a connection can make.
var transitions = map[state][]state{
	stateStopped:  {stateStarting},
	stateStarting: {stateReady, stateDegraded, stateFailed, stateStopped},
	stateReady:    {stateDegraded, stateFailed, stateStarting, stateStopped},
	stateDegraded: {stateReady, stateFailed, stateStarting, stateStopped},
	stateFailed:   {stateStarting, stateResting, stateStopped},
	stateResting:  {stateStarting, stateStopped},
}

func legal(from, to state) bool { return slices.Contains(transitions[from], to) }

// health is the state as a color (UP-5): green is connected and answering, red
// is failed. What is not wanted at the moment is neither.
func (s state) health() string {
	switch s {
	case stateReady:
		return "green"
	case stateFailed, stateResting:
		return "red"
	default:
		return "yellow"
	}
}

// condition is a connection at one moment. It is never modified: the next one
// replaces it, so that whoever asks reads it without a lock.
type condition struct {
	state   state
	reason  string
	since   time.Time
	down    time.Time     // since when it cannot be called; zero: it can, or could on use
	line    *line         // where calls go; nil unless connected
	patient bool          // not connected, but worth waiting for
	next    chan struct{} // closed when this is no longer the newest
}

// Event is one move of a connection (UP-5), or news in the same state.
type Event struct {
	Time    time.Time `json:"time"`
	Project string    `json:"project"`
	Server  string    `json:"server"`
	Agent   string    `json:"agent,omitempty" doc:"Whose connection, where every agent has its own"`
	From    string    `json:"from"`
	To      string    `json:"to"`
	Reason  string    `json:"reason,omitempty"`
}
