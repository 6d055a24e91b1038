package quartermaster

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// model is what discovery is meant to do, in plain words: of each tool of one
// server what it shows, what waits and what people have set.
type model struct {
	pin, quarantine, first bool
	now                    time.Time
	tools                  map[string]*modelTool
}

type modelTool struct {
	id             string
	shown, waiting string // descriptions; they are all that differs
	held           Hold
	missing        time.Time
	group          string
	off            bool
	title          string
	bound, granted bool
}

func (m *model) discover(offers map[string]string) {
	for name, description := range offers {
		t := m.tools[name]
		if t == nil {
			t = &modelTool{shown: description}
			m.tools[name] = t
			switch {
			case m.quarantine:
				t.held = HeldQuarantined
			case m.pin && !m.first:
				t.held = HeldNew
			}
			continue
		}
		t.missing = time.Time{}
		switch {
		case description == t.shown:
			if t.held == HeldChanged {
				t.held, t.waiting = "", ""
			}
		case t.held == "" && !m.pin && !m.quarantine, t.held == HeldNew, t.held == HeldQuarantined:
			t.shown = description
		default:
			t.held, t.waiting = HeldChanged, description
		}
	}
	for name, t := range m.tools {
		_, offered := offers[name]
		switch {
		case offered:
		case t.missing.IsZero():
			t.missing = m.now
		case m.now.Sub(t.missing) >= DefaultGrace:
			delete(m.tools, name)
		}
	}
	m.first = false
}

func (t *modelTool) accept() {
	if t.held == HeldChanged {
		t.shown, t.waiting = t.waiting, ""
	}
	t.held = ""
}

func (m *model) put(pin, quarantine bool) {
	for _, t := range m.tools {
		if quarantine && !m.quarantine && t.held == "" {
			t.held = HeldQuarantined
		}
		if (m.pin || m.quarantine) && !pin && !quarantine {
			t.accept()
		}
	}
	m.pin, m.quarantine = pin, quarantine
}

// check compares the model with a catalog.
func (m *model) check(t *rapid.T, c *Catalog) {
	rows := c.discovered("s")
	if got, want := sortedKeys(rows), sortedKeys(m.tools); !slices.Equal(got, want) {
		t.Fatalf("tools %v, want %v", got, want)
	}
	for name, want := range m.tools {
		row := rows[name]
		if want.id == "" {
			want.id = row.ID
		}
		got := modelTool{
			id: row.ID, shown: row.Description, held: row.Held, missing: row.MissingSince, off: !row.Enabled, title: row.DisplayName,
			bound: c.Bindings("x").Has(row.ID), granted: len(c.Grants(GrantFilter{Resource: "tool:" + row.Name})) > 0,
		}
		if row.Pending != nil {
			got.waiting = row.Pending.Description
		}
		if row.Groups != nil {
			got.group = row.Groups[0]
		}
		expected := *want
		if expected.title == "" {
			expected.title = "of " + row.Newest().Name
		}
		if got != expected {
			t.Fatalf("%s is %+v, want %+v", name, got, expected)
		}
		if row.Active() != (row.Enabled && row.Held == "") || row.Hash != row.Offer().hash() || (row.Held == "") != row.HeldSince.IsZero() {
			t.Fatalf("%s: %+v", name, row)
		}
	}
}

// The names are few and quarrel: some fit, some do not, some meet.
var offeredNames = []string{"a", "b c", "b/c", "s__a", "find_tools", "echo", "日本", "b_c_" + sum("b c")}

func drawOffers(t *rapid.T) map[string]string {
	offers := map[string]string{}
	for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom(offeredNames), 0, 5, rapid.ID).Draw(t, "offers") {
		offers[name] = rapid.SampledFrom([]string{"one", "two", "three"}).Draw(t, "description")
	}
	return offers
}

// spelled are offers in a random order and spelling.
func spelled(t *rapid.T, offers map[string]string) []Offer {
	list := make([]Offer, 0, len(offers))
	for _, name := range rapid.Permutation(slices.Sorted(maps.Keys(offers))).Draw(t, "order") {
		o := Offer{Name: name, Title: "of " + name, Description: offers[name]}
		o.InputSchema = rapid.SampledFrom([][]byte{
			[]byte(`{"type":"object","properties":{"x":{"type":"integer"}}}`), []byte(` {"properties" : { "x":{"type":"integer"}} ,"type":"object"}`),
		}).Draw(t, "spelling")
		list = append(list, o)
	}
	return list
}

