// Package server speaks: REST, the documents about it, health and metrics.
// routes.go is the whole surface on one page.
package server

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"quartermaster"
)

// Store is what the server needs of a store beside the contract.
type Store interface {
	quartermaster.Store
	Ping(ctx context.Context) error
	Kind() string
	SchemaVersion() int64
}

// Config wires a Server. Every field is required, but Log and the engines: a
// gate without one is absent, and what it would go by is kept all the same.
type Config struct {
	Store       Store
	Resolver    quartermaster.Resolver
	Advisor     quartermaster.Advisor
	Permission  quartermaster.Permission
	Policy      quartermaster.PolicyEngine
	Providers   map[quartermaster.ProviderKind]quartermaster.Provider
	Upstreams   quartermaster.Upstreams
	Historian   quartermaster.Historian
	CheckSchema func(json.RawMessage) error
	Version     string
	Log         *slog.Logger
}

// Server answers HTTP requests.
type Server struct {
	Config
	started time.Time
	metrics *metrics
	handler http.Handler
	ready   atomic.Bool
}

// New makes a Server.
func New(c Config) *Server {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	s := &Server{Config: c, started: time.Now(), metrics: newMetrics(c.Version)}
	s.handler = s.routes()
	return s
}

// SetReady lets /readyz say that requests can be answered. Before that the
// project may lack what the server was told to apply at its start.
func (s *Server) SetReady() { s.ready.Store(true) }

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(w, r) }
