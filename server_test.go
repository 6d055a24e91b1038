package quartermaster

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// CAT-2
func TestValidServerName(t *testing.T) {
	for name, want := range map[string]bool{
		"a": true, "9": true, "files": true, "my-files_2": true, "a-_b": true, "a--b": true,
		strings.Repeat("x", 40): true, strings.Repeat("x", 41): false,
		"": false, "-a": false, "a-": false, "_a": false, "a_": false, "_": false, "a__b": false, "a.b": false, "a b": false, "a/b": false, "ä": false, "a\x00": false,
	} {
		if got := ValidServerName(name); got != want {
			t.Errorf("%q: %t, want %t", name, got, want)
		}
	}
}

// UP-0
func TestServerFaults(t *testing.T) {
	stdio := func(s *Server) { *s = Server{Name: "s", Transport: TransportStdio, Command: "x"} }
	remote := func(transport Transport, url string) func(*Server) {
		return func(s *Server) { *s = Server{Name: "s", Transport: transport, URL: url} }
	}
	and := func(edits ...func(*Server)) func(*Server) {
		return func(s *Server) {
			for _, edit := range edits {
				edit(s)
			}
		}
	}
	for name, tt := range map[string]struct {
		edit func(*Server)
		want []string
	}{
		"stdio":                {stdio, nil},
		"process":              {and(stdio, func(s *Server) { s.Transport = "process" }), nil},
		"http":                 {remote(TransportHTTP, "https://example.com/mcp?x=1"), nil},
		"sse":                  {remote(TransportSSE, "http://127.0.0.1:8080"), nil},
		"ws":                   {remote(TransportWS, "wss://example.com"), nil},
		"tcp":                  {remote(TransportTCP, "tcp://example.com:7000"), nil},
		"no transport":         {func(s *Server) { *s = Server{Name: "s"} }, []string{"transport"}},
		"no command":           {and(stdio, func(s *Server) { s.Command = "" }), []string{"command"}},
		"stdio with url":       {and(stdio, func(s *Server) { s.URL = "http://x" }), []string{"url"}},
		"stdio with headers":   {and(stdio, func(s *Server) { s.Headers = map[string]string{"A": "b"} }), []string{"headers"}},
		"no url":               {remote(TransportHTTP, ""), []string{"url"}},
		"wrong scheme":         {remote(TransportHTTP, "ws://x"), []string{"url"}},
		"file":                 {remote(TransportHTTP, "file:///etc/passwd"), []string{"url"}},
		"no host":              {remote(TransportHTTP, "http:///x"), []string{"url"}},
		"password in the url":  {remote(TransportHTTP, "http://u:p@x"), []string{"url"}},
		"url is no UTF-8":      {remote(TransportHTTP, "http://x/\xff"), []string{"url"}},
		"http with command":    {and(remote(TransportHTTP, "http://x"), func(s *Server) { s.Env = map[string]string{"A": "b"} }), []string{"command"}},
		"tcp with headers":     {and(remote(TransportTCP, "tcp://x:1"), func(s *Server) { s.Headers = map[string]string{"A": "b"} }), []string{"headers"}},
		"header injection":     {and(remote(TransportHTTP, "http://x"), func(s *Server) { s.Headers = map[string]string{"A": "b\r\nC: d"} }), []string{"headers.A"}},
		"name of a header":     {and(remote(TransportHTTP, "http://x"), func(s *Server) { s.Headers = map[string]string{"A b": "c"} }), []string{"headers"}},
		"name of a variable":   {and(stdio, func(s *Server) { s.Env = map[string]string{"A=": "c"} }), []string{"env"}},
		"variable is no UTF-8": {and(stdio, func(s *Server) { s.Env = map[string]string{"\xff": "c"} }), []string{"env"}},
		"NUL in an argument":   {and(stdio, func(s *Server) { s.Args = []string{"a", "\x00"} }), []string{"args[1]"}},
		"negative":             {and(stdio, func(s *Server) { s.Timeouts, s.MaxConcurrent = Timeouts{-1, -1}, -1 }), []string{"maxConcurrent", "timeouts.request", "timeouts.startup"}},
		"too long": {and(stdio, func(s *Server) {
			const long = Duration(8785 * time.Hour)
			s.Timeouts, s.HealthCheck = Timeouts{long, long}, &HealthCheck{Kind: HealthPing, Interval: long}
		}), []string{"healthCheck.interval", "timeouts.request", "timeouts.startup"}},
		"after repeated":     {and(stdio, func(s *Server) { s.Groups = []string{"a", "a", ""} }), []string{"groups[2]"}},
		"scope":              {and(stdio, func(s *Server) { s.Scope = "world" }), []string{"scope"}},
		"health":             {and(stdio, func(s *Server) { s.HealthCheck = &HealthCheck{Kind: "x", Interval: 1} }), []string{"healthCheck.interval", "healthCheck.kind"}},
		"health path":        {and(stdio, func(s *Server) { s.HealthCheck = &HealthCheck{Kind: HealthHTTP, Path: "x"} }), []string{"healthCheck.path"}},
		"health command":     {and(stdio, func(s *Server) { s.HealthCheck = &HealthCheck{Kind: HealthCommand} }), []string{"healthCheck.command"}},
		"health is no UTF-8": {and(stdio, func(s *Server) { s.HealthCheck = &HealthCheck{Kind: HealthCommand, Command: []string{"\xff"}} }), []string{"healthCheck.command[0]"}},
	} {
		t.Run(name, func(t *testing.T) {
			var s Server
			tt.edit(&s)
			s.normalize()
			var got []string
			for _, f := range s.faults() {
				got = append(got, f.Location)
			}
			slices.Sort(got)
			if !reflect.DeepEqual(got, tt.want) {
				t.Errorf("faults of %q, want %q", got, tt.want)
			}
		})
	}
}

// UP-0
func TestServerJSON(t *testing.T) {
	var s Server
	if err := json.Unmarshal([]byte(`{"name":"s","transport":"stdio"}`), &s); err != nil || !s.Enabled || !s.Prefix || s.Groups != nil {
		t.Errorf("absent: %+v (%v)", s, err)
	}
	if err := json.Unmarshal([]byte(`{"name":"s","enabled":false,"prefix":false,"groups":[]}`), &s); err != nil || s.Enabled || s.Prefix || s.Groups == nil {
		t.Errorf("given: %+v (%v)", s, err)
	}
}
