package main

import (
	"strings"
	"testing"
)

// GATE-1: the doctor says which gates are on, with what, and nobody counts on one
// that is in trouble.
func TestDoctorOnGates(t *testing.T) {
	s := newSpeaking(t, map[string]string{
		"GET /healthz": "200 {}",
		"GET /readyz":  "200 {}",
		"GET /api/v1/status": `200 {"version":"dev","gates":[{"name":"group","on":true,"detail":"requested and granted groups"},
			{"name":"permission","on":true,"detail":"SpiceDB, embedded, 3 relationships"},{"name":"policy","on":false,"detail":"no policy engine"}]}`,
		"GET /api/v1/projects/default": `200 {"id":"default"}`,
		"GET tools?page=1&size=100":    `200 {"content":[],"last":true}`,
		"GET servers?page=1&size=100":  `200 {"content":[],"last":true}`,
	})
	code, out, _ := s.run("", "doctor")
	for _, line := range []string{"✓ gate group: on: requested", "✓ gate permission: on: SpiceDB, embedded, 3 relationships\n", "! gate policy: off: no policy engine\n"} {
		if !strings.Contains(out, line) {
			t.Errorf("no %q in\n%s", line, out)
		}
	}
	if code != 0 {
		t.Errorf("ended with %d", code)
	}
	s.answers["GET /api/v1/status"] = `200 {"version":"dev","gates":[{"name":"permission","on":true,"detail":"SpiceDB at db:50051","trouble":"it does not answer"}]}`
	s.answers["GET /readyz"] = `503 {"status":"starting","permission":"loaded 1 of 5 relationships"}`
	code, out, _ = s.run("", "doctor")
	for _, line := range []string{"✗ gate permission: it does not answer (SpiceDB at db:50051)\n", "is not ready: starting, permission loaded 1 of 5 relationships\n"} {
		if !strings.Contains(out, line) {
			t.Errorf("no %q in\n%s", line, out)
		}
	}
	if code != 10 {
		t.Errorf("ended with %d", code)
	}
}
