package storetest

import (
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"time"

	"quartermaster"

	"pgregory.net/rapid"
)

// Edit makes a few random changes in d. The words it draws from are few, so
// that changes meet each other, and awkward, so that nothing survives by luck.
// An edit that the draft refuses is a step like any other.
func Edit(t *rapid.T, d *quartermaster.Draft) {
	for range rapid.IntRange(1, 6).Draw(t, "steps") {
		name := rapid.SampledFrom(stepNames).Draw(t, "step")
		if err := steps[name](t, d); err != nil && quartermaster.CodeOf(err) == quartermaster.CodeInternal {
			t.Fatalf("%s: %v", name, err)
		}
	}
}

var steps = map[string]func(*rapid.T, *quartermaster.Draft) error{
	"create tool": func(t *rapid.T, d *quartermaster.Draft) error {
		_, err := d.CreateTool(drawTool(t))
		return err
	},
	"update tool": func(t *rapid.T, d *quartermaster.Draft) error {
		next := drawTool(t)
		_, err := d.UpdateTool(drawToolOf(t, d).Name, func(tool *quartermaster.Tool) error {
			if tool.Origin != quartermaster.OriginManual {
				tool.Enabled, tool.Category, tool.Groups = next.Enabled, next.Category, next.Groups
				return nil
			}
			*tool = next
			return nil
		})
		return err
	},
	"toggle tool": func(t *rapid.T, d *quartermaster.Draft) error {
		_, err := d.UpdateTool(drawToolOf(t, d).ID, func(tool *quartermaster.Tool) error {
			tool.Enabled = !tool.Enabled
			return nil
		})
		return err
	},
	"swap tools": func(t *rapid.T, d *quartermaster.Draft) error {
		a, b := drawToolOf(t, d), drawToolOf(t, d)
		for _, move := range [][2]string{{a.ID, "between"}, {b.ID, a.Name}, {a.ID, b.Name}} {
			if _, err := d.UpdateTool(move[0], func(tool *quartermaster.Tool) error { tool.Name = move[1]; return nil }); err != nil {
				return err
			}
		}
		return nil
	},
	"delete tool": func(t *rapid.T, d *quartermaster.Draft) error { return d.DeleteTool(drawToolOf(t, d).ID) },
	"put server": func(t *rapid.T, d *quartermaster.Draft) error {
		_, _, err := d.PutServer(drawServer(t))
		return err
	},
	"delete server": func(t *rapid.T, d *quartermaster.Draft) error {
		return d.DeleteServer(rapid.SampledFrom(serverNames).Draw(t, "server"))
	},
	"put agent": func(t *rapid.T, d *quartermaster.Draft) error {
		_, _, err := d.PutAgent(drawAgent(t))
		return err
	},
	"delete agent": func(t *rapid.T, d *quartermaster.Draft) error { return d.DeleteAgent(drawAgentID(t)) },
	"replace bindings": func(t *rapid.T, d *quartermaster.Draft) error {
		_, err := d.ReplaceBindings(drawAgentID(t), drawIDs(t, d))
		return err
	},
	"change bindings": func(t *rapid.T, d *quartermaster.Draft) error {
		_, err := d.ChangeBindings(drawAgentID(t), drawIDs(t, d), drawIDs(t, d))
		return err
	},
	"put user": func(t *rapid.T, d *quartermaster.Draft) error {
		_, _, err := d.PutUser(quartermaster.User{ID: drawAgentID(t), Groups: drawWords(t), Roles: drawWords(t)})
		return err
	},
	"delete user": func(t *rapid.T, d *quartermaster.Draft) error { return d.DeleteUser(drawAgentID(t)) },
	"put secret": func(t *rapid.T, d *quartermaster.Draft) error {
		_, _, err := d.PutSecret(drawSecretName(t), "value "+drawText(t))
		return err
	},
	"delete secret": func(t *rapid.T, d *quartermaster.Draft) error { return d.DeleteSecret(drawSecretName(t)) },
	"set project": func(t *rapid.T, d *quartermaster.Draft) error {
		return d.SetProject(quartermaster.Project{
			Name: drawText(t),
			Plan: rapid.SampledFrom([]quartermaster.Plan{"", quartermaster.PlanFree, quartermaster.PlanTeam}).Draw(t, "plan"),

			PolicyQuery: rapid.SampledFrom([]string{"", quartermaster.DefaultPolicyQuery, "data.own.allow"}).Draw(t, "policyQuery"),
		})
	},
	"set grants token": func(t *rapid.T, d *quartermaster.Draft) error { d.SetGrantsToken(drawText(t)); return nil },
	"put policy": func(t *rapid.T, d *quartermaster.Draft) error {
		_, _, err := d.PutPolicy(quartermaster.Policy{Name: rapid.SampledFrom(toolNames).Draw(t, "policy"), Rego: "package p #" + drawText(t)})
		return err
	},
	"delete policy": func(t *rapid.T, d *quartermaster.Draft) error {
		return d.DeletePolicy(rapid.SampledFrom(toolNames).Draw(t, "policy"))
	},
	"grant": func(t *rapid.T, d *quartermaster.Draft) error {
		g := quartermaster.Grant{Relation: rapid.SampledFrom(relations).Draw(t, "relation"), Subject: drawSubject(t)}
		if rapid.Bool().Draw(t, "tool") {
			tool := drawToolOf(t, d)
			g.Tool = rapid.SampledFrom([]string{tool.Name, tool.ID, "@" + tool.Server + "/t"}).Draw(t, "ref")
		} else {
			g.Resource = rapid.SampledFrom(resources).Draw(t, "resource")
		}
		_, _, err := d.Grant(g)
		return err
	},
	"revoke": func(t *rapid.T, d *quartermaster.Draft) error {
		all := d.Grants(quartermaster.GrantFilter{})
		if len(all) == 0 {
			return nil
		}
		g := rapid.SampledFrom(all).Draw(t, "revoked")
		d.Revoke(rapid.SampledFrom([]quartermaster.GrantFilter{
			{Subject: g.Subject}, {Resource: g.Resource}, {Resource: g.Resource, Relation: g.Relation, Subject: g.Subject},
		}).Draw(t, "filter"))
		return nil
	},
}

