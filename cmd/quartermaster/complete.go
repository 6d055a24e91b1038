package main

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"quartermaster"
	"quartermaster/client"
)

// completionTimeout is how long a shell may wait for the tab key.
const completionTimeout = 2 * time.Second

type completer = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective)

// complete offers the words that list gives. What fails offers nothing: a
// message would only disturb the line that is being typed.
func (a *app) complete(c *cobra.Command, list func(context.Context, *client.Project) []string) ([]string, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(c.Context(), completionTimeout)
	defer cancel()
	p, err := a.open(client.WithTimeout(completionTimeout))
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return list(ctx, p), cobra.ShellCompDirectiveNoFileComp
}

// take walks a list as far as it goes and keeps a word of each item.
func take[T any](ctx context.Context, list client.List[T], word func(T) string) []string {
	var words []string
	for v, err := range list.All(ctx) {
		if err != nil {
			return words
		}
		words = append(words, word(v))
	}
	return words
}

// completeTools offers names of tools, for at most most arguments; 0: any
// number.
func (a *app) completeTools(most int) completer {
	return func(c *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if most > 0 && len(args) >= most {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return a.complete(c, func(ctx context.Context, p *client.Project) []string {
			return take(ctx, p.Tools(quartermaster.ToolFilter{Text: typed}), func(t quartermaster.Tool) string {
				return described(t.Name, firstLine(t.Description))
			})
		})
	}
}

// described adds what some shells show beside a word.
func described(word, text string) string {
	if text == "" {
		return word
	}
	return word + "\t" + shorten(plainText(text), 60, true)
}

func (a *app) completeAgents(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 && !strings.Contains(c.Use, "...") {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return a.complete(c, func(ctx context.Context, p *client.Project) []string {
		return take(ctx, p.Agents(), func(e client.AgentEntry) string { return e.ID })
	})
}

func (a *app) completeServers(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 && !strings.Contains(c.Use, "...") {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return a.complete(c, func(ctx context.Context, p *client.Project) []string {
		return take(ctx, p.Servers(), func(s client.Server) string { return described(s.Name, string(s.Transport)) })
	})
}

func (a *app) completeSecrets(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 && !strings.Contains(c.Use, "...") {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return a.complete(c, func(ctx context.Context, p *client.Project) []string {
		return take(ctx, p.Secrets(), func(s client.Secret) string { return s.Name })
	})
}

func (a *app) completePolicies(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 && !strings.Contains(c.Use, "...") {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return a.complete(c, func(ctx context.Context, p *client.Project) []string {
		return take(ctx, p.Policies(), func(policy quartermaster.Policy) string { return policy.Name })
	})
}

// completeGrant offers subjects, then relations, then tools.
func (a *app) completeGrant(c *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	switch len(args) {
	case 0:
		return a.completeSubjects(c, args, typed)
	case 1:
		return relations, cobra.ShellCompDirectiveNoFileComp
	}
	return a.completeTools(0)(c, args, typed)
}

// completeSubjects offers the users that the project has rows of, and the groups
// of users that somebody is a member of.
func (a *app) completeSubjects(c *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	return a.complete(c, func(ctx context.Context, p *client.Project) []string {
		users := take(ctx, p.Users(), func(u quartermaster.User) string { return quartermaster.TypeUser + ":" + u.ID })
		members := take(ctx, p.Grants(client.GrantFilter{Relation: "member"}), func(g quartermaster.Grant) string {
			return g.Resource + "#member"
		})
		members = slices.DeleteFunc(members, func(s string) bool { return !strings.HasPrefix(s, quartermaster.TypeGroup+":") })
		return append(users, slices.Compact(members)...)
	})
}

// completeBind offers agents first, then tools.
func (a *app) completeBind(c *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return a.complete(c, func(ctx context.Context, p *client.Project) []string {
			return take(ctx, p.Agents(), func(e client.AgentEntry) string { return e.ID })
		})
	}
	return a.completeTools(0)(c, args, typed)
}

func (a *app) completeProjects(c *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	return a.complete(c, func(ctx context.Context, _ *client.Project) []string {
		cl, err := a.client(client.WithTimeout(completionTimeout))
		if err != nil {
			return nil
		}
		return take(ctx, cl.Projects(), func(p quartermaster.Project) string { return described(p.ID, p.Name) })
	})
}
