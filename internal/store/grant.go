package store

import (
	"context"
	"database/sql"
	"slices"

	"quartermaster"
)

// readGrants shares its variables between the rows, which would each allocate
// them again.
func readGrants(ctx context.Context, tx *sql.Tx, d dialect, project string, keys []string, add func(quartermaster.Change)) error {
	query, args, err := keyed(d, `SELECT resource, relation, subject, created_at FROM grants WHERE project = $1`, "key", keys, []any{project})
	if err != nil {
		return err
	}
	// In the order of the catalog, each of a million goes behind the last; in
	// another, its place would have to be found.
	query += ` ORDER BY key`
	var (
		resource, relation, subject string
		created                     int64
	)
	return readRows(ctx, tx, query, args, keys, add, func(rows *sql.Rows) (quartermaster.Change, error) {
		if err := rows.Scan(&resource, &relation, &subject, &created); err != nil {
			return quartermaster.Change{}, err
		}
		g := quartermaster.NewGrant(resource, relation, subject, fromMicros(created))
		return quartermaster.Change{Noun: quartermaster.NounGrant, Key: g.Key(), Grant: g}, nil
	}, quartermaster.NounGrant)
}

// writeGrants writes the changes of grants, many with each statement: one that
// deletes a server may take away many thousands.
func (w *writer) writeGrants() error {
	var gone []string
	var given [][]any
	for _, ch := range w.grants {
		if g := ch.Grant; g != nil {
			given = append(given, []any{ch.Key, g.Resource, g.Relation, g.Subject, micros(g.CreatedAt)})
		} else {
			gone = append(gone, ch.Key)
		}
	}
	for keys := range slices.Chunk(gone, grantBatch) {
		if err := w.exec(`DELETE FROM grants WHERE project = $1 AND key IN (SELECT value FROM `+w.dialect.list("$2")+`)`,
			w.project, listOrNull(keys)); err != nil {
			return err
		}
	}
	for rows := range slices.Chunk(given, grantBatch) {
		values, err := encode(rows)
		if err != nil {
			return err
		}
		if err := w.exec(`INSERT INTO grants (project, key, resource, relation, subject, created_at)
			SELECT $1, value->>0, value->>1, value->>2, value->>3, CAST(value->>4 AS BIGINT) FROM `+w.dialect.rows("$2")+` WHERE true
			ON CONFLICT (project, key) DO UPDATE SET created_at = excluded.created_at`, w.project, values); err != nil {
			return err
		}
	}
	return nil
}

// grantBatch bounds what one statement has to hold in memory.
const grantBatch = 10_000
