package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"quartermaster"
)

// maxStale is how long snapshots may be served without a word from the
// database that others write to: beyond it a revocation could have been missed.
const maxStale = 5 * time.Second

// keptRevisions is how far another process may lag and still catch up by the
// list of changes; beyond it, it reads the project anew.
const keptRevisions = 1000

// loadBatch is how many rows are on their way into a snapshot at a time: all
// changes of a project with a million grants would take more memory than the
// grants do.
const loadBatch = 50_000

// Catalog implements quartermaster.Store.
func (s *Store) Catalog(ctx context.Context, project string) (*quartermaster.Catalog, error) {
	if s.dialect.notify != "" && time.Now().UnixNano()-s.confirmed.Load() > int64(maxStale) {
		return nil, quartermaster.Errorf(quartermaster.CodeUnavailable, "the database has not answered for %s; try again", maxStale)
	}
	if c := s.snapshots.get(project); c != nil {
		return c, nil
	}
	return s.refresh(ctx, project)
}

func (s *Store) confirm() { s.confirmed.Store(time.Now().UnixNano()) }

// refresh brings a project's snapshot up to what the database holds now.
func (s *Store) refresh(ctx context.Context, project string) (*quartermaster.Catalog, error) {
	if !quartermaster.ValidProjectID(project) {
		return nil, projectMissing(project) // not every database would take it as a parameter
	}
	tx, err := s.read.BeginTx(ctx, &s.dialect.snapshot)
	if err != nil {
		return nil, unavailable(err)
	}
	defer func() { _ = tx.Rollback() }()
	p, err := readProject(ctx, tx, project)
	if err != nil {
		return nil, err
	}
	c, err := s.load(ctx, tx, p, s.snapshots.get(project))
	if err != nil {
		return nil, err
	}
	if s.lacksBuiltins(c) {
		// Written by a version that did not have them yet.
		_ = tx.Rollback()
		return s.Change(ctx, project, s.addBuiltins)
	}
	return s.snapshots.put(project, c), nil
}

func (s *Store) addBuiltins(d *quartermaster.Draft) error {
	d.AddMissing(s.builtins)
	return nil
}

func (s *Store) lacksBuiltins(c *quartermaster.Catalog) bool {
	d := c.Draft(time.Time{})
	d.AddMissing(s.builtins)
	return len(d.Changes()) > 0
}

// describe gives built-in tools the texts of this process, which is who runs
// them. It is done in memory: replicas of two versions that each wrote their
// own texts would undo each other's for as long as both run.
func (s *Store) describe(changes []quartermaster.Change) {
	for _, ch := range changes {
		if ch.Tool != nil {
			ch.Tool.Describe(s.builtins)
		}
	}
}

// load reads the project as tx sees it at p.Revision: all of it, or only what
// has changed since have.
func (s *Store) load(ctx context.Context, tx *sql.Tx, p quartermaster.Project, have *quartermaster.Catalog) (*quartermaster.Catalog, error) {
	if have != nil {
		next, err := s.catchUp(ctx, tx, p, have)
		if next != nil || err != nil {
			return next, unavailable(err)
		}
	}
	c := quartermaster.NewCatalog(p)
	var changes []quartermaster.Change
	take := func() {
		s.describe(changes)
		c = c.With(p.Revision, changes)
		changes = changes[:0]
	}
	for _, read := range readers {
		err := read(ctx, tx, s.dialect, p.ID, nil, func(ch quartermaster.Change) {
			if changes = append(changes, ch); len(changes) == loadBatch {
				take()
			}
		})
		if err != nil {
			return nil, unavailable(err)
		}
	}
	take()
	return c, nil
}

// reader hands one kind of rows to add as changes: all of a project, or those
// with the given keys. A key without a row becomes a removal.
type reader func(ctx context.Context, tx *sql.Tx, d dialect, project string, keys []string, add func(quartermaster.Change)) error

var readers = map[quartermaster.Noun]reader{
	quartermaster.NounServer:   readServers,
	quartermaster.NounTool:     readTools,
	quartermaster.NounAgent:    readAgents,
	quartermaster.NounBindings: readBindings,
	quartermaster.NounUser:     readUsers,
	quartermaster.NounSecret:   readSecrets,
	quartermaster.NounPolicy:   readPolicies,
	quartermaster.NounGrant:    readGrants,
}

