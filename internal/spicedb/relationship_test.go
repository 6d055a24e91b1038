package spicedb

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"quartermaster"
)

// A grant comes back from SpiceDB as it was made, whatever it is about.
func TestGrantRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		id := rapid.StringN(1, 60, 200).Filter(func(s string) bool { return !strings.ContainsAny(s, "#") })
		resource := rapid.SampledFrom([]string{"project", "tool:", "group:", "folder:"}).Draw(t, "type")
		if resource != "project" {
			resource += id.Draw(t, "id")
		}
		subject := "user:" + rapid.StringN(1, 60, 255).Draw(t, "user")
		if rapid.Bool().Draw(t, "set") {
			subject = "group:" + id.Draw(t, "group") + "#member"
		}
		g := quartermaster.NewGrant(resource, "executor", subject, time.Time{})
		got, ok := grantOf("p", relationship("p", g))
		if !ok || got.Key() != g.Key() {
			t.Fatalf("%q came back as %q, %v", g.Key(), got.Key(), ok)
		}
		if _, ok := grantOf("q", relationship("p", g)); ok {
			t.Fatalf("%q is another project's too", g.Key())
		}
	})
}
