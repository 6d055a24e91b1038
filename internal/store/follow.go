package store

import (
	"context"
	"time"

	"quartermaster"

	"github.com/jackc/pgx/v5"
)

// pollEvery bounds how late a replica is when a notification goes astray, as
// behind a connection pooler that does not pass them on. A change has to act
// within a second, and asking takes its time too.
const pollEvery = 500 * time.Millisecond

// follow keeps the snapshots of this process in step with what others write:
// by notification at once, by asking now and then in any case.
func (s *Store) follow(databaseURL string) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{}, 2)
	go func() { s.listen(ctx, databaseURL); done <- struct{}{} }()
	go func() { s.poll(ctx); done <- struct{}{} }()
	s.close = append(s.close, func() error {
		cancel()
		<-done
		<-done
		return nil
	})
}

func (s *Store) listen(ctx context.Context, databaseURL string) {
	for ctx.Err() == nil {
		if err := s.listenOnce(ctx, databaseURL); err != nil && ctx.Err() == nil {
			s.log.Warn("not listening to other replicas, asking now and then instead", "error", err)
		}
		sleep(ctx, pollEvery)
	}
}

func (s *Store) listenOnce(ctx context.Context, databaseURL string) error {
	conn, err := pgx.Connect(ctx, databaseURL)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	if _, err := conn.Exec(ctx, `LISTEN `+channel); err != nil {
		return err
	}
	for {
		n, err := conn.WaitForNotification(ctx)
		if err != nil {
			return err
		}
		if s.snapshots.get(n.Payload) == nil {
			continue // nobody here has asked for it yet
		}
		if _, err := s.refresh(ctx, n.Payload); err != nil {
			s.log.Warn("could not follow a change of another replica", "project", n.Payload, "error", err)
		}
	}
}

func (s *Store) poll(ctx context.Context) {
	for ctx.Err() == nil {
		if err := s.pollOnce(ctx); err != nil && ctx.Err() == nil {
			s.log.Warn("could not ask the database for changes", "error", err)
		}
		sleep(ctx, pollEvery)
	}
}

func (s *Store) pollOnce(ctx context.Context) error {
	asked := time.Now()
	ctx, cancel := context.WithTimeout(ctx, maxStale)
	defer cancel()
	projects, err := s.Projects(ctx)
	if err != nil {
		return err
	}
	newest := make(map[string]int64, len(projects))
	for _, p := range projects {
		newest[p.ID] = p.Revision
	}
	for _, id := range s.snapshots.projects() {
		revision, ok := newest[id]
		if !ok {
			s.snapshots.forget(id)
			continue
		}
		if c := s.snapshots.get(id); c != nil && c.Revision() < revision {
			if _, err := s.refresh(ctx, id); err != nil && quartermaster.CodeOf(err) != quartermaster.CodeNotFound {
				return err
			}
		}
	}
	s.confirmed.Store(asked.UnixNano())
	return nil
}

func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
