package provider

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"quartermaster"
)

// transports are a model server behind every transport, and the era in which it
// is spoken to.
func transports(t testing.TB) map[string]struct {
	server quartermaster.Server
	era    string
} {
	model := []string{os.Args[0], runMode, "model"}
	type row = struct {
		server quartermaster.Server
		era    string
	}
	return map[string]row{
		"stdio":     {self(t, "stdio", "model"), "2026-07-28"},
		"http":      {remote("http", quartermaster.TransportHTTP, "http://"+network(t, "http-2026-07-28")), "2026-07-28"},
		"http-old":  {remote("http-old", quartermaster.TransportHTTP, "http://"+network(t, "http-2025-11-25")), "2025-11-25"},
		"http-json": {remote("http-json", quartermaster.TransportHTTP, "http://"+network(t, "http-json")), "2025-11-25"},
		"sse":       {remote("sse", quartermaster.TransportSSE, "http://"+network(t, "sse")), "2025-11-25"},
		"ws":        {remote("ws", quartermaster.TransportWS, "ws://"+network(t, append([]string{"ws"}, model...)...)), "2026-07-28"},
		"ws-plain":  {remote("ws-plain", quartermaster.TransportWS, "ws://"+network(t, append([]string{"ws-without-subprotocol"}, model...)...)), "2026-07-28"},
		"tcp":       {remote("tcp", quartermaster.TransportTCP, "tcp://"+network(t, append([]string{"tcp"}, model...)...)), "2026-07-28"},
	}
}

// UP-1: handshake, discovery, calls, progress, cancellation and list_changed
// work over every transport.
func TestTransports(t *testing.T) {
	for name, tt := range transports(t) {
		t.Run(name, func(t *testing.T) {
			w := open(t, quick)
			w.put(tt.server)
			w.awaitTools(name, modelTools...)
			if s := w.awaitState(name, stateReady); s.Era != tt.era || s.Health != "green" || s.Reason != "" {
				t.Errorf("is %+v", s)
			}
			if got := w.runText(name, "echo", `{"n":12345678901234567890}`); got != `{"n":12345678901234567890}` {
				t.Errorf("echoes %s", got)
			}
			t.Run("progress and cancellation", func(t *testing.T) { w.cancels(t, name) })
			t.Run("list_changed", func(t *testing.T) { // POOL-4
				w.runText(name, "learn", "")
				w.awaitTools(name, slices.Sorted(slices.Values(append([]string{"learned"}, modelTools...)))...)
			})
			if s := w.Status("p", name); s.Restarts != 0 || s.Calls == 0 || s.P99 < s.P50 || s.P50 == 0 {
				t.Errorf("is %+v", s)
			}
		})
	}
}

// UP-4: what an upstream asks of us is refused with advice, except a ping.
func TestRequestsOfTheUpstream(t *testing.T) {
	methods := []string{"ping", "roots/list", "sampling/createMessage", "elicitation/create", "what/ever"}
	answers := make(chan [2]string, len(methods))
	w := open(t, quick)
	w.put(listenRogue(t, func() *rogue {
		return &rogue{on: map[string]func(*rogue, string, string){
			"notifications/initialized": func(r *rogue, _, _ string) {
				for _, method := range methods {
					r.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":%q,"method":%q,"params":{}}`, method, method))
				}
			},
			"": func(_ *rogue, id, answer string) { answers <- [2]string{id, answer} },
		}}
	}))
	for range methods {
		got := <-answers
		want := "is not passed on; this connection may be shared by several agents; scope: agent gives each its own"
		switch got[0] {
		case `"ping"`:
			want = "{}"
		case `"what/ever"`:
			want = "method not found"
		}
		if !strings.Contains(got[1], want) {
			t.Errorf("%s is answered %s", got[0], got[1])
		}
	}
}

// cancels proves that a call ends with its context, that its progress was heard
// and that the upstream has been told.
func (w *world) cancels(t *testing.T, server string) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	heard := make(chan progress, 1)
	_, err := w.call(ctx, caller, tool(server, "hang"), nil, func(p progress) {
		heard <- p
		cancel()
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("ended with %v", err)
	}
	if p := <-heard; p != (progress{1, 2, "halfway"}) {
		t.Errorf("heard %+v", p)
	}
	w.await("the upstream was told", func() bool { return w.runText(server, "canceled", "") == "1" })
}
