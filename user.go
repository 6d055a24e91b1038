package quartermaster

import (
	"slices"
	"time"
)

// User is what a project knows of a person: the groups that they may ask for and
// the roles that policies know them by.
// A user without a row is granted the group default.
type User struct {
	ID        string    `json:"id,omitempty" doc:"1 to 255 bytes" example:"alice"`
	Groups    []string  `json:"groups" required:"false" nullable:"false" doc:"Groups that the user may ask for; * is every group"`
	Roles     []string  `json:"roles,omitempty" doc:"What policies know the user as: data.roles[user]"`
	CreatedAt time.Time `json:"createdAt" readOnly:"true"`
	UpdatedAt time.Time `json:"updatedAt" readOnly:"true"`
}

func (u *User) faults() faults {
	var f faults
	checkUserID(&f, "id", u.ID)
	if u.ID == LocalUser {
		f.add("id", "%s is the operator of this machine and has every group", LocalUser)
	}
	if u.Groups == nil {
		f.add("groups", "must be a list; [] grants none")
	}
	checkNames(&f, "groups", u.Groups)
	checkNames(&f, "roles", u.Roles)
	return f
}

// CheckUserID says what is wrong with a user's id (GATE-6). location names the
// field in the error.
func CheckUserID(location, id string) error {
	var f faults
	checkUserID(&f, location, id)
	return f.err("the user id is not valid")
}

func checkUserID(f *faults, location, id string) {
	switch {
	case id == "":
		f.add(location, "must not be empty")
	case len(id) > 255:
		f.add(location, "must have at most 255 bytes, has %d", len(id))
	default:
		checkText(f, location, id, 255)
	}
}

// PutUser adds a user or replaces what is known of them.
func (d *Draft) PutUser(u User) (user *User, created bool, err error) {
	if err := u.faults().err("user %q is not valid", u.ID); err != nil {
		return nil, false, err
	}
	u.Groups, u.Roles = fold(u.Groups), absent(fold(u.Roles))
	old := d.User(u.ID)
	u.CreatedAt, u.UpdatedAt = d.now, d.now
	if old != nil {
		if slices.Equal(u.Groups, old.Groups) && slices.Equal(u.Roles, old.Roles) {
			return old, false, nil
		}
		u.CreatedAt = old.CreatedAt
	}
	d.users[u.ID] = &u
	return &u, old == nil, nil
}

// DeleteUser removes a user's row: what is left is the default.
func (d *Draft) DeleteUser(id string) error {
	if d.User(id) == nil {
		return Errorf(CodeNotFound, "user %q has no row", id)
	}
	d.users[id] = nil
	return nil
}

// User finds a user's row in the draft.
func (d *Draft) User(id string) *User {
	if u, ok := d.users[id]; ok {
		return u
	}
	return d.base.User(id)
}

// User finds a user's row; nil if there is none.
func (c *Catalog) User(id string) *User { return find(c.users, id, userID) }

// Users returns all rows, by user id.
func (c *Catalog) Users() []*User { return c.users }

func userID(u *User) string { return u.ID }
