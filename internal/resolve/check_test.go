package resolve

import (
	"slices"
	"testing"
	"time"

	"quartermaster"
)

// AGT-2, AGT-5: what whoever edits a definition is told.
func TestCheck(t *testing.T) {
	current := catalogOf(t, []byte(`
quartermaster: v1
servers: {files: {transport: stdio, command: x}}
tools: {a: {}, b: {}, off: {enabled: false}, files__r: {server: files}}
bindings: {m: [files__r]}
`))
	for _, tt := range []struct {
		name      string
		agent     quartermaster.Agent
		conflicts []string
		warnings  []string
	}{
		{"fine", quartermaster.Agent{Tools: []string{"a", "[ab]", "@files/*", "*"}, Allowed: []string{"*"}, Aliases: map[string]string{"x": "b"}}, nil, nil},
		// A tool that is disabled is still there to be named.
		{"disabled", quartermaster.Agent{Tools: []string{"off"}}, nil, nil},
		{"no tools", quartermaster.Agent{}, nil, nil},
		{
			"idle",
			quartermaster.Agent{Tools: []string{"none", "@files/none", "z*", "["}, Allowed: []string{"y*", "]["}},
			nil,
			[]string{
				`allowed: "y*" matches no tool`, `allowed: the pattern "][" cannot be parsed; it is skipped`,
				`tools: "@files/none" matches no tool`, `tools: "none" matches no tool`, `tools: "z*" matches no tool`,
				`tools: the pattern "[" cannot be parsed; it is skipped`,
			},
		},
		{
			"aliases",
			quartermaster.Agent{Tools: []string{"a"}, Aliases: map[string]string{"x": "none", "y": "b", "z": "@files/r", "w": "a"}},
			nil,
			[]string{`aliases: "x" stands for "none", which does not exist`, `aliases: "y" stands for "b", which the agent does not reach; an alias adds no reach`},
		},
		{
			"narrowed",
			quartermaster.Agent{Tools: []string{"*"}, Allowed: []string{"a"}, Aliases: map[string]string{"y": "b"}},
			nil,
			[]string{`aliases: "y" stands for "b", which the agent does not reach; an alias adds no reach`},
		},
		{
			"taken",
			quartermaster.Agent{Tools: []string{"*"}, Aliases: map[string]string{"b": "a", "files__r": "off"}},
			[]string{"aliases.b", "aliases.files__r"},
			[]string{`aliases: "b" hides the tool of that name`, `aliases: "files__r" hides the tool of that name`},
		},
		// It is no conflict where the agent does not reach the other one.
		{"free", quartermaster.Agent{Tools: []string{"a"}, Aliases: map[string]string{"b": "a"}}, nil, nil},
		// Bindings count.
		{
			"bound",
			quartermaster.Agent{Tools: []string{"a"}, Aliases: map[string]string{"files__r": "a"}},
			[]string{"aliases.files__r"},
			[]string{`aliases: "files__r" hides the tool of that name`},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := current.Draft(time.Unix(2, 0))
			tt.agent.ID = "m"
			if _, _, err := d.PutAgent(tt.agent); err != nil {
				t.Fatal(err)
			}
			r := New(nil, nil, nil)
			for range 2 {
				conflicts, warnings := r.Check(current, d.Catalog(), "m")
				var at []string
				for _, f := range conflicts {
					at = append(at, f.Location)
				}
				if !slices.Equal(at, tt.conflicts) || !slices.Equal(warnings, tt.warnings) {
					t.Errorf("conflicts at %q and warnings\n%q\nwant %q and\n%q", at, warnings, tt.conflicts, tt.warnings)
				}
			}
		})
	}
	if conflicts, warnings := New(nil, nil, nil).Check(current, current, "nobody"); conflicts != nil || warnings != nil {
		t.Error(conflicts, warnings)
	}
}
