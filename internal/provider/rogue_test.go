package provider

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"quartermaster"
)

// rogue is an upstream made by hand, as bad as it needs to be. It answers a
// method with what on has for it, else as a good old server would. The method
// "" are answers to what it has asked itself.
type rogue struct {
	version string // of the protocol; "" is the newest of the older era
	tools   string // what tools/list answers
	begin   func(r *rogue)
	on      map[string]func(r *rogue, id, params string)

	mu  sync.Mutex
	out io.WriteCloser
	die func()
}

const threeTools = `[{"name":"a","inputSchema":{"type":"object"}},{"name":"b","inputSchema":{"type":"object"}},{"name":"c","inputSchema":{"type":"object"}}]`

// serve speaks until in ends.
func (r *rogue) serve(in io.Reader) {
	if r.begin != nil {
		r.begin(r)
	}
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		var m struct {
			ID                    json.RawMessage
			Method                string
			Params, Result, Error json.RawMessage
		}
		if json.Unmarshal(line, &m) != nil {
			continue
		}
		r.handle(string(m.ID), m.Method, string(m.Params)+string(m.Result)+string(m.Error))
	}
}

func (r *rogue) handle(id, method, params string) {
	if h := r.on[method]; h != nil {
		h(r, id, params)
		return
	}
	switch method {
	case "initialize":
		version := r.version
		if version == "" {
			version = lastLegacy
		}
		r.answer(id, `{"protocolVersion":"`+version+`","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"rogue","version":"1"}}`)
	case "tools/list":
		tools := r.tools
		if tools == "" {
			tools = threeTools
		}
		r.answer(id, `{"tools":`+tools+`}`)
	case "tools/call":
		r.answer(id, `{"content":[{"type":"text","text":"called"}]}`)
	case "ping":
		r.answer(id, `{}`)
	default:
		if id != "" && method != "" {
			r.write(`{"jsonrpc":"2.0","id":` + id + `,"error":{"code":-32601,"message":"no such method"}}`)
		}
	}
}

func (r *rogue) answer(id, result string) {
	r.write(`{"jsonrpc":"2.0","id":` + id + `,"result":` + result + `}`)
}

func (r *rogue) write(line string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, _ = io.WriteString(r.out, line+"\n")
}

func silent(*rogue, string, string) {}

func dying(r *rogue, _, _ string) { r.die() }

