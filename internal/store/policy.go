package store

import (
	"context"
	"database/sql"

	"quartermaster"
)

func readPolicies(ctx context.Context, tx *sql.Tx, d dialect, project string, keys []string, add func(quartermaster.Change)) error {
	query, args, err := keyed(d, `SELECT name, rego, created_at, updated_at FROM policies WHERE project = $1`, "name", keys, []any{project})
	if err != nil {
		return err
	}
	return readRows(ctx, tx, query, args, keys, add, func(rows *sql.Rows) (quartermaster.Change, error) {
		var (
			p                quartermaster.Policy
			created, updated int64
		)
		err := rows.Scan(&p.Name, &p.Rego, &created, &updated)
		p.CreatedAt, p.UpdatedAt = fromMicros(created), fromMicros(updated)
		return quartermaster.Change{Noun: quartermaster.NounPolicy, Key: p.Name, Policy: &p}, err
	}, quartermaster.NounPolicy)
}

func (w *writer) policy(name string, p *quartermaster.Policy) error {
	if p == nil {
		return w.exec(`DELETE FROM policies WHERE project = $1 AND name = $2`, w.project, name)
	}
	return w.exec(`INSERT INTO policies (project, name, rego, created_at, updated_at) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (project, name) DO UPDATE SET rego = excluded.rego, created_at = excluded.created_at, updated_at = excluded.updated_at`,
		w.project, name, p.Rego, micros(p.CreatedAt), micros(p.UpdatedAt))
}
