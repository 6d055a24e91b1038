package opa

import (
	"encoding/json"
	"testing"

	"quartermaster"
)

// GATE-7: the documents hold what the catalog says, and no secret of it.
func TestDocuments(t *testing.T) {
	e := open(t, Options{})
	c := catalogOf(t, nil, map[string]string{"p": `package quartermaster.tools

want := {"files__read": {"enabled": true, "provider": "mcp", "server": "files", "category": "io", "groups": ["ops"],
	"state": "read", "availableInStates": ["start"], "annotations": {"readOnlyHint": true}},
	"plain": {"enabled": true, "provider": "native", "groups": ["default"]}}

allow if {
	data.tools == want
	data.groups == {"ops": ["files__read"], "default": ["plain"]}
	data.roles == {"alice": ["admin", "dev"], "bob": []}
	data.project == {"id": "acme", "name": "Acme Inc", "plan": "team"}
}`})
	c = edit(t, c, func(d *quartermaster.Draft) error {
		if _, _, err := d.PutServer(quartermaster.Server{
			Name: "files", Transport: "stdio", Command: "x", Prefix: true, Enabled: true,
			Groups: []string{"ops"}, Env: map[string]string{"TOKEN": "${SECRET}"},
		}); err != nil {
			return err
		}
		for _, tool := range []quartermaster.Tool{
			{
				Name: "files__read", Server: "files", Category: "io", Enabled: true, State: "read",
				AvailableInStates: []string{"start"}, Annotations: json.RawMessage(`{"readOnlyHint":true}`), Config: json.RawMessage(`{"key":"hidden"}`),
			},
			{Name: "plain", Enabled: true},
		} {
			if _, err := d.CreateTool(tool); err != nil {
				return err
			}
		}
		p := d.Project()
		p.Name, p.Plan = "Acme Inc", quartermaster.PlanTeam
		return d.SetProject(p)
	})
	c = withRolesOf(t, withRolesOf(t, c, "alice", "admin", "dev"), "bob")
	if got := judged(t, e, c, caller("alice"), quartermaster.Question{}); got != "files__read plain" {
		t.Errorf("%q passes: the documents are others", got)
	}
}
