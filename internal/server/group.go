package server

import (
	"context"
	"slices"

	"quartermaster"
)

type listInput struct {
	ProjectInput
	PageInput
}

type groupsOutput struct {
	Body quartermaster.Page[quartermaster.Group]
}

func (s *Server) listGroups(ctx context.Context, in *listInput) (*groupsOutput, error) {
	c, err := s.Store.Catalog(ctx, in.Project)
	if err != nil {
		return nil, err
	}
	return &groupsOutput{quartermaster.PageOf(slices.Values(c.Groups()), in.Page, in.Size)}, nil
}

type statesOutput struct {
	Body quartermaster.Page[quartermaster.State]
}

func (s *Server) listStates(ctx context.Context, in *listInput) (*statesOutput, error) {
	c, err := s.Store.Catalog(ctx, in.Project)
	if err != nil {
		return nil, err
	}
	return &statesOutput{quartermaster.PageOf(slices.Values(c.States()), in.Page, in.Size)}, nil
}
