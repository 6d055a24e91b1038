package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"quartermaster/client"
)

func exportCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "export", Short: "Write the project as one file", Args: cobra.NoArgs,
		Long: "Export writes the project as one YAML file (JSON with -o json), which apply reads.\n" +
			"The same project gives the same file. Applying it to the project changes nothing.",
		Example: "  quartermaster export > project.yaml",
		RunE: a.inProject(func(ctx context.Context, p *client.Project, _ []string) error {
			doc, err := exported(ctx, p)
			if err != nil {
				return err
			}
			if a.flags.output == formatJSON {
				return writeJSON(a.out, doc)
			}
			return writeYAML(a.out, doc)
		}),
	}
}

// exported reads the project's document and puts its parts in an order that
// never changes.
func exported(ctx context.Context, p *client.Project) (object, error) {
	raw, err := p.Export(ctx)
	if err != nil {
		return nil, err
	}
	v, err := readJSON(raw)
	if err != nil {
		return nil, fmt.Errorf("the server's export is not understood: %w", err)
	}
	doc, ok := v.(object)
	if !ok {
		return nil, fmt.Errorf("the server's export is not understood: it is no object")
	}
	return ordered(doc), nil
}

// ordered sorts entries by name and leaves what stands in them as it is.
func ordered(doc object) object {
	order := append([]string{"quartermaster", "project"}, sections...)
	out := slices.Clone(doc)
	slices.SortStableFunc(out, func(a, b member) int { return rank(order, a.key) - rank(order, b.key) })
	for i, m := range out {
		if grants, ok := m.value.([]any); ok && m.key == "grants" {
			out[i].value = orderedGrants(grants)
		}
		entries, ok := m.value.(object)
		if !ok || !slices.Contains(sections, m.key) {
			continue
		}
		entries = slices.Clone(entries)
		slices.SortStableFunc(entries, func(a, b member) int { return strings.Compare(a.key, b.key) })
		out[i].value = entries
	}
	return out
}

// orderedGrants puts the words of each into the order in which they are said.
func orderedGrants(grants []any) []any {
	out := slices.Clone(grants)
	for i, g := range out {
		if words, ok := g.(object); ok {
			words = slices.Clone(words)
			said := []string{"subject", "relation", "tool", "resource"}
			slices.SortStableFunc(words, func(a, b member) int { return rank(said, a.key) - rank(said, b.key) })
			out[i] = words
		}
	}
	return out
}

func rank(order []string, key string) int {
	if i := slices.Index(order, key); i >= 0 {
		return i
	}
	return len(order)
}
