package client

import (
	"context"
	"net/http"

	"quartermaster"
)

const nounSecrets = "secrets"

// Secret is a secret and the servers that refer to it. Its value never comes
// back from the server.
type Secret struct {
	quartermaster.Secret
	UsedBy []string `json:"usedBy"`
}

// Secrets lists the project's secrets, by name.
func (p *Project) Secrets() List[Secret] {
	return List[Secret]{get: p.getter("/" + nounSecrets)}
}

// PutSecret adds a secret or gives it another value. A name outside the grammar
// is refused here: it may be NAME=VALUE, and a URL stands in logs.
func (p *Project) PutSecret(ctx context.Context, name, value string) (Secret, error) {
	var answer Secret
	if !quartermaster.ValidSecretName(name) {
		e := quartermaster.Errorf(quartermaster.CodeInvalidRequest, "the name of the secret is not valid")
		e.Faults = []quartermaster.Fault{{Location: "name", Message: "must be 1 to 128 of A-Z a-z 0-9 _, and not begin with a digit"}}
		return answer, e
	}
	err := p.at(ctx, nounSecrets, name, request{method: http.MethodPut, body: map[string]string{"value": value}}, &answer)
	return answer, err
}

// DeleteSecret removes a secret that no server uses.
func (p *Project) DeleteSecret(ctx context.Context, name string) error {
	return p.at(ctx, nounSecrets, name, request{method: http.MethodDelete}, nil)
}
