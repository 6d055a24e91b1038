// Command quartermaster serves tools to AI agents, and manages a server that
// does.
package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

// version is set by the linker.
var version = "dev"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	code := run(ctx, os.Args[1:], os.Getenv, os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// app is what every command needs to know of the world around it.
type app struct {
	getenv  func(string) string
	in      io.Reader
	out     io.Writer
	err     io.Writer
	version string

	flags   flags
	started bool // a command has begun: what fails from here on is not its usage
}

// run is the whole program; it returns the exit code.
func run(ctx context.Context, args []string, getenv func(string) string, in io.Reader, out, errOut io.Writer) int {
	a := &app{getenv: getenv, in: in, out: out, err: errOut, version: version}
	root := a.rootCommand()
	root.SetArgs(args)
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(errOut)
	cmd, err := root.ExecuteContextC(ctx)
	if err != nil && !a.started {
		err = &usageError{usage: cmd.UseLine(), err: err}
	}
	return a.report(ctx, err)
}

const rootLong = `Quartermaster hands AI agents their tools. It knows every tool a team has, decides
for every request which of them this agent may see, runs the calls and keeps the books.

"quartermaster serve" runs the server; every other command speaks to one.

Environment:
  QUARTERMASTER_SERVER    where the server is, as --server
  QUARTERMASTER_PROJECT   the project to work in, as --project
  QUARTERMASTER_USER      for whom to act, as --user
  QUARTERMASTER_TOKEN     the credential; never a flag, because other users of
                          this machine can read a program's arguments`

const rootExample = `  quartermaster serve --data .data
  quartermaster tools list
  quartermaster bind writer echo time_now
  quartermaster grant user:alice executor echo
  quartermaster apply -f project.yaml --dry-run`

func (a *app) rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:           "quartermaster",
		Short:         "Hands AI agents their tools",
		Long:          rootLong,
		Example:       rootExample,
		SilenceErrors: true, // report prints them, once and with a hint
		SilenceUsage:  true,
		Args:          noSuchCommand,
		RunE:          showHelp,
	}
	a.registerFlags(root)
	root.AddGroup(
		&cobra.Group{ID: "run", Title: "Run:"},
		&cobra.Group{ID: "manage", Title: "Manage a project:"},
		&cobra.Group{ID: "ask", Title: "Ask who may use what, and why:"},
		&cobra.Group{ID: "files", Title: "Work with files:"},
	)
	add := func(group string, commands ...*cobra.Command) {
		for _, c := range commands {
			c.GroupID = group
			root.AddCommand(c)
		}
	}
	add("run", serveCommand(a), doctorCommand(a))
	add("manage", projectsCommand(a), serversCommand(a), toolsCommand(a), agentsCommand(a),
		bindCommand(a), usersCommand(a), grantCommand(a), revokeCommand(a), grantsCommand(a), policyCommand(a),
		secretsCommand(a), groupsCommand(a), statesCommand(a))
	add("ask", resolveCommand(a), explainCommand(a), whatIfCommand(a), whoCanCommand(a), workflowCommand(a), schemaCommand(a))
	add("files", applyCommand(a), exportCommand(a), importCommand(a))
	add("", versionCommand(a), exitCodesTopic())
	a.markStart(root)
	return root
}

// markStart makes every command note that it has begun, by which report can
// tell a wrong use of the command from a failure of it.
func (a *app) markStart(c *cobra.Command) {
	if inner := c.RunE; inner != nil {
		c.RunE = func(c *cobra.Command, args []string) error {
			a.started = true
			return inner(c, args)
		}
	}
	for _, sub := range c.Commands() {
		a.markStart(sub)
	}
}
