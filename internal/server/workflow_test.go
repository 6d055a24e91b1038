package server

import (
	"strings"
	"testing"

	"quartermaster"
)

// WF-2: the workflow is checked on import, and drawn.
func TestWorkflow(t *testing.T) {
	onBoth(t, func(t *testing.T, r rest) {
		var applied struct {
			Warnings []string `json:"warnings"`
		}
		r.do("POST", "apply", `{"quartermaster":"v1","tools":{
			"query":{"state":"analysis","availableInStates":["undefined"]},
			"update":{"availableInStates":["analysis"]},
			"lost":{"availableInStates":["nowhere"]}}}`).ok(200, &applied)
		text := strings.Join(applied.Warnings, "\n")
		if !strings.Contains(text, "nowhere") || !strings.Contains(text, "analysis") || !strings.Contains(text, "lost") {
			t.Errorf("warnings: %s", text)
		}
		applied.Warnings = nil
		r.do("POST", "apply", `{"quartermaster":"v1","tools":{"other":{}}}`).ok(200, &applied)
		if len(applied.Warnings) > 0 {
			t.Errorf("warned of what it did not change: %v", applied.Warnings)
		}
		var w struct {
			States []struct {
				Name      string `json:"name"`
				Reachable bool   `json:"reachable"`
			} `json:"states"`
			Edges []struct{ From, To string } `json:"edges"`
		}
		r.do("GET", "workflow", nil).ok(200, &w)
		if len(w.States) != 3 || len(w.Edges) != 1 || w.Edges[0].From != "undefined" || w.Edges[0].To != "analysis" {
			t.Errorf("%+v", w)
		}
		for format, starts := range map[string]string{"svg": "<svg", "mermaid": "stateDiagram-v2", "dot": "digraph"} {
			a := r.do("GET", "workflow?format="+format, nil)
			a.ok(200, nil)
			if !strings.Contains(string(a.body[:min(200, len(a.body))]), starts) {
				t.Errorf("%s: %.200s", format, a.body)
			}
		}
		if a := r.do("GET", "workflow?format=svg", nil); a.header.Get("Content-Type") != "image/svg+xml" ||
			!strings.Contains(a.header.Get("Content-Security-Policy"), "default-src 'none'") {
			t.Errorf("%v", a.header)
		}
		r.do("GET", "workflow?format=gif", nil).fails(422, quartermaster.CodeInvalidRequest, "query.format")
	})
}
