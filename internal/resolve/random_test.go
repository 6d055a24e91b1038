package resolve

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"pgregory.net/rapid"

	"quartermaster"
)

// Words are few, so that names, globs, aliases, servers, groups and states
// really meet.
var (
	toolWords    = []string{"a", "b", "ab", "c", "s__a", "s__b", "t__a", "t__ab", "s__s__a"}
	serverWords  = []string{"s", "t"}
	agentWords   = []string{"m", "n"}
	userWords    = []string{"u", "v"}
	groupNames   = []string{"default", "g", "h", "*"}
	stateNames   = []string{"undefined", "p", "q", "*"}
	aliasWords   = []string{"a", "b", "s__a", "r", "z"}
	patternWords = []string{
		"*", "a", "b", "ab", "s__a", "t__ab", "a*", "?", "[ab]", "[^a]", "[", "s__*", "*a", `\a`, "r", "z", "nope",
		"@s/a", "@s/*", "@t/ab", "@*/a", "@?/*", "@s/s__a", "@nope/a", "@*", "spawn_agents", "spawn*", "echo", "list_available_agents",
	}
	targetWords = []string{"a", "b", "ab", "s__a", "t__ab", "@s/a", "@t/a", "@s/s__a", "nope", "*", "r", "echo"}
)

func oneOf[T any](t *rapid.T, label string, values ...T) T {
	return rapid.SampledFrom(values).Draw(t, label)
}

// someOf draws nil, an empty list or a list.
func someOf(t *rapid.T, label string, words []string) []string {
	switch oneOf(t, label+"?", "list", "list", "list", "nil", "empty") {
	case "nil":
		return nil
	case "empty":
		return []string{}
	}
	return rapid.SliceOfN(rapid.SampledFrom(words), 1, 3).Draw(t, label)
}

// mostly draws true four times out of five.
func mostly(t *rapid.T, label string) bool { return oneOf(t, label, true, true, true, true, false) }

// randomCatalog is a small project that people have changed a few times.
func randomCatalog(t *rapid.T) *quartermaster.Catalog {
	d := empty().Draft(time.Unix(1, 0))
	d.AddBuiltins()
	for range rapid.IntRange(4, 24).Draw(t, "edits") {
		randomEdit(t, d)
	}
	return d.Catalog()
}

// laterCatalog follows from c by a few edits.
func laterCatalog(t *rapid.T, c *quartermaster.Catalog) *quartermaster.Catalog {
	d := c.Draft(time.Unix(c.Revision()+1, 0))
	for range rapid.IntRange(1, 4).Draw(t, "edits") {
		randomEdit(t, d)
	}
	return d.Catalog()
}

// randomEdit changes one thing, or nothing where the draft refuses it.
func randomEdit(t *rapid.T, d *quartermaster.Draft) {
	switch oneOf(t, "edit", "tool", "tool", "tool", "tool", "update", "update", "delete", "server", "server off", "discover", "discover", "accept", "agent", "agent", "bind", "unbind", "user", "forget") {
	case "tool":
		_, _ = d.CreateTool(randomTool(t, d))
	case "update":
		next := randomTool(t, d)
		_, _ = d.UpdateTool(randomName(t), func(tool *quartermaster.Tool) error {
			switch oneOf(t, "field", "all", "enabled", "groups", "states", "description") {
			case "all":
				next.Origin = tool.Origin
				*tool = next
			case "enabled":
				tool.Enabled = !tool.Enabled
			case "groups":
				tool.Groups = next.Groups
			case "states":
				tool.AvailableInStates = next.AvailableInStates
			case "description":
				tool.DisplayName += "."
			}
			return nil
		})
	case "delete":
		_ = d.DeleteTool(randomName(t))
	case "server":
		_, _, _ = d.PutServer(quartermaster.Server{
			Name: oneOf(t, "server", serverWords...), Transport: quartermaster.TransportStdio, Command: "x",
			Enabled: mostly(t, "enabled"), Prefix: mostly(t, "prefix"), Groups: someOf(t, "groups", groupNames),
			Pin: oneOf(t, "pin", true, false), Quarantine: !mostly(t, "no quarantine"),
		})
	case "server off":
		_ = d.DeleteServer(oneOf(t, "server", serverWords...))
	case "discover":
		_, _ = d.Discover(oneOf(t, "server", serverWords...), randomOffers(t))
	case "accept":
		_, _ = d.Accept(oneOf(t, "server", serverWords...))
	case "agent":
		_, _, _ = d.PutAgent(randomAgent(t))
	case "bind":
		agent := oneOf(t, "agent", agentWords...)
		var ids []string
		for range rapid.IntRange(1, 3).Draw(t, "bound") {
			if tool := d.Tool(randomName(t)); tool != nil {
				ids = append(ids, tool.ID)
			}
		}
		_, _ = d.ReplaceBindings(agent, ids)
	case "unbind":
		_, _ = d.ReplaceBindings(oneOf(t, "agent", agentWords...), []string{})
	case "user":
		_, _, _ = d.PutUser(quartermaster.User{ID: oneOf(t, "user", userWords...), Groups: append([]string{}, someOf(t, "granted", groupNames)...)})
	case "forget":
		switch oneOf(t, "whom", "agent", "user") {
		case "agent":
			_ = d.DeleteAgent(oneOf(t, "agent", agentWords...))
		case "user":
			_ = d.DeleteUser(oneOf(t, "user", userWords...))
		}
	}
}

