package main

import (
	"strings"

	"github.com/spf13/cobra"

	"quartermaster"
	"quartermaster/client"
)

func groupsCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "groups", Short: "List groups and the tools in each", Args: cobra.NoArgs,
		RunE: listAll(a, (*client.Project).Groups, "no groups, because no tool is enabled", []string{"NAME", "TOOLS"}, func(g quartermaster.Group) []string {
			return []string{g.Name, strings.Join(g.Tools, ", ")}
		}),
	}
}

func statesCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "states", Short: "List workflow states and the tools in each", Args: cobra.NoArgs,
		RunE: listAll(a, (*client.Project).States, "no states", []string{"NAME", "ENTERED BY", "TOOLS"}, func(s quartermaster.State) []string {
			return []string{s.Name, strings.Join(s.EnteredBy, ", "), strings.Join(s.Tools, ", ")}
		}),
	}
}
