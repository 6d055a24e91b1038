package provider

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"quartermaster"
)

func row(t *testing.T, name string) *quartermaster.Tool {
	t.Helper()
	for _, b := range quartermaster.Builtins() {
		if b.Name == name {
			return &b
		}
	}
	t.Fatalf("no project has %s", name)
	return nil
}

// NAT-0: echo answers its arguments.
func TestEcho(t *testing.T) {
	for _, arguments := range []string{`{"a":[1,"<b>",null],"z":{"y":1e400}}`, `{}`} {
		r, err := Native{}.Call(t.Context(), quartermaster.Caller{}, row(t, "echo"), json.RawMessage(arguments))
		if err != nil || r.IsError {
			t.Fatal(r, err)
		}
		if string(r.StructuredContent) != arguments {
			t.Errorf("answered %s to %s", r.StructuredContent, arguments)
		}
		var content struct{ Type, Text string }
		if err := json.Unmarshal(r.Content[0], &content); err != nil || content.Type != "text" || content.Text != arguments {
			t.Errorf("content %s, %v", r.Content[0], err)
		}
	}
	if r, err := (Native{}).Call(t.Context(), quartermaster.Caller{}, row(t, "echo"), nil); err != nil || string(r.StructuredContent) != `{}` {
		t.Error(r, err)
	}
}

// NAT-0: time_now tells the time, in a zone that exists.
func TestTimeNow(t *testing.T) {
	before := time.Now()
	r, err := Native{}.Call(t.Context(), quartermaster.Caller{}, row(t, "time_now"), json.RawMessage(`{"zone":"Asia/Tokyo"}`))
	if err != nil || r.IsError {
		t.Fatal(r, err)
	}
	var answer struct {
		Time time.Time `json:"time"`
		Zone string    `json:"zone"`
	}
	if err := json.Unmarshal(r.StructuredContent, &answer); err != nil {
		t.Fatal(err)
	}
	_, offset := answer.Time.Zone()
	if answer.Time.Before(before.Add(-time.Second)) || answer.Time.After(time.Now()) || offset != 9*3600 || answer.Zone != "Asia/Tokyo" {
		t.Errorf("answered %s", r.StructuredContent)
	}
	r, err = Native{}.Call(t.Context(), quartermaster.Caller{}, row(t, "time_now"), json.RawMessage(`{"zone":"../../etc/passwd"}`))
	if err != nil || !r.IsError || !strings.Contains(string(r.Content[0]), "no time zone") {
		t.Error(r, err)
	}
}

// NAT-0: a row says which built-in it is; several rows may use one.
func TestBuiltinByConfig(t *testing.T) {
	mine := &quartermaster.Tool{Name: "mine", Config: json.RawMessage(`{"builtin":"echo"}`)}
	if err := (Native{}).Available("default", mine); err != nil {
		t.Error(err)
	}
	for config, reason := range map[string]string{
		``:                       "names no built-in",
		`{}`:                     "names no built-in",
		`{"builtin":"teleport"}`: `no built-in "teleport"`,
	} {
		tool := &quartermaster.Tool{Name: "x", Config: json.RawMessage(config)}
		if err := (Native{}).Available("default", tool); err == nil || !strings.Contains(err.Error(), reason) {
			t.Errorf("config %s: %v", config, err)
		}
		_, err := Native{}.Call(t.Context(), quartermaster.Caller{}, tool, nil)
		if quartermaster.CodeOf(err) != quartermaster.CodeUnsupportedProvider {
			t.Errorf("config %s: called: %v", config, err)
		}
	}
	// GATE-3: coordination tools are rows of every project, and cannot run yet.
	_, err := Native{}.Call(t.Context(), quartermaster.Caller{}, row(t, quartermaster.ToolSpawnAgents), nil)
	if quartermaster.CodeOf(err) != quartermaster.CodeUnsupportedProvider {
		t.Error(err)
	}
}
