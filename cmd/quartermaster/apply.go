package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"quartermaster/client"
)

const applyLong = `Apply puts project files into force: all of it, or nothing if anything in them is
wrong. What the files do not mention stays as it is, unless --prune is given.

Several files, and all files of a directory, count as one. An entry that stands in two
of them is an error.`

const applyExample = `  quartermaster apply -f project.yaml --dry-run
  quartermaster apply -f base.yaml -f tools/
  quartermaster export --project a | quartermaster apply --project b -f -`

type applyOptions struct {
	files []string
	client.ApplyOptions
}

func applyCommand(a *app) *cobra.Command {
	var o applyOptions
	c := &cobra.Command{
		Use: "apply -f FILE...", Short: "Put project files into force, all or nothing",
		Long: applyLong, Example: applyExample, Args: cobra.NoArgs,
		RunE: a.inProject(func(ctx context.Context, p *client.Project, _ []string) error {
			return a.apply(ctx, p, o)
		}),
	}
	f := c.Flags()
	f.StringArrayVarP(&o.files, "file", "f", nil, "`FILE` or directory to apply; - is standard input; may be repeated")
	f.BoolVar(&o.DryRun, "dry-run", false, "only say what would change")
	f.BoolVar(&o.Prune, "prune", false, "also remove what the files do not hold")
	_ = c.MarkFlagRequired("file")
	_ = c.MarkFlagFilename("file", "yaml", "yml", "json")
	return c
}

func (a *app) apply(ctx context.Context, p *client.Project, o applyOptions) error {
	applied, err := a.send(ctx, p, o)
	if err != nil {
		return err
	}
	return a.print(applied, func() error {
		for _, d := range applied.Changes {
			if err := a.printDifference(d); err != nil {
				return err
			}
		}
		a.warn(applied.Warnings)
		a.note("%s", summary(applied))
		return nil
	})
}

func (a *app) send(ctx context.Context, p *client.Project, o applyOptions) (client.Applied, error) {
	doc, err := a.readProject(o.files)
	if err != nil {
		return client.Applied{}, err
	}
	body, err := doc.json()
	if err != nil {
		return client.Applied{}, err
	}
	applied, err := p.ApplyFrom(ctx, body, o.ApplyOptions)
	if err != nil {
		return client.Applied{}, doc.located(err)
	}
	return applied, nil
}

func summary(applied client.Applied) string {
	n := len(applied.Changes)
	switch {
	case n == 0:
		return "nothing to change"
	case applied.DryRun:
		return count(n, "change") + " would be made; nothing was changed"
	default:
		return fmt.Sprintf("%s made; the project is at revision %d", count(n, "change"), applied.Revision)
	}
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// applyAtStart applies files to the server that this process runs itself.
func (a *app) applyAtStart(ctx context.Context, url string, files []string) error {
	c, err := client.New(url, client.WithUserAgent("quartermaster/"+a.version))
	if err != nil {
		return err
	}
	applied, err := a.send(ctx, c.Project(a.projectID()), applyOptions{files: files})
	if err != nil {
		return err
	}
	a.warn(applied.Warnings)
	a.note("project %s: %s", a.projectID(), summary(applied))
	return nil
}
