package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"quartermaster"
	"quartermaster/client"
)

func doctorCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "doctor", Short: "Check the server and the project, and say what is wrong", Args: cobra.NoArgs,
		Long: "Doctor checks the server and the project. A line begins with ✓ where all is well, with ! where\n" +
			"something may be and with ✗ where something is wrong; then the exit code is not 0.",
		RunE: func(c *cobra.Command, _ []string) error {
			cl, err := a.client()
			if err != nil {
				return err
			}
			d := &doctor{app: a, client: cl, project: cl.Project(a.projectID())}
			d.examine(c.Context())
			return d.conclude()
		},
	}
}

type finding string

const (
	well  finding = "ok"
	doubt finding = "warning"
	wrong finding = "failure"
)

var findingMarks = map[finding][2]string{well: {"✓", green}, doubt: {"!", yellow}, wrong: {"✗", red}}

// check is one line of the doctor's.
type check struct {
	Name    string  `json:"name"`
	Finding finding `json:"result"`
	Detail  string  `json:"detail"`
}

type doctor struct {
	app     *app
	client  *client.Client
	project *client.Project
	checks  []check
	exit    int // of the first thing that is wrong
}

func (d *doctor) say(f finding, name, format string, args ...any) {
	d.checks = append(d.checks, check{name, f, fmt.Sprintf(format, args...)})
}

// fail notes err and remembers the exit code that it stands for.
func (d *doctor) fail(name string, err error) {
	p := describe(err)
	d.say(wrong, name, "%s", p.message)
	if d.exit == exitOK {
		d.exit = p.exit
	}
}

// examine goes from the outside to the inside and ends where nothing further
// can be known.
func (d *doctor) examine(ctx context.Context) {
	if err := d.client.Healthy(ctx); err != nil {
		d.fail("server", err)
		return
	}
	d.say(well, "server", "%s answers", d.client.Address())
	if err := d.client.Ready(ctx); err != nil {
		d.fail("ready", err)
	} else {
		d.say(well, "ready", "yes")
	}
	d.server(ctx)
	d.catalog(ctx)
}

func (d *doctor) server(ctx context.Context) {
	st, err := d.client.Status(ctx)
	if err != nil {
		d.fail("status", err)
		return
	}
	if st.Version == d.app.version {
		d.say(well, "version", "%s, program and server alike", st.Version)
	} else {
		d.say(doubt, "version", "this program is %s, the server %s", d.app.version, st.Version)
	}
	d.say(well, "database", "%s, schema %d", st.Database.Kind, st.Database.Schema)
	d.say(well, "auth", "%s", st.Auth)
	if st.User != "" {
		d.say(well, "you", "%s, %s", st.User, st.Role)
	}
	for _, g := range st.Gates {
		d.gate(g)
	}
	kinds := make([]string, len(st.Providers))
	for i, k := range st.Providers {
		kinds[i] = string(k)
	}
	d.say(well, "providers", "%s", strings.Join(kinds, ", "))
	d.say(well, "up", "for %s, with %s", st.Uptime, count(st.Projects, "project"))
}

func (d *doctor) gate(g client.Gate) {
	name := "gate " + g.Name
	switch {
	case g.Trouble != "":
		d.say(wrong, name, "%s (%s)", g.Trouble, g.Detail)
	case g.On:
		d.say(well, name, "on: %s", g.Detail)
	default:
		d.say(doubt, name, "off: %s", g.Detail)
	}
}

func (d *doctor) catalog(ctx context.Context) {
	p, err := d.project.Get(ctx)
	if err != nil {
		d.fail("project", err)
		return
	}
	d.say(well, "project", "%s, plan %s, revision %d", p.ID, p.Plan, p.Revision)
	d.tools(ctx)
	d.upstream(ctx)
}

func (d *doctor) tools(ctx context.Context) {
	all, disabled, missing := 0, 0, 0
	for t, err := range d.project.Tools(quartermaster.ToolFilter{}).All(ctx) {
		if err != nil {
			d.fail("tools", err)
			return
		}
		all++
		switch {
		case !t.Enabled:
			disabled++
		case !t.Available:
			missing++
			d.say(doubt, "tool "+t.Name, "unavailable: %s", t.UnavailableReason)
		}
	}
	d.say(well, "tools", "%d; %d disabled, %d unavailable", all, disabled, missing)
}

func (d *doctor) upstream(ctx context.Context) {
	servers, err := d.project.Servers().Collect(ctx)
	if err != nil {
		d.fail("servers", err)
		return
	}
	for _, s := range servers {
		full, err := d.project.Server(ctx, s.Name)
		switch {
		case err != nil:
			d.fail("server "+s.Name, err)
		case s.Enabled:
			d.upstreamHealth(full)
		}
	}
	d.say(well, "servers", "%d", len(servers))
}

func (d *doctor) upstreamHealth(s client.Server) {
	name := "server " + s.Name
	for _, w := range s.Warnings {
		d.say(doubt, name, "%s", w)
	}
	switch {
	case s.Status == nil:
		d.say(doubt, name, "the server does not say how it is doing")
	case s.Status.Health == "green":
		d.say(well, name, "green")
	case s.Status.Health == "yellow":
		d.say(doubt, name, "yellow, %s: %s", s.Status.State, s.Status.Reason)
	default:
		d.say(wrong, name, "%s, %s: %s", s.Status.Health, s.Status.State, s.Status.Reason)
	}
}

// conclude prints the findings; the exit code says whether something is wrong.
func (d *doctor) conclude() error {
	healthy := true
	for _, c := range d.checks {
		healthy = healthy && c.Finding != wrong
	}
	err := d.app.print(object{{"ok", healthy}, {"checks", d.checks}}, func() error {
		for _, c := range d.checks {
			mark := findingMarks[c.Finding]
			if _, err := fmt.Fprintf(d.app.out, "%s %s: %s\n", d.app.color(mark[1], mark[0]), plainText(c.Name), plainText(c.Detail)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil || healthy {
		return err
	}
	return silentError(max(d.exit, exitInternal))
}
