package quartermaster

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"time"
	"unicode/utf8"
)

// Agent is a definition: what an agent may reach and how it runs. An agent is
// a string that nobody needs to register, so most have none.
type Agent struct {
	ID          string            `json:"id,omitempty" doc:"1 to 255 characters" example:"writer"`
	Name        string            `json:"name,omitempty"`
	Description string            `json:"description,omitempty"`
	Instruction string            `json:"instruction,omitempty"`
	Model       string            `json:"model,omitempty"`
	Tools       []string          `json:"tools,omitzero" doc:"Patterns of the tools it reaches: a name, an alias, @server/tool, a glob or *"`
	Allowed     []string          `json:"allowed,omitzero" doc:"Narrows the reach to what these patterns match. Absent or empty: all of it"`
	Aliases     map[string]string `json:"aliases,omitempty" doc:"Further names of tools, e.g. read: @files/read_file"`
	MaxDepth    int               `json:"maxDepth" required:"false" minimum:"0" maximum:"100" doc:"How deep it may spawn agents. Absent: 2"`
	MaxSteps    int               `json:"maxSteps,omitempty" minimum:"0"`
	Timeout     Duration          `json:"timeout,omitzero" pattern:"^([0-9]+([.][0-9]+)?(ns|us|µs|ms|s|m|h))+$" patternDescription:"a duration such as 5m"`
	Visibility  Visibility        `json:"visibility,omitempty" enum:"external,project,internal" doc:"Absent: project"`
	Flow        Flow              `json:"flow,omitempty" enum:"single,sequential,loop" doc:"Absent: single"`
	Servers     []string          `json:"servers,omitempty" doc:"Servers whose prompts and resources it may use"`
	Discovery   Discovery         `json:"discovery,omitempty" enum:"list,search" doc:"search: it is given find_tools and call_tool in place of a long list. Absent: list"`
	Memory      json.RawMessage   `json:"memory,omitempty" doc:"Settings of its memory"`
	Fixed       bool              `json:"fixed,omitempty" doc:"Keep a session's tools as they were when it began"`
	CreatedAt   time.Time         `json:"createdAt" readOnly:"true"`
	UpdatedAt   time.Time         `json:"updatedAt" readOnly:"true"`
	Warnings    []string          `json:"warnings,omitempty" readOnly:"true" doc:"What in it has no effect, such as a pattern that matches nothing"`
}

// Visibility says who may start an agent.
type Visibility string

// The visibilities of AGT-1.
const (
	VisibilityExternal Visibility = "external"
	VisibilityProject  Visibility = "project"
	VisibilityInternal Visibility = "internal"
)

// Flow is how an agent's steps follow each other.
type Flow string

// The flows of AGT-1.
const (
	FlowSingle     Flow = "single"
	FlowSequential Flow = "sequential"
	FlowLoop       Flow = "loop"
)

// Discovery is how an agent learns of its tools.
type Discovery string

// The ways of MCP-3.
const (
	DiscoveryList   Discovery = "list"
	DiscoverySearch Discovery = "search"
)

// DefaultMaxDepth is how deep agents may spawn agents unless told otherwise.
const DefaultMaxDepth = 2

// UnmarshalJSON reads a definition in which an absent `maxDepth` means 2.
func (a *Agent) UnmarshalJSON(data []byte) error {
	type plain Agent
	p := plain{MaxDepth: DefaultMaxDepth}
	if err := json.Unmarshal(data, &p); err != nil {
		return err
	}
	*a = Agent(p)
	return nil
}

// CheckAgentID says what is wrong with an agent's id (BIND-6). location names
// the field in the error.
func CheckAgentID(location, id string) error {
	var f faults
	checkAgentID(&f, location, id)
	return f.err("the agent id is not valid")
}

func checkAgentID(f *faults, location, id string) {
	switch n := utf8.RuneCountInString(id); {
	case id == "":
		f.add(location, "must not be empty")
	case n > 255:
		f.add(location, "must have at most 255 characters, has %d", n)
	case !utf8.ValidString(id):
		f.add(location, "must be valid UTF-8")
	case strings.ContainsRune(id, 0):
		f.add(location, "must not contain a NUL character")
	}
}

func (a *Agent) normalize() {
	if a.Visibility == "" {
		a.Visibility = VisibilityProject
	}
	if a.Flow == "" {
		a.Flow = FlowSingle
	}
	if a.Discovery == "" {
		a.Discovery = DiscoveryList
	}
	a.Servers, a.Aliases = absent(a.Servers), absentMap(a.Aliases)
	a.Warnings = nil
}

// fold drops repetitions: after faults, which tell the place in what was given.
func (a *Agent) fold() {
	a.Tools, a.Allowed, a.Servers = fold(a.Tools), fold(a.Allowed), fold(a.Servers)
}

func (a *Agent) faults() faults {
	var f faults
	checkAgentID(&f, "id", a.ID)
	if a.ID == "." || a.ID == ".." {
		f.add("id", "%q cannot have a definition: no URL can name it", a.ID)
	}
	const long = 1_000_000
	checkText(&f, "name", a.Name, 255)
	checkText(&f, "description", a.Description, long)
	checkText(&f, "instruction", a.Instruction, long)
	checkText(&f, "model", a.Model, 255)
	checkNames(&f, "tools", a.Tools)
	checkNames(&f, "allowed", a.Allowed)
	checkNames(&f, "servers", a.Servers)
	checkObject(&f, "memory", &a.Memory)
	for alias, target := range a.Aliases {
		at := "aliases." + alias
		switch {
		case !ValidToolName(alias):
			f.add(at, "an alias must be 1 to 128 of A-Z a-z 0-9 _ . -")
		case Reserved(alias):
			f.add(at, "the name is reserved")
		case target == "":
			f.add(at, "must name a tool")
		}
		checkText(&f, at, target, 255)
	}
	checkDuration(&f, "timeout", a.Timeout)
	checkRange(&f, "maxDepth", a.MaxDepth, 0, 100)
	checkRange(&f, "maxSteps", a.MaxSteps, 0, 1_000_000)
	checkWord(&f, "visibility", a.Visibility, VisibilityExternal, VisibilityProject, VisibilityInternal)
	checkWord(&f, "flow", a.Flow, FlowSingle, FlowSequential, FlowLoop)
	checkWord(&f, "discovery", a.Discovery, DiscoveryList, DiscoverySearch)
	return f
}

func checkRange(f *faults, location string, v, least, most int) {
	if v < least || v > most {
		f.add(location, "must be %d to %d", least, most)
	}
}

func checkWord[T ~string](f *faults, location string, v T, words ...T) {
	for _, w := range words {
		if v == w {
			return
		}
	}
	f.add(location, "must be one of %s", strings.Trim(fmt.Sprint(words), "[]"))
}

func (a *Agent) same(o *Agent) bool {
	x, y := *a, *o
	x.CreatedAt, x.UpdatedAt = y.CreatedAt, y.UpdatedAt
	return reflect.DeepEqual(x, y)
}
