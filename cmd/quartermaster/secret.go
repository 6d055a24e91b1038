package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"quartermaster"
	"quartermaster/client"
)

func secretsCommand(a *app) *cobra.Command {
	c := nounCommand("secrets", "List, set and delete secrets",
		"A secret is a value that servers refer to as ${NAME}, in their env and headers. It is kept\n"+
			"sealed and is never shown again.",
		secretsList(a), secretsSet(a), secretsDelete(a))
	c.Aliases = []string{"secret"}
	return c
}

func secretsList(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List secrets and the servers that use them", Args: cobra.NoArgs,
		RunE: listAll(a, (*client.Project).Secrets, "no secrets; set one with: quartermaster secrets set NAME",
			[]string{"NAME", "UPDATED", "USED BY"}, func(s client.Secret) []string {
				return []string{s.Name, when(s.UpdatedAt), strings.Join(s.UsedBy, ", ")}
			}),
	}
}

func secretsSet(a *app) *cobra.Command {
	var file string
	c := &cobra.Command{
		Use: "set NAME", Short: "Set a secret to what is typed or read from standard input", Args: oneNameOnly, ValidArgsFunction: a.completeSecrets,
		Long: "Set adds a secret or gives it another value: asked for on a terminal, else read from\n" +
			"standard input or a file, without the line break at its end. It is never an argument,\n" +
			"because other users of this machine can read a program's arguments.",
		Example: "  quartermaster secrets set FILES_API_KEY\n" +
			"  pass show files/api-key | quartermaster secrets set FILES_API_KEY\n" +
			"  quartermaster secrets set DEPLOY_KEY --from-file id_ed25519",
		RunE: a.inProject(func(ctx context.Context, p *client.Project, args []string) error {
			value, err := a.readSecret(ctx, args[0], file)
			if err != nil {
				return err
			}
			s, err := p.PutSecret(ctx, args[0], value)
			if err != nil {
				return err
			}
			return a.done(s, "set secret %s", s.Name)
		}),
	}
	c.Flags().StringVar(&file, "from-file", "", "`FILE` with the value")
	_ = c.MarkFlagFilename("from-file")
	return c
}

// oneNameOnly repeats none of the arguments: one of them may be the value.
func oneNameOnly(_ *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return fmt.Errorf("the name of the secret is missing")
	case len(args) > 1:
		return fmt.Errorf("give the name only, and the value on standard input: others can read a program's arguments")
	case !quartermaster.ValidSecretName(args[0]):
		return fmt.Errorf("the name must be 1 to 128 of A-Z a-z 0-9 _, and not begin with a digit; the value is read from standard input")
	}
	return nil
}

// maxSecret is more than the server takes, of any characters.
const maxSecret = 256 << 10

// readSecret gets the value from a file, from a person or from a pipe.
func (a *app) readSecret(ctx context.Context, name, file string) (string, error) {
	r := a.in
	if file != "" {
		f, err := os.Open(file)
		if err != nil {
			return "", usagef("%v", err)
		}
		defer func() { _ = f.Close() }()
		r = f
	} else if f, ok := a.in.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		return a.askSecret(ctx, f, name)
	}
	data, err := io.ReadAll(io.LimitReader(r, maxSecret+1))
	if err != nil {
		return "", usagef("the value cannot be read: %v", err)
	}
	if len(data) > maxSecret {
		return "", quartermaster.Errorf(quartermaster.CodeTooLarge, "the value is larger than %d KiB", maxSecret>>10)
	}
	return withoutLineBreak(string(data))
}

// withoutLineBreak cuts off the one that echo and editors add.
func withoutLineBreak(value string) (string, error) {
	if rest, ok := strings.CutSuffix(value, "\n"); ok {
		value = strings.TrimSuffix(rest, "\r")
	}
	if value == "" {
		return "", usagef("the value is empty; nothing was set")
	}
	return value, nil
}

// askSecret reads a line that the terminal does not show. It leaves the
// terminal as it was, even when the person gives up.
func (a *app) askSecret(ctx context.Context, terminal *os.File, name string) (string, error) {
	fd := int(terminal.Fd())
	before, err := term.GetState(fd)
	if err != nil {
		return "", err
	}
	_, _ = fmt.Fprintf(a.err, "Value of %s (not shown): ", name)
	type line struct {
		text []byte
		err  error
	}
	typed := make(chan line, 1)
	go func() {
		text, err := term.ReadPassword(fd)
		typed <- line{text, err}
	}()
	select {
	case l := <-typed:
		_, _ = fmt.Fprintln(a.err)
		if l.err != nil {
			return "", usagef("the value cannot be read: %v", l.err)
		}
		return withoutLineBreak(string(l.text))
	case <-ctx.Done():
		_ = term.Restore(fd, before)
		_, _ = fmt.Fprintln(a.err)
		return "", ctx.Err()
	}
}

func secretsDelete(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "delete NAME...", Short: "Delete secrets that no server uses", Args: cobra.MinimumNArgs(1), ValidArgsFunction: a.completeSecrets,
		RunE: a.deleteEach((*client.Project).DeleteSecret, "deleted secret %s"),
	}
}
