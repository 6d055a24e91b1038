package client

import (
	"context"
	"net/http"

	"quartermaster"
)

const nounUsers = "users"

// Users lists the users that were granted groups, by id.
func (p *Project) Users() List[quartermaster.User] {
	return List[quartermaster.User]{get: p.getter("/" + nounUsers)}
}

// PutUser grants a user groups, in place of those before.
func (p *Project) PutUser(ctx context.Context, u quartermaster.User) (quartermaster.User, error) {
	var answer quartermaster.User
	err := p.at(ctx, nounUsers, u.ID, request{method: http.MethodPut, body: map[string]any{"groups": u.Groups}}, &answer)
	return answer, err
}

// DeleteUser forgets what a user was granted: what is left is default.
func (p *Project) DeleteUser(ctx context.Context, id string) error {
	return p.at(ctx, nounUsers, id, request{method: http.MethodDelete}, nil)
}
