package store

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"strings"
	"time"

	"quartermaster"
)

// CreateProject implements quartermaster.Store.
func (s *Store) CreateProject(ctx context.Context, p quartermaster.Project) (quartermaster.Project, error) {
	if err := p.Validate(); err != nil {
		return quartermaster.Project{}, err
	}
	c, err := s.change(ctx, p.ID, func(tx *sql.Tx) error { return insertProject(ctx, tx, p) }, s.addBuiltins)
	if err != nil {
		return quartermaster.Project{}, err
	}
	return c.Project(), nil
}

// insertProject fails if the id is taken.
func insertProject(ctx context.Context, tx *sql.Tx, p quartermaster.Project) error {
	result, err := tx.ExecContext(ctx,
		`INSERT INTO projects (id, name, plan, policy_query, revision, created_at) VALUES ($1, $2, $3, $4, 0, $5) ON CONFLICT (id) DO NOTHING`,
		p.ID, p.Name, string(p.Plan), p.PolicyQuery, micros(time.Now()))
	if err != nil {
		return unwritten(err)
	}
	if n, err := result.RowsAffected(); err != nil || n == 0 {
		return quartermaster.Errorf(quartermaster.CodeAlreadyExists, "a project %q exists already", p.ID)
	}
	return nil
}

// ensureDefaultProject makes the project that exists from the start. Its owner
// is whoever runs this server, so it has no limit of ours.
func (s *Store) ensureDefaultProject(ctx context.Context) error {
	_, err := s.CreateProject(ctx, quartermaster.Project{
		ID: quartermaster.DefaultProject, Name: "Default", Plan: quartermaster.PlanEnterprise,
	})
	if quartermaster.CodeOf(err) == quartermaster.CodeAlreadyExists {
		return nil
	}
	return err
}

// Projects implements quartermaster.Store.
func (s *Store) Projects(ctx context.Context) ([]quartermaster.Project, error) {
	rows, err := s.read.QueryContext(ctx, `SELECT `+projectColumns+` FROM projects`)
	if err != nil {
		return nil, unavailable(err)
	}
	defer func() { _ = rows.Close() }()
	projects := []quartermaster.Project{}
	for rows.Next() {
		p, err := scanProject(rows)
		if err != nil {
			return nil, unavailable(err)
		}
		projects = append(projects, p)
	}
	slices.SortFunc(projects, func(a, b quartermaster.Project) int { return strings.Compare(a.ID, b.ID) })
	return projects, unavailable(rows.Err())
}

func readProject(ctx context.Context, tx *sql.Tx, id string) (quartermaster.Project, error) {
	p, err := scanProject(tx.QueryRowContext(ctx, `SELECT `+projectColumns+` FROM projects WHERE id = $1`, id))
	if errors.Is(err, sql.ErrNoRows) {
		return p, projectMissing(id)
	}
	return p, unavailable(err)
}

const projectColumns = `id, name, plan, policy_query, grants_token, revision, created_at`

func scanProject(row interface{ Scan(...any) error }) (quartermaster.Project, error) {
	var (
		p       quartermaster.Project
		created int64
	)
	err := row.Scan(&p.ID, &p.Name, &p.Plan, &p.PolicyQuery, &p.GrantsToken, &p.Revision, &created)
	p.CreatedAt = fromMicros(created)
	return p, err
}

func (w *writer) projectRow(p *quartermaster.Project) error {
	return w.exec(`UPDATE projects SET name = $2, plan = $3, policy_query = $4, grants_token = $5 WHERE id = $1`,
		p.ID, p.Name, string(p.Plan), p.PolicyQuery, p.GrantsToken)
}
