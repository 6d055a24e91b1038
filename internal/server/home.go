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

// some is as much of a list as fits on the page.
type some[T any] struct {
	Items []T
	Total int
}

// More is how many are left out.
func (s some[T]) More() int { return s.Total - len(s.Items) }

func someOf[T, V any](all []T, view func(T) V) some[V] {
	const most = 200
	items := make([]V, 0, min(most, len(all)))
	for _, t := range all[:min(most, len(all))] {
		items = append(items, view(t))
	}
	return some[V]{items, len(all)}
}

// home shows what the server knows, so that a newcomer sees something.
func (s *Server) home(w http.ResponseWriter, r *http.Request) {
	type toolView struct {
		quartermaster.Tool
		Groups []string // in effect, where the tool's own may be absent
	}
	type projectView struct {
		quartermaster.Project
		Tools   some[toolView]
		Agents  some[agentSummary]
		Servers some[quartermaster.Server]
	}
	projects, err := s.Store.Projects(r.Context())
	if err != nil {
		writeProblem(w, s.problem(r.Context(), err))
		return
	}
	const most = 20 // projects: the rest is in the API
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
		counts := toolsByServer(c)
		view.Projects = append(view.Projects, projectView{
			Project: c.Project(),
			Tools:   someOf(c.Tools(), func(t *quartermaster.Tool) toolView { return toolView{s.view(c.Project().ID, t), c.GroupsOf(t)} }),
			Agents:  someOf(agents(c), func(a agentSummary) agentSummary { return a }),
			Servers: someOf(c.Servers(), func(u *quartermaster.Server) quartermaster.Server { return s.viewServer(c, u, counts) }),
		})
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