// catchUp returns nil if have is too old to follow the list of changes.
func (s *Store) catchUp(ctx context.Context, tx *sql.Tx, p quartermaster.Project, have *quartermaster.Catalog) (*quartermaster.Catalog, error) {
	if p.Revision <= have.Revision() {
		return have, nil
	}
	rows, err := tx.QueryContext(ctx, `SELECT revision, noun, key FROM changes WHERE project = $1 AND revision > $2 ORDER BY revision`, p.ID, have.Revision())
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	keys := map[quartermaster.Noun]map[string]bool{}
	next := have.Revision() + 1
	for rows.Next() {
		var (
			revision  int64
			noun, key string
		)
		if err := rows.Scan(&revision, &noun, &key); err != nil {
			return nil, err
		}
		if revision > next {
			return nil, nil // the list no longer reaches back that far
		}
		next = revision + 1
		n := quartermaster.Noun(noun)
		if keys[n] == nil {
			keys[n] = map[string]bool{}
		}
		keys[n][key] = true
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	if next != p.Revision+1 {
		return nil, nil
	}
	changes := []quartermaster.Change{{Noun: quartermaster.NounProject, Key: p.ID, Project: &p}}
	for noun, read := range readers {
		if len(keys[noun]) == 0 {
			continue
		}
		list := make([]string, 0, len(keys[noun]))
		for k := range keys[noun] {
			list = append(list, k)
		}
		err := read(ctx, tx, s.dialect, p.ID, list, func(ch quartermaster.Change) { changes = append(changes, ch) })
		if err != nil {
			return nil, err
		}
	}
	s.describe(changes)
	return have.With(p.Revision, changes), nil
}

// persist writes changes of current, made at a time, as rows, and that they
// changed.
func (s *Store) persist(ctx context.Context, tx *sql.Tx, current *quartermaster.Catalog, revision int64, changes []quartermaster.Change, now time.Time) error {
	project := current.Project().ID
	w := writer{ctx: ctx, tx: tx, dialect: s.dialect, vault: s.vault, project: project, current: current, now: now, statements: map[string]*sql.Stmt{}}
	defer w.close()
	if err := w.freeNames(current, changes); err != nil {
		return err
	}
	keys := map[quartermaster.Noun][]string{}
	for _, ch := range changes {
		if err := w.write(ch); err != nil {
			return wrap(string(ch.Noun)+" "+ch.Key, err)
		}
		keys[ch.Noun] = append(keys[ch.Noun], ch.Key)
	}
	if err := w.writeGrants(); err != nil {
		return wrap("grants", err)
	}
	for noun, list := range keys {
		if err := w.exec(`INSERT INTO changes (project, revision, noun, key) SELECT $1, $2, $3, value FROM `+s.dialect.list("$4"),
			project, revision, string(noun), listOrNull(list)); err != nil {
			return err
		}
	}
	if err := w.exec(`DELETE FROM changes WHERE project = $1 AND revision <= $2`, project, revision-keptRevisions); err != nil {
		return err
	}
	if s.dialect.notify != "" {
		return w.exec(s.dialect.notify, project)
	}
	return nil
}

// writer writes the rows of one transaction; a statement is prepared once.
type writer struct {
	ctx        context.Context
	tx         *sql.Tx
	dialect    dialect
	vault      *vault
	project    string
	current    *quartermaster.Catalog // what the changes are made to
	now        time.Time
	statements map[string]*sql.Stmt
	grants     []quartermaster.Change // to be written together
}

func (w *writer) exec(query string, args ...any) error {
	stmt, ok := w.statements[query]
	if !ok {
		var err error
		if stmt, err = w.tx.PrepareContext(w.ctx, query); err != nil {
			return err
		}
		w.statements[query] = stmt
	}
	_, err := stmt.ExecContext(w.ctx, args...)
	return err
}

func (w *writer) close() {
	for _, stmt := range w.statements {
		_ = stmt.Close()
	}
}

func (w *writer) write(ch quartermaster.Change) error {
	switch ch.Noun {
	case quartermaster.NounProject:
		return w.projectRow(ch.Project)
	case quartermaster.NounTool:
		return w.tool(ch.Key, ch.Tool)
	case quartermaster.NounServer:
		return w.server(ch.Key, ch.Server)
	case quartermaster.NounAgent:
		return w.agent(ch.Key, ch.Agent)
	case quartermaster.NounBindings:
		return w.bindings(ch.Key, ch.Bindings)
	case quartermaster.NounUser:
		return w.user(ch.Key, ch.User)
	case quartermaster.NounSecret:
		return w.secret(ch.Key, ch.Secret)
	case quartermaster.NounPolicy:
		return w.policy(ch.Key, ch.Policy)
	case quartermaster.NounGrant:
		w.grants = append(w.grants, ch)
		return nil
	}
	return errors.New("unknown noun")
}

// keyed narrows a query to some keys, given as one JSON parameter.
func keyed(d dialect, query, column string, keys []string, args []any) (string, []any, error) {
	if keys == nil {
		return query, args, nil
	}
	list, err := json.Marshal(keys)
	if err != nil {
		return "", nil, err
	}
	return query + ` AND ` + column + ` IN (SELECT value FROM ` + d.list("$2") + `)`, append(args, string(list)), nil
}

// snapshots holds the newest catalog of each project that was asked for.
type snapshots struct {
	mu   sync.RWMutex
	all  map[string]*quartermaster.Catalog
	told func(*quartermaster.Catalog) // nil: nobody
}

func (s *snapshots) tell(f func(*quartermaster.Catalog)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.told = f
	for _, c := range s.all {
		f(c)
	}
}

func (s *snapshots) get(project string) *quartermaster.Catalog {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.all[project]
}

// put keeps c unless a newer one is there, and returns the one that is kept.
func (s *snapshots) put(project string, c *quartermaster.Catalog) *quartermaster.Catalog {
	s.mu.Lock()
	defer s.mu.Unlock()
	if have := s.all[project]; have != nil && have.Revision() >= c.Revision() {
		return have
	}
	if s.all == nil {
		s.all = map[string]*quartermaster.Catalog{}
	}
	s.all[project] = c
	if s.told != nil {
		s.told(c)
	}
	return c
}

func (s *snapshots) forget(project string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, project)
}

func (s *snapshots) projects() []string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	ids := make([]string, 0, len(s.all))
	for id := range s.all {
		ids = append(ids, id)
	}
	return ids
}
