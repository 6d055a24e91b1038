package client

import (
	"context"
	"net/http"

	"quartermaster"
)

// Status is how a server is set up.
type Status struct {
	Version   string                       `json:"version"`
	Uptime    quartermaster.Duration       `json:"uptime"`
	Database  Database                     `json:"database"`
	Auth      string                       `json:"auth"` // who gets in
	User      string                       `json:"user"` // who the client is
	Role      quartermaster.Role           `json:"role"`
	Gates     []Gate                       `json:"gates"`
	Providers []quartermaster.ProviderKind `json:"providers"`
	Projects  int                          `json:"projects"`
}

// Database is what a server keeps its data in.
type Database struct {
	Kind   string `json:"kind"`
	Schema int64  `json:"schema"`
}

// Gate is one check of the server and whether it is on.
type Gate struct {
	Name    string `json:"name"`
	On      bool   `json:"on"`
	Detail  string `json:"detail,omitempty"`  // what answers it
	Trouble string `json:"trouble,omitempty"` // why it cannot, or does so by old rules
}

// Status asks how the server is set up.
func (c *Client) Status(ctx context.Context) (Status, error) {
	var answer Status
	err := c.do(ctx, request{method: http.MethodGet, path: "/api/v1/status"}, &answer)
	return answer, err
}

// Healthy is nil when the server answers at all.
func (c *Client) Healthy(ctx context.Context) error {
	return c.do(ctx, request{method: http.MethodGet, path: "/healthz"}, nil)
}

// Ready is nil when the server can serve requests. One that is still starting
// says how far it is.
func (c *Client) Ready(ctx context.Context) error {
	return c.do(ctx, request{method: http.MethodGet, path: "/readyz"}, nil)
}
