package provider

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"quartermaster"
)

// wire is how the bytes of one session travel: a stream of messages (stdio, ws,
// tcp) or HTTP requests (http, sse).
type wire struct {
	stream  io.ReadWriteCloser
	frames  *frames
	client  *http.Client
	process *process

	deaf   chan struct{} // closed when the upstream can no longer tell us news
	deafen func()        // closes it

	once   sync.Once
	broken chan struct{} // closed by fail
	cause  error         // what fail was told; read after broken is closed
	hangUp func()        // ends everything that the wire has under way
}

func newWire() *wire {
	w := &wire{broken: make(chan struct{}), deaf: make(chan struct{})}
	w.deafen = sync.OnceFunc(func() { close(w.deaf) })
	return w
}

// fail ends the wire for a reason of ours. The first reason counts.
func (w *wire) fail(err error) {
	w.once.Do(func() {
		w.cause = err
		close(w.broken)
		w.hangUp()
	})
}

// errHungUp is the reason of a wire that nobody needs any more.
var errHungUp = errors.New("was hung up")

// close ends the wire and waits for the process behind it, if there is one.
func (w *wire) close(grace time.Duration) {
	w.fail(errHungUp)
	if w.process != nil {
		w.process.Stop(grace)
	}
}

// lastWords is how long a program has to end by itself once its output has
// ended: we want to know how it ended, and stopping it would hide that.
const lastWords = 3 * time.Second

// epitaph says how the program behind the wire ended; "" if it has not, or if
// there is none.
func (w *wire) epitaph() string {
	if w.process == nil {
		return ""
	}
	select {
	case <-w.process.Done():
	case <-time.After(lastWords):
		return ""
	}
	words := "ended without an error"
	if err := w.process.Err(); err != nil {
		words = err.Error()
	}
	if last := w.process.Stderr(); len(last) > 0 {
		words += fmt.Sprintf("; the last it wrote to stderr: %q", last[len(last)-1])
	}
	return words
}

// because is the reason that the wire itself knows for its end.
func (w *wire) because() error {
	select {
	case <-w.broken:
		if !errors.Is(w.cause, errHungUp) {
			return w.cause
		}
	default:
	}
	return nil
}

// heard is what the upstream wrote instead of messages.
func (w *wire) heard() string {
	if w.frames == nil {
		return ""
	}
	if heard := w.frames.heard.Load(); heard != nil {
		return *heard
	}
	return ""
}

// target is everything that is needed to reach a server.
type target struct {
	project string
	server  *quartermaster.Server
	secrets map[string]string // of the project, as far as the server refers to them
	policy  dialPolicy
}

func (t *target) secret(name string) (string, bool) {
	value, ok := t.secrets[name]
	return value, ok
}

// headers are the configured ones, with their secrets.
func (t *target) headers() (http.Header, error) {
	all := http.Header{}
	for name, value := range t.server.Headers {
		open, err := quartermaster.ExpandSecrets(value, func(secret string) (string, error) {
			value, ok := t.secrets[secret]
			if !ok {
				return "", missingSecret("headers."+name, secret)
			}
			return value, nil
		})
		if err != nil {
			return nil, err
		}
		all.Set(name, open)
	}
	return all, nil
}

func missingSecret(at, name string) error {
	return fmt.Errorf("%s refers to ${%s}, which is not set; set it with: quartermaster secrets set %s", at, name, name)
}

// hide takes the values of secrets out of a text that the upstream wrote.
func (t *target) hide(text string) string {
	for name, value := range t.secrets {
		if len(value) >= 4 { // a shorter one would tear up innocent words
			text = strings.ReplaceAll(text, value, "${"+name+"}")
		}
	}
	return text
}

// reach makes the wire to a server.
func (t *target) reach(ctx context.Context) (*wire, error) {
	w := newWire()
	switch t.server.Transport {
	case quartermaster.TransportStdio:
		return w, w.spawn(t)
	case quartermaster.TransportTCP:
		return w, w.dial(ctx, t)
	case quartermaster.TransportWS:
		return w, w.dialWebSocket(ctx, t)
	case quartermaster.TransportHTTP, quartermaster.TransportSSE:
		return w, w.request(t)
	default:
		return nil, fmt.Errorf("has the transport %q, which this version does not know", t.server.Transport)
	}
}

// over lays the wire over a stream whose messages next reads. Hanging up must
// not keep anybody waiting, so what ends the stream runs beside.
func (w *wire) over(stream io.Writer, next func() ([]byte, error), end func()) {
	w.hangUp = sync.OnceFunc(func() { go end() })
	w.frames = &frames{next: next, fail: w.fail}
	w.stream = struct {
		io.Reader
		io.Writer
		io.Closer
	}{w.frames, unstuck{stream, w.fail}, closer(w.hangUp)}
}

type closer func()

func (c closer) Close() error {
	c()
	return nil
}

func (w *wire) spawn(t *target) error {
	env, err := environment(t.server.Env, t.secret)
	if err != nil {
		return err
	}
	p, err := startProcess(command{
		Path: t.server.Command, Args: t.server.Args, Env: env, Dir: t.server.Cwd,
		Hidden: slices.Collect(maps.Values(t.secrets)),
	})
	if err != nil {
		return err
	}
	w.process = p
	w.over(p, lines(p), func() {
		if w.frames.over.Load() {
			_ = w.epitaph()
		}
		p.Stop(defaultGrace)
	})
	return nil
}

func (w *wire) dial(ctx context.Context, t *target) error {
	u, err := url.Parse(t.server.URL)
	if err != nil {
		return err
	}
	conn, err := guardedDial(t.policy)(ctx, "tcp", u.Host)
	if err != nil {
		return unreachable(err)
	}
	w.over(conn, lines(conn), func() { _ = conn.Close() })
	return nil
}

// unreachable leaves out what repeats the settings.
func unreachable(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err
	}
	return &unreachableError{err}
}
