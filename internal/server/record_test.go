package server

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// lines are those of a JSON log with this message.
func (l *lockedBuffer) lines(t *testing.T, message string) []map[string]any {
	t.Helper()
	var found []map[string]any
	for text := range strings.Lines(l.String()) {
		var line map[string]any
		if err := json.Unmarshal([]byte(text), &line); err != nil {
			t.Fatalf("%v in %s", err, text)
		}
		if line["msg"] == message {
			found = append(found, line)
		}
	}
	return found
}

// OBS-3: seed 003's record of a request, on its own example.
func TestRequestRecord(t *testing.T) {
	log := &lockedBuffer{}
	r := newLoggedRest(t, "", slog.New(slog.NewJSONHandler(log, nil)))
	r.do("POST", "apply", `{"quartermaster":"v1",
		"tools":{
			"knowledge-query":{"config":{"builtin":"echo"},"groups":["read-only","knowledge","basic"],"state":"analysis"},
			"text-completion":{"config":{"builtin":"echo"},"groups":["read-only","text","basic"],"availableInStates":["undefined"]},
			"graph-update":{"config":{"builtin":"echo"},"groups":["write","knowledge-edit"],"availableInStates":["analysis"]},
			"admin-tool":{"config":{"builtin":"echo"},"groups":["admin"]},
			"complex-analysis":{"config":{"builtin":"echo"},"groups":["knowledge"],"availableInStates":["analysis"]},
			"out-of-reach":{"config":{"builtin":"echo"},"groups":["admin"]},
			"off":{"config":{"builtin":"echo"},"groups":["admin"],"enabled":false}},
		"agents":{"reader":{"tools":["*-query","*-completion","*-update","admin-*","complex-*","off"]}},
		"users":{"none":{"groups":[]}}}`).ok(200, nil)

	ask := func(body string) (record map[string]any) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, r.url+"/api/v1/projects/default/resolve", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Quartermaster-Request-Id", "forged")
		a := r.send(req)
		a.ok(200, nil)
		records := log.lines(t, "tools resolved")
		record = records[len(records)-1]
		// The line of the request is written after the answer was sent.
		id := a.header.Get("Quartermaster-Request-Id")
		if id == "" || id == "forged" || record["request_id"] != id {
			t.Errorf("request_id %v, the answer says %q", record["request_id"], id)
		}
		for until := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
			if slices.ContainsFunc(log.lines(t, "request"), func(line map[string]any) bool { return line["request_id"] == id }) {
				return record
			}
			if time.Now().After(until) {
				t.Fatalf("no line of the request %s", id)
			}
		}
	}
	for _, c := range []struct {
		body string
		want map[string]string
	}{
		{`{"agent":"reader","groups":["read-only","knowledge"]}`, map[string]string{
			"agent": "reader", "user": "local", "project": "default",
			"requested_groups": "[read-only knowledge]", "initial_state": "undefined",
			"available": "2", "available_tools": "[knowledge-query text-completion]",
			"filtered_by_group": "[admin-tool graph-update]", "filtered_by_group_count": "2",
			"filtered_by_state": "[complex-analysis]", "filtered_by_state_count": "1",
			"filtered_by_permission": "[]", "filtered_by_permission_count": "0", "filtered_by_policy": "[]", "filtered_by_policy_count": "0",
		}},
		{`{"agent":"reader","groups":["*"],"state":"analysis"}`, map[string]string{
			"requested_groups": "[*]", "initial_state": "analysis",
			"filtered_by_group": "[]", "filtered_by_group_count": "0",
			"filtered_by_state": "[text-completion]", "filtered_by_state_count": "1",
		}},
		{`{"agent":"reader"}`, map[string]string{"requested_groups": "[default]", "filtered_by_group_count": "5"}},
		{`{"agent":"reader","groups":[]}`, map[string]string{"requested_groups": "[]", "filtered_by_group_count": "5"}},
		// What was asked is one thing, what it came to another.
		{`{"agent":"reader","user":"none"}`, map[string]string{"user": "none", "requested_groups": "[default]", "available": "0"}},
		{`{"agent":"nobody"}`, map[string]string{"available_tools": "[]", "filtered_by_group": "[]", "filtered_by_state": "[]", "filtered_by_group_count": "0"}},
	} {
		record := ask(c.body)
		for field, want := range c.want {
			if got := fmt.Sprint(record[field]); got != want {
				t.Errorf("%s: %s is %s, want %s", c.body, field, got, want)
			}
		}
		if took := fmt.Sprint(record["execution_time"]); !regexp.MustCompile(`^[0-9.]+(µs|ms|s)$`).MatchString(took) {
			t.Errorf("execution_time is %s", took)
		}
	}
}

// OBS-3: a line names a few and counts all.
func TestRequestRecordIsShort(t *testing.T) {
	log := &lockedBuffer{}
	r := newLoggedRest(t, "", slog.New(slog.NewJSONHandler(log, nil)))
	tools := map[string]any{}
	for i := range 60 {
		for kind, tool := range map[string]map[string]any{"a": {}, "g": {"groups": []string{"other"}}, "s": {"availableInStates": []string{"later"}}} {
			tool["config"] = map[string]any{"builtin": "echo"}
			tools[fmt.Sprintf("%s%02d", kind, i)] = tool
		}
	}
	r.do("POST", "apply", map[string]any{"quartermaster": "v1", "tools": tools, "agents": map[string]any{"x": map[string]any{"tools": []string{"[ags][0-9]*"}}}}).ok(200, nil)
	r.do("POST", "resolve", `{"agent":"x"}`).ok(200, nil)
	record := log.lines(t, "tools resolved")[0]
	for _, field := range []string{"available_tools", "filtered_by_group", "filtered_by_state"} {
		if names, _ := record[field].([]any); len(names) != 50 {
			t.Errorf("%s has %d names", field, len(names))
		}
	}
	if record["available"] != 60.0 || record["filtered_by_group_count"] != 60.0 || record["filtered_by_state_count"] != 60.0 {
		t.Errorf("%v", record)
	}
}

// CLI-1: a server that still applies its files is alive, but not ready.
func TestNotReadyBeforeSetReady(t *testing.T) {
	s, r := newServer(t, "", nil)
	r.do("GET", "/healthz", nil).ok(200, nil)
	var got map[string]string
	r.do("GET", "/readyz", nil).ok(503, &got)
	if len(got) != 1 || got["status"] != "starting" {
		t.Errorf("%v", got)
	}
	s.SetReady()
	r.do("GET", "/readyz", nil).ok(200, &got)
	if got["status"] != "ok" {
		t.Errorf("%v", got)
	}
}
