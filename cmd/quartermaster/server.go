package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"quartermaster"
	"quartermaster/client"
)

func serversCommand(a *app) *cobra.Command {
	c := nounCommand("servers", "List, show, add, switch, restart and delete upstream MCP servers",
		"A server is an upstream MCP server that offers tools to the project.",
		serversList(a), serversGet(a), serversPut(a),
		serversSwitch(a, "enable", "Let upstream servers offer their tools", true),
		serversSwitch(a, "disable", "Take the tools of upstream servers out of use; their settings stay", false),
		serversRestart(a), serversLogs(a), serversAccept(a), serversDelete(a))
	c.Aliases = []string{"server"}
	return c
}

func serversList(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List the project's upstream servers", Args: cobra.NoArgs,
		RunE: listAll(a, (*client.Project).Servers, "no servers; add one with: quartermaster servers put NAME -f FILE",
			[]string{"NAME", "TRANSPORT", "PROTOCOL", "HEALTH", "STATE", "TOOLS", "RESTARTS", "P50", "P99", "REASON"}, serverRow),
	}
}

func serverRow(s client.Server) []string {
	st := s.Status
	if st == nil {
		st = &quartermaster.ServerStatus{}
	}
	reason := st.Reason
	if reason == "" && st.LastError != "" {
		reason = "last error: " + st.LastError
	}
	return []string{
		s.Name, string(s.Transport), st.Era, st.Health, st.State, fmt.Sprint(st.Tools), fmt.Sprint(st.Restarts),
		milliseconds(st.P50), milliseconds(st.P99), reason,
	}
}

func milliseconds(ms float64) string {
	if ms == 0 {
		return ""
	}
	return fmt.Sprintf("%.3gms", ms)
}

// serverTarget is what is reached: a URL, or a command without its environment.
func serverTarget(s client.Server) string {
	if s.URL != "" {
		return s.URL
	}
	return strings.Join(append([]string{s.Command}, s.Args...), " ")
}

func serversGet(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "get NAME", Short: "Show an upstream server and how it is doing", Args: cobra.ExactArgs(1), ValidArgsFunction: a.completeServers,
		RunE: a.inProject(func(ctx context.Context, p *client.Project, args []string) error {
			s, err := p.Server(ctx, args[0])
			if err != nil {
				return err
			}
			return a.printFields(s, slices.Concat(serverFields(s), statusFields(s), warningFields(s.Warnings)))
		}),
	}
}

// serverFields names variables and headers, but not their values: those may be
// secrets, and a terminal is read over shoulders.
func serverFields(s client.Server) [][2]string {
	groups := ""
	if s.Groups != nil {
		groups = groupsText(s.Groups)
	}
	concurrent := ""
	if s.MaxConcurrent > 0 {
		concurrent = fmt.Sprint(s.MaxConcurrent)
	}
	return [][2]string{
		{"name", s.Name},
		{"transport", string(s.Transport)},
		{"where", serverTarget(s)},
		{"directory", s.Cwd},
		{"environment", strings.Join(sorted(maps.Keys(s.Env)), ", ")},
		{"headers", strings.Join(sorted(maps.Keys(s.Headers)), ", ")},
		{"enabled", yesNo(s.Enabled)},
		{"scope", string(s.Scope)},
		{"prefix", yesNo(s.Prefix)},
		{"lazy", yesNo(s.Lazy)},
		{"pin", yesNo(s.Pin)},
		{"quarantine", yesNo(s.Quarantine)},
		{"max concurrent", concurrent},
		{"groups", groups},
		{"created", when(s.CreatedAt)},
		{"updated", when(s.UpdatedAt)},
	}
}

func statusFields(s client.Server) [][2]string {
	if s.Status == nil {
		return nil
	}
	st := s.Status
	return [][2]string{
		{"health", st.Health},
		{"state", st.State},
		{"reason", st.Reason},
		{"since", when(st.Since)},
		{"protocol", st.Era},
		{"tools", fmt.Sprint(st.Tools)},
		{"restarts", fmt.Sprint(st.Restarts)},
		{"last error", st.LastError},
		{"calls", fmt.Sprint(st.Calls)},
		{"p50", milliseconds(st.P50)},
		{"p99", milliseconds(st.P99)},
	}
}

