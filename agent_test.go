package quartermaster

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"
)

// BIND-6
func TestCheckAgentID(t *testing.T) {
	for id, want := range map[string]bool{
		"a": true, ".": true, "a/b?c#d": true, " ": true, "日本": true, "\n": true,
		strings.Repeat("a", 255): true, strings.Repeat("a", 256): false,
		strings.Repeat("🛠", 255): true, strings.Repeat("🛠", 256): false,
		"": false, "\x00": false, "a\x00b": false, "\xff": false, "a\xc3": false,
	} {
		err := CheckAgentID("body.agentId", id)
		if (err == nil) != want {
			t.Errorf("%q: %v, want valid %t", id, err, want)
		}
		if err == nil {
			continue
		}
		e, ok := err.(*Error) //nolint:errorlint // it must be one itself
		if !ok || e.Code != CodeInvalidRequest || len(e.Faults) != 1 || e.Faults[0].Location != "body.agentId" {
			t.Errorf("%q: %#v, want one fault that names the field", id, err)
		}
	}
}

// AGT-1, BIND-6
func TestAgentFaults(t *testing.T) {
	for name, tt := range map[string]struct {
		edit func(*Agent)
		want []string
	}{
		"none":           {func(*Agent) {}, nil},
		"dot":            {func(a *Agent) { a.ID = "." }, []string{"id"}},
		"dot dot":        {func(a *Agent) { a.ID = ".." }, []string{"id"}},
		"three dots":     {func(a *Agent) { a.ID = "..." }, nil},
		"no id":          {func(a *Agent) { a.ID = "" }, []string{"id"}},
		"bad alias":      {func(a *Agent) { a.Aliases = map[string]string{"a b": "x"} }, []string{"aliases.a b"}},
		"reserved alias": {func(a *Agent) { a.Aliases = map[string]string{"find_tools": "x"} }, []string{"aliases.find_tools"}},
		"alias of none":  {func(a *Agent) { a.Aliases = map[string]string{"a": ""} }, []string{"aliases.a"}},
		"depth 0":        {func(a *Agent) { a.MaxDepth = 0 }, nil},
		"depth":          {func(a *Agent) { a.MaxDepth = 101 }, []string{"maxDepth"}},
		"negative":       {func(a *Agent) { a.MaxDepth, a.MaxSteps, a.Timeout = -1, -1, -1 }, []string{"timeout", "maxDepth", "maxSteps"}},
		"words":          {func(a *Agent) { a.Visibility, a.Flow, a.Discovery = "x", "y", "z" }, []string{"visibility", "flow", "discovery"}},
		"empty pattern":  {func(a *Agent) { a.Tools, a.Allowed = []string{""}, []string{"", "a"} }, []string{"tools[0]", "allowed[0]"}},
		"after repeated": {func(a *Agent) {
			a.Tools, a.Allowed, a.Servers = []string{"a", "a", ""}, []string{"b", "b", ""}, []string{"c", "c", ""}
		}, []string{"tools[2]", "allowed[2]", "servers[2]"}},
		"timeout":     {func(a *Agent) { a.Timeout = Duration(8785 * time.Hour) }, []string{"timeout"}},
		"odd pattern": {func(a *Agent) { a.Tools = []string{"[", "@x/*", "*"} }, nil}, // AGT-2: a warning, elsewhere
		"memory":      {func(a *Agent) { a.Memory = json.RawMessage(`[]`) }, []string{"memory"}},
		"text":        {func(a *Agent) { a.Name, a.Instruction = "\x00", "\xff" }, []string{"name", "instruction"}},
	} {
		t.Run(name, func(t *testing.T) {
			a := Agent{ID: "a", MaxDepth: DefaultMaxDepth}
			tt.edit(&a)
			a.normalize()
			var got []string
			for _, f := range a.faults() {
				got = append(got, f.Location)
			}
			if !reflect.DeepEqual(got, tt.want) {
				t.Errorf("faults of %q, want %q", got, tt.want)
			}
		})
	}
}

// AGT-1, AGT-4
func TestAgentJSON(t *testing.T) {
	var a Agent
	if err := json.Unmarshal([]byte(`{"id":"a"}`), &a); err != nil || a.MaxDepth != 2 || a.Allowed != nil {
		t.Errorf("absent: %+v (%v)", a, err)
	}
	if err := json.Unmarshal([]byte(`{"id":"a","maxDepth":0,"allowed":[]}`), &a); err != nil || a.MaxDepth != 0 || a.Allowed == nil {
		t.Errorf("given: %+v (%v)", a, err)
	}
}