// gallery has one of each kind. What is said of it must hold want.
var gallery = map[string]struct {
	make  func() *rogue
	state state
	want  string
}{
	"crashes at once": {func() *rogue {
		return &rogue{begin: func(r *rogue) {
			fmt.Fprintln(os.Stderr, "cannot find my configuration")
			r.die()
		}}
	}, stateFailed, `exited with status 3; the last it wrote to stderr: "cannot find my configuration"`},
	"silent": {func() *rogue {
		return &rogue{on: map[string]func(*rogue, string, string){"initialize": silent, "server/discover": silent}}
	}, stateFailed, "was not ready within 1s of its start: it was still shaking hands; if it needs longer, raise timeouts.startup"},
	"silent list": {func() *rogue {
		return &rogue{on: map[string]func(*rogue, string, string){"tools/list": silent}}
	}, stateFailed, "it was still listing its tools"},
	"greets on stdout": {func() *rogue {
		return &rogue{begin: func(r *rogue) { r.write("Server listening!") }, on: map[string]func(*rogue, string, string){"initialize": silent}}
	}, stateFailed, `it wrote "Server listening!" where only JSON-RPC messages belong (logs belong on stderr)`},
	"garbage": {func() *rogue {
		return &rogue{begin: func(r *rogue) {
			for range 2000 {
				r.write(strings.Repeat("\x00\xff}{", 200))
			}
		}}
	}, stateFailed, "speaks no JSON-RPC"},
	"huge message": {func() *rogue {
		return &rogue{on: map[string]func(*rogue, string, string){"tools/list": func(r *rogue, id, _ string) {
			r.write(strings.Repeat("x", maxMessage+1))
		}}}
	}, stateFailed, "sent a message larger than 16 MiB"},
	"huge list": {func() *rogue {
		var b strings.Builder
		for i := range quartermaster.MaxOffers + 5 {
			fmt.Fprintf(&b, `,{"name":"t%d","inputSchema":{"type":"object"}}`, i)
		}
		return &rogue{tools: "[" + b.String()[1:] + "]"}
	}, stateDegraded, "only the first 10000 are used"},
	"same page": {func() *rogue {
		return &rogue{on: map[string]func(*rogue, string, string){"tools/list": func(r *rogue, id, _ string) {
			r.answer(id, `{"tools":[],"nextCursor":"again"}`)
		}}}
	}, stateFailed, "lists its tools without end: after 2 pages it comes back"},
	"endless pages": {func() *rogue {
		n := 0
		return &rogue{on: map[string]func(*rogue, string, string){"tools/list": func(r *rogue, id, _ string) {
			n++
			r.answer(id, fmt.Sprintf(`{"tools":[{"name":"t%d"}],"nextCursor":"%d"}`, n, n))
		}}}
	}, stateFailed, "lists its tools without end: 1000 pages, and there are more"},
	"duplicate tools": {func() *rogue {
		return &rogue{tools: `[{"name":"a","description":"one"},{"name":"a","description":"other"}]`}
	}, stateDegraded, "offered more than once"},
	"odd tools": {func() *rogue {
		return &rogue{tools: `[{"name":7},null,{"name":"","description":"x"},{"name":"good"},{"name":"s","inputSchema":[]},"x"]`}
	}, stateDegraded, "5 of its tools are left out, the first because it is a tool whose name is no text"},
	"no list": {func() *rogue {
		return &rogue{tools: `"many"`}
	}, stateFailed, "answered tools/list with something that is no list"},
	"no result": {func() *rogue {
		return &rogue{on: map[string]func(*rogue, string, string){"tools/list": func(r *rogue, id, _ string) { r.answer(id, `[1]`) }}}
	}, stateFailed, "answered with something that is no result while listing its tools"},
	"error for a list": {func() *rogue {
		return &rogue{on: map[string]func(*rogue, string, string){"tools/list": func(r *rogue, id, _ string) {
			r.write(`{"jsonrpc":"2.0","id":` + id + `,"error":{"code":-32000,"message":"out of \u001b[31mtools"}}`)
		}}}
	}, stateFailed, "answered with an error while listing its tools: out of \uFFFD[31mtools"},
	"refuses": {func() *rogue {
		return &rogue{on: map[string]func(*rogue, string, string){"initialize": func(r *rogue, id, _ string) {
			r.write(`{"jsonrpc":"2.0","id":` + id + `,"error":{"code":-32000,"message":"no license"}}`)
		}}}
	}, stateFailed, "answered with an error while shaking hands: no license"},
	"unknown protocol": {func() *rogue {
		return &rogue{version: "1999-01-01"}
	}, stateFailed, `unsupported protocol version: "1999-01-01"`},
	"dies shaking hands": {func() *rogue {
		return &rogue{on: map[string]func(*rogue, string, string){"initialize": dying}}
	}, stateFailed, "exited with status 3"},
	"dies listing": {func() *rogue {
		return &rogue{on: map[string]func(*rogue, string, string){"tools/list": dying}}
	}, stateFailed, "exited with status 3"},
}

