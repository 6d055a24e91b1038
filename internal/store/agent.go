package store

import (
	"context"
	"database/sql"
	"encoding/json"

	"quartermaster"
)

func readAgents(ctx context.Context, tx *sql.Tx, d dialect, project string, keys []string, add func(quartermaster.Change)) error {
	query, args, err := keyed(d, `SELECT id, definition, created_at, updated_at FROM agents WHERE project = $1`, "id", keys, []any{project})
	if err != nil {
		return err
	}
	return readRows(ctx, tx, query, args, keys, add, func(rows *sql.Rows) (quartermaster.Change, error) {
		var (
			a                quartermaster.Agent
			id, definition   string
			created, updated int64
		)
		if err := rows.Scan(&id, &definition, &created, &updated); err != nil {
			return quartermaster.Change{}, err
		}
		err := json.Unmarshal([]byte(definition), &a)
		a.ID, a.CreatedAt, a.UpdatedAt = id, fromMicros(created), fromMicros(updated)
		return quartermaster.Change{Noun: quartermaster.NounAgent, Key: id, Agent: &a}, err
	}, quartermaster.NounAgent)
}

func (w *writer) agent(id string, a *quartermaster.Agent) error {
	if a == nil {
		return w.exec(`DELETE FROM agents WHERE project = $1 AND id = $2`, w.project, id)
	}
	definition, err := encode(a)
	if err != nil {
		return err
	}
	return w.exec(`INSERT INTO agents (project, id, definition, created_at, updated_at) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (project, id) DO UPDATE SET definition = excluded.definition, created_at = excluded.created_at, updated_at = excluded.updated_at`,
		w.project, id, definition, micros(a.CreatedAt), micros(a.UpdatedAt))
}