func warningFields(warnings []string) [][2]string {
	var fields [][2]string
	for _, w := range warnings {
		fields = append(fields, [2]string{"warning", w})
	}
	return fields
}

func serversPut(a *app) *cobra.Command {
	var file string
	c := &cobra.Command{
		Use: "put [NAME] -f FILE", Short: "Add an upstream server or replace its settings", Args: cobra.MaximumNArgs(1), ValidArgsFunction: a.completeServers,
		Long: "Put adds an upstream server or replaces its settings. Values in env and headers that\n" +
			"look secret are sealed as secrets of the project; a reference such as ${NAME} takes their place.",
		Example: "  echo '{transport: http, url: \"https://mcp.example.com/mcp\"}' | quartermaster servers put example -f -",
		RunE: a.inProject(func(ctx context.Context, p *client.Project, args []string) error {
			doc, name, body, err := a.readNamed(file, args, "name")
			if err != nil {
				return err
			}
			s, err := p.PutServerFrom(ctx, name, body)
			if err != nil {
				return doc.located(err)
			}
			a.warn(s.Warnings)
			return a.done(s, "saved server %s", s.Name)
		}),
	}
	fileFlag(c, &file, "a server's settings")
	return c
}

func serversSwitch(a *app, verb, short string, on bool) *cobra.Command {
	return &cobra.Command{
		Use: verb + " NAME...", Short: short, Args: cobra.MinimumNArgs(1), ValidArgsFunction: a.completeServers,
		RunE: a.each(func(ctx context.Context, p *client.Project, name string) error {
			s, err := p.Server(ctx, name)
			if err != nil {
				return err
			}
			s.Enabled = on // secrets were read, and are put back, as references
			if s, err = p.PutServer(ctx, s.Server); err != nil {
				return err
			}
			a.warn(s.Warnings)
			return a.done(s, "%sd server %s", verb, s.Name)
		}),
	}
}

func serversRestart(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "restart NAME...", Short: "Connect to upstream servers anew", Args: cobra.MinimumNArgs(1), ValidArgsFunction: a.completeServers,
		RunE: a.each(func(ctx context.Context, p *client.Project, name string) error {
			if err := p.RestartServer(ctx, name); err != nil {
				return err
			}
			return a.done(map[string]string{"restarted": name}, "restarted server %s", name)
		}),
	}
}

func serversLogs(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "logs NAME", Short: "Show the last lines that a stdio server wrote to its error output", Args: cobra.ExactArgs(1), ValidArgsFunction: a.completeServers,
		RunE: a.inProject(func(ctx context.Context, p *client.Project, args []string) error {
			lines, err := p.ServerStderr(ctx, args[0])
			if err != nil {
				return err
			}
			return a.print(lines, func() error {
				if len(lines) == 0 {
					a.note("server %s has written nothing", args[0])
					return nil
				}
				return a.printText(strings.Join(lines, "\n") + "\n")
			})
		}),
	}
}

func serversAccept(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "accept NAME [TOOL...]", Short: "Let tools through that are held back, with their newest definitions", Args: cobra.MinimumNArgs(1), ValidArgsFunction: a.completeServers,
		Long: "Accept lets tools of a server through that are held back: those named, or all. What a\n" +
			"changed tool looks like now, and what changed, \"quartermaster tools versions TOOL\" shows.",
		Example: "  quartermaster servers accept files read_file",
		RunE: a.inProject(func(ctx context.Context, p *client.Project, args []string) error {
			accepted, err := p.AcceptTools(ctx, args[0], args[1:]...)
			if err != nil {
				return err
			}
			return a.print(accepted, func() error {
				if len(accepted) == 0 {
					a.note("nothing was held back")
					return nil
				}
				return a.done(accepted, "accepted %s", strings.Join(accepted, ", "))
			})
		}),
	}
}

func serversDelete(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "delete NAME...", Short: "Delete upstream servers, their tools and the bindings of those", Args: cobra.MinimumNArgs(1), ValidArgsFunction: a.completeServers,
		RunE: a.deleteEach((*client.Project).DeleteServer, "deleted server %s"),
	}
}
