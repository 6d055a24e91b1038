package store

import (
	"context"
	"database/sql"
	"errors"

	"quartermaster"
)

func readUsers(ctx context.Context, tx *sql.Tx, d dialect, project string, keys []string, add func(quartermaster.Change)) error {
	query, args, err := keyed(d, `SELECT id, groups, roles, created_at, updated_at FROM users WHERE project = $1`, "id", keys, []any{project})
	if err != nil {
		return err
	}
	return readRows(ctx, tx, query, args, keys, add, func(rows *sql.Rows) (quartermaster.Change, error) {
		var (
			u                quartermaster.User
			groups, roles    sql.NullString
			created, updated int64
		)
		if err := rows.Scan(&u.ID, &groups, &roles, &created, &updated); err != nil {
			return quartermaster.Change{}, err
		}
		var err, errRoles error
		u.Groups, err = list(groups)
		u.Roles, errRoles = list(roles)
		u.CreatedAt, u.UpdatedAt = fromMicros(created), fromMicros(updated)
		return quartermaster.Change{Noun: quartermaster.NounUser, Key: u.ID, User: &u}, errors.Join(err, errRoles)
	}, quartermaster.NounUser)
}

func (w *writer) user(id string, u *quartermaster.User) error {
	if u == nil {
		return w.exec(`DELETE FROM users WHERE project = $1 AND id = $2`, w.project, id)
	}
	return w.exec(`INSERT INTO users (project, id, groups, roles, created_at, updated_at) VALUES ($1, $2, $3, $4, $5, $6)
		ON CONFLICT (project, id) DO UPDATE SET groups = excluded.groups, roles = excluded.roles, created_at = excluded.created_at, updated_at = excluded.updated_at`,
		w.project, id, listOrNull(u.Groups), listOrNull(u.Roles), micros(u.CreatedAt), micros(u.UpdatedAt))
}
