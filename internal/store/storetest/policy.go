package storetest

import (
	"errors"
	"strings"
	"time"

	"quartermaster"
)

func putPolicy(name, rego string) func(*quartermaster.Draft) error {
	return func(d *quartermaster.Draft) error {
		_, _, err := d.PutPolicy(quartermaster.Policy{Name: name, Rego: rego})
		return err
	}
}

// POL-1: modules survive to the letter.
func testPolicy(f *fixture) {
	all := map[string]string{
		"p": "package p", "P": "package p\r\n\n", "a.b-c_9": "# ä日本 \u2028 '\"\\%$1 <&>\npackage p", "p_test": strings.Repeat("x", 1<<20),
	}
	put := func(d *quartermaster.Draft) error {
		var errs []error
		for name, rego := range all {
			errs = append(errs, putPolicy(name, rego)(d))
		}
		return errors.Join(errs...)
	}
	c := f.change(put)
	for name, want := range all {
		p := c.Policy(name)
		if p == nil || p.Rego != want || time.Since(p.CreatedAt) > time.Minute || !p.UpdatedAt.Equal(p.CreatedAt) {
			f.Errorf("%s: %.99v", name, p)
		}
	}
	f.survives(c)
	if again := f.change(put); again.Revision() != c.Revision() {
		f.Error("putting the same policies again is a change")
	}
	time.Sleep(time.Millisecond) // the two times differ, at any resolution
	next := f.change(putPolicy("p", "package q"))
	if p := next.Policy("p"); !p.CreatedAt.Equal(c.Policy("p").CreatedAt) || !p.UpdatedAt.After(p.CreatedAt) || p.Rego != "package q" {
		f.Errorf("updated %+v", p)
	}
	f.survives(next)
	f.refused(quartermaster.CodeInvalidRequest, putPolicy("a b", "package p"))
	f.refused(quartermaster.CodeNotFound, func(d *quartermaster.Draft) error { return d.DeletePolicy("none") })
	c = f.change(func(d *quartermaster.Draft) error {
		return errors.Join(d.DeletePolicy("p"), d.DeletePolicy("P"), putPolicy("P", "package again")(d))
	})
	if c.Policy("p") != nil || c.Policy("P").Rego != "package again" {
		f.Errorf("policies %v", c.Policies())
	}
	f.survives(c)
}
