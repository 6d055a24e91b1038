package main

import (
	"github.com/spf13/cobra"

	"quartermaster"
)

func projectsCommand(a *app) *cobra.Command {
	c := nounCommand("projects", "List and create projects",
		"A project is a tenant: tools, servers, agents and bindings live in one. The project default exists from the start.",
		projectsList(a), projectsCreate(a))
	c.Aliases = []string{"project"}
	return c
}

func projectsList(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List all projects", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			cl, err := a.client()
			if err != nil {
				return err
			}
			projects, err := cl.Projects().Collect(c.Context())
			if err != nil {
				return err
			}
			return printList(a, projects, "no projects; create one with: quartermaster projects create ID",
				[]string{"ID", "PLAN", "CREATED", "NAME"}, func(p quartermaster.Project) []string {
					return []string{p.ID, string(p.Plan), when(p.CreatedAt), p.Name}
				})
		},
	}
}

func projectsCreate(a *app) *cobra.Command {
	var p quartermaster.Project
	c := &cobra.Command{
		Use: "create ID", Short: "Create a project", Args: cobra.ExactArgs(1), ValidArgsFunction: cobra.NoFileCompletions,
		Example: "  quartermaster projects create shop --name 'Web shop' --plan team",
		RunE: func(c *cobra.Command, args []string) error {
			cl, err := a.client()
			if err != nil {
				return err
			}
			p.ID = args[0]
			made, err := cl.CreateProject(c.Context(), p)
			if err != nil {
				return err
			}
			return a.done(made, "created project %s", made.ID)
		},
	}
	c.Flags().StringVar(&p.Name, "name", "", "`NAME` for people (default: the id)")
	c.Flags().StringVar((*string)(&p.Plan), "plan", "", "`PLAN`: free, starter, team or enterprise (default: free)")
	_ = c.RegisterFlagCompletionFunc("plan", cobra.FixedCompletions(
		[]string{"free", "starter", "team", "enterprise"}, cobra.ShellCompDirectiveNoFileComp))
	return c
}
