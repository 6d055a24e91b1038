package main

import (
	"context"
	"errors"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"quartermaster"
	"quartermaster/client"
)

const bindLong = `Bind shows or changes which tools are bound to an agent, in addition to those that
its definition names.

With tools it makes them the whole set; with --none the set becomes empty; --add and
--remove leave the others as they are. Without any of these it lists the active tools
that are bound, with --unbound those that could be. A tool is named by id, name or
@server/tool.`

const bindExample = `  quartermaster bind writer                        # what is bound
  quartermaster bind writer echo @files/read_file  # exactly these two
  quartermaster bind writer --add time_now
  quartermaster bind writer --none`

type bindOptions struct {
	none    bool
	unbound bool
	add     []string
	remove  []string
	filter  quartermaster.ToolFilter
}

func bindCommand(a *app) *cobra.Command {
	var o bindOptions
	c := &cobra.Command{
		Use: "bind AGENT [TOOL...]", Short: "Show or change the tools bound to an agent",
		Long: bindLong, Example: bindExample, Args: cobra.MinimumNArgs(1), ValidArgsFunction: a.completeBind,
		RunE: func(c *cobra.Command, args []string) error {
			if err := o.check(args[1:]); err != nil {
				return err
			}
			p, err := a.open()
			if err != nil {
				return err
			}
			return a.bind(c.Context(), p, args[0], args[1:], o)
		},
	}
	f := c.Flags()
	f.BoolVar(&o.none, "none", false, "unbind all tools")
	f.BoolVar(&o.unbound, "unbound", false, "list the tools that are not bound")
	f.StringArrayVar(&o.add, "add", nil, "bind this `TOOL` too; may be repeated")
	f.StringArrayVar(&o.remove, "remove", nil, "unbind this `TOOL`; may be repeated")
	filterFlags(c, &o.filter)
	_ = c.RegisterFlagCompletionFunc("add", a.completeTools(0))
	_ = c.RegisterFlagCompletionFunc("remove", a.completeTools(0))
	return c
}

// check refuses words that contradict each other.
func (o bindOptions) check(tools []string) error {
	ways := 0
	for _, given := range []bool{len(tools) > 0, o.none, o.unbound, len(o.add)+len(o.remove) > 0} {
		if given {
			ways++
		}
	}
	if ways > 1 {
		return usagef("give tools, --none, --unbound, or --add and --remove; not several of them")
	}
	lists := o.unbound || ways == 0
	if !lists && o.filter != (quartermaster.ToolFilter{}) {
		return usagef("--query and --category narrow a list; nothing is listed here")
	}
	return nil
}

func (a *app) bind(ctx context.Context, p *client.Project, agent string, tools []string, o bindOptions) error {
	switch {
	case o.unbound:
		list, err := p.Unbound(agent, o.filter).Collect(ctx)
		if err != nil {
			return err
		}
		return a.printTools(list, "no tool is left to bind")
	case o.none || len(tools) > 0:
		return a.changeBindings(ctx, p, agent, tools, func(ids []string) (client.Bound, error) {
			return p.ReplaceBindings(ctx, agent, ids)
		})
	case len(o.add)+len(o.remove) > 0:
		return a.changeBindings(ctx, p, agent, append(o.add, o.remove...), func(ids []string) (client.Bound, error) {
			return p.ChangeBindings(ctx, agent, ids[:len(o.add)], ids[len(o.add):])
		})
	default:
		return a.printBound(ctx, p, agent, o.filter)
	}
}

func (a *app) printBound(ctx context.Context, p *client.Project, agent string, filter quartermaster.ToolFilter) error {
	list, err := p.Bound(agent, filter).Collect(ctx)
	if err != nil {
		return err
	}
	empty := "no tools bound; bind some with: quartermaster bind " + agent + " TOOL..."
	return printList(a, list, empty, []string{"NAME", "CATEGORY", "BOUND SINCE", "DESCRIPTION"}, func(t quartermaster.Tool) []string {
		return []string{t.Name, t.Category, when(t.BoundAt), firstLine(t.Description)}
	})
}

// changeBindings looks the tools up, has change called with their ids and says
// what has become of it.
func (a *app) changeBindings(ctx context.Context, p *client.Project, agent string, tools []string, change func([]string) (client.Bound, error)) error {
	ids, names, err := toolIDs(ctx, p, tools)
	if err != nil {
		return err
	}
	bound, err := change(ids)
	if err != nil {
		return nameInvalid(err, names)
	}
	return a.done(bound, "%s has %s bound", agent, count(bound.BoundToolCount, "tool"))
}

var uuid = regexp.MustCompile(`^[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$`)

// toolIDs turns names into ids, and remembers them by id. All that are unknown
// are in the one error. What looks like an id is left for the server to judge.
func toolIDs(ctx context.Context, p *client.Project, refs []string) (ids []string, names map[string]string, err error) {
	ids, names = make([]string, len(refs)), map[string]string{}
	var unknown []string
	for i, ref := range refs {
		if ids[i] = ref; uuid.MatchString(ref) {
			continue
		}
		t, err := p.Tool(ctx, ref)
		switch {
		case err == nil:
			ids[i], names[t.ID] = t.ID, ref
		case quartermaster.CodeOf(err) == quartermaster.CodeToolNotFound:
			unknown = append(unknown, ref)
		default:
			return nil, nil, err
		}
	}
	if len(unknown) > 0 {
		return nil, nil, quartermaster.Errorf(quartermaster.CodeToolNotFound, "there is no tool %s; nothing was changed", strings.Join(unknown, ", "))
	}
	return ids, names, nil
}

// nameInvalid puts the names that were given beside ids that the server refuses.
func nameInvalid(err error, names map[string]string) error {
	e, ok := errors.AsType[*quartermaster.Error](err)
	if !ok {
		return err
	}
	ids, _ := e.Details["invalidIds"].([]any)
	for i, id := range ids {
		if name := names[id.(string)]; name != "" {
			ids[i] = name
		}
	}
	return err
}