func randomName(t *rapid.T) string {
	return oneOf(t, "name", append([]string{"echo", "spawn_agents"}, toolWords...)...)
}

func randomTool(t *rapid.T, d *quartermaster.Draft) quartermaster.Tool {
	tool := quartermaster.Tool{
		Name: oneOf(t, "name", toolWords...), Enabled: mostly(t, "enabled"),
		Groups: someOf(t, "groups", groupNames), AvailableInStates: someOf(t, "states", stateNames),
		State: oneOf(t, "state", "", "p", "q"),
	}
	if mostly(t, "plain groups") {
		tool.Groups = nil
	}
	if mostly(t, "every state") {
		tool.AvailableInStates = nil
	}
	server, _, found := strings.Cut(tool.Name, "__")
	if !found {
		server = oneOf(t, "server", serverWords...)
	}
	if d.Server(server) != nil && mostly(t, "of a server") {
		tool.Server = server
	}
	return tool
}

func randomOffers(t *rapid.T) []quartermaster.Offer {
	var offers []quartermaster.Offer
	for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "ab", "s__a"}), 0, 3, rapid.ID).Draw(t, "offers") {
		offers = append(offers, quartermaster.Offer{Name: name, Description: oneOf(t, "description", "one", "two")})
	}
	return offers
}

func randomAgent(t *rapid.T) quartermaster.Agent {
	a := quartermaster.Agent{
		ID: oneOf(t, "agent", agentWords...), MaxDepth: rapid.IntRange(0, 3).Draw(t, "maxDepth"),
		Tools: someOf(t, "tools", patternWords),
	}
	if oneOf(t, "narrow", true, false) {
		a.Allowed = someOf(t, "allowed", patternWords)
	}
	if oneOf(t, "aliases?", true, false) {
		a.Aliases = rapid.MapOfN(rapid.SampledFrom(aliasWords), rapid.SampledFrom(targetWords), 1, 3).Draw(t, "aliases")
	}
	return a
}

func randomCaller(t *rapid.T) quartermaster.Caller {
	c := quartermaster.Caller{
		Project: "default", Agent: oneOf(t, "agent", "m", "m", "n", "n", "stranger"), User: oneOf(t, "user", "u", "v", "w"),
		Groups: someOf(t, "asked", append([]string{"none"}, groupNames...)), State: oneOf(t, "state", "", "undefined", "p", "q", "none"),
		Depth: rapid.IntRange(0, 3).Draw(t, "depth"), MaxDepth: rapid.IntRange(0, 3).Draw(t, "chain"),
	}
	if mostly(t, "all granted") {
		c.Granted = []string{"*"}
	}
	return c
}

// everyName is whatever a caller could call something in c by.
func everyName(c *quartermaster.Catalog) []string {
	all := slices.Concat(toolWords, aliasWords, patternWords, targetWords, []string{"", "@", "@/", "@s/", "@s", "\x00"})
	for _, t := range c.Tools() {
		all = append(all, t.Name, t.ID)
		if t.Server != "" {
			all = append(all, "@"+t.Server+"/"+strings.TrimPrefix(t.Name, t.Server+"__"), "@"+t.Server+"/"+t.Name)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// everything is all that a resolver says to a caller, as one text.
func everything(ctx context.Context, r *Resolver, caller quartermaster.Caller, names []string) string {
	var b strings.Builder
	res, err := r.Resolve(ctx, caller, quartermaster.Question{})
	if err != nil {
		return err.Error()
	}
	fmt.Fprintln(&b, res.Groups, res.State, res.Revision, res.Warnings)
	for _, tool := range res.Tools {
		fmt.Fprintln(&b, "listed", tool.Name, tool.Target, tool.Version, tool.DisplayName)
	}
	for tool, refusal := range res.Refusals {
		fmt.Fprintln(&b, "refused", tool.Name, refusal)
	}
	explained, err := r.Resolve(ctx, caller, quartermaster.Question{Explain: true})
	fmt.Fprintln(&b, explained.Explanations, err)
	for _, name := range names {
		one, err := r.Resolve(ctx, caller, quartermaster.Question{Tool: name})
		if err != nil {
			return err.Error()
		}
		for _, tool := range one.Tools {
			fmt.Fprintln(&b, "admitted", name, tool.Name, tool.Target, tool.Version)
		}
	}
	return b.String()
}
