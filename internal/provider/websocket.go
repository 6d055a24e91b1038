package provider

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/coder/websocket"
)

// dialWebSocket asks for the subprotocol mcp and does not mind a server that
// has never heard of it.
func (w *wire) dialWebSocket(ctx context.Context, t *target) error {
	headers, err := t.headers()
	if err != nil {
		return err
	}
	client, hangUp := t.httpClient()
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	options := &websocket.DialOptions{HTTPClient: client, HTTPHeader: headers, Host: headers.Get("Host"), Subprotocols: []string{"mcp"}}
	conn, answer, err := websocket.Dial(ctx, t.server.URL, options) //nolint:bodyclose // there is never a need to, it says
	if err != nil {
		hangUp()
		if answer != nil && answer.StatusCode >= 300 {
			return &statusError{status: answer.StatusCode}
		}
		return unreachable(err)
	}
	conn.SetReadLimit(maxMessage)
	s := &socket{conn: conn, hangUp: hangUp}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	w.over(s, s.next, s.close)
	return nil
}

// socket writes each message as one of the WebSocket's.
type socket struct {
	conn   *websocket.Conn
	ctx    context.Context
	cancel context.CancelFunc
	hangUp func()
}

func (s *socket) next() ([]byte, error) {
	_, message, err := s.conn.Read(s.ctx)
	if errors.Is(err, websocket.ErrMessageTooBig) {
		err = fmt.Errorf("%w: %w", errTooLarge, err)
	}
	return message, err
}

func (s *socket) Write(p []byte) (int, error) {
	err := s.conn.Write(s.ctx, websocket.MessageText, bytes.TrimSuffix(p, []byte("\n")))
	if err != nil {
		return 0, err
	}
	return len(p), nil
}

// close does not wait for the other side to say good-bye too: it may never.
func (s *socket) close() {
	s.cancel()
	_ = s.conn.CloseNow()
	s.hangUp()
}
