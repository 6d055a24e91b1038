package quartermaster

import "encoding/json"

// Call asks for one execution of a tool.
type Call struct {
	Tool      string          `json:"tool" doc:"Name, alias or @server/tool"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
}

// Result is what a tool answered. Content is MCP's content, unchanged.
type Result struct {
	Content           []json.RawMessage `json:"content"`
	StructuredContent json.RawMessage   `json:"structuredContent,omitempty"`
	IsError           bool              `json:"isError"`
}

// Question is what a Resolver is asked. The zero Question asks for the list.
type Question struct {
	// Tool asks for one tool by the name that the caller used for it.
	Tool string
	// Arguments are those of the call; a policy may be narrower with them than
	// without, never wider.
	Arguments json.RawMessage
}

// Resolution answers a Question: the tools that passed every gate, ordered by
// the name under which the caller sees them.
type Resolution struct {
	Tools    []*Tool
	State    string
	Revision int64
}
