package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"quartermaster"
	"quartermaster/client"
)

func toolsCommand(a *app) *cobra.Command {
	c := nounCommand("tools", "List, create, switch and delete tools",
		"A tool is one callable thing: a row in the project's catalog. REF is its id, its name or @server/tool.",
		toolsList(a), toolsGet(a), toolsCreate(a),
		toolsSwitch(a, "enable", "Let tools be listed and bound again", true),
		toolsSwitch(a, "disable", "Take tools out of every list and binding, for now", false),
		toolsVersions(a), toolsDelete(a))
	c.Aliases = []string{"tool"}
	return c
}

func filterFlags(c *cobra.Command, f *quartermaster.ToolFilter) {
	c.Flags().StringVarP(&f.Text, "query", "q", "", "only tools with this `TEXT` in name, display name or description")
	c.Flags().StringVar(&f.Category, "category", "", "only tools of this `CATEGORY`")
}

func toolsList(a *app) *cobra.Command {
	var filter quartermaster.ToolFilter
	c := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List all tools of the project", Args: cobra.NoArgs,
		Example: "  quartermaster tools list --query file",
		RunE: a.inProject(func(ctx context.Context, p *client.Project, _ []string) error {
			tools, err := p.Tools(filter).Collect(ctx)
			if err != nil {
				return err
			}
			return a.printTools(tools, "no tools; create one with: quartermaster tools create -f FILE")
		}),
	}
	filterFlags(c, &filter)
	return c
}

func (a *app) printTools(tools []quartermaster.Tool, empty string) error {
	header := []string{"NAME", "PROVIDER", "CATEGORY", "GROUPS", "STATUS", "DESCRIPTION"}
	return printList(a, tools, empty, header, func(t quartermaster.Tool) []string {
		return []string{t.Name, string(t.Provider), t.Category, toolGroups(t), toolStatus(t), firstLine(t.Description)}
	})
}

// toolGroups says of groups that are absent what stands in for them.
func toolGroups(t quartermaster.Tool) string {
	switch {
	case t.Groups != nil:
		return groupsText(t.Groups)
	case t.Server != "":
		return "(server " + t.Server + ")"
	}
	return "(" + quartermaster.DefaultGroup + ")"
}

func groupsText(groups []string) string {
	if len(groups) == 0 {
		return "none (only *)"
	}
	return strings.Join(groups, ",")
}

func toolStatus(t quartermaster.Tool) string {
	switch {
	case !t.Enabled:
		return "disabled"
	case t.Held != "":
		return "held back: " + string(t.Held)
	case !t.Available:
		return "unavailable"
	}
	return "ready"
}

func toolsGet(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "get REF", Short: "Show one tool", Args: cobra.ExactArgs(1), ValidArgsFunction: a.completeTools(1),
		Example: "  quartermaster tools get @files/read_file -o yaml",
		RunE: a.inProject(func(ctx context.Context, p *client.Project, args []string) error {
			t, err := p.Tool(ctx, args[0])
			if err != nil {
				return err
			}
			return a.printFields(t, append(toolFields(t), flagFields(t)...))
		}),
	}
}

func toolFields(t quartermaster.Tool) [][2]string {
	status := toolStatus(t)
	if t.UnavailableReason != "" {
		status += ": " + t.UnavailableReason
	}
	states := strings.Join(t.AvailableInStates, ", ")
	if t.AvailableInStates != nil && states == "" {
		states = "none"
	}
	timeout := ""
	if t.Timeout > 0 {
		timeout = t.Timeout.String()
	}
	return [][2]string{
		{"name", t.Name},
		{"id", t.ID},
		{"display name", t.DisplayName},
		{"description", t.Description},
		{"category", t.Category},
		{"provider", string(t.Provider)},
		{"server", t.Server},
		{"upstream name", t.Upstream},
		{"status", status},
		{"groups", toolGroups(t)},
		{"moves to state", t.State},
		{"available in states", states},
		{"timeout", timeout},
		{"config", string(t.Config)},
		{"annotations", string(t.Annotations)},
		{"input schema", string(t.InputSchema)},
		{"output schema", string(t.OutputSchema)},
		{"version", fmt.Sprint(t.Version)},
		{"created", when(t.CreatedAt)},
		{"updated", when(t.UpdatedAt)},
	}
}

// flagFields are the signs of poisoning in a tool's definition.
func flagFields(t quartermaster.Tool) [][2]string {
	var fields [][2]string
	for _, f := range t.Flags {
		fields = append(fields, [2]string{"suspicious", fmt.Sprintf("%s: %s: %s", f.Field, f.Reason, f.Excerpt)})
	}
	return fields
}

func toolsCreate(a *app) *cobra.Command {
	var file string
	c := &cobra.Command{
		Use: "create -f FILE", Short: "Create a tool", Args: cobra.NoArgs,
		Example: "  echo '{name: hello, config: {builtin: echo}}' | quartermaster tools create -f -",
		RunE: a.inProject(func(ctx context.Context, p *client.Project, _ []string) error {
			doc, err := a.readFile(file)
			if err != nil {
				return err
			}
			body, err := doc.json()
			if err != nil {
				return err
			}
			t, err := p.CreateToolFrom(ctx, body)
			if err != nil {
				return doc.located(err)
			}
			return a.done(t, "created tool %s", t.Name)
		}),
	}
	fileFlag(c, &file, "a tool")
	return c
}

func toolsSwitch(a *app, verb, short string, on bool) *cobra.Command {
	return &cobra.Command{
		Use: verb + " REF...", Short: short, Args: cobra.MinimumNArgs(1), ValidArgsFunction: a.completeTools(0),
		RunE: a.each(func(ctx context.Context, p *client.Project, ref string) error {
			t, err := p.UpdateTool(ctx, ref, map[string]any{"enabled": on})
			if err != nil {
				return err
			}
			return a.done(t, "%sd tool %s", verb, t.Name)
		}),
	}
}

func toolsDelete(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "delete REF...", Short: "Delete tools and their bindings", Args: cobra.MinimumNArgs(1), ValidArgsFunction: a.completeTools(0),
		RunE: a.deleteEach((*client.Project).DeleteTool, "deleted tool %s"),
	}
}

func toolsVersions(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "versions REF", Short: "Show the definitions that a server has given a tool, and what changed", Args: cobra.ExactArgs(1), ValidArgsFunction: a.completeTools(1),
		RunE: a.inProject(func(ctx context.Context, p *client.Project, args []string) error {
			versions, err := p.ToolVersions(ctx, args[0])
			if err != nil {
				return err
			}
			return a.print(versions, func() error { return a.printVersions(args[0], versions) })
		}),
	}
}

func (a *app) printVersions(ref string, versions []client.ToolVersion) error {
	if len(versions) == 0 {
		a.note("%s is offered by no server: it has no other definition than its own", ref)
		return nil
	}
	var b strings.Builder
	for _, v := range versions {
		fmt.Fprintf(&b, "version %d, found %s", v.Version, when(v.FoundAt))
		if v.Pending {
			b.WriteString(", waits to be accepted")
		}
		b.WriteByte('\n')
		for _, c := range v.Changes {
			fmt.Fprintf(&b, "  %s\n", c.Field)
			if c.From != "" {
				fmt.Fprintf(&b, "    %s\n", a.color(red, "- "+plainText(c.From)))
			}
			if c.To != "" {
				fmt.Fprintf(&b, "    %s\n", a.color(green, "+ "+plainText(c.To)))
			}
		}
	}
	_, err := fmt.Fprint(a.out, b.String())
	return err
}
