package provider

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"quartermaster"
)

// unreachableError is a server that could not be spoken to at all.
type unreachableError struct{ cause error }

func (e *unreachableError) Error() string { return "cannot be reached: " + e.cause.Error() }
func (e *unreachableError) Unwrap() error { return e.cause }

const (
	defaultStartup = 10 * time.Second
	defaultRequest = 60 * time.Second
)

// startupLimit is how long the server may take to become ready (UP-3).
func startupLimit(s *quartermaster.Server) time.Duration {
	if s.Timeouts.Startup > 0 {
		return time.Duration(s.Timeouts.Startup)
	}
	return defaultStartup
}

// requestLimit is how long the server may take to answer (EXE-3).
func requestLimit(s *quartermaster.Server) time.Duration {
	if s.Timeouts.Request > 0 {
		return time.Duration(s.Timeouts.Request)
	}
	return defaultRequest
}

// reason puts into words, which a person can act on, why a server could not
// shake hands or list its tools, or why the connection to it ended. w may be nil.
func (t *target) reason(w *wire, doing string, err error) string {
	words := t.words(w, doing, err)
	if w != nil && doing != inUse && w.heard() != "" {
		words += fmt.Sprintf("; it wrote %q where only JSON-RPC messages belong (logs belong on stderr)", w.heard())
	}
	return t.plain(words)
}

// inUse is what a server was doing that had started well: what it wrote at its
// start does not explain its end.
const inUse = "being used"

// words looks first at what is closest to the cause.
func (t *target) words(w *wire, doing string, err error) string {
	if w != nil {
		if cause := w.because(); cause != nil {
			return cause.Error()
		}
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Sprintf("was not ready within %v of its start: it was still %s; if it needs longer, raise timeouts.startup", startupLimit(t.server), doing)
	}
	if w != nil && w.frames != nil && w.frames.over.Load() {
		if epitaph := w.epitaph(); epitaph != "" {
			return epitaph
		}
		return "closed the connection while " + doing
	}
	if status, ok := errors.AsType[*statusError](err); ok {
		return status.Error()
	}
	if unreachable, ok := errors.AsType[*unreachableError](err); ok {
		return unreachable.Error()
	}
	if answered, ok := wireError(err); ok {
		return fmt.Sprintf("answered with an error while %s: %s", doing, answered.Message)
	}
	if strings.Contains(err.Error(), "json: ") {
		return "answered with something that is no result while " + doing
	}
	return err.Error()
}

// jargon is what the SDK puts before a cause.
var jargon = regexp.MustCompile(`(calling|sending) "[a-zA-Z/_]+": |rejected by transport: |jsonrpc2: |connection closed: |(client|server) is closing: `)

const maxReason = 600

// plain makes a text that an upstream has had a hand in fit to show.
func (t *target) plain(text string) string {
	text = jargon.ReplaceAllString(t.hide(text), "")
	text = strings.Map(harmless, strings.ToValidUTF8(text, "\uFFFD"))
	if len(text) > maxReason {
		text = strings.ToValidUTF8(text[:maxReason], "") + " [cut]"
	}
	return text
}

// result reads what a tool has answered, and leaves it as it is (EXE-7).
func (r reply) result() (*quartermaster.Result, error) {
	if r.needsInput {
		return nil, errors.New("asks for input before it goes on, which is not passed on yet")
	}
	result := &quartermaster.Result{Content: []json.RawMessage{}, StructuredContent: r.members["structuredContent"]}
	if raw, ok := r.members["content"]; ok {
		if err := json.Unmarshal(raw, &result.Content); err != nil {
			return nil, errors.New("answered with content that is no list")
		}
	}
	if raw, ok := r.members["isError"]; ok {
		if err := json.Unmarshal(raw, &result.IsError); err != nil {
			return nil, errors.New("answered with an isError that is neither true nor false")
		}
	}
	return result, nil
}