var stepNames = func() []string {
	names := make([]string, 0, len(steps))
	for name := range steps {
		names = append(names, name)
	}
	slices.Sort(names) // rapid replays by index
	return names
}()

var (
	toolNames   = []string{"a", "A", "b", "c.d", "e-f_1", "s1__t", "t", "Zz", "echo"}
	serverNames = []string{"s1", "S2"}
	secretNames = []string{"B", "b", "S1_API_KEY", "S2_AUTHORIZATION", "9"}
	agentIDs    = []string{"writer", "Writer", "<a>&b", "日本語 \u2028", `"x\y'`, "a/b?c#d", "."}
	relations   = []string{"executor", "owner", "member"}
	resources   = []string{"project", "group:g", "group:<a>&b 日本", "tool:s1__later", "tool:S2__t", "tool:echo", "tool:none"}
	texts       = []string{"", "plain", "<b>&amp;", "ä日本 \u2028\u2029", `"\'%_;--`, "a\nb\tc", "\ufffd"}
	objects     = []string{"", "null", "{}", `{"type":"object","properties":{"<q>":{"type":"string"}}}`, ` { "b" : 1.0 , "a":[1e3, "\u0000&"] } `, `{"type":["object","null"]}`}
	wordLists   = [][]string{nil, {}, {"default"}, {"a", "b", "a"}, {"*", "<x>"}}
	durations   = []quartermaster.Duration{0, 1, 1500, quartermaster.Duration(30 * time.Second), quartermaster.Duration(8784 * time.Hour)}
)

func drawText(t *rapid.T) string { return rapid.SampledFrom(texts).Draw(t, "text") }

func drawWords(t *rapid.T) []string {
	return slices.Clone(rapid.SampledFrom(wordLists).Draw(t, "words"))
}

func drawObject(t *rapid.T) json.RawMessage {
	return json.RawMessage(rapid.SampledFrom(objects).Draw(t, "object"))
}

func drawDuration(t *rapid.T) quartermaster.Duration {
	return rapid.SampledFrom(durations).Draw(t, "duration")
}

func drawAgentID(t *rapid.T) string { return rapid.SampledFrom(agentIDs).Draw(t, "agent") }

func drawSecretName(t *rapid.T) string { return rapid.SampledFrom(secretNames).Draw(t, "secret") }

func drawSubject(t *rapid.T) string {
	id := drawAgentID(t)
	return rapid.SampledFrom([]string{"user:" + id, "group:" + id + "#member", "group:" + id}).Draw(t, "subject")
}

func drawToolOf(t *rapid.T, d *quartermaster.Draft) *quartermaster.Tool {
	c := d.Catalog()
	return c.ToolByName(rapid.SampledFrom(namesOf(c)).Draw(t, "tool"))
}

func namesOf(c *quartermaster.Catalog) []string {
	names := make([]string, len(c.Tools()))
	for i, tool := range c.Tools() {
		names[i] = tool.Name
	}
	return names
}

func drawIDs(t *rapid.T, d *quartermaster.Draft) []string {
	c := d.Catalog()
	var ids []string
	for _, name := range rapid.SliceOfN(rapid.SampledFrom(namesOf(c)), 0, 5).Draw(t, "tools") {
		if tool := c.ToolByName(name); tool.Active() { // else every second request is refused
			ids = append(ids, tool.ID)
		}
	}
	return ids
}

