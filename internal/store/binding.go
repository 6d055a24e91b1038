package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"slices"
	"strings"

	"quartermaster"
)

// readBindings gathers the rows of each agent into one set.
func readBindings(ctx context.Context, tx *sql.Tx, d dialect, project string, keys []string, add func(quartermaster.Change)) error {
	query, args, err := keyed(d, `SELECT agent, tool, created_at FROM bindings WHERE project = $1`, "agent", keys, []any{project})
	if err != nil {
		return err
	}
	rows, err := tx.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	sets := map[string]*quartermaster.Bindings{}
	ids := map[string]string{} // one string per tool, however often it is bound
	for rows.Next() {
		var (
			agent, tool string
			created     int64
		)
		if err := rows.Scan(&agent, &tool, &created); err != nil {
			return err
		}
		if known, ok := ids[tool]; ok {
			tool = known
		} else {
			ids[tool] = tool
		}
		set := sets[agent]
		if set == nil {
			set = &quartermaster.Bindings{Agent: agent}
			sets[agent] = set
		}
		set.Tools = append(set.Tools, quartermaster.Binding{ToolID: tool, CreatedAt: fromMicros(created)})
	}
	if err := rows.Err(); err != nil {
		return err
	}
	for agent, set := range sets {
		slices.SortFunc(set.Tools, func(a, b quartermaster.Binding) int { return strings.Compare(a.ToolID, b.ToolID) })
		add(quartermaster.Change{Noun: quartermaster.NounBindings, Key: agent, Bindings: set})
	}
	for _, agent := range keys {
		if sets[agent] == nil {
			add(quartermaster.Change{Noun: quartermaster.NounBindings, Key: agent})
		}
	}
	return nil
}

// bindings replaces an agent's rows by set; rows that stay are not touched.
func (w *writer) bindings(agent string, set *quartermaster.Bindings) error {
	if set == nil || len(set.Tools) == 0 {
		return w.exec(`DELETE FROM bindings WHERE project = $1 AND agent = $2`, w.project, agent)
	}
	ids := make([]string, len(set.Tools))
	for i, b := range set.Tools {
		ids[i] = b.ToolID
	}
	all, err := json.Marshal(ids)
	if err != nil {
		return err
	}
	if err := w.exec(`DELETE FROM bindings WHERE project = $1 AND agent = $2 AND tool NOT IN (SELECT value FROM `+w.dialect.list("$3")+`)`,
		w.project, agent, string(all)); err != nil {
		return err
	}
	// What is missing is what this change adds.
	return w.exec(`INSERT INTO bindings (project, agent, tool, created_at)
		SELECT $1, $2, value, $4 FROM `+w.dialect.list("$3")+` WHERE true
		ON CONFLICT (project, agent, tool) DO NOTHING`,
		w.project, agent, string(all), micros(w.now))
}
