package resolve

import (
	"strings"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"quartermaster"
)

// registry passes tools that are switched on, the tool itself and the server
// that it belongs to, and of which nothing waits to be accepted (CAT-4). Those
// of a server that has been down for too long are not there (POOL-3).
func registry(q *request, _ candidates) (set, error) {
	return set{one: q.resolver.present(q.index)}, nil
}

// present are the live tools whose servers are not gone. Servers seldom are:
// then nothing is copied.
func (r *Resolver) present(ix *index) *roaring.Bitmap {
	live := ix.live
	if r.gone == nil {
		return live
	}
	project := ix.catalog.Project().ID
	for name, tools := range ix.servers {
		if !r.gone(project, name) {
			continue
		}
		if live == ix.live {
			live = live.Clone()
		}
		live.AndNot(tools)
	}
	return live
}

// registered says why a tool is not registered; "" if it is.
func registered(c *quartermaster.Catalog, tool *quartermaster.Tool) string {
	server := c.ServerEnabled(tool)
	if tool.Active() && server {
		return ""
	}
	var reasons []string
	if !tool.Enabled {
		reasons = append(reasons, "it is disabled")
	}
	if !server && !tool.Enabled {
		reasons = append(reasons, "so is its server "+tool.Server)
	} else if !server {
		reasons = append(reasons, "its server "+tool.Server+" is disabled")
	}
	if tool.Held != "" {
		reasons = append(reasons, held(tool))
	}
	return strings.Join(reasons, ", and ")
}

// held says why a tool waits to be accepted.
func held(tool *quartermaster.Tool) string {
	since := tool.HeldSince.UTC().Format(time.DateOnly)
	switch tool.Held {
	case quartermaster.HeldChanged:
		return "its definition changed on " + since + " and waits to be accepted"
	case quartermaster.HeldQuarantined:
		return "it has been in quarantine since " + since + " and waits to be accepted"
	}
	return "it has been new on server " + tool.Server + " since " + since + " and waits to be accepted"
}

func registryReason(q *request, tool *quartermaster.Tool, passed bool) string {
	reason := registered(q.index.catalog, tool)
	switch {
	case !passed && reason == "":
		return "its server " + tool.Server + " has been down for too long"
	case !passed:
		return reason
	case tool.Origin == quartermaster.OriginDiscovered:
		return "it is enabled and accepted"
	}
	return "it is enabled"
}

func registryRemedy(q *request, tool *quartermaster.Tool) string {
	var commands []string
	if !tool.Enabled {
		commands = append(commands, q.command("tools", "enable", tool.Name))
	}
	if !q.index.catalog.ServerEnabled(tool) {
		commands = append(commands, q.command("servers", "enable", tool.Server))
	}
	if tool.Held != "" {
		commands = append(commands, q.command("servers", "accept", tool.Server, tool.Upstream))
	}
	if len(commands) == 0 {
		commands = append(commands, "look at what is wrong with the server: "+q.command("servers", "get", tool.Server))
	}
	return strings.Join(commands, " and ")
}