// CAT-2, CAT-3, CAT-4, POOL-3: whatever servers offer and people do, in whatever
// order, discovery does what the model says: it loses nothing that people have
// set, changes no id, and does nothing twice.
func TestDiscoverEqualsModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &model{first: true, now: noon, tools: map[string]*modelTool{}}
		m.pin, m.quarantine = rapid.Bool().Draw(t, "pin"), rapid.Bool().Draw(t, "quarantine")
		d := started(t)
		put := func(d *Draft) {
			_, _, err := d.PutServer(Server{Name: "s", Transport: TransportStdio, Command: "x", Prefix: true, Pin: m.pin, Quarantine: m.quarantine})
			if err != nil {
				t.Fatal(err)
			}
		}
		put(d)
		c := d.Catalog()
		names := map[string]string{}
		for range rapid.IntRange(1, 15).Draw(t, "steps") {
			m.now = m.now.Add(time.Duration(rapid.IntRange(0, 6).Draw(t, "minutes")) * time.Minute)
			d = c.Draft(m.now)
			switch rapid.SampledFrom([]string{"discover", "discover", "discover", "accept", "accept one", "settings", "edit"}).Draw(t, "step") {
			case "discover":
				offers := drawOffers(t)
				report, err := d.Discover("s", spelled(t, offers))
				if err != nil || len(report.Refused) > 0 {
					t.Fatalf("%v, %+v", err, report)
				}
				m.discover(offers)
				checkIdempotent(t, d.Catalog(), m.now, offers)
			case "accept":
				if _, err := d.Accept("s"); err != nil {
					t.Fatal(err)
				}
				for _, tool := range m.tools {
					tool.accept()
				}
			case "accept one":
				if len(m.tools) > 0 {
					name := rapid.SampledFrom(sortedKeys(m.tools)).Draw(t, "tool")
					if _, err := d.Accept("s", name); err != nil {
						t.Fatal(err)
					}
					m.tools[name].accept()
				}
			case "settings":
				m.put(rapid.Bool().Draw(t, "pin"), rapid.Bool().Draw(t, "quarantine"))
				put(d)
			case "edit":
				m.edit(t, d)
			}
			c = d.Catalog()
			m.check(t, c)
			checkExport(t, c)
			for upstream, name := range offersOf(c, "s") {
				if was, ok := names[upstream]; ok && was != name {
					t.Fatalf("%q was called %s and is called %s", upstream, was, name)
				}
			}
			maps.DeleteFunc(names, func(upstream, _ string) bool { return m.tools[upstream] == nil })
			maps.Copy(names, offersOf(c, "s"))
		}
	})
}

// edit lets a person change something in a tool.
func (m *model) edit(t *rapid.T, d *Draft) {
	if len(m.tools) == 0 {
		return
	}
	name := rapid.SampledFrom(sortedKeys(m.tools)).Draw(t, "tool")
	want, row := m.tools[name], d.discovered("s")[name]
	switch rapid.SampledFrom([]string{"enabled", "groups", "title", "no title", "bind", "grant"}).Draw(t, "field") {
	case "enabled":
		want.off = !want.off
	case "groups":
		want.group = "g"
	case "title":
		want.title = "mine"
	case "no title":
		want.title = ""
	case "bind":
		if row.Active() && !want.bound {
			if _, err := d.ChangeBindings("x", []string{row.ID}, nil); err != nil {
				t.Fatal(err)
			}
			want.bound = true
		}
	case "grant":
		if _, _, err := d.Grant(Grant{Subject: "user:u", Relation: "executor", Tool: row.Name}); err != nil {
			t.Fatal(err)
		}
		want.granted = true
	}
	if _, err := d.UpdateTool(row.ID, func(tool *Tool) error {
		tool.Enabled, tool.DisplayName = !want.off, want.title
		if want.group != "" {
			tool.Groups = []string{want.group}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

// checkIdempotent offers the same again, spelled another way.
func checkIdempotent(t *rapid.T, c *Catalog, now time.Time, offers map[string]string) {
	d := c.Draft(now)
	if report, err := d.Discover("s", spelled(t, offers)); err != nil || len(d.Changes()) > 0 {
		t.Fatalf("again: %v, %+v, %+v", err, report, d.Diff())
	}
}

// checkExport applies a project's own file, which changes nothing (CAT-5).
func checkExport(t *rapid.T, c *Catalog) {
	text, err := json.Marshal(c.Export())
	if err != nil {
		t.Fatal(err)
	}
	var doc Document
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	for _, prune := range []bool{false, true} {
		d := c.Draft(noon)
		if err := d.Apply(doc, prune); err != nil || len(d.Changes()) > 0 {
			t.Fatalf("prune %t: %v, %+v", prune, err, d.Diff())
		}
	}
}

// CAT-2: the names of a first discovery do not depend on the order, with or
// without prefixes.
func TestDiscoverNamesIgnoreTheOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		offers := drawOffers(t)
		prefix := rapid.Bool().Draw(t, "prefix")
		var names []map[string]string
		for range 2 {
			d := started(t)
			if _, _, err := d.PutServer(Server{Name: "s", Transport: TransportStdio, Command: "x", Prefix: prefix}); err != nil {
				t.Fatal(err)
			}
			report, err := d.Discover("s", spelled(t, offers))
			if _, echo := report.Refused["echo"]; err != nil || len(report.Refused) > 1 || len(report.Refused) == 1 && !echo {
				t.Fatalf("%v, %+v", err, report)
			}
			c := d.Catalog()
			names = append(names, offersOf(c, "s"))
			for upstream, name := range names[0] {
				if tool := c.Tool("@s/" + c.ToolByName(name).shortName()); !ValidToolName(name) || Reserved(name) || tool.Upstream != upstream {
					t.Fatalf("%q is called %s", upstream, name)
				}
			}
		}
		if !maps.Equal(names[0], names[1]) {
			t.Fatalf("%v, then %v", names[0], names[1])
		}
	})
}
