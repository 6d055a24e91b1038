package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"quartermaster"
	"quartermaster/client"
)

func agentsCommand(a *app) *cobra.Command {
	c := nounCommand("agents", "List, show, define and delete agents",
		"An agent is an id that nobody needs to register. It appears here when it has a definition or tools are bound to it.",
		agentsList(a), agentsGet(a), agentsPut(a), agentsDelete(a))
	c.Aliases = []string{"agent"}
	return c
}

func agentsList(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List agents that have a definition or bindings", Args: cobra.NoArgs,
		RunE: listAll(a, (*client.Project).Agents, "no agents; bind tools to one with: quartermaster bind AGENT TOOL...",
			[]string{"ID", "DEFINED", "BOUND", "TOOLS", "DESCRIPTION"}, agentRow),
	}
}

func agentRow(e client.AgentEntry) []string {
	row := []string{e.ID, yesNo(e.Definition != nil), fmt.Sprint(e.BoundTools), "", ""}
	if d := e.Definition; d != nil {
		row[3], row[4] = strings.Join(d.Tools, ","), firstLine(d.Description)
	}
	return row
}

func agentsGet(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "get ID", Short: "Show an agent's definition", Args: cobra.ExactArgs(1), ValidArgsFunction: a.completeAgents,
		RunE: a.inProject(func(ctx context.Context, p *client.Project, args []string) error {
			agent, err := p.Agent(ctx, args[0])
			if err != nil {
				return err
			}
			return a.printFields(agent, slices.Concat(agentFields(agent), warningFields(agent.Warnings)))
		}),
	}
}

func agentFields(g quartermaster.Agent) [][2]string {
	aliases := make([]string, 0, len(g.Aliases))
	for _, alias := range sorted(maps.Keys(g.Aliases)) {
		aliases = append(aliases, alias+" = "+g.Aliases[alias])
	}
	steps, timeout := "", ""
	if g.MaxSteps > 0 {
		steps = fmt.Sprint(g.MaxSteps)
	}
	if g.Timeout > 0 {
		timeout = g.Timeout.String()
	}
	return [][2]string{
		{"id", g.ID},
		{"name", g.Name},
		{"description", g.Description},
		{"model", g.Model},
		{"tools", strings.Join(g.Tools, ", ")},
		{"allowed", strings.Join(g.Allowed, ", ")},
		{"aliases", strings.Join(aliases, ", ")},
		{"max depth", fmt.Sprint(g.MaxDepth)},
		{"max steps", steps},
		{"timeout", timeout},
		{"visibility", string(g.Visibility)},
		{"flow", string(g.Flow)},
		{"servers", strings.Join(g.Servers, ", ")},
		{"discovery", string(g.Discovery)},
		{"memory", string(g.Memory)},
		{"fixed", yesNo(g.Fixed)},
		{"instruction", g.Instruction},
		{"created", when(g.CreatedAt)},
		{"updated", when(g.UpdatedAt)},
	}
}

func agentsPut(a *app) *cobra.Command {
	var file string
	c := &cobra.Command{
		Use: "put [ID] -f FILE", Short: "Add or replace an agent's definition", Args: cobra.MaximumNArgs(1), ValidArgsFunction: a.completeAgents,
		Example: "  echo '{tools: [\"@files/*\"]}' | quartermaster agents put writer -f -",
		RunE: a.inProject(func(ctx context.Context, p *client.Project, args []string) error {
			doc, id, body, err := a.readNamed(file, args, "id")
			if err != nil {
				return err
			}
			agent, err := p.PutAgentFrom(ctx, id, body)
			if err != nil {
				return doc.located(err)
			}
			a.warn(agent.Warnings)
			return a.done(agent, "saved agent %s", agent.ID)
		}),
	}
	fileFlag(c, &file, "a definition")
	return c
}

func agentsDelete(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "delete ID...", Short: "Delete agents' definitions; their bindings stay", Args: cobra.MinimumNArgs(1), ValidArgsFunction: a.completeAgents,
		RunE: a.deleteEach((*client.Project).DeleteAgent, "deleted the definition of agent %s"),
	}
}