// better are those that have their ways, but must work all the same.
var better = map[string]func() *rogue{
	"chatty": func() *rogue { // logs between messages, and JSON that is none
		r := &rogue{}
		r.begin = func(r *rogue) { r.write("hello\n\n{\"level\":\"info\"}\n[]") }
		r.on = map[string]func(*rogue, string, string){"tools/call": func(r *rogue, id, _ string) {
			r.write("calling...")
			r.answer(id, `{"content":[{"type":"text","text":"called"}]}`)
		}}
		return r
	},
	"answers twice": func() *rogue {
		return &rogue{on: map[string]func(*rogue, string, string){"tools/call": func(r *rogue, id, _ string) {
			for range 3 {
				r.answer(id, `{"content":[{"type":"text","text":"called"}]}`)
			}
			r.answer("12345", `{"content":[]}`)
			r.answer(`"x"`, `{"content":[]}`)
		}}}
	},
	"floods stderr": func() *rogue {
		return &rogue{begin: func(*rogue) {
			for i := range 5000 {
				fmt.Fprintln(os.Stderr, "line", i, strings.Repeat("x", 500))
			}
		}}
	},
	"floods list_changed": func() *rogue {
		return &rogue{on: map[string]func(*rogue, string, string){"notifications/initialized": func(r *rogue, _, _ string) {
			for range 5000 {
				r.write(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
			}
		}}}
	},
	"speaks 2024-11-05": func() *rogue { return &rogue{version: "2024-11-05"} },
	"speaks 2025-03-26": func() *rogue { return &rogue{version: "2025-03-26"} },
	"speaks 2025-06-18": func() *rogue { return &rogue{version: "2025-06-18"} },
	"does not know server/discover at all": func() *rogue {
		return &rogue{on: map[string]func(*rogue, string, string){"server/discover": silent}}
	},
	"dies of server/discover": func() *rogue {
		return &rogue{on: map[string]func(*rogue, string, string){"server/discover": dying}}
	},
	"asks back": func() *rogue {
		return &rogue{on: map[string]func(*rogue, string, string){"notifications/initialized": func(r *rogue, _, _ string) {
			for i, method := range []string{"ping", "roots/list", "sampling/createMessage", "elicitation/create", "what/ever"} {
				r.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":"q%d","method":%q,"params":{}}`, i, method))
			}
		}}}
	},
}

func init() {
	modes["rogue"] = func(args []string) int {
		r := rogueNamed(args[0])
		r.out, r.die = os.Stdout, func() { os.Exit(3) }
		r.serve(os.Stdin)
		return 0
	}
}

func rogueNamed(name string) *rogue {
	if g, ok := gallery[name]; ok {
		return g.make()
	}
	return better[name]()
}

// serverName makes a legal name.
func serverName(title string) string {
	return strings.NewReplacer(" ", "-", "/", "-", "_", "-").Replace(title)
}

// rogueServer is a rogue as a process.
func rogueServer(t testing.TB, title string) quartermaster.Server {
	s := self(t, serverName(title), "rogue", title)
	s.Timeouts.Startup = quartermaster.Duration(time.Second)
	if strings.Contains(title, "endless") || strings.Contains(title, "huge") || better[title] != nil {
		s.Timeouts.Startup = quartermaster.Duration(20 * time.Second)
	}
	if strings.Contains(title, "server/discover") {
		s.Timeouts.Startup = quartermaster.Duration(2 * time.Second)
	}
	return s
}

// UP-3, POOL-3: a bad server says what is wrong with it, in words that somebody
// can act on; the others do not notice, whatever it does.
func TestGallery(t *testing.T) {
	w := open(t, quick)
	for title := range gallery {
		w.put(rogueServer(t, title))
	}
	w.put(self(t, "model", "model"))
	w.awaitTools("model", modelTools...)
	for title, tt := range gallery {
		t.Run(title, func(t *testing.T) {
			name := serverName(title)
			var s quartermaster.ServerStatus
			w.TB = t
			w.await(title+" says: "+tt.want, func() bool {
				s = w.Status("p", name)
				return strings.Contains(s.Reason, tt.want)
			})
			color := "red"
			if tt.state == stateDegraded {
				color = "yellow"
			}
			if s.Health != color {
				t.Errorf("is %+v", s)
			}
			if _, err := w.run(name, "a", "{}"); tt.state == stateFailed {
				wantCode(t, err, quartermaster.CodeUnavailable, tt.want)
			}
			if tt.state == stateFailed {
				if err := w.Available("p", tool(name, "a")); err == nil || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("is available: %v", err)
				}
			}
		})
	}
	w.TB = t
	if got := w.runText("model", "echo", `{}`); got != "{}" || w.Status("p", "model").Restarts != 0 {
		t.Errorf("the good one suffered: %s %+v", got, w.Status("p", "model"))
	}
}

// UP-1: servers with odd ways, and of every version of the protocol, work.
func TestOddButGood(t *testing.T) {
	w := open(t, quick)
	for title := range better {
		w.put(rogueServer(t, title))
	}
	for title, make := range better {
		t.Run(title, func(t *testing.T) {
			w.TB = t
			name := serverName(title)
			w.awaitTools(name, "a", "b", "c")
			if got := w.runText(name, "b", `{}`); got != "called" {
				t.Errorf("answers %q", got)
			}
			s := w.Status("p", name)
			if version := make().version; version != "" && s.Era != version || s.Health != "green" {
				t.Errorf("is %+v", s)
			}
		})
	}
	w.TB = t
	w.await("the last 200 lines are kept", func() bool { // UP-2
		lines := w.Stderr("p", serverName("floods stderr"))
		return len(lines) == 200 && strings.HasPrefix(lines[199], "line 4999 ")
	})
}

// listenRogue serves a rogue on a TCP port of this process.
func listenRogue(t testing.TB, make func() *rogue) quartermaster.Server {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var conns sync.WaitGroup
	ctx, cancel := context.WithCancel(context.Background())
	conns.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			conns.Go(func() {
				defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
				r := make()
				r.out, r.die = conn, func() { _ = conn.Close() }
				r.serve(conn)
				_ = conn.Close()
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		cancel()
		conns.Wait()
	})
	return remote("r", quartermaster.TransportTCP, "tcp://"+l.Addr().String())
}
