package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"quartermaster"
	"quartermaster/client"
)

func usersCommand(a *app) *cobra.Command {
	c := nounCommand("users", "List, set and forget the groups that users are granted",
		"A user may ask for the groups that they are granted; * is every group. A user of whom nothing is said is granted default.",
		usersList(a), usersSet(a), usersDelete(a))
	c.Aliases = []string{"user"}
	return c
}

func usersList(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List users and their groups", Args: cobra.NoArgs,
		RunE: listAll(a, (*client.Project).Users, "no users; everybody is granted default", []string{"ID", "GROUPS"}, func(u quartermaster.User) []string {
			return []string{u.ID, strings.Join(u.Groups, ", ")}
		}),
	}
}

func usersSet(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "set USER [GROUP...]", Short: "Grant a user exactly these groups", Args: cobra.MinimumNArgs(1),
		Example: "  quartermaster users set alice default write\n  quartermaster users set bob          # none at all",
		RunE: a.inProject(func(ctx context.Context, p *client.Project, args []string) error {
			user, err := p.PutUser(ctx, quartermaster.User{ID: args[0], Groups: append([]string{}, args[1:]...)})
			if err != nil {
				return err
			}
			groups := strings.Join(user.Groups, ", ")
			if groups == "" {
				groups = "none"
			}
			return a.done(user, "%s is granted: %s", user.ID, groups)
		}),
	}
}

func usersDelete(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "delete USER...", Short: "Forget what users are granted: what is left is default", Args: cobra.MinimumNArgs(1),
		RunE: a.deleteEach((*client.Project).DeleteUser, "forgot the groups of user %s"),
	}
}
