package provider

import (
	"context"
	"errors"
	"fmt"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

// errSessionEnded is what a server's answer means that no longer knows us.
var errSessionEnded = errors.New("no longer knows our session; it has probably been started anew")

// statusError is an HTTP answer that says no.
type statusError struct{ status int }

func (e *statusError) Error() string {
	words := fmt.Sprintf("answered %d %s", e.status, http.StatusText(e.status))
	switch e.status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return words + "; check the credentials in its headers"
	case http.StatusNotFound:
		return words + "; check its url"
	case http.StatusTooManyRequests:
		return words + "; it wants fewer requests"
	}
	return words
}

// refused reports whether the request was surely not carried out.
func (e *statusError) refused() bool {
	switch e.status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusTooManyRequests, http.StatusServiceUnavailable:
		return true
	}
	return false
}

// passing reports whether the session can go on after this.
func (e *statusError) passing() bool {
	return e.status == http.StatusTooManyRequests || e.status >= http.StatusInternalServerError
}

// httpClient reaches only what the operator lets upstreams be, whatever a name
// resolves to. It uses no proxy: a proxy would dial in our place. hangUp closes
// every connection that it has, and makes it have no other.
func (t *target) httpClient() (client *http.Client, hangUp func()) {
	d := &dialed{dial: guardedDial(t.policy), open: map[*dialedConn]struct{}{}}
	transport := &http.Transport{
		DialContext:         d.DialContext,
		ForceAttemptHTTP2:   true,
		TLSHandshakeTimeout: 10 * time.Second,
		IdleConnTimeout:     90 * time.Second,
		MaxIdleConnsPerHost: 16,
	}
	return &http.Client{Transport: transport}, d.close
}

// dialed knows the connections that are open: a transport closes those that
// are idle at a moment, and leaves those that become idle a moment later.
type dialed struct {
	dial func(ctx context.Context, network, address string) (net.Conn, error)

	mu     sync.Mutex
	open   map[*dialedConn]struct{}
	closed bool
}

func (d *dialed) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := d.dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		_ = conn.Close()
		return nil, net.ErrClosed
	}
	known := &dialedConn{conn, d}
	d.open[known] = struct{}{}
	return known, nil
}

func (d *dialed) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	for conn := range d.open {
		_ = conn.Conn.Close()
	}
}

type dialedConn struct {
	net.Conn
	of *dialed
}

func (c *dialedConn) Close() error {
	c.of.mu.Lock()
	delete(c.of.open, c)
	c.of.mu.Unlock()
	return c.Conn.Close()
}

func (w *wire) request(t *target) error {
	headers, err := t.headers()
	if err != nil {
		return err
	}
	u, err := url.Parse(t.server.URL)
	if err != nil {
		return err
	}
	client, hangUp := t.httpClient()
	c := &courier{w: w, client: client, home: origin(u), headers: headers}
	var cancel context.CancelFunc
	c.life, cancel = context.WithCancel(context.Background())
	w.hangUp = func() {
		cancel()
		hangUp()
	}
	w.client = &http.Client{Transport: c}
	return nil
}

// origin is where a URL leads, as HTTP sees it.
func origin(u *url.URL) string {
	scheme := u.Scheme
	switch scheme {
	case "ws":
		scheme = "http"
	case "wss":
		scheme = "https"
	}
	return scheme + "://" + strings.ToLower(u.Host)
}

// courier carries the requests of one session. It adds the headers, speaks to
// nobody but the configured server, and ends with the wire.
type courier struct {
	w       *wire
	client  *http.Client
	home    string
	headers http.Header
	life    context.Context
}

// The names of headers that MCP gives a meaning.
const (
	sessionHeader = "Mcp-Session-Id"
	methodHeader  = "Mcp-Method"
)

func (c *courier) RoundTrip(r *http.Request) (*http.Response, error) {
	if there := origin(r.URL); there != c.home {
		// A redirect, or an endpoint that the server names: neither may take
		// our credentials, or the agent's arguments, to somebody else.
		if r.Body != nil {
			_ = r.Body.Close()
		}
		return nil, fmt.Errorf("sends us on to %s; if that is right, make it the url", there)
	}
	ctx, cancel := context.WithCancel(r.Context())
	stop := context.AfterFunc(c.life, cancel)
	end := func() {
		stop()
		cancel()
	}
	answer, err := c.client.Transport.RoundTrip(c.dress(r.WithContext(ctx)))
	if err != nil {
		end()
		return nil, unreachable(err)
	}
	if err := c.refusal(r, answer); err != nil {
		end()
		_ = answer.Body.Close()
		return nil, err
	}
	if r.Header.Get(methodHeader) == "subscriptions/listen" && answer.StatusCode == http.StatusOK {
		inner := end
		end = func() {
			inner()
			c.w.deafen()
		}
	}
	answer.Body = c.open(answer, end)
	return answer, nil
}

// dress adds the configured headers to a copy of the request.
func (c *courier) dress(r *http.Request) *http.Request {
	r = r.Clone(r.Context())
	for name, values := range c.headers {
		r.Header[name] = values
	}
	if host := c.headers.Get("Host"); host != "" {
		r.Host = host
	}
	return r
}

// refusal turns answers into errors where the SDK would take them for the end
// of the session although it goes on, or would not notice that it has ended.
func (c *courier) refusal(r *http.Request, answer *http.Response) error {
	err := &statusError{answer.StatusCode}
	switch {
	case r.Method != http.MethodPost:
		return nil
	case answer.StatusCode == http.StatusNotFound && r.Header.Get(sessionHeader) != "":
		c.w.fail(errSessionEnded)
		return errSessionEnded
	case answer.StatusCode == http.StatusUnauthorized, answer.StatusCode == http.StatusForbidden, err.passing():
		return err
	}
	return nil
}

func (c *courier) open(answer *http.Response, end func()) *body {
	b := &body{src: answer.Body, fail: c.w.fail, end: end}
	kind, _, _ := mime.ParseMediaType(answer.Header.Get("Content-Type"))
	switch kind {
	case "text/event-stream":
		b.next = eventStream(answer.Body)
	default:
		b.next = whole(answer.Body)
	}
	return b
}
