package client

import (
	"context"
	"encoding/json"
	"net/http"

	"quartermaster"
)

const nounServers = "servers"

// Server is an upstream server and how it is doing, where the server says so.
type Server struct {
	quartermaster.Server
	Status *quartermaster.ServerStatus `json:"status,omitempty"`
}

// UnmarshalJSON reads both parts: the embedded one has a reader of its own,
// which would be used for the whole.
func (s *Server) UnmarshalJSON(data []byte) error {
	if err := json.Unmarshal(data, &s.Server); err != nil {
		return err
	}
	var rest struct {
		Status *quartermaster.ServerStatus `json:"status"`
	}
	err := json.Unmarshal(data, &rest)
	s.Status = rest.Status
	return err
}

// Servers lists the project's upstream servers, by name.
func (p *Project) Servers() List[Server] {
	return List[Server]{get: p.getter("/" + nounServers)}
}

// Server reads one server with its status.
func (p *Project) Server(ctx context.Context, name string) (Server, error) {
	var answer Server
	err := p.at(ctx, nounServers, name, request{method: http.MethodGet}, &answer)
	return answer, err
}

// PutServer adds a server or replaces its settings.
func (p *Project) PutServer(ctx context.Context, s quartermaster.Server) (Server, error) {
	return p.putServer(ctx, s.Name, s)
}

// PutServerFrom is PutServer with the settings as a person has written them.
func (p *Project) PutServerFrom(ctx context.Context, name string, written json.RawMessage) (Server, error) {
	return p.putServer(ctx, name, written)
}

func (p *Project) putServer(ctx context.Context, name string, body any) (Server, error) {
	var answer Server
	err := p.at(ctx, nounServers, name, request{method: http.MethodPut, body: body}, &answer)
	return answer, err
}

// RestartServer connects to a server anew. It returns when that has gone well or
// failed.
func (p *Project) RestartServer(ctx context.Context, name string) error {
	return p.at(ctx, nounServers, name, request{method: http.MethodPost, path: "/restart"}, nil)
}

// ServerStderr reads the last lines that a stdio server wrote to its error
// output.
func (p *Project) ServerStderr(ctx context.Context, name string) ([]string, error) {
	var answer struct{ Lines []string }
	err := p.at(ctx, nounServers, name, request{method: http.MethodGet, path: "/stderr"}, &answer)
	return answer.Lines, err
}

// AcceptTools lets tools of a server through that are held back: those named, or
// all. It returns the names of those that were.
func (p *Project) AcceptTools(ctx context.Context, server string, tools ...string) ([]string, error) {
	var answer struct{ Accepted []string }
	body := map[string][]string{}
	if len(tools) > 0 {
		body["tools"] = tools
	}
	err := p.at(ctx, nounServers, server, request{method: http.MethodPost, path: "/accept", body: body}, &answer)
	return answer.Accepted, err
}

// DeleteServer removes a server, its tools and their bindings.
func (p *Project) DeleteServer(ctx context.Context, name string) error {
	return p.at(ctx, nounServers, name, request{method: http.MethodDelete}, nil)
}
