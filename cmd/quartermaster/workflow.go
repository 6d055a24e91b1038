package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"quartermaster/client"
)

func workflowCommand(a *app) *cobra.Command {
	var svg, mermaid, dot string
	c := &cobra.Command{
		Use: "workflow", Short: "Show the graph of states and tools, and what is odd about it", Args: cobra.NoArgs,
		Long: "Workflow shows the states that the project's tools name, which tools lead from one to\n" +
			"another, and what is odd: states that nobody can reach, states without a way out,\n" +
			"tools that are never available. It writes the picture where a file is named; - is\n" +
			"standard output.",
		Example: "  quartermaster workflow\n  quartermaster workflow --svg workflow.svg\n  quartermaster workflow --mermaid -",
		RunE: a.inProject(func(ctx context.Context, p *client.Project, _ []string) error {
			pictures := [][2]string{{"svg", svg}, {"mermaid", mermaid}, {"dot", dot}}
			drawn, err := a.draw(ctx, p, pictures)
			if err != nil || drawn {
				return err
			}
			w, err := p.Workflow(ctx)
			if err != nil {
				return err
			}
			return a.print(w, func() error { return a.printWorkflow(w) })
		}),
	}
	f := c.Flags()
	f.StringVar(&svg, "svg", "", "write the picture to `FILE` as SVG")
	f.StringVar(&mermaid, "mermaid", "", "write it to `FILE` as Mermaid text")
	f.StringVar(&dot, "dot", "", "write it to `FILE` as DOT text")
	return c
}

// draw writes the pictures that were asked for.
func (a *app) draw(ctx context.Context, p *client.Project, pictures [][2]string) (drawn bool, err error) {
	for _, picture := range pictures {
		format, file := picture[0], picture[1]
		if file == "" {
			continue
		}
		drawn = true
		data, err := p.WorkflowPicture(ctx, format)
		if err != nil {
			return drawn, err
		}
		if file == "-" {
			_, err = a.out.Write(data)
		} else if err = os.WriteFile(file, data, 0o644); err == nil { //nolint:gosec // a picture for everyone to see
			a.note("wrote %s", file)
		}
		if err != nil {
			return drawn, err
		}
	}
	return drawn, nil
}

func (a *app) printWorkflow(w client.Workflow) error {
	t := table{header: []string{"FROM", "TO", "BY"}}
	for _, e := range w.Edges {
		t.rows = append(t.rows, []string{e.From, e.To, strings.Join(e.Tools, ", ")})
	}
	if len(w.Edges) == 0 {
		a.note("no workflow: no tool moves a session to another state")
	} else if err := t.write(a.out, a.width()); err != nil {
		return err
	}
	for _, f := range w.Warnings {
		if _, err := fmt.Fprintln(a.out, a.color(yellow, "! "+plainText(f.Message))); err != nil {
			return err
		}
	}
	for _, f := range w.Notes {
		if _, err := fmt.Fprintln(a.out, "· "+plainText(f.Message)); err != nil {
			return err
		}
	}
	return nil
}
