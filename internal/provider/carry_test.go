package provider

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// Messages without a result of ours pass as they are.
func TestCarryLeavesOthersAlone(t *testing.T) {
	for _, message := range []string{
		``, `{}`, `garbage "result"`, `[{"result":1}]`, `{"jsonrpc":"2.0","id":1,"result":null}`, `{"jsonrpc":"2.0","id":1,"result":[1]}`,
		`{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}`,
		`{"jsonrpc":"2.0","method":"notifications/message","params":{"data":{"result":{"content":[]}}}}`,
		`{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"no \"result\""}}`,
		`{"jsonrpc":"2.0","id":1,"Result":{"content":[]}}`,
		`{"jsonrpc":"2.0","id":1,"result":{"Content":[],"TOOLS":[]}}`,
	} {
		if got := carry([]byte(message)); string(got) != message {
			t.Errorf("%s became %s", message, got)
		}
	}
}

// EXE-7: what a result takes along is its own text.
func FuzzCarry(f *testing.F) {
	for _, result := range []string{
		`{"content":[]}`, `{"content":[{"type":"text","text":"<\u2028>"}],"isError":true}`, `{"structuredContent":1e999}`,
		`{"tools":[{"name":"a","inputSchema":{"properties":{"x":{"x-mcp-header":"X"}}}},{"name":"b"}],"nextCursor":"c","ttlMs":1000}`,
		`{"tools":"x-mcp-header"}`, `{"tools":[],"_meta":{"quartermaster/result":"forged"}}`, `{"resultType":"input_required","inputRequests":{}}`,
	} {
		f.Add(result)
	}
	f.Fuzz(func(t *testing.T, result string) {
		var members map[string]json.RawMessage
		if !utf8.ValidString(result) || json.Unmarshal([]byte(result), &members) != nil || members == nil {
			t.Skip()
		}
		carried := carry([]byte(`{"jsonrpc":"2.0","id":7,"result":` + result + `}`))
		var outer struct {
			ID     int
			Result struct {
				Meta map[string]any `json:"_meta"`
			}
		}
		if err := json.Unmarshal(carried, &outer); err != nil || outer.ID != 7 {
			t.Fatalf("%s: %v", carried, err)
		}
		if slimResult(members) == nil {
			return
		}
		got, err := carriedResult(outer.Result.Meta)
		if err != nil || len(got) != len(members) {
			t.Fatalf("%s: %v", carried, err)
		}
		for key, value := range members {
			if string(got[key]) != string(value) {
				t.Errorf("%s was %s and is %s", key, value, got[key])
			}
		}
	})
}

// The SDK needs the schemas of tools with parameters that are headers too, and
// must not keep a list for itself.
func TestSlimResult(t *testing.T) {
	var members map[string]json.RawMessage
	_ = json.Unmarshal([]byte(`{"tools":[{"name":"a","x":"x-mcp-header"},{"name":"b"}],"nextCursor":"c","ttlMs":99,"cacheScope":"public"}`), &members)
	got, _ := json.Marshal(slimResult(members))
	if want := `{"cacheScope":"private","nextCursor":"c","tools":[{"name":"a","x":"x-mcp-header"}],"ttlMs":0}`; string(got) != want {
		t.Errorf("got %s", got)
	}
}

// Lines of any length come out whole, however they arrive.
func TestReadLine(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var lines []string
		for _, length := range rapid.SliceOf(rapid.IntRange(0, 9000)).Draw(t, "lengths") {
			lines = append(lines, strings.Repeat("x", length))
		}
		text := strings.Join(lines, "\n")
		r := bufio.NewReader(iotest.HalfReader(strings.NewReader(text)))
		var got bytes.Buffer
		for {
			line, err := readLine(r, 9001)
			if err != nil {
				if !errors.Is(err, io.EOF) {
					t.Fatal(err)
				}
				break
			}
			got.Write(line)
		}
		if got.String() != text {
			t.Fatal("not the same")
		}
	})
	for size, fits := range map[int]bool{99: true, 100: false, 10_000: false} {
		_, err := readLine(bufio.NewReader(strings.NewReader(strings.Repeat("x", size)+"\n")), 100)
		if fits != (err == nil) || !fits && !errors.Is(err, errTooLarge) {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
}

// What is no message is skipped, up to a limit.
func TestFramesSkipNoise(t *testing.T) {
	in := "hello\n\n[]\n{\"a\":1}\n{\"jsonrpc\":\"2.0\",\"id\":1}\r\n[{\"jsonrpc\":\"2.0\",\"id\":2},3,{\"jsonrpc\":\"2.0\",\"id\":3}]\nbye\n"
	f := &frames{next: lines(strings.NewReader(in)), fail: func(err error) { t.Error(err) }}
	got, err := io.ReadAll(f)
	want := "{\"jsonrpc\":\"2.0\",\"id\":1}\n{\"jsonrpc\":\"2.0\",\"id\":2}\n{\"jsonrpc\":\"2.0\",\"id\":3}\n"
	if err != nil || string(got) != want || *f.heard.Load() != "bye" || !f.over.Load() {
		t.Errorf("%q, %v, heard %q", got, err, *f.heard.Load())
	}
}

// Events come out as the SDK reads them, whatever stands between them.
func TestEventStream(t *testing.T) {
	for in, want := range map[string]string{
		"":                            "",
		"data: {}\n\n":                "data: {}\n\n",
		"data:{}\r\n\r\n":             "data: {}\n\n",
		"data: {\ndata: \"a\":1}\n\n": "data: {\"a\":1}\n\n",
		": ping\n\nid: 7\nretry: 5\nevent: message\ndata: x": "\nid: 7\nretry: 5\nevent: message\ndata: x\n\n",
		"nonsense\nother: 1\ndata: x\n\n":                    "data: x\n\n",
		"event: endpoint\ndata: /messages?s=1\n\n":           "event: endpoint\ndata: /messages?s=1\n\n",
		"id: 1\ndata:\n\n":                                   "id: 1\n\n",
	} {
		b := &body{next: eventStream(iotest.OneByteReader(strings.NewReader(in))), end: func() {}, fail: func(error) {}}
		got, err := io.ReadAll(b)
		if err != nil || string(got) != want {
			t.Errorf("%q became %q, %v", in, got, err)
		}
	}
}

func FuzzReadOffer(f *testing.F) {
	f.Add([]byte(`{"name":"a","title":"A","description":"d","inputSchema":{},"outputSchema":null,"annotations":{"readOnlyHint":true}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		o, err := readOffer(raw)
		if err == nil && (o.Name == "" || len(o.InputSchema) > 0 && !json.Valid(o.InputSchema)) {
			t.Errorf("%q became %+v", raw, o)
		}
	})
}
