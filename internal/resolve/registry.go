package resolve

import "quartermaster"

// registry passes tools that are switched on: the tool itself, and the server
// that it belongs to.
func registry(q *request, _ candidates) (set, error) {
	return set{one: q.index.live}, nil
}

// registered says why a tool is not registered; "" if it is.
func registered(c *quartermaster.Catalog, tool *quartermaster.Tool) string {
	if !tool.Active() {
		return "it is disabled"
	}
	if tool.Server != "" {
		if s := c.Server(tool.Server); s != nil && !s.Enabled {
			return "its server " + s.Name + " is disabled"
		}
	}
	return ""
}

func registryWords(q *request, tool *quartermaster.Tool, passed bool) (reason, remedy string) {
	if passed {
		return "it is enabled", ""
	}
	reason = registered(q.index.catalog, tool)
	if tool.Active() {
		return reason, "enable the server " + tool.Server
	}
	return reason, "enable it: quartermaster tools enable " + tool.Name
}
