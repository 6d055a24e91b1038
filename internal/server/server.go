package server

import (
	"context"
	"net/http"
	"slices"

	"quartermaster"
)

type serverOutput struct {
	Status int
	Body   quartermaster.Server
}

type serversOutput struct {
	Body quartermaster.Page[quartermaster.Server]
}

// UpstreamInput names an upstream server.
type UpstreamInput struct {
	ProjectInput
	Server string `path:"server" example:"files"`
}

// toolsByServer counts the tools of each server.
func toolsByServer(c *quartermaster.Catalog) map[string]int {
	counts := make(map[string]int, len(c.Servers()))
	for _, t := range c.Tools() {
		counts[t.Server]++
	}
	return counts
}

// viewServer is an upstream server with how it is doing (UP-0) and what is
// wrong with its settings.
func (s *Server) viewServer(c *quartermaster.Catalog, server *quartermaster.Server, tools map[string]int) quartermaster.Server {
	v := *server
	status := s.Upstreams.Status(c.Project().ID, v.Name)
	status.Tools = tools[v.Name]
	v.Status = &status
	v.Warnings = c.ServerWarnings(server)
	return v
}

func (s *Server) listServers(ctx context.Context, in *struct {
	ProjectInput
	PageInput
},
) (*serversOutput, error) {
	c, err := s.Store.Catalog(ctx, in.Project)
	if err != nil {
		return nil, err
	}
	tools := toolsByServer(c)
	page := quartermaster.PageOf(slices.Values(c.Servers()), in.Page, in.Size)
	return &serversOutput{quartermaster.MapPage(page, func(server *quartermaster.Server) quartermaster.Server {
		return s.viewServer(c, server, tools)
	})}, nil
}

func (s *Server) getServer(ctx context.Context, in *UpstreamInput) (*serverOutput, error) {
	c, err := s.Store.Catalog(ctx, in.Project)
	if err != nil {
		return nil, err
	}
	server := c.Server(in.Server)
	if server == nil {
		return nil, quartermaster.Errorf(quartermaster.CodeNotFound, "there is no server %q", in.Server)
	}
	return &serverOutput{http.StatusOK, s.viewServer(c, server, toolsByServer(c))}, nil
}

func (s *Server) putServer(ctx context.Context, in *struct {
	UpstreamInput
	Body quartermaster.Server
},
) (*serverOutput, error) {
	if !quartermaster.ValidServerName(in.Server) {
		return nil, fault("path.server", "must be 1 to 40 of A-Z a-z 0-9 _ -, with a letter or digit at both ends and without __")
	}
	if err := asInPath("name", &in.Body.Name, in.Server); err != nil {
		return nil, err
	}
	var (
		server  *quartermaster.Server
		created bool
	)
	c, err := s.Store.Change(ctx, in.Project, func(d *quartermaster.Draft) (err error) {
		server, created, err = d.PutServer(in.Body)
		return err
	})
	if err != nil {
		return nil, below("body", err)
	}
	return &serverOutput{createdOrOK(created), s.viewServer(c, server, toolsByServer(c))}, nil
}

func createdOrOK(created bool) int {
	if created {
		return http.StatusCreated
	}
	return http.StatusOK
}

func (s *Server) deleteServer(ctx context.Context, in *UpstreamInput) (*struct{}, error) {
	_, err := s.Store.Change(ctx, in.Project, func(d *quartermaster.Draft) error { return d.DeleteServer(in.Server) })
	return nil, err
}

func (s *Server) restartServer(ctx context.Context, in *UpstreamInput) (*struct{}, error) {
	if _, err := s.getServer(ctx, in); err != nil {
		return nil, err
	}
	return nil, s.Upstreams.Restart(ctx, in.Project, in.Server)
}

type stderrOutput struct {
	Body struct {
		Lines []string `json:"lines" nullable:"false" doc:"The last 200, oldest first"`
	}
}

// serverStderr shows what a stdio server wrote to its error output (UP-2).
func (s *Server) serverStderr(ctx context.Context, in *UpstreamInput) (*stderrOutput, error) {
	if _, err := s.getServer(ctx, in); err != nil {
		return nil, err
	}
	out := &stderrOutput{}
	out.Body.Lines = append([]string{}, s.Upstreams.Stderr(in.Project, in.Server)...)
	return out, nil
}

type acceptOutput struct {
	Body struct {
		Accepted []string `json:"accepted" nullable:"false" doc:"Tools that were held back and are no longer, by name"`
	}
}

// acceptTools lets tools through that are held back (CAT-4).
func (s *Server) acceptTools(ctx context.Context, in *struct {
	UpstreamInput
	Body struct {
		Tools []string `json:"tools,omitempty" doc:"As the server or the catalog names them; absent: all of the server's"`
	}
},
) (*acceptOutput, error) {
	out := &acceptOutput{}
	_, err := s.Store.Change(ctx, in.Project, func(d *quartermaster.Draft) error {
		accepted, err := d.Accept(in.Server, in.Body.Tools...)
		out.Body.Accepted = toolNames(accepted)
		return err
	})
	return out, err
}
