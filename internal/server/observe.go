package server

import (
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"quartermaster"
)

type metrics struct {
	registry *prometheus.Registry
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec

	groupDenied *prometheus.CounterVec
	escalations *prometheus.CounterVec
	unanswered  *prometheus.CounterVec
	deniedNames labels
}

func newMetrics(version string) *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "quartermaster_http_requests_total", Help: "HTTP requests by route and status.",
		}, []string{"method", "route", "status"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "quartermaster_http_request_duration_seconds", Help: "Duration of HTTP requests by route.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
		}, []string{"method", "route"}),
	}
	m.groupDenied = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "agent_group_access_denied_total", Help: "Groups that were requested without a grant.",
	}, []string{"group", "project"})
	m.escalations = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "agent_privilege_escalation_attempts_total", Help: "Requests for more than was granted.",
	}, []string{"reason", "project"})
	m.unanswered = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "quartermaster_gate_unavailable_total", Help: "Requests that failed because a gate could not answer.",
	}, []string{"project", "gate"})
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "quartermaster_build_info", Help: "Always 1; the label tells the version.", ConstLabels: prometheus.Labels{"version": version},
	})
	build.Set(1)
	m.registry.MustRegister(m.requests, m.duration, m.groupDenied, m.escalations, m.unanswered, build,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// groupsDenied counts a request for groups that were not granted (GATE-4). The
// groups are whatever the client wrote: beyond a few they count as "other".
func (m *metrics) groupsDenied(project string, groups []string) {
	for _, g := range groups {
		m.groupDenied.WithLabelValues(m.deniedNames.label(g), project).Inc()
	}
	m.escalations.WithLabelValues("groups_not_granted", project).Inc()
}

// labels bounds how many values a label can take (OBS-2).
type labels struct {
	mu    sync.Mutex
	known map[string]bool
}

const maxLabels = 200

func (l *labels) label(v string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.known[v] {
		return v
	}
	if len(l.known) >= maxLabels {
		return "other"
	}
	if l.known == nil {
		l.known = map[string]bool{}
	}
	l.known[v] = true
	return v
}

func (m *metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}

// requestIDHeader carries a request's id to the client and to what handles it.
const requestIDHeader = "Quartermaster-Request-Id"

// observe gives every request an id, a line in the log and a place in the
// metrics.
func (s *Server) observe(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		id := quartermaster.NewID()
		w.Header().Set(requestIDHeader, id)
		r.Header.Set(requestIDHeader, id) // in place of what a client may have written there
		answer := &recorder{ResponseWriter: w, status: http.StatusOK}
		next.ServeHTTP(answer, r)

		route := routeOf(r)
		method := methodOf(r)
		took := time.Since(began)
		s.metrics.requests.WithLabelValues(method, route, strconv.Itoa(answer.status)).Inc()
		s.metrics.duration.WithLabelValues(method, route).Observe(took.Seconds())
		level := slog.LevelInfo
		if route == "/healthz" || route == "/readyz" || route == "/metrics" {
			level = slog.LevelDebug
		}
		s.Log.Log(r.Context(), level, "request", "request_id", id, "method", r.Method, "path", r.URL.Path,
			"status", answer.status, "bytes", answer.bytes, "duration", took.Round(time.Microsecond))
	})
}

// routeOf is the pattern that matched, without the method: a label must not
// grow with what clients send.
func routeOf(r *http.Request) string {
	_, route, ok := strings.Cut(r.Pattern, " ")
	if !ok {
		return "none"
	}
	return route
}

func methodOf(r *http.Request) string {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
		return r.Method
	}
	return "other"
}

// recorder remembers what was answered.
type recorder struct {
	http.ResponseWriter
	status int
	bytes  int
}

func (r *recorder) WriteHeader(status int) {
	r.status = status
	r.ResponseWriter.WriteHeader(status)
}

func (r *recorder) Write(b []byte) (int, error) {
	n, err := r.ResponseWriter.Write(b)
	r.bytes += n
	return n, err
}

// Unwrap lets http.ResponseController reach the connection.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// recoverPanics keeps one bad request from ending the others.
func (s *Server) recoverPanics(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			p := recover()
			if p == nil {
				return
			}
			if p == http.ErrAbortHandler { //nolint:errorlint // a sentinel that is compared as it is
				panic(p)
			}
			s.Log.Error("panic in a request", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			writeProblem(w, s.problem(r.Context(), quartermaster.Errorf(quartermaster.CodeInternal, "something went wrong here; the server's log says what")))
		}()
		next.ServeHTTP(w, r)
	})
}
