package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"quartermaster"
	"quartermaster/client"
)

const defaultServer = "http://127.0.0.1:7070"

// flags are those of every command that speaks to a server. What stands in
// the environment is looked up when it is needed, so that no help text shows it.
type flags struct {
	server  string
	project string
	user    string
	output  format
}

func (a *app) registerFlags(root *cobra.Command) {
	f := &a.flags
	p := root.PersistentFlags()
	p.StringVar(&f.server, "server", "", "`URL` of the server (default "+defaultServer+")")
	p.StringVarP(&f.project, "project", "p", "", "`ID` of the project (default "+quartermaster.DefaultProject+")")
	p.StringVar(&f.user, "user", "", "act for this `USER`")
	f.output = formatTable
	p.VarP(&f.output, "output", "o", "how to print: table, json or yaml")
	_ = root.RegisterFlagCompletionFunc("project", a.completeProjects)
	_ = root.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))
}

// format is how a command prints what it has found.
type format string

const (
	formatTable format = "table"
	formatJSON  format = "json"
	formatYAML  format = "yaml"
)

var formats = []string{string(formatTable), string(formatJSON), string(formatYAML)}

// String and the two below let the flag itself refuse an unknown word.
func (f *format) String() string { return string(*f) }

// Type names the value in help texts.
func (f *format) Type() string { return "FORMAT" }

// Set takes one of the three words.
func (f *format) Set(s string) error {
	if !slices.Contains(formats, s) {
		return fmt.Errorf("must be one of %s", strings.Join(formats, ", "))
	}
	*f = format(s)
	return nil
}

// setting is a flag, else a variable of the environment, else a constant.
func (a *app) setting(flag, variable, otherwise string) string {
	if flag != "" {
		return flag
	}
	if v := a.getenv(variable); v != "" {
		return v
	}
	return otherwise
}

func (a *app) projectID() string {
	return a.setting(a.flags.project, "QUARTERMASTER_PROJECT", quartermaster.DefaultProject)
}

func (a *app) userID() string { return a.setting(a.flags.user, "QUARTERMASTER_USER", "") }

func (a *app) client(options ...client.Option) (*client.Client, error) {
	address := a.setting(a.flags.server, "QUARTERMASTER_SERVER", defaultServer)
	c, err := client.New(address, append([]client.Option{
		client.WithToken(strings.TrimSpace(a.getenv("QUARTERMASTER_TOKEN"))),
		client.WithUser(a.userID()),
		client.WithUserAgent("quartermaster/" + a.version),
	}, options...)...)
	if err != nil {
		return nil, usagef("--server or QUARTERMASTER_SERVER: %v", err)
	}
	return c, nil
}

// open is the door to the project that the command works in.
func (a *app) open(options ...client.Option) (*client.Project, error) {
	c, err := a.client(options...)
	if err != nil {
		return nil, err
	}
	return c.Project(a.projectID()), nil
}

// inProject is how a command runs that works in the project.
func (a *app) inProject(run func(context.Context, *client.Project, []string) error) func(*cobra.Command, []string) error {
	return func(c *cobra.Command, args []string) error {
		p, err := a.open()
		if err != nil {
			return err
		}
		return run(c.Context(), p, args)
	}
}

// each is how a command runs that does the same to all that its arguments name;
// it ends with the first error.
func (a *app) each(do func(context.Context, *client.Project, string) error) func(*cobra.Command, []string) error {
	return a.inProject(func(ctx context.Context, p *client.Project, args []string) error {
		for _, name := range args {
			if err := do(ctx, p, name); err != nil {
				return err
			}
		}
		return nil
	})
}

// deleteEach deletes all that its arguments name.
func (a *app) deleteEach(remove func(*client.Project, context.Context, string) error, said string) func(*cobra.Command, []string) error {
	return a.each(func(ctx context.Context, p *client.Project, name string) error {
		if err := remove(p, ctx, name); err != nil {
			return err
		}
		return a.done(object{{"deleted", name}}, said, name)
	})
}
