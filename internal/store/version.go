package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"time"

	"quartermaster"
)

var _ quartermaster.Historian = (*Store)(nil)

// Versions implements quartermaster.Historian.
func (s *Store) Versions(ctx context.Context, project, toolID string) ([]quartermaster.ToolVersion, error) {
	c, err := s.Catalog(ctx, project)
	if err != nil || c.ToolByID(toolID) == nil {
		return nil, err
	}
	rows, err := s.read.QueryContext(ctx, `SELECT version, hash, definition, found_at FROM tool_versions
		WHERE project = $1 AND tool = $2 ORDER BY version DESC`, project, toolID)
	if err != nil {
		return nil, unavailable(err)
	}
	defer func() { _ = rows.Close() }()
	var versions []quartermaster.ToolVersion
	for rows.Next() {
		var (
			v          quartermaster.ToolVersion
			definition string
			found      int64
		)
		if err := rows.Scan(&v.Version, &v.Hash, &definition, &found); err != nil {
			return nil, unavailable(err)
		}
		if err := json.Unmarshal([]byte(definition), &v.Definition); err != nil {
			return nil, unavailable(err)
		}
		v.FoundAt = fromMicros(found)
		versions = append(versions, v)
	}
	return versions, unavailable(rows.Err())
}

// toolVersion remembers the newest definition of a tool that a server offers,
// unless it is the one that the tool had before. That is known without asking
// the database, which would look through all of them for each of many.
func (w *writer) toolVersion(t *quartermaster.Tool) error {
	was := w.current.ToolByID(t.ID)
	if was != nil && was.Origin == t.Origin && was.NewestHash() == t.NewestHash() {
		return nil
	}
	definition, err := encode(t.Newest())
	if err != nil {
		return err
	}
	err = w.exec(`INSERT INTO tool_versions (project, tool, version, hash, definition, found_at) VALUES ($1, $2, $3, $4, $5, $6)`,
		w.project, t.ID, t.Version, t.NewestHash(), definition, micros(w.now))
	if err != nil || t.Version <= quartermaster.KeptVersions {
		return err // each version is remembered once at most: there cannot be too many yet
	}
	return w.exec(`DELETE FROM tool_versions WHERE project = $1 AND tool = $2 AND version <= (
		SELECT version FROM tool_versions WHERE project = $1 AND tool = $2 ORDER BY version DESC LIMIT 1 OFFSET $3)`,
		w.project, t.ID, int64(quartermaster.KeptVersions))
}

// foundColumns are what discovery knows of a tool, as a row has it.
const foundColumns = `upstream, title, hash, held, held_since, missing_since, flags, pending`

type foundRow struct {
	held                    string
	heldSince, missingSince sql.NullInt64
	flags, pending          sql.NullString
}

// into completes a tool of which the texts were scanned already.
func (r foundRow) into(t *quartermaster.Tool) error {
	t.Held, t.HeldSince, t.MissingSince = quartermaster.Hold(r.held), timeOrZero(r.heldSince), timeOrZero(r.missingSince)
	if r.flags.Valid {
		if err := json.Unmarshal([]byte(r.flags.String), &t.Flags); err != nil {
			return err
		}
	}
	if r.pending.Valid {
		return json.Unmarshal([]byte(r.pending.String), &t.Pending)
	}
	return nil
}

// foundValues are the values of foundColumns.
func foundValues(t *quartermaster.Tool) ([]any, error) {
	var flags, pending sql.NullString
	if len(t.Flags) > 0 {
		text, err := encode(t.Flags)
		if err != nil {
			return nil, err
		}
		flags = null(text)
	}
	if t.Pending != nil {
		text, err := encode(t.Pending)
		if err != nil {
			return nil, err
		}
		pending = null(text)
	}
	return []any{t.Upstream, t.Title, t.Hash, string(t.Held), microsOrNull(t.HeldSince), microsOrNull(t.MissingSince), flags, pending}, nil
}

func microsOrNull(t time.Time) sql.NullInt64 {
	return sql.NullInt64{Int64: micros(t), Valid: !t.IsZero()}
}

func timeOrZero(n sql.NullInt64) time.Time {
	if !n.Valid {
		return time.Time{}
	}
	return fromMicros(n.Int64)
}
