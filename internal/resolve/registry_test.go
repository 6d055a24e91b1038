package resolve

import (
	"testing"
	"time"

	"quartermaster"
)

// CAT-4, GATE-9: what waits to be accepted is out of everyone's reach, with the
// reason and what would help.
func TestRegistryHoldsBack(t *testing.T) {
	at := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	put := func(d *quartermaster.Draft, name string, pin, quarantine, enabled bool) {
		t.Helper()
		if _, _, err := d.PutServer(quartermaster.Server{
			Name: name, Transport: quartermaster.TransportStdio, Command: "x", Enabled: enabled, Prefix: true, Pin: pin, Quarantine: quarantine,
		}); err != nil {
			t.Fatal(err)
		}
	}
	discover := func(d *quartermaster.Draft, server string, offers ...quartermaster.Offer) {
		t.Helper()
		if report, err := d.Discover(server, offers); err != nil || len(report.Refused) > 0 {
			t.Fatalf("%v %+v", err, report)
		}
	}
	d := empty().Draft(at)
	put(d, "p", true, false, true)
	put(d, "q", false, true, true)
	discover(d, "p", quartermaster.Offer{Name: "old"}, quartermaster.Offer{Name: "odd one"}, quartermaster.Offer{Name: "off"})
	discover(d, "q", quartermaster.Offer{Name: "x"})
	d = d.Catalog().Draft(at)
	discover(d, "p", quartermaster.Offer{Name: "old"}, quartermaster.Offer{Name: "odd one", Description: "2"}, quartermaster.Offer{Name: "off", Description: "2"}, quartermaster.Offer{Name: "-new"})
	if _, err := d.UpdateTool("p__off", func(tool *quartermaster.Tool) error { tool.Enabled = false; return nil }); err != nil {
		t.Fatal(err)
	}
	if _, _, err := d.PutAgent(quartermaster.Agent{ID: "a", Tools: []string{"@p/*", "@q/*"}}); err != nil {
		t.Fatal(err)
	}
	catalog := d.Catalog()
	caller := quartermaster.Caller{Project: "default", Agent: "a", User: "u"}
	explain := func(name string) quartermaster.Explanation {
		t.Helper()
		res, err := New(fixed{catalog}, nil, nil).Resolve(t.Context(), caller, quartermaster.Question{Tool: name, Explain: true})
		if err != nil || len(res.Explanations) != 1 {
			t.Fatal(err)
		}
		return res.Explanations[0]
	}
	odd := nameOf(catalog, "odd one")
	for name, want := range map[string][2]string{
		"p__-new": {"it has been new on server p since 2026-11-15 and waits to be accepted", "quartermaster servers accept p -- -new"},
		odd:       {"its definition changed on 2026-11-15 and waits to be accepted", "quartermaster servers accept p 'odd one'"},
		"p__off":  {"it is disabled, and its definition changed on 2026-11-15 and waits to be accepted", "quartermaster tools enable p__off and quartermaster servers accept p off"},
		"q__x":    {"it has been in quarantine since 2026-11-15 and waits to be accepted", "quartermaster servers accept q x"},
	} {
		if e := explain(name); e.Allowed || e.Gate != quartermaster.GateRegistry || e.Reason != want[0] || e.Remedy != want[1] {
			t.Errorf("%s: %+v", name, e)
		}
		if got := admit(t, New(fixed{catalog}, nil, nil), caller, name); got != nil {
			t.Errorf("%s is admitted", name)
		}
	}
	if e := explain("p__old"); !e.Allowed || e.Gates[0].Reason != "it is enabled and accepted" {
		t.Errorf("%+v", e)
	}
	who, err := New(fixed{catalog}, nil, nil).WhoCan(t.Context(), catalog, "q__x")
	if err != nil || who.Nobody != "it has been in quarantine since 2026-11-15 and waits to be accepted" {
		t.Errorf("%+v, %v", who, err)
	}
	d = catalog.Draft(at)
	for _, server := range []string{"p", "q"} {
		if _, err := d.Accept(server); err != nil {
			t.Fatal(err)
		}
	}
	put(d, "q", false, true, false)
	catalog = d.Catalog()
	if e := explain("p__-new"); !e.Allowed {
		t.Errorf("%+v", e)
	}
	if e := explain("q__x"); e.Reason != "its server q is disabled" || e.Remedy != "quartermaster servers enable q" {
		t.Errorf("%+v", e)
	}
}

// nameOf finds the name that an offer was given.
func nameOf(c *quartermaster.Catalog, upstream string) string {
	for _, tool := range c.Tools() {
		if tool.Upstream == upstream {
			return tool.Name
		}
	}
	return ""
}
