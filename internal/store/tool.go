package store

import (
	"context"
	"database/sql"
	"encoding/json"

	"quartermaster"
)

const toolColumns = `id, name, display_name, description, category, provider, server, origin, input_schema, output_schema, annotations, config, ` +
	`enabled, groups, state, states, timeout, version, created_at, updated_at`

func readTools(ctx context.Context, tx *sql.Tx, d dialect, project string, keys []string, changes []quartermaster.Change) ([]quartermaster.Change, error) {
	query, args, err := keyed(d, `SELECT `+toolColumns+` FROM tools WHERE project = $1`, "id", keys, []any{project})
	if err != nil {
		return nil, err
	}
	return readRows(ctx, tx, query, args, keys, changes, func(rows *sql.Rows) (quartermaster.Change, error) {
		t, err := scanTool(rows)
		return quartermaster.Change{Noun: quartermaster.NounTool, Key: t.ID, Tool: t}, err
	}, quartermaster.NounTool)
}

// readRows scans rows into changes and adds a removal for each key without one.
func readRows(ctx context.Context, tx *sql.Tx, query string, args []any, keys []string, changes []quartermaster.Change,
	scan func(*sql.Rows) (quartermaster.Change, error), noun quartermaster.Noun,
) ([]quartermaster.Change, error) {
	rows, err := tx.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	found := make(map[string]bool, len(keys))
	for rows.Next() {
		ch, err := scan(rows)
		if err != nil {
			return nil, err
		}
		found[ch.Key] = true
		changes = append(changes, ch)
	}
	for _, k := range keys {
		if !found[k] {
			changes = append(changes, quartermaster.Change{Noun: noun, Key: k})
		}
	}
	return changes, rows.Err()
}

func scanTool(rows *sql.Rows) (*quartermaster.Tool, error) {
	var (
		t                                                         quartermaster.Tool
		server, outputSchema, annotations, config, groups, states sql.NullString
		inputSchema, provider, origin                             string
		timeout, created, updated                                 int64
	)
	err := rows.Scan(&t.ID, &t.Name, &t.DisplayName, &t.Description, &t.Category, &provider, &server, &origin,
		&inputSchema, &outputSchema, &annotations, &config,
		&t.Enabled, &groups, &t.State, &states, &timeout, &t.Version, &created, &updated)
	if err != nil {
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
		return w.exec(`DELETE FROM tools WHERE project = $1 AND id = $2`, w.project, id)
	}
	return w.exec(`INSERT INTO tools (project, `+toolColumns+`)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21)
		ON CONFLICT (project, id) DO UPDATE SET name = excluded.name, display_name = excluded.display_name, description = excluded.description,
			category = excluded.category, provider = excluded.provider, server = excluded.server, origin = excluded.origin,
			input_schema = excluded.input_schema, output_schema = excluded.output_schema, annotations = excluded.annotations,
			config = excluded.config, enabled = excluded.enabled, groups = excluded.groups, state = excluded.state, states = excluded.states,
			timeout = excluded.timeout, version = excluded.version, updated_at = excluded.updated_at`,
		w.project, t.ID, t.Name, t.DisplayName, t.Description, t.Category, string(t.Provider), null(t.Server), string(t.Origin),
		string(t.InputSchema), null(string(t.OutputSchema)), null(string(t.Annotations)), null(string(t.Config)),
		t.Enabled, listOrNull(t.Groups), t.State, listOrNull(t.AvailableInStates), int64(t.Timeout),
		t.Version, micros(t.CreatedAt), micros(t.UpdatedAt))
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
