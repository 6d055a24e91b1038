package store

import (
	"context"
	"database/sql"
	"encoding/json"

	"quartermaster"
)

const toolColumns = `id, name, display_name, description, category, provider, server, origin, input_schema, output_schema, annotations, config, ` +
	`enabled, groups, state, states, timeout, version, created_at, updated_at, ` + foundColumns

func readTools(ctx context.Context, tx *sql.Tx, d dialect, project string, keys []string, add func(quartermaster.Change)) error {
	query, args, err := keyed(d, `SELECT `+toolColumns+` FROM tools WHERE project = $1`, "id", keys, []any{project})
	if err != nil {
		return err
	}
	return readRows(ctx, tx, query, args, keys, add, func(rows *sql.Rows) (quartermaster.Change, error) {
		t, err := scanTool(rows)
		return quartermaster.Change{Noun: quartermaster.NounTool, Key: t.ID, Tool: t}, err
	}, quartermaster.NounTool)
}

// readRows adds what scan makes of each row, and a removal for each key without
// one.
func readRows(ctx context.Context, tx *sql.Tx, query string, args []any, keys []string, add func(quartermaster.Change),
	scan func(*sql.Rows) (quartermaster.Change, error), noun quartermaster.Noun,
) error {
	rows, err := tx.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	found := make(map[string]bool, len(keys))
	for rows.Next() {
		ch, err := scan(rows)
		if err != nil {
			return err
		}
		if keys != nil {
			found[ch.Key] = true
		}
		add(ch)
	}
	if err := rows.Err(); err != nil {
		return err
	}
	for _, k := range keys {
		if !found[k] {
			add(quartermaster.Change{Noun: noun, Key: k})
		}
	}
	return nil
}

func scanTool(rows *sql.Rows) (*quartermaster.Tool, error) {
	var (
		t                                                         quartermaster.Tool
		server, outputSchema, annotations, config, groups, states sql.NullString
		inputSchema, provider, origin                             string
		timeout, created, updated                                 int64
		found                                                     foundRow
	)
	err := rows.Scan(&t.ID, &t.Name, &t.DisplayName, &t.Description, &t.Category, &provider, &server, &origin,
		&inputSchema, &outputSchema, &annotations, &config,
		&t.Enabled, &groups, &t.State, &states, &timeout, &t.Version, &created, &updated,
		&t.Upstream, &t.Title, &t.Hash, &found.held, &found.heldSince, &found.missingSince, &found.flags, &found.pending)
	if err != nil {
		return &t, err
	}
	if err := found.into(&t); err != nil {
		return &t, err
	}
	t.Provider, t.Origin, t.Server = quartermaster.ProviderKind(provider), quartermaster.Origin(origin), server.String
	t.InputSchema = json.RawMessage(inputSchema)
	t.OutputSchema, t.Annotations, t.Config = raw(outputSchema), raw(annotations), raw(config)
	t.Timeout = quartermaster.Duration(timeout)
	t.CreatedAt, t.UpdatedAt = fromMicros(created), fromMicros(updated)
	if t.Groups, err = list(groups); err != nil {
		return &t, err
	}
	t.AvailableInStates, err = list(states)
	return &t, err
}

func (w *writer) tool(id string, t *quartermaster.Tool) error {
	if t == nil {
		if err := w.exec(`DELETE FROM tool_versions WHERE project = $1 AND tool = $2`, w.project, id); err != nil {
			return err
		}
		return w.exec(`DELETE FROM tools WHERE project = $1 AND id = $2`, w.project, id)
	}
	found, err := foundValues(t)
	if err != nil {
		return err
	}
	err = w.exec(`INSERT INTO tools (project, `+toolColumns+`)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25, $26, $27, $28, $29)
		ON CONFLICT (project, id) DO UPDATE SET name = excluded.name, display_name = excluded.display_name, description = excluded.description,
			category = excluded.category, provider = excluded.provider, server = excluded.server, origin = excluded.origin,
			input_schema = excluded.input_schema, output_schema = excluded.output_schema, annotations = excluded.annotations,
			config = excluded.config, enabled = excluded.enabled, groups = excluded.groups, state = excluded.state, states = excluded.states,
			timeout = excluded.timeout, version = excluded.version, updated_at = excluded.updated_at,
			upstream = excluded.upstream, title = excluded.title, hash = excluded.hash, held = excluded.held, held_since = excluded.held_since,
			missing_since = excluded.missing_since, flags = excluded.flags, pending = excluded.pending`,
		append([]any{
			w.project, t.ID, t.Name, t.DisplayName, t.Description, t.Category, string(t.Provider), null(t.Server), string(t.Origin),
			string(t.InputSchema), null(string(t.OutputSchema)), null(string(t.Annotations)), null(string(t.Config)),
			t.Enabled, listOrNull(t.Groups), t.State, listOrNull(t.AvailableInStates), int64(t.Timeout),
			t.Version, micros(t.CreatedAt), micros(t.UpdatedAt),
		}, found...)...)
	if err != nil || t.Origin != quartermaster.OriginDiscovered {
		return err
	}
	return w.toolVersion(t)
}

// freeNames takes their names from the tools whose names others are given:
// names can change hands in a circle, which no order of the rows would allow.
func (w *writer) freeNames(current *quartermaster.Catalog, changes []quartermaster.Change) error {
	var ids []string
	for _, ch := range changes {
		if ch.Tool == nil {
			continue
		}
		if was := current.ToolByName(ch.Tool.Name); was != nil && was.ID != ch.Key {
			ids = append(ids, was.ID)
		}
	}
	if ids == nil {
		return nil
	}
	return w.exec(`UPDATE tools SET name = '/' || id WHERE project = $1 AND id IN (SELECT value FROM `+w.dialect.list("$2")+`)`,
		w.project, listOrNull(ids))
}

func null(s string) sql.NullString { return sql.NullString{String: s, Valid: s != ""} }

func raw(s sql.NullString) json.RawMessage {
	if !s.Valid {
		return nil
	}
	return json.RawMessage(s.String)
}

// listOrNull keeps the difference between no list and an empty one.
func listOrNull(words []string) any {
	if words == nil {
		return nil
	}
	b, _ := json.Marshal(words) // strings always marshal
	return string(b)
}

func list(s sql.NullString) ([]string, error) {
	if !s.Valid {
		return nil, nil
	}
	words := []string{}
	err := json.Unmarshal([]byte(s.String), &words)
	return words, err
}
