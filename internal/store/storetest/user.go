package storetest

import (
	"errors"
	"reflect"
	"time"

	"quartermaster"
)

// GATE-4, GATE-7
func testUser(f *fixture) {
	full := quartermaster.User{ID: "ä日本 \u2028<&>#@", Groups: []string{"b", "a", "*"}, Roles: []string{"z", "<admin>"}}
	settable(f.T, full)
	none := quartermaster.User{ID: "none", Groups: []string{}, Roles: []string{}}
	put := func(users ...quartermaster.User) func(*quartermaster.Draft) error {
		return func(d *quartermaster.Draft) error {
			var errs []error
			for _, u := range users {
				_, _, err := d.PutUser(u)
				errs = append(errs, err)
			}
			return errors.Join(errs...)
		}
	}
	c := f.change(put(full, none))
	got := *c.User(full.ID)
	got.CreatedAt, got.UpdatedAt = time.Time{}, time.Time{}
	if !reflect.DeepEqual(got, full) {
		f.Errorf("put\n%s, want\n%s", show(got), show(full))
	}
	if u := c.User("none"); u.Groups == nil || u.Roles != nil {
		f.Errorf("no groups are a list, no roles are absent: %s", show(u))
	}
	f.survives(c)
	if again := f.change(put(full, none)); again.Revision() != c.Revision() {
		f.Error("putting the same users again is a change")
	}
	full.Roles = nil
	none.Roles = []string{"r"}
	c = f.change(put(full, none))
	if c.User(full.ID).Roles != nil || len(c.User("none").Roles) != 1 {
		f.Errorf("users %s", show(c.Users()))
	}
	f.survives(c)
	f.survives(f.change(func(d *quartermaster.Draft) error { return d.DeleteUser(full.ID) }))
	f.refused(quartermaster.CodeNotFound, func(d *quartermaster.Draft) error { return d.DeleteUser(full.ID) })
}
