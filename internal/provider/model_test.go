package provider

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"quartermaster"
)

// A model server does what it should, on the SDK's own server: the tools are
// for tests to see what reaches it.

func init() {
	modes["listen"] = listen
	modes["model"] = func([]string) int {
		if err := newModel().Run(context.Background(), &mcp.StdioTransport{}); err != nil {
			return 1
		}
		return 0
	}
}

const anyObject = `{"type":"object"}`

type modelHandler func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error)

func newModel() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "model", Version: "1"}, nil)
	var canceled atomic.Int64
	add := func(name string, h modelHandler) {
		s.AddTool(&mcp.Tool{Name: name, InputSchema: json.RawMessage(anyObject)}, mcp.ToolHandler(h))
	}
	say := func(text string) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil
	}
	add("echo", func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return say(string(r.Params.Arguments))
	})
	add("env", func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return say(strings.Join(os.Environ(), "\n"))
	})
	// hang says once that it has begun, and waits to be canceled.
	add("hang", func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		_ = r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{
			ProgressToken: r.Params.GetProgressToken(), Progress: 1, Total: 2, Message: "halfway",
		})
		<-ctx.Done()
		canceled.Add(1)
		return nil, ctx.Err()
	})
	add("canceled", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return say(jsonOf(canceled.Load()))
	})
	add("sleep", func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		var in struct{ Ms int }
		_ = json.Unmarshal(r.Params.Arguments, &in)
		time.Sleep(time.Duration(in.Ms) * time.Millisecond)
		return say("slept")
	})
	add("die", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		os.Stderr.WriteString("I was told to\n")
		os.Exit(7)
		return nil, nil
	})
	add("learn", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		add("learned", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) { return say("yes") })
		return say("ok")
	})
	return s
}

var modelTools = []string{"canceled", "die", "echo", "env", "hang", "learn", "sleep"}

func jsonOf(v any) string {
	b, _ := json.Marshal(v)
	return string(b)
}

// listen serves models over the network, each way in which one can be reached,
// until its input ends. Its first line says where.
func listen(args []string) int {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 1
	}
	fmt.Println(l.Addr())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		endBridged()
		os.Exit(0)
	}()
	model := newModel()
	one := func(*http.Request) *mcp.Server { return model }
	var h http.Handler
	switch args[0] {
	case "http-2026-07-28":
		h = mcp.NewStreamableHTTPHandler(one, &mcp.StreamableHTTPOptions{Stateless: true, PropagateRequestCancellation: true})
	case "http-2025-11-25":
		h = mcp.NewStreamableHTTPHandler(one, &mcp.StreamableHTTPOptions{})
	case "http-json":
		h = mcp.NewStreamableHTTPHandler(one, &mcp.StreamableHTTPOptions{JSONResponse: true})
	case "sse":
		h = mcp.NewSSEHandler(one, nil)
	case "ws", "ws-without-subprotocol":
		h = bridgeWebSocket(args[0] == "ws", args[1:])
	case "tcp":
		return bridgeTCP(l, args[1:])
	}
	_ = http.Serve(l, h)
	return 1
}

// bridged are the programs that run behind bridges.
var bridged struct {
	sync.Mutex
	running map[*exec.Cmd]bool
	over    bool
}

// runBridged runs one of them with what comes from in, and waits for it.
func runBridged(argv []string, in io.Reader, out io.Writer) {
	c := exec.Command(argv[0], argv[1:]...)
	c.Stdout, c.Stderr = out, os.Stderr
	stdin, err := c.StdinPipe()
	bridged.Lock()
	if err != nil || bridged.over || c.Start() != nil {
		bridged.Unlock()
		return
	}
	if bridged.running == nil {
		bridged.running = map[*exec.Cmd]bool{}
	}
	bridged.running[c] = true
	bridged.Unlock()
	go func() {
		_, _ = io.Copy(stdin, in)
		_ = stdin.Close()
	}()
	_ = c.Wait()
	bridged.Lock()
	delete(bridged.running, c)
	bridged.Unlock()
}

// endBridged leaves no orphan.
func endBridged() {
	bridged.Lock()
	bridged.over = true
	for c := range bridged.running {
		_ = c.Process.Kill()
	}
	bridged.Unlock()
	for left := true; left; time.Sleep(time.Millisecond) {
		bridged.Lock()
		left = len(bridged.running) > 0
		bridged.Unlock()
	}
}

// bridgeTCP joins every connection with the input and output of a program, as
// socat does.
func bridgeTCP(l net.Listener, argv []string) int {
	for {
		conn, err := l.Accept()
		if err != nil {
			return 1
		}
		go func() {
			defer conn.Close()
			runBridged(argv, conn, conn)
		}()
	}
}

// bridgeWebSocket does the same, message by line, as websocketd does.
func bridgeWebSocket(echo bool, argv []string) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		var options websocket.AcceptOptions
		if echo {
			options.Subprotocols = []string{"mcp"}
		}
		conn, err := websocket.Accept(rw, r, &options)
		if err != nil {
			return
		}
		defer func() { _ = conn.CloseNow() }()
		in, toProgram := io.Pipe()
		fromProgram, out := io.Pipe()
		go func() {
			for {
				_, message, err := conn.Read(r.Context())
				if err != nil {
					_ = toProgram.Close()
					return
				}
				_, _ = toProgram.Write(append(message, '\n'))
			}
		}()
		go func() {
			for lines := bufio.NewReader(fromProgram); ; {
				line, err := lines.ReadBytes('\n')
				if err != nil {
					return
				}
				_ = conn.Write(r.Context(), websocket.MessageText, bytes.TrimSpace(line))
			}
		}()
		runBridged(argv, in, out)
	})
}

// network starts listen in a process of its own and returns where it is.
func network(t testing.TB, args ...string) string {
	t.Helper()
	addr, _ := program(t, append([]string{os.Args[0], runMode, "listen"}, args...)...)
	return addr
}

// program starts a program that ends with its input, and returns the first line
// that it writes. kill ends it at once.
func program(t testing.TB, argv ...string) (firstLine string, kill func()) {
	t.Helper()
	c := exec.Command(argv[0], argv[1:]...)
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	end := sync.OnceFunc(func() {
		_ = in.Close()
		_ = c.Wait()
	})
	kill = func() {
		_ = c.Process.Kill()
		end()
	}
	t.Cleanup(end)
	firstLine, err = bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal("wrote no line: ", err)
	}
	return strings.TrimSpace(firstLine), kill
}

func remote(name string, transport quartermaster.Transport, url string) quartermaster.Server {
	return quartermaster.Server{Name: name, Transport: transport, URL: url}
}
