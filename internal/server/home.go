package server

import (
	"bytes"
	_ "embed"
	"html/template"
	"net/http"

	"quartermaster"
)

//go:embed home.html
var homeHTML string

var homePage = template.Must(template.New("home").Parse(homeHTML))

// home shows what the server knows, so that a newcomer sees something.
func (s *Server) home(w http.ResponseWriter, r *http.Request) {
	type projectView struct {
		quartermaster.Project
		Tools   []quartermaster.Tool
		Agents  []agentSummary
		Servers []quartermaster.Server
	}
	projects, err := s.Store.Projects(r.Context())
	if err != nil {
		writeProblem(w, s.problem(r.Context(), err))
		return
	}
	const most = 20 // projects, and things of each: the rest is in the API
	view := struct {
		Version  string
		Projects []projectView
		More     int
	}{Version: s.Version, More: max(0, len(projects)-most)}
	for _, p := range projects[:min(most, len(projects))] {
		c, err := s.Store.Catalog(r.Context(), p.ID)
		if err != nil {
			writeProblem(w, s.problem(r.Context(), err))
			return
		}
		v := projectView{Project: c.Project(), Agents: agents(c)}
		for _, t := range c.Tools() {
			v.Tools = append(v.Tools, s.view(t))
		}
		for _, server := range c.Servers() {
			v.Servers = append(v.Servers, s.viewServer(c, server))
		}
		view.Projects = append(view.Projects, v)
	}
	var page bytes.Buffer
	if err := homePage.Execute(&page, view); err != nil {
		writeProblem(w, s.problem(r.Context(), err))
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", inert)
	_, _ = w.Write(page.Bytes())
}
