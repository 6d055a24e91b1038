package client

import (
	"context"
	"net/http"

	"quartermaster"
)

const nounUsers = "users"

// Users lists the users that something is known of, by id.
func (p *Project) Users() List[quartermaster.User] {
	return List[quartermaster.User]{get: p.getter("/" + nounUsers)}
}

// User reads what a user is granted; one without a row is not found.
func (p *Project) User(ctx context.Context, id string) (quartermaster.User, error) {
	var answer quartermaster.User
	err := p.at(ctx, nounUsers, id, request{method: http.MethodGet}, &answer)
	return answer, err
}

// PutUser grants a user groups and roles, in place of those before.
func (p *Project) PutUser(ctx context.Context, u quartermaster.User) (quartermaster.User, error) {
	body := map[string]any{"groups": u.Groups}
	if len(u.Roles) > 0 {
		body["roles"] = u.Roles
	}
	var answer quartermaster.User
	err := p.at(ctx, nounUsers, u.ID, request{method: http.MethodPut, body: body}, &answer)
	return answer, err
}

// DeleteUser forgets what a user was granted: what is left is default.
func (p *Project) DeleteUser(ctx context.Context, id string) error {
	return p.at(ctx, nounUsers, id, request{method: http.MethodDelete}, nil)
}
