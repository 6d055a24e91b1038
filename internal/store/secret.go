package store

import (
	"context"
	"database/sql"
	"errors"

	"quartermaster"
)

// Secret implements quartermaster.Vault.
func (s *Store) Secret(ctx context.Context, project, name string) (string, error) {
	if !quartermaster.ValidProjectID(project) || !quartermaster.ValidSecretName(name) {
		return "", secretMissing(project, name)
	}
	var sealed string
	err := s.read.QueryRowContext(ctx, `SELECT value FROM secrets WHERE project = $1 AND name = $2`, project, name).Scan(&sealed)
	if errors.Is(err, sql.ErrNoRows) {
		return "", secretMissing(project, name)
	}
	if err != nil {
		return "", unavailable(err)
	}
	sealer, err := s.vault.unlock(false)
	if err != nil {
		return "", noKey(err)
	}
	value, err := sealer.open(sealed, secretPlace(project, name))
	if err != nil {
		e := quartermaster.Errorf(quartermaster.CodeInternal, "secret %q of project %q cannot be opened with this server's key; set it again, or give all replicas the same key", name, project)
		e.Cause = err
		return "", e
	}
	return value, nil
}

func secretMissing(project, name string) error {
	return quartermaster.Errorf(quartermaster.CodeNotFound, "project %q has no secret %q; set it with: quartermaster secrets set %s", project, name, name)
}

// noKey is for a server that has no business with secrets as it is set up.
func noKey(err error) error {
	e := quartermaster.Errorf(quartermaster.CodeInternal, "this server does not have the key of the secrets; its log says more")
	e.Cause = err
	return e
}

// secretPlace ties a sealed value to its row: copied to another one, where
// other people may use it, it does not open. Neither part can hold a NUL.
func secretPlace(project, name string) string { return project + "\x00" + name }

func readSecrets(ctx context.Context, tx *sql.Tx, d dialect, project string, keys []string, add func(quartermaster.Change)) error {
	query, args, err := keyed(d, `SELECT name, created_at, updated_at FROM secrets WHERE project = $1`, "name", keys, []any{project})
	if err != nil {
		return err
	}
	return readRows(ctx, tx, query, args, keys, add, func(rows *sql.Rows) (quartermaster.Change, error) {
		var (
			s                quartermaster.Secret
			created, updated int64
		)
		err := rows.Scan(&s.Name, &created, &updated)
		s.CreatedAt, s.UpdatedAt = fromMicros(created), fromMicros(updated)
		return quartermaster.Change{Noun: quartermaster.NounSecret, Key: s.Name, Secret: &s}, err
	}, quartermaster.NounSecret)
}

func (w *writer) secret(name string, s *quartermaster.Secret) error {
	if s == nil {
		return w.exec(`DELETE FROM secrets WHERE project = $1 AND name = $2`, w.project, name)
	}
	if s.Value == "" {
		return errors.New("a secret without its value cannot be written")
	}
	sealer, err := w.sealer()
	if err != nil {
		return err
	}
	return w.exec(`INSERT INTO secrets (project, name, value, created_at, updated_at) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (project, name) DO UPDATE SET value = excluded.value, created_at = excluded.created_at, updated_at = excluded.updated_at`,
		w.project, name, sealer.seal(s.Value, secretPlace(w.project, name)), micros(s.CreatedAt), micros(s.UpdatedAt))
}
