package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"quartermaster"
)

// nounCommand is a noun with its verbs. Said alone it means the first, list.
func nounCommand(use, short, long string, list *cobra.Command, verbs ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{Use: use, Short: short, Long: long, Args: noSuchCommand, RunE: list.RunE}
	c.Flags().AddFlagSet(list.Flags())
	c.AddCommand(list)
	c.AddCommand(verbs...)
	return c
}

func showHelp(c *cobra.Command, _ []string) error { return c.Help() }

// noSuchCommand refuses words that no command below c is called by.
func noSuchCommand(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	message := fmt.Sprintf("%s has no command %q", c.CommandPath(), args[0])
	c.SuggestionsMinimumDistance = 2
	if near := c.SuggestionsFor(args[0]); len(near) > 0 {
		message += "; did you mean " + strings.Join(near, " or ") + "?"
	}
	return fmt.Errorf("%s", message)
}

func versionCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version of this program", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return a.done(map[string]string{"version": a.version}, "%s", a.version)
		},
	}
}

// exitCodesTopic is no command: it has nothing to run, so help shows it apart.
func exitCodesTopic() *cobra.Command {
	var b strings.Builder
	fmt.Fprintf(&b, "The program ends with a code of its own for every kind of failure:\n\n")
	fmt.Fprintf(&b, "  %3d  success\n", exitOK)
	fmt.Fprintf(&b, "  %3d  %s, and whatever has no code of its own\n", exitInternal, quartermaster.CodeInternal)
	fmt.Fprintf(&b, "  %3d  the command was used in a wrong way\n", exitUsage)
	for _, code := range quartermaster.Codes {
		if code != quartermaster.CodeInternal {
			fmt.Fprintf(&b, "  %3d  %s\n", exitCodes[code], code)
		}
	}
	fmt.Fprintf(&b, "  %3d  interrupted", exitInterrupted)
	return &cobra.Command{Use: "exit-codes", Short: "What the exit codes mean", Long: b.String()}
}
