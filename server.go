package quartermaster

import (
	"encoding/json"
	"fmt"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// Server is an upstream MCP server that offers tools.
type Server struct {
	Name          string            `json:"name,omitempty" doc:"1 to 40 of A-Z a-z 0-9 _ -, a letter or digit at both ends, no __" example:"files"`
	Transport     Transport         `json:"transport" enum:"stdio,process,http,sse,ws,tcp" doc:"process is another word for stdio"`
	Command       string            `json:"command,omitempty" doc:"stdio: the program to run"`
	Args          []string          `json:"args,omitempty"`
	Env           map[string]string `json:"env,omitempty" doc:"stdio: its environment beside PATH and HOME; ${NAME} is a secret of the project"`
	Cwd           string            `json:"cwd,omitempty"`
	URL           string            `json:"url,omitempty" doc:"http, sse, ws: an URL; tcp: tcp://host:port"`
	Headers       map[string]string `json:"headers,omitempty" doc:"http, sse, ws: sent with every request; ${NAME} is a secret of the project"`
	Enabled       bool              `json:"enabled" required:"false" doc:"Absent: true"`
	Scope         Scope             `json:"scope,omitempty" enum:"project,agent" doc:"One connection for all (project, the default) or one per agent"`
	Prefix        bool              `json:"prefix" required:"false" doc:"Whether its tools are called SERVER__TOOL. Absent: true"`
	Lazy          bool              `json:"lazy,omitempty" doc:"Start on first use"`
	Pin           bool              `json:"pin,omitempty" doc:"Hold changed and new tools back until accepted"`
	Quarantine    bool              `json:"quarantine,omitempty" doc:"Hold every tool back until accepted"`
	Timeouts      Timeouts          `json:"timeouts,omitzero"`
	HealthCheck   *HealthCheck      `json:"healthCheck,omitempty"`
	MaxConcurrent int               `json:"maxConcurrent,omitempty" minimum:"0" maximum:"100000" doc:"Calls at a time; 0: no limit of its own"`
	Groups        []string          `json:"groups,omitzero" doc:"Groups of its tools that name none"`
	CreatedAt     time.Time         `json:"createdAt" readOnly:"true"`
	UpdatedAt     time.Time         `json:"updatedAt" readOnly:"true"`
	DiscoveredAt  time.Time         `json:"discoveredAt,omitzero" readOnly:"true" doc:"When its tools were first discovered"`
	Status        *ServerStatus     `json:"status,omitempty" readOnly:"true"`
	Warnings      []string          `json:"warnings,omitempty" readOnly:"true" doc:"References to secrets that are not set"`
}

// Transport is how an upstream server is spoken to.
type Transport string

// The transports of UP-1.
const (
	TransportStdio Transport = "stdio"
	TransportHTTP  Transport = "http"
	TransportSSE   Transport = "sse"
	TransportWS    Transport = "ws"
	TransportTCP   Transport = "tcp"

	transportProcess Transport = "process" // read as stdio
)

// schemes are the URL schemes of each transport that has a URL.
var schemes = map[Transport][]string{
	TransportHTTP: {"http", "https"},
	TransportSSE:  {"http", "https"},
	TransportWS:   {"ws", "wss"},
	TransportTCP:  {"tcp"},
}

// Scope says who shares a connection.
type Scope string

// The scopes of UP-4.
const (
	ScopeProject Scope = "project"
	ScopeAgent   Scope = "agent"
)

// Timeouts bound an upstream server.
type Timeouts struct {
	Startup Duration `json:"startup,omitzero" pattern:"^([0-9]+([.][0-9]+)?(ns|us|µs|ms|s|m|h))+$" patternDescription:"a duration such as 10s" doc:"Absent: 10s"`
	Request Duration `json:"request,omitzero" pattern:"^([0-9]+([.][0-9]+)?(ns|us|µs|ms|s|m|h))+$" patternDescription:"a duration such as 60s" doc:"Absent: 60s"`
}

// HealthCheck says how and how often a server is asked how it is.
type HealthCheck struct {
	Kind     HealthKind `json:"kind" enum:"ping,http,command"`
	Interval Duration   `json:"interval,omitzero" pattern:"^([0-9]+([.][0-9]+)?(ns|us|µs|ms|s|m|h))+$" patternDescription:"a duration such as 30s" doc:"At least 1s. Absent: 30s"`
	Path     string     `json:"path,omitempty" doc:"http: the path to get"`
	Command  []string   `json:"command,omitempty" doc:"command: program and arguments; exit 0 is healthy"`
}

// HealthKind is a way to ask a server how it is.
type HealthKind string

// The kinds of health checks (UP-5).
const (
	HealthPing    HealthKind = "ping"
	HealthHTTP    HealthKind = "http"
	HealthCommand HealthKind = "command"
)

// ServerStatus is how an upstream server is doing (UP-0).
type ServerStatus struct {
	Health    string    `json:"health" enum:"green,yellow,red"`
	State     string    `json:"state" enum:"starting,ready,degraded,failed,resting,stopped"`
	Reason    string    `json:"reason,omitempty"`
	Since     time.Time `json:"since"`
	Era       string    `json:"era,omitempty" doc:"MCP protocol version spoken"`
	Tools     int       `json:"tools"`
	Restarts  int       `json:"restarts"`
	PID       int       `json:"pid,omitempty"`
	LastError string    `json:"lastError,omitempty" doc:"Why it was last not reachable"`
	Calls     int64     `json:"calls" doc:"Since its settings were last changed"`
	P50       float64   `json:"p50Ms,omitempty" doc:"Milliseconds: median of the last calls"`
	P99       float64   `json:"p99Ms,omitempty" doc:"Milliseconds: 99th percentile of the last calls"`
}

// UnmarshalJSON reads a server in which absent `enabled` and `prefix` mean true.
func (s *Server) UnmarshalJSON(data []byte) error {
	type plain Server
	p := plain{Enabled: true, Prefix: true}
	if err := json.Unmarshal(data, &p); err != nil {
		return err
	}
	*s = Server(p)
	return nil
}

// ValidServerName reports whether name fits the grammar of CAT-2.
func ValidServerName(name string) bool {
	return within(name, 40, func(c byte) bool { return isAlphanum(c) || c == '_' || c == '-' }) &&
		isAlphanum(name[0]) && isAlphanum(name[len(name)-1]) && !strings.Contains(name, "__")
}

func (s *Server) normalize() {
	if s.Transport == transportProcess {
		s.Transport = TransportStdio
	}
	if s.Scope == "" {
		s.Scope = ScopeProject
	}
	s.Status, s.Warnings = nil, nil
	s.Args, s.Env, s.Headers = absent(s.Args), absentMap(s.Env), absentMap(s.Headers)
	if s.HealthCheck != nil {
		check := *s.HealthCheck
		check.Command = absent(check.Command)
		s.HealthCheck = &check
	}
}

// fold drops repetitions: after faults, which tell the place in what was given.
func (s *Server) fold() { s.Groups = fold(s.Groups) }

func (s *Server) faults() faults {
	var f faults
	if !ValidServerName(s.Name) {
		f.add("name", "must be 1 to 40 of A-Z a-z 0-9 _ -, with a letter or digit at both ends and without __")
	}
	checkNames(&f, "groups", s.Groups)
	s.reachFaults(&f)
	s.secretFaults(&f)
	if s.Scope != ScopeProject && s.Scope != ScopeAgent {
		f.add("scope", "must be project or agent")
	}
	checkDuration(&f, "timeouts.startup", s.Timeouts.Startup)
	checkDuration(&f, "timeouts.request", s.Timeouts.Request)
	if s.MaxConcurrent < 0 {
		f.add("maxConcurrent", "must not be negative")
	}
	if s.HealthCheck != nil {
		s.HealthCheck.faults(&f)
	}
	return f
}

// reachFaults checks what the transport needs and what it cannot use.
func (s *Server) reachFaults(f *faults) {
	if s.Transport == TransportStdio {
		if s.Command == "" {
			f.add("command", "a stdio server needs the program to run")
		}
		if s.URL != "" {
			f.add("url", "a stdio server has no url")
		}
		if len(s.Headers) > 0 {
			f.add("headers", "a stdio server has no headers; give it env")
		}
		s.checkStrings(f)
		return
	}
	allowed, ok := schemes[s.Transport]
	if !ok {
		f.add("transport", "must be one of stdio, process, http, sse, ws, tcp")
		return
	}
	if u, err := url.Parse(s.URL); err != nil || u.Host == "" || !slices.Contains(allowed, u.Scheme) {
		f.add("url", "must be a URL that starts with %s://", strings.Join(allowed, ":// or "))
	} else if u.User != nil {
		f.add("url", "must not hold a user or password; use headers with a ${SECRET}")
	}
	if s.Command != "" || len(s.Args) > 0 || len(s.Env) > 0 || s.Cwd != "" {
		f.add("command", "only a stdio server has a command, args, env or cwd")
	}
	if s.Transport == TransportTCP && len(s.Headers) > 0 {
		f.add("headers", "a tcp server has no headers")
	}
	s.checkStrings(f)
}

const maxText = 32_768 // of a command, an argument, a header: what systems take

func (s *Server) checkStrings(f *faults) {
	checkText(f, "command", s.Command, maxText)
	checkText(f, "cwd", s.Cwd, maxText)
	checkText(f, "url", s.URL, maxText)
	for i, a := range s.Args {
		checkText(f, fmt.Sprintf("args[%d]", i), a, maxText)
	}
	for k, v := range s.Env {
		if k == "" || strings.ContainsAny(k, "=\x00") || !utf8.ValidString(k) {
			f.add("env", "a variable's name must be valid UTF-8, not empty and without = or NUL")
		}
		checkText(f, "env."+k, v, maxText)
	}
	for k, v := range s.Headers {
		if !within(k, 255, isHeaderByte) {
			f.add("headers", "%q is not the name of a header", k)
		}
		checkText(f, "headers."+k, v, maxText)
		if strings.ContainsAny(v, "\r\n") {
			f.add("headers."+k, "must not contain a line break")
		}
	}
}

func isHeaderByte(c byte) bool { return isAlphanum(c) || strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0 }

func (h *HealthCheck) faults(f *faults) {
	switch h.Kind {
	case HealthPing:
	case HealthHTTP:
		if h.Path != "" && !strings.HasPrefix(h.Path, "/") {
			f.add("healthCheck.path", "must start with /")
		}
	case HealthCommand:
		if len(h.Command) == 0 {
			f.add("healthCheck.command", "must name the program to run")
		}
	default:
		f.add("healthCheck.kind", "must be one of ping, http, command")
	}
	checkText(f, "healthCheck.path", h.Path, maxText)
	for i, a := range h.Command {
		checkText(f, fmt.Sprintf("healthCheck.command[%d]", i), a, maxText)
	}
	if h.Interval != 0 && h.Interval < Duration(time.Second) {
		f.add("healthCheck.interval", "must be at least 1s")
	} else {
		checkDuration(f, "healthCheck.interval", h.Interval)
	}
}

func (s *Server) same(o *Server) bool {
	a, b := *s, *o
	a.CreatedAt, a.UpdatedAt = b.CreatedAt, b.UpdatedAt
	return reflect.DeepEqual(a, b)
}
