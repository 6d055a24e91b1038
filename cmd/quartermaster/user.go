package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"quartermaster"
	"quartermaster/client"
)

func usersCommand(a *app) *cobra.Command {
	c := nounCommand("users", "List, set and forget the groups and roles of users",
		"A user may ask for the groups that they are granted; * is every group. A user of whom nothing is said is granted default.\n"+
			"Roles are what policies know a user by.",
		usersList(a), usersSet(a), usersDelete(a))
	c.Aliases = []string{"user"}
	return c
}

func usersList(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List users, their groups and roles", Args: cobra.NoArgs,
		RunE: listAll(a, (*client.Project).Users, "no users; everybody is granted default", []string{"ID", "GROUPS", "ROLES"}, func(u quartermaster.User) []string {
			return []string{u.ID, strings.Join(u.Groups, ", "), strings.Join(u.Roles, ", ")}
		}),
	}
}

type userOptions struct {
	roles   []string
	noRoles bool
}

func usersSet(a *app) *cobra.Command {
	var o userOptions
	c := &cobra.Command{
		Use: "set USER [GROUP...]", Short: "Grant a user exactly these groups, or roles", Args: cobra.MinimumNArgs(1),
		Long: "Set grants a user exactly these groups; with --role or --no-roles it sets the roles by which\n" +
			"policies know them. Where only one of the two is said, the other stays as it is.",
		Example: "  quartermaster users set alice default write\n" +
			"  quartermaster users set alice --role tool_user\n" +
			"  quartermaster users set bob          # no group at all",
		RunE: a.inProject(func(ctx context.Context, p *client.Project, args []string) error {
			user, err := a.setUser(ctx, p, args[0], args[1:], o)
			if err != nil {
				return err
			}
			if o.noRoles || len(o.roles) > 0 {
				return a.done(user, "%s is granted: %s; roles: %s", user.ID, orNone(user.Groups), orNone(user.Roles))
			}
			return a.done(user, "%s is granted: %s", user.ID, orNone(user.Groups))
		}),
	}
	c.Flags().StringArrayVar(&o.roles, "role", nil, "a `ROLE` that policies know the user by; may be repeated")
	c.Flags().BoolVar(&o.noRoles, "no-roles", false, "take all roles away")
	c.MarkFlagsMutuallyExclusive("role", "no-roles")
	return c
}

// setUser leaves alone what it is not told of.
func (a *app) setUser(ctx context.Context, p *client.Project, id string, groups []string, o userOptions) (quartermaster.User, error) {
	old, err := p.User(ctx, id)
	if quartermaster.CodeOf(err) == quartermaster.CodeNotFound {
		old, err = quartermaster.User{Groups: []string{quartermaster.DefaultGroup}}, nil
	}
	if err != nil {
		return old, err
	}
	next := quartermaster.User{ID: id, Groups: append([]string{}, groups...), Roles: old.Roles}
	if o.noRoles || len(o.roles) > 0 {
		next.Roles = o.roles
		if len(groups) == 0 {
			next.Groups = old.Groups
		}
	}
	return p.PutUser(ctx, next)
}

func orNone(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

func usersDelete(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "delete USER...", Short: "Forget what users are granted: what is left is default", Args: cobra.MinimumNArgs(1),
		RunE: a.deleteEach((*client.Project).DeleteUser, "forgot the groups of user %s"),
	}
}
