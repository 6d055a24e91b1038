package store

import (
	"context"
	"database/sql"

	"quartermaster"
)

func readUsers(ctx context.Context, tx *sql.Tx, d dialect, project string, keys []string, changes []quartermaster.Change) ([]quartermaster.Change, error) {
	query, args, err := keyed(d, `SELECT id, groups, created_at, updated_at FROM users WHERE project = $1`, "id", keys, []any{project})
	if err != nil {
		return nil, err
	}
	return readRows(ctx, tx, query, args, keys, changes, func(rows *sql.Rows) (quartermaster.Change, error) {
		var (
			u                quartermaster.User
			groups           sql.NullString
			created, updated int64
		)
		if err := rows.Scan(&u.ID, &groups, &created, &updated); err != nil {
			return quartermaster.Change{}, err
		}
		var err error
		u.Groups, err = list(groups)
		u.CreatedAt, u.UpdatedAt = fromMicros(created), fromMicros(updated)
		return quartermaster.Change{Noun: quartermaster.NounUser, Key: u.ID, User: &u}, err
	}, quartermaster.NounUser)
}

func (w *writer) user(id string, u *quartermaster.User) error {
	if u == nil {
		return w.exec(`DELETE FROM users WHERE project = $1 AND id = $2`, w.project, id)
	}
	return w.exec(`INSERT INTO users (project, id, groups, created_at, updated_at) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (project, id) DO UPDATE SET groups = excluded.groups, created_at = excluded.created_at, updated_at = excluded.updated_at`,
		w.project, id, listOrNull(u.Groups), micros(u.CreatedAt), micros(u.UpdatedAt))
}
