package server

import (
	"context"
	"net/http"
	"slices"

	"quartermaster"
)

type userOutput struct {
	Status int
	Body   quartermaster.User
}

type usersOutput struct {
	Body quartermaster.Page[*quartermaster.User]
}

// UserInput names a user.
type UserInput struct {
	ProjectInput
	User string `path:"user" doc:"User id, percent-encoded" example:"alice"`
}

func (s *Server) listUsers(ctx context.Context, in *listInput) (*usersOutput, error) {
	c, err := s.Store.Catalog(ctx, in.Project)
	if err != nil {
		return nil, err
	}
	return &usersOutput{quartermaster.PageOf(slices.Values(c.Users()), in.Page, in.Size)}, nil
}

func (s *Server) getUser(ctx context.Context, in *UserInput) (*userOutput, error) {
	c, err := s.Store.Catalog(ctx, in.Project)
	if err != nil {
		return nil, err
	}
	u := c.User(in.User)
	if u == nil {
		return nil, quartermaster.Errorf(quartermaster.CodeNotFound, "user %q has no row: what they are granted is default", in.User)
	}
	return &userOutput{http.StatusOK, *u}, nil
}

func (s *Server) putUser(ctx context.Context, in *struct {
	UserInput
	Body quartermaster.User
},
) (*userOutput, error) {
	if err := quartermaster.CheckUserID("path.user", in.User); err != nil {
		return nil, err
	}
	if err := asInPath("id", &in.Body.ID, in.User); err != nil {
		return nil, err
	}
	var (
		user    *quartermaster.User
		created bool
	)
	_, err := s.Store.Change(ctx, in.Project, func(d *quartermaster.Draft) (err error) {
		user, created, err = d.PutUser(in.Body)
		return err
	})
	if err != nil {
		return nil, below("body", err)
	}
	return &userOutput{createdOrOK(created), *user}, nil
}

func (s *Server) deleteUser(ctx context.Context, in *UserInput) (*struct{}, error) {
	_, err := s.Store.Change(ctx, in.Project, func(d *quartermaster.Draft) error { return d.DeleteUser(in.User) })
	return nil, err
}
