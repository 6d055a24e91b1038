package storetest

import (
	"encoding/json"
	"reflect"
	"time"

	"quartermaster"
)

func testAgent(f *fixture) {
	full := quartermaster.Agent{
		ID: "日本 <1>/..", Name: "N", Description: "D", Instruction: "I\n\u2028", Model: "M",
		Tools: []string{"@files/*", "a"}, Allowed: []string{"*"}, Aliases: map[string]string{"read": "@files/<r>"},
		MaxDepth: 3, MaxSteps: 4, Timeout: 1, Visibility: quartermaster.VisibilityInternal, Flow: quartermaster.FlowLoop,
		Servers: []string{"files"}, Discovery: quartermaster.DiscoverySearch, Memory: json.RawMessage(`{"a":"<&>\u2028"}`), Fixed: true,
	}
	settable(f.T, full)
	bare := quartermaster.Agent{ID: "bare"}
	empty := quartermaster.Agent{ID: "empty", Tools: []string{}, Allowed: []string{}, Servers: []string{}, Aliases: map[string]string{}}
	put := func(d *quartermaster.Draft) error {
		for _, a := range []quartermaster.Agent{full, bare, empty} {
			if _, _, err := d.PutAgent(a); err != nil {
				return err
			}
		}
		return nil
	}
	c := f.change(put)
	got := *c.Agent(full.ID)
	got.CreatedAt, got.UpdatedAt = time.Time{}, time.Time{}
	if !reflect.DeepEqual(got, full) {
		f.Errorf("put\n%s, want\n%s", show(got), show(full))
	}
	if a := c.Agent("bare"); a.Visibility != quartermaster.VisibilityProject || a.Flow != quartermaster.FlowSingle || a.Discovery != quartermaster.DiscoveryList || a.Tools != nil {
		f.Errorf("defaults %+v", a)
	}
	if a := c.Agent("empty"); a.Tools == nil || a.Allowed == nil {
		f.Errorf("empty became absent: %+v", a)
	}
	f.survives(c)
	if again := f.change(put); again.Revision() != c.Revision() {
		f.Error("putting the same definitions again is a change")
	}

	ids := f.tools("a")
	f.bind("bare", ids...)
	c = f.change(func(d *quartermaster.Draft) error { return d.DeleteAgent("bare") })
	if c.Agent("bare") != nil || len(boundIDs(c, "bare")) != 1 {
		f.Error("deleting a definition keeps the bindings and nothing else")
	}
	f.survives(c)
	f.refused(quartermaster.CodeNotFound, func(d *quartermaster.Draft) error { return d.DeleteAgent("bare") })
	c = f.change(func(d *quartermaster.Draft) error {
		if err := d.DeleteAgent("empty"); err != nil {
			return err
		}
		_, _, err := d.PutAgent(empty)
		return err
	})
	f.survives(c)
}
