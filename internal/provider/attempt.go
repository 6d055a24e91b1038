package provider

import (
	"context"
	"errors"
	"fmt"
	"time"

	"quartermaster"
)

// connect makes one attempt. Its time counts from when the attempt itself
// begins, not from when it began to wait for its turn (UP-3).
func (c *connection) connect() (l *line, err error) {
	defer contain(&err)
	t, err := c.aim()
	if err != nil {
		return nil, err
	}
	if t.server.Transport == quartermaster.TransportStdio {
		leave, err := c.up.owner.nursery.enter(c.ctx)
		if err != nil {
			return nil, err
		}
		defer func() { leave(l != nil) }()
	}
	ctx, cancel := context.WithTimeout(c.ctx, startupLimit(t.server))
	defer cancel()
	return c.attempt(ctx, t)
}

// contain turns a panic into an error: what one server makes us trip over must
// not end the others.
func contain(err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("made us fail: %v", r)
	}
}

// aim looks up what the server's settings refer to.
func (c *connection) aim() (*target, error) {
	t := &target{project: c.up.project, server: c.up.server, policy: c.up.owner.policy, secrets: map[string]string{}}
	ctx, cancel := context.WithTimeout(c.ctx, startupLimit(t.server))
	defer cancel()
	for _, values := range []map[string]string{t.server.Env, t.server.Headers} {
		for _, value := range values {
			for _, name := range quartermaster.SecretsIn(value) {
				secret, err := c.up.owner.vault.Secret(ctx, t.project, name)
				switch {
				case err == nil:
					t.secrets[name] = secret
				case quartermaster.CodeOf(err) != quartermaster.CodeNotFound:
					return nil, fmt.Errorf("needs the secret ${%s}, which could not be opened: %w", name, err)
				}
			}
		}
	}
	return t, nil
}

// attempt connects in the newer era's way, or in the older one's where the
// newer has made the server give up.
func (c *connection) attempt(ctx context.Context, t *target) (*line, error) {
	var p probe
	legacy := c.legacy || t.server.Transport == quartermaster.TransportSSE
	l, err := c.try(ctx, t, legacy, &p)
	if err != nil && p.failed.Load() && !c.probed && ctx.Err() == nil {
		c.probed, legacy = true, true // once, or each failure would cost two processes
		l, err = c.try(ctx, t, legacy, &probe{})
	}
	if err == nil {
		c.probed = false
	}
	c.legacy = err == nil && (legacy || p.silent.Load())
	return l, err
}

// try returns an error in words for people.
func (c *connection) try(ctx context.Context, t *target, legacy bool, p *probe) (*line, error) {
	w, err := c.up.owner.reach(ctx, t)
	if err != nil {
		return nil, errors.New(t.reason(nil, "being reached", err))
	}
	if w.process != nil {
		c.program.Store(w.process)
	}
	s, err := w.shake(ctx, t, handshake{
		version: c.up.owner.version, legacy: legacy, patience: startupLimit(t.server) / 2,
		changed: func() { poke(c.changed) }, probe: p,
	})
	if err != nil {
		err = errors.New(t.reason(w, "shaking hands", err))
		w.close(hasty)
		return nil, err
	}
	l := newLine(s, t)
	if c.agent != "" {
		return l, nil
	}
	if l.listing, err = s.list(ctx); err != nil {
		err = errors.New(t.reason(w, "listing its tools", err))
		s.close(hasty)
		return nil, err
	}
	return l, nil
}

// hasty is the grace for a program that has not even started well.
const hasty = 200 * time.Millisecond
