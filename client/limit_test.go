package client

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"quartermaster"
)

func TestAnswersAreBounded(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, strings.Repeat(" ", 2<<20))
	}))
	defer s.Close()
	c, err := New(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	c.most = 1 << 20
	if err := c.Ready(t.Context()); quartermaster.CodeOf(err) != quartermaster.CodeTooLarge {
		t.Errorf("got %v", err)
	}
}
