package provider

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http/httptrace"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"quartermaster"
)

// lastLegacy is the newest protocol that begins with initialize.
const lastLegacy = "2025-11-25"

// session speaks MCP over one wire, in whichever era the upstream does.
type session struct {
	wire   *wire
	client *mcp.ClientSession
	cancel context.CancelFunc
	gone   chan struct{} // closed when the SDK has let go of the wire

	once sync.Once
	lost chan struct{} // closed when further calls are pointless
	why  error         // read after lost is closed

	tokens  atomic.Int64
	hearers sync.Map // by progress token: func(progress)
}

// progress is what a tool says while it runs.
type progress struct {
	Progress float64 `json:"progress"`
	Total    float64 `json:"total,omitempty"`
	Message  string  `json:"message,omitempty"`
}

// handshake is what a session begins with.
type handshake struct {
	version  string        // of ours
	legacy   bool          // begin with initialize, do not ask for the newer era
	patience time.Duration // how long to wait for an answer to the newer era's question
	changed  func()        // called when the list of tools has changed
	probe    *probe
}

// probe is what became of the question whether the upstream speaks the newer
// era.
type probe struct {
	failed atomic.Bool
	silent atomic.Bool // it was not even refused
}

// shake makes a session over w. When ctx ends first, the wire is hung up. In
// either case of failure the wire is the caller's to close.
func (w *wire) shake(ctx context.Context, t *target, h handshake) (*session, error) {
	s := &session{wire: w, gone: make(chan struct{}), lost: make(chan struct{})}
	client := mcp.NewClient(&mcp.Implementation{Name: "quartermaster", Version: h.version}, &mcp.ClientOptions{
		Logger:                      slog.New(slog.DiscardHandler),
		Capabilities:                &mcp.ClientCapabilities{},
		ToolListChangedHandler:      func(context.Context, *mcp.ToolListChangedRequest) { h.changed() },
		ProgressNotificationHandler: s.hear,
		MultiRoundTrip:              &mcp.MultiRoundTripOptions{Disabled: true},
	})
	client.AddSendingMiddleware(h.ask)
	client.AddReceivingMiddleware(refuseRequests)
	var options mcp.ClientSessionOptions
	if h.legacy {
		options.ProtocolVersion = lastLegacy
	}
	if err := s.connect(ctx, client, w.transport(t), &options); err != nil {
		return nil, err
	}
	go s.watch()
	return s, nil
}

// connect ends with ctx, which the session itself outlives: the stream of the
// sse transport lasts as long as the context it was begun with.
func (s *session) connect(ctx context.Context, client *mcp.Client, transport mcp.Transport, options *mcp.ClientSessionOptions) error {
	var life context.Context
	life, s.cancel = context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan error, 1)
	go func() {
		var err error
		s.client, err = client.Connect(life, transport, options)
		done <- err
	}()
	select {
	case err := <-done:
		if err != nil {
			s.cancel()
		}
		return err
	case <-ctx.Done():
	case <-s.wire.broken:
	}
	// The SDK may hang in a write, or in a request that ignores its context.
	s.wire.fail(errHungUp)
	s.cancel()
	if <-done == nil {
		_ = s.client.Close()
	}
	return cmp.Or(ctx.Err(), s.wire.cause)
}

// transport is the wire as the SDK takes it. The limits of messages are ours.
func (w *wire) transport(t *target) mcp.Transport {
	switch {
	case w.client == nil:
		return &mcp.IOTransport{Reader: w.stream, Writer: w.stream, MaxLineLength: -1}
	case t.server.Transport == quartermaster.TransportSSE:
		return &mcp.SSEClientTransport{Endpoint: t.server.URL, HTTPClient: w.client, MaxEventSize: -1}
	default:
		return &mcp.StreamableClientTransport{Endpoint: t.server.URL, HTTPClient: w.client, MaxEventSize: -1, MaxRetries: 3}
	}
}

// ask bounds the question whether the upstream speaks the newer era: older
// servers may answer nothing at all to a method they do not know.
func (h handshake) ask(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, request mcp.Request) (mcp.Result, error) {
		if method != "server/discover" {
			return next(ctx, method, request)
		}
		ctx, cancel := context.WithTimeout(ctx, h.patience)
		defer cancel()
		result, err := next(ctx, method, request)
		h.probe.failed.Store(err != nil)
		h.probe.silent.Store(errors.Is(err, context.DeadlineExceeded))
		return result, err
	}
}

// refuseRequests answers what an upstream asks of us. A connection is shared:
// nobody could tell for which of its callers the upstream asks (UP-4).
func refuseRequests(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, request mcp.Request) (mcp.Result, error) {
		switch method {
		case "sampling/createMessage", "elicitation/create", "roots/list":
			// With the code for an unknown method the SDK would leave out the words.
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: method + " is not passed on; " + shareAdvice}
		}
		return next(ctx, method, request)
	}
}

const shareAdvice = "this connection may be shared by several agents; scope: agent gives each its own"

// watch waits for the end of the session.
func (s *session) watch() {
	waited := make(chan error, 1)
	go func() {
		waited <- s.client.Wait()
		close(s.gone)
	}()
	select {
	case err := <-waited:
		s.end(err)
	case <-s.wire.broken:
		s.end(s.wire.because())
	}
}

// end marks the session as lost.
func (s *session) end(why error) {
	s.once.Do(func() {
		if s.why = why; why == nil {
			s.why = errors.New("closed the connection")
		}
		close(s.lost)
	})
}