func drawTool(t *rapid.T) quartermaster.Tool {
	return quartermaster.Tool{
		Name:        rapid.SampledFrom(toolNames).Draw(t, "name"),
		DisplayName: drawText(t), Description: drawText(t), Category: drawText(t),
		Server:      rapid.SampledFrom(append([]string{"", ""}, serverNames...)).Draw(t, "server"),
		InputSchema: drawObject(t), OutputSchema: drawObject(t), Annotations: drawObject(t), Config: drawObject(t),
		Enabled: rapid.Bool().Draw(t, "enabled"),
		Groups:  drawWords(t), State: drawText(t), AvailableInStates: drawWords(t), Timeout: drawDuration(t),
	}
}

func drawServer(t *rapid.T) quartermaster.Server {
	s := quartermaster.Server{
		Name:    rapid.SampledFrom(serverNames).Draw(t, "name"),
		Enabled: rapid.Bool().Draw(t, "enabled"), Prefix: rapid.Bool().Draw(t, "prefix"),
		Lazy: rapid.Bool().Draw(t, "lazy"), Timeouts: quartermaster.Timeouts{Startup: drawDuration(t), Request: drawDuration(t)},
		Groups: drawWords(t), MaxConcurrent: rapid.IntRange(0, 2).Draw(t, "maxConcurrent"),
	}
	if rapid.Bool().Draw(t, "stdio") {
		s.Transport, s.Command, s.Args = "process", "/bin/<x>", drawWords(t)
		s.Env = rapid.SampledFrom([]map[string]string{nil, {}, {"A": "${B}<"}, {"API_KEY": "literal <&", "api-key": "another"}, {"API_KEY": "${S1_API_KEY}"}}).Draw(t, "env")
		s.HealthCheck = &quartermaster.HealthCheck{Kind: quartermaster.HealthPing, Command: drawWords(t)}
	} else {
		s.Transport, s.URL = quartermaster.TransportHTTP, "https://example.com/mcp?a=1&b=<2>"
		s.Headers = rapid.SampledFrom([]map[string]string{nil, {}, {"X-Y": "&"}, {"Authorization": "Bearer literal"}}).Draw(t, "headers")
	}
	return s
}

func drawAgent(t *rapid.T) quartermaster.Agent {
	return quartermaster.Agent{
		ID: drawAgentID(t), Name: drawText(t), Description: drawText(t), Instruction: drawText(t), Model: drawText(t),
		Tools: drawWords(t), Allowed: drawWords(t), Servers: drawWords(t),
		Aliases:  rapid.SampledFrom([]map[string]string{nil, {}, {"read": "@s1/<t>"}}).Draw(t, "aliases"),
		MaxDepth: rapid.IntRange(0, 3).Draw(t, "maxDepth"), MaxSteps: rapid.IntRange(0, 1).Draw(t, "maxSteps"),
		Timeout: drawDuration(t), Memory: drawObject(t), Fixed: rapid.Bool().Draw(t, "fixed"),
	}
}

// Difference describes in what two catalogs differ, in anything that can be
// asked of them; "" if in nothing.
func Difference(a, b *quartermaster.Catalog) string {
	if a.Project() != b.Project() {
		return fmt.Sprintf("project\n%+v\n%+v", a.Project(), b.Project())
	}
	for _, d := range []string{
		difference("tool", a.Tools(), b.Tools()),
		difference("server", a.Servers(), b.Servers()),
		difference("agent", a.Agents(), b.Agents()),
		difference("bindings", a.AllBindings(), b.AllBindings()),
		difference("user", a.Users(), b.Users()),
		difference("secret", a.Secrets(), b.Secrets()),
		difference("policy", a.Policies(), b.Policies()),
		difference("grant", a.AllGrants(), b.AllGrants()),
	} {
		if d != "" {
			return d
		}
	}
	for _, t := range a.Tools() {
		if b.ToolByID(t.ID) == nil || b.ToolByName(t.Name) == nil {
			return "tool " + t.Name + " cannot be found"
		}
	}
	if !reflect.DeepEqual(a.Export(), b.Export()) {
		return fmt.Sprintf("export\n%v\n%v", a.Export(), b.Export())
	}
	return ""
}

func difference[T any](noun string, a, b []*T) string {
	for i := range max(len(a), len(b)) {
		switch {
		case i >= len(a):
			return fmt.Sprintf("%s\nnone\n%s", noun, show(b[i]))
		case i >= len(b):
			return fmt.Sprintf("%s\n%s\nnone", noun, show(a[i]))
		case !reflect.DeepEqual(a[i], b[i]):
			return fmt.Sprintf("%s\n%s\n%s", noun, show(a[i]), show(b[i]))
		}
	}
	return ""
}

var bytesShown = regexp.MustCompile(`json\.RawMessage\{[^}]*\}`)

// show keeps nil and empty apart, and leaves bytes to the JSON that follows.
func show(v any) string {
	b, err := json.Marshal(v)
	return bytesShown.ReplaceAllString(fmt.Sprintf("%#v", v), "JSON") + " " + string(b) + fmt.Sprint(err)
}
