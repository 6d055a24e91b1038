package server

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"quartermaster"
)

// gateStatus says whether a gate is part of the decision.
type gateStatus struct {
	Name   quartermaster.Gate `json:"name"`
	On     bool               `json:"on"`
	Detail string             `json:"detail,omitempty"`
}

type databaseStatus struct {
	Kind   string `json:"kind" enum:"sqlite,postgres"`
	Schema int64  `json:"schema" doc:"Number of the newest migration"`
}

type statusOutput struct {
	Body struct {
		Version   string                       `json:"version"`
		Uptime    quartermaster.Duration       `json:"uptime"`
		Database  databaseStatus               `json:"database"`
		Auth      string                       `json:"auth" doc:"Who gets in"`
		User      string                       `json:"user" doc:"Who you are"`
		Role      quartermaster.Role           `json:"role"`
		Gates     []gateStatus                 `json:"gates"`
		Providers []quartermaster.ProviderKind `json:"providers" doc:"Kinds of tools that can be called"`
		Projects  int                          `json:"projects"`
	}
}

// gates of the decision, in their order, with what answers them.
var gates = []gateStatus{
	{Name: quartermaster.GateRegistry, Detail: "enabled tools of enabled servers"},
	{Name: quartermaster.GateCapsule, Detail: "definitions and bindings"},
	{Name: quartermaster.GateDepth, Detail: "coordination tools of spawned agents"},
	{Name: quartermaster.GateGroup, Detail: "requested and granted groups"},
	{Name: quartermaster.GateState, Detail: "the session's workflow state"},
	{Name: quartermaster.GatePermission, Detail: "this version has no permission engine yet"},
	{Name: quartermaster.GatePolicy, Detail: "this version has no policy engine yet"},
}

func (s *Server) status(ctx context.Context, in *WhoInput) (*statusOutput, error) {
	projects, err := s.Store.Projects(ctx)
	if err != nil {
		return nil, err
	}
	out := &statusOutput{}
	b := &out.Body
	b.Version = s.Version
	b.Uptime = quartermaster.Duration(time.Since(s.started).Round(time.Second))
	b.Database = databaseStatus{s.Store.Kind(), s.Store.SchemaVersion()}
	b.Auth = "none: loopback only, every caller is the local operator"
	b.User, b.Role = in.caller.User, in.caller.Role
	b.Gates = slices.Clone(gates)
	for i := range b.Gates {
		b.Gates[i].On = slices.Contains(s.Advisor.Gates(), b.Gates[i].Name)
	}
	for kind := range s.Providers {
		b.Providers = append(b.Providers, kind)
	}
	slices.Sort(b.Providers)
	b.Projects = len(projects)
	return out, nil
}

// healthz says that the process is alive.
func (s *Server) healthz(w http.ResponseWriter, _ *http.Request) {
	writeHealth(w, http.StatusOK, map[string]string{"status": "ok"})
}

// readyz says whether requests can be answered now.
func (s *Server) readyz(w http.ResponseWriter, r *http.Request) {
	if !s.ready.Load() {
		writeHealth(w, http.StatusServiceUnavailable, map[string]string{"status": "starting"})
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), 2*time.Second)
	defer cancel()
	if err := s.Store.Ping(ctx); err != nil {
		writeHealth(w, http.StatusServiceUnavailable, map[string]string{"status": "unavailable", "database": "does not answer"})
		return
	}
	writeHealth(w, http.StatusOK, map[string]string{"status": "ok", "database": "ok"})
}

func writeHealth(w http.ResponseWriter, status int, body map[string]string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}
