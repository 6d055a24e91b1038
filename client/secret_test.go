package client_test

import (
	"strings"
	"testing"

	"quartermaster"
)

// SEC-3: a value goes in the body, and nothing that is no name goes into a URL.
func TestPutSecret(t *testing.T) {
	c, last := answering(t, 201, "application/json", `{"name":"A","usedBy":["files"]}`)
	s, err := c.Project("p").PutSecret(t.Context(), "A", "hunter2 <&>")
	if err != nil || s.Name != "A" || len(s.UsedBy) != 1 {
		t.Errorf("%+v %v", s, err)
	}
	if last.method != "PUT" || last.uri != "/api/v1/projects/p/secrets/A" || strings.TrimSpace(last.body) != `{"value":"hunter2 <&>"}` {
		t.Errorf("sent %+v", last)
	}
	last.uri = ""
	_, err = c.Project("p").PutSecret(t.Context(), "A=hunter2", "x")
	if quartermaster.CodeOf(err) != quartermaster.CodeInvalidRequest || strings.Contains(err.Error(), "hunter2") || last.uri != "" {
		t.Errorf("%v, sent to %q", err, last.uri)
	}
}
