package store

import (
	"context"
	"database/sql"
	"encoding/json"

	"quartermaster"
)

func readServers(ctx context.Context, tx *sql.Tx, d dialect, project string, keys []string, add func(quartermaster.Change)) error {
	query, args, err := keyed(d, `SELECT name, settings, created_at, updated_at FROM servers WHERE project = $1`, "name", keys, []any{project})
	if err != nil {
		return err
	}
	return readRows(ctx, tx, query, args, keys, add, func(rows *sql.Rows) (quartermaster.Change, error) {
		var (
			s                quartermaster.Server
			name, settings   string
			created, updated int64
		)
		if err := rows.Scan(&name, &settings, &created, &updated); err != nil {
			return quartermaster.Change{}, err
		}
		err := json.Unmarshal([]byte(settings), &s)
		s.Name, s.CreatedAt, s.UpdatedAt = name, fromMicros(created), fromMicros(updated)
		return quartermaster.Change{Noun: quartermaster.NounServer, Key: name, Server: &s}, err
	}, quartermaster.NounServer)
}

func (w *writer) server(name string, s *quartermaster.Server) error {
	if s == nil {
		return w.exec(`DELETE FROM servers WHERE project = $1 AND name = $2`, w.project, name)
	}
	settings, err := encode(s)
	if err != nil {
		return err
	}
	return w.exec(`INSERT INTO servers (project, name, settings, created_at, updated_at) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (project, name) DO UPDATE SET settings = excluded.settings, created_at = excluded.created_at, updated_at = excluded.updated_at`,
		w.project, name, settings, micros(s.CreatedAt), micros(s.UpdatedAt))
}
