package quartermaster

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// GATE-4, GATE-6, GATE-7
func TestUserFaults(t *testing.T) {
	for name, tt := range map[string]struct {
		user User
		want []Fault
	}{
		"fine":        {User{ID: "a#b@c:*", Groups: []string{"*"}, Roles: []string{"admin", "<x>"}}, nil},
		"no roles":    {User{ID: "a", Groups: []string{}, Roles: []string{}}, nil},
		"no groups":   {User{ID: "a", Roles: []string{"r"}}, []Fault{{"groups", "must be a list; [] grants none"}}},
		"no id":       {User{Groups: []string{}}, []Fault{{"id", "must not be empty"}}},
		"long id":     {User{ID: strings.Repeat("ä", 128), Groups: []string{}}, []Fault{{"id", "must have at most 255 bytes, has 256"}}},
		"operator":    {User{ID: LocalUser, Groups: []string{}}, []Fault{{"id", "local is the operator of this machine and has every group"}}},
		"empty words": {User{ID: "a", Groups: []string{"g", ""}, Roles: []string{"r", "r", ""}}, []Fault{{"groups[1]", "must not be empty"}, {"roles[2]", "must not be empty"}}},
		"odd role":    {User{ID: "a", Groups: []string{}, Roles: []string{"\x00"}}, []Fault{{"roles[0]", "must not contain a NUL character"}}},
	} {
		if got := tt.user.faults(); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
}

// GATE-7: roles are kept once each; none is the same as absent.
func TestPutUserRoles(t *testing.T) {
	d := NewCatalog(Project{ID: "p"}).Draft(time.Now())
	u, created, err := d.PutUser(User{ID: "a", Groups: []string{}, Roles: []string{"y", "x", "y"}})
	if err != nil || !created || !slices.Equal(u.Roles, []string{"y", "x"}) {
		t.Fatalf("put %+v: %v", u, err)
	}
	if again, _, err := d.PutUser(User{ID: "a", Groups: []string{}, Roles: []string{"y", "x", "x"}}); err != nil || again != u {
		t.Errorf("the same again is %+v: %v", again, err)
	}
	c := d.Catalog()
	d = c.Draft(time.Now())
	for _, none := range [][]string{{}, nil} {
		if u, _, err = d.PutUser(User{ID: "a", Groups: []string{}, Roles: none}); err != nil || u.Roles != nil {
			t.Errorf("no roles: %+v (%v)", u, err)
		}
	}
	diff := d.Diff()
	if len(diff) != 1 || len(diff[0].Fields) != 1 || diff[0].Fields["roles"].To != nil {
		t.Errorf("difference %+v", diff)
	}
	if got := c.User("a").Roles; len(got) != 2 {
		t.Errorf("the base has become %v", got)
	}
}
