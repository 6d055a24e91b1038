package resolve

import (
	"strings"

	"quartermaster"
)

// registry passes tools that are switched on: the tool itself, and the server
// that it belongs to.
func registry(q *request, _ candidates) (set, error) {
	return set{one: q.index.live}, nil
}

// registered says why a tool is not registered; "" if it is.
func registered(c *quartermaster.Catalog, tool *quartermaster.Tool) string {
	own, server := tool.Active(), c.ServerEnabled(tool)
	switch {
	case own && server:
		return ""
	case own:
		return "its server " + tool.Server + " is disabled"
	case server:
		return "it is disabled"
	}
	return "it is disabled, and so is its server " + tool.Server
}

func registryReason(q *request, tool *quartermaster.Tool, passed bool) string {
	if passed {
		return "it is enabled"
	}
	return registered(q.index.catalog, tool)
}

func registryRemedy(q *request, tool *quartermaster.Tool) string {
	var commands []string
	if !tool.Active() {
		commands = append(commands, q.command("tools", "enable", tool.Name))
	}
	if !q.index.catalog.ServerEnabled(tool) {
		commands = append(commands, q.command("servers", "enable", tool.Server))
	}
	return strings.Join(commands, " and ")
}
