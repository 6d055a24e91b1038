package server

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"

	"quartermaster"
)

// gateStatus says whether a gate is part of the decision.
type gateStatus struct {
	Name   quartermaster.Gate `json:"name"`
	On     bool               `json:"on"`
	Detail string             `json:"detail,omitempty" doc:"What answers it"`
	// Trouble is for people: an engine that answers by old rules is in some, too.
	Trouble string `json:"trouble,omitempty" doc:"Why it cannot answer, or answers by old rules"`
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
	{Name: quartermaster.GatePermission, Detail: "no permission engine: every user may execute what the other gates let through"},
	{Name: quartermaster.GatePolicy, Detail: "no policy engine: no rule refuses anything"},
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
	b.Gates = s.gates()
	for kind := range s.Providers {
		b.Providers = append(b.Providers, kind)
	}
	slices.Sort(b.Providers)
	b.Projects = len(projects)
	return out, nil
}

// gates are those of the decision, with how their engines are doing.
func (s *Server) gates() []gateStatus {
	all, on := slices.Clone(gates), s.Advisor.Gates()
	engines := s.engines()
	for i := range all {
		g := &all[i]
		g.On = slices.Contains(on, g.Name)
		if engine, ok := engines[g.Name]; ok {
			st := engine.Status()
			g.Detail, g.Trouble = st.Detail, st.Trouble
			if !st.Ready() {
				g.Trouble = progress(g.Name, st)
			}
		}
	}
	return all
}

// engines are those that there are, by the gate that asks them.
func (s *Server) engines() map[quartermaster.Gate]quartermaster.Engine {
	all := map[quartermaster.Gate]quartermaster.Engine{}
	if s.Permission != nil {
		all[quartermaster.GatePermission] = s.Permission
	}
	if s.Policy != nil {
		all[quartermaster.GatePolicy] = s.Policy
	}
	return all
}

// progress says how far an engine is that cannot answer yet.
func progress(gate quartermaster.Gate, st quartermaster.EngineStatus) string {
	noun := "relationships"
	if gate == quartermaster.GatePolicy {
		noun = "policies"
	}
	return fmt.Sprintf("loaded %d of %d %s", st.Loaded, st.Total, noun)
}

// healthz says that the process is alive.
func (s *Server) healthz(w http.ResponseWriter, _ *http.Request) {
	writeHealth(w, http.StatusOK, map[string]string{"status": "ok"})
}

// readyz says whether requests can be answered now.
func (s *Server) readyz(w http.ResponseWriter, r *http.Request) {
	starting := map[string]string{"status": "starting"}
	for gate, engine := range s.engines() {
		if st := engine.Status(); !st.Ready() {
			starting[string(gate)] = progress(gate, st)
		}
	}
	if !s.ready.Load() || len(starting) > 1 {
		writeHealth(w, http.StatusServiceUnavailable, starting)
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
