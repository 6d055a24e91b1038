package server

import (
	"context"
	"slices"

	"quartermaster"
)

// SecretView is a secret as a client sees it: without its value.
type SecretView struct {
	quartermaster.Secret
	UsedBy []string `json:"usedBy" nullable:"false" readOnly:"true" doc:"Servers that refer to it"`
}

type secretOutput struct {
	Status int
	Body   SecretView
}

type secretsOutput struct {
	Body quartermaster.Page[SecretView]
}

// SecretInput names a secret.
type SecretInput struct {
	ProjectInput
	Secret string `path:"secret" example:"FILES_API_KEY"`
}

// SecretValue is what a secret is set to.
type SecretValue struct {
	Value string `json:"value" minLength:"1" writeOnly:"true" doc:"Sealed, and never shown again"`
}

func viewSecret(s *quartermaster.Secret, users map[string][]string) SecretView {
	return SecretView{*s, append([]string{}, users[s.Name]...)}
}

func (s *Server) listSecrets(ctx context.Context, in *listInput) (*secretsOutput, error) {
	c, err := s.Store.Catalog(ctx, in.Project)
	if err != nil {
		return nil, err
	}
	users := c.SecretUsers()
	page := quartermaster.PageOf(slices.Values(c.Secrets()), in.Page, in.Size)
	return &secretsOutput{quartermaster.MapPage(page, func(secret *quartermaster.Secret) SecretView {
		return viewSecret(secret, users)
	})}, nil
}

func (s *Server) putSecret(ctx context.Context, in *struct {
	SecretInput
	Body SecretValue
},
) (*secretOutput, error) {
	if !quartermaster.ValidSecretName(in.Secret) {
		return nil, fault("path.secret", "must be 1 to 128 of A-Z a-z 0-9 _, and not begin with a digit")
	}
	var (
		secret  *quartermaster.Secret
		created bool
	)
	c, err := s.Store.Change(ctx, in.Project, func(d *quartermaster.Draft) (err error) {
		secret, created, err = d.PutSecret(in.Secret, in.Body.Value)
		return err
	})
	if err != nil {
		return nil, below("body", err)
	}
	return &secretOutput{createdOrOK(created), viewSecret(secret, c.SecretUsers())}, nil
}

func (s *Server) deleteSecret(ctx context.Context, in *SecretInput) (*struct{}, error) {
	_, err := s.Store.Change(ctx, in.Project, func(d *quartermaster.Draft) error { return d.DeleteSecret(in.Secret) })
	return nil, err
}