// blame ends the session if err says that the next call would fare no better.
func (s *session) blame(err error) {
	status, refused := errors.AsType[*statusError](err)
	_, unreachable := errors.AsType[*unreachableError](err)
	if unreachable || refused && !status.passing() {
		s.end(err)
	}
}

// goodbye is how long an upstream may take to let us go.
const goodbye = 2 * time.Second

// close ends the session and everything behind it, and waits for that.
func (s *session) close(grace time.Duration) {
	s.end(errHungUp)
	closed := make(chan struct{})
	go func() {
		_ = s.client.Close()
		close(closed)
	}()
	late := time.NewTimer(min(grace, goodbye))
	defer late.Stop()
	select {
	case <-closed:
	case <-s.wire.broken:
	case <-late.C:
	}
	s.cancel()
	s.wire.close(grace)
	<-closed
	<-s.gone
}

func (s *session) era() string { return s.client.InitializeResult().ProtocolVersion }

// offersTools reports whether there can be a list of tools.
func (s *session) offersTools() bool {
	c := s.client.InitializeResult().Capabilities
	return c != nil && c.Tools != nil
}

// page asks for one page of the list of tools, each as the upstream wrote it.
func (s *session) page(ctx context.Context, cursor string) (tools []json.RawMessage, next string, err error) {
	result, err := unhung(ctx, func() (*mcp.ListToolsResult, error) {
		return s.client.ListTools(ctx, &mcp.ListToolsParams{Cursor: cursor})
	})
	if err != nil {
		return nil, "", err
	}
	members, err := carriedResult(result.Meta)
	if err != nil {
		return nil, "", err
	}
	if err := json.Unmarshal(members["tools"], &tools); err != nil {
		return nil, "", errors.New("answered tools/list with something that is no list")
	}
	return tools, result.NextCursor, nil
}

// ping asks whether the upstream answers. What it answers does not matter:
// the newer era has no ping, and not every server of the older knows it.
func (s *session) ping(ctx context.Context) error {
	_, err := unhung(ctx, func() (any, error) {
		if s.era() > lastLegacy {
			return mcp.CallCustomMethod[*mcp.DiscoverParams, *mcp.DiscoverResult](ctx, s.client, "server/discover", &mcp.DiscoverParams{})
		}
		return nil, s.client.Ping(ctx, nil)
	})
	if _, ok := wireError(err); ok {
		return nil
	}
	return err
}

// reply is what came back from a call.
type reply struct {
	members    map[string]json.RawMessage // of the result, as the upstream wrote it
	needsInput bool                       // it is a question, not an answer
	sent       bool                       // the upstream may have seen the request
}

// call runs a tool. It ends with ctx, and the upstream is told.
func (s *session) call(ctx context.Context, name string, arguments json.RawMessage, hear func(progress)) (reply, error) {
	if len(arguments) == 0 {
		arguments = json.RawMessage(`{}`)
	}
	params := &mcp.CallToolParams{Name: name, Arguments: arguments}
	token := strconv.FormatInt(s.tokens.Add(1), 10)
	params.SetProgressToken(token)
	s.hearers.Store(token, hear)
	defer s.hearers.Delete(token)

	var wrote atomic.Bool
	traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn:      func(string) { wrote.Store(false) }, // again only if the one before has surely not been read
		WroteRequest: func(i httptrace.WroteRequestInfo) { wrote.Store(i.Err == nil) },
	})
	result, err := unhung(ctx, func() (*mcp.CallToolResult, error) { return s.client.CallTool(traced, params) })
	if err != nil {
		return reply{sent: wrote.Load() || s.wire.client == nil && !s.unsent(err)}, err
	}
	members, err := carriedResult(result.Meta)
	return reply{members, result.NeedsInput(), true}, err
}

// unhung leaves behind what hangs in a write: the wire is about to be hung up
// for that, but whoever has asked need not wait for it.
func unhung[T any](ctx context.Context, ask func() (T, error)) (T, error) {
	type outcome struct {
		result T
		err    error
	}
	done := make(chan outcome, 1)
	go func() {
		result, err := ask()
		done <- outcome{result, err}
	}()
	select {
	case o := <-done:
		return o.result, o.err
	case <-ctx.Done():
	}
	late := time.NewTimer(100 * time.Millisecond)
	defer late.Stop()
	var o outcome
	select {
	case o = <-done:
	case <-late.C:
		o.err = ctx.Err()
	}
	return o.result, o.err
}

// hear passes progress on to the call that it belongs to.
func (s *session) hear(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
	if hear, ok := s.hearers.Load(r.Params.ProgressToken); ok {
		hear.(func(progress))(progress{r.Params.Progress, r.Params.Total, r.Params.Message})
	}
}

// wireError is the error that the upstream itself has answered, if it did. The
// SDK has errors of its own that look the same.
func wireError(err error) (*jsonrpc.Error, bool) {
	e, ok := errors.AsType[*jsonrpc.Error](err)
	if ok && e.Code == -32005 && e.Message == "rejected by transport" {
		return nil, false
	}
	return e, ok
}

// unsent reports whether a call surely did not reach the upstream: it was
// refused because the session is over. An upstream can answer with the very code
// that the SDK uses to say that, so the session must be over indeed.
func (s *session) unsent(err error) bool {
	if !errors.Is(err, mcp.ErrConnectionClosed) {
		return false
	}
	late := time.NewTimer(100 * time.Millisecond)
	defer late.Stop()
	select {
	case <-s.lost:
		return true
	case <-late.C:
		return false
	}
}
