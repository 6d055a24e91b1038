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
