package quartermaster

import (
	"testing"
	"time"
)

// CAT-2, POOL-5: a server without a prefix gets no name that belongs to a tool of
// another server, and with it what was granted on that: also while the other has
// not answered yet.
func TestNoNameOfAnotherServer(t *testing.T) {
	d := NewCatalog(Project{ID: "p"}).Draft(time.Unix(1, 0))
	for _, s := range []Server{
		{Name: "victim", Transport: TransportStdio, Command: "x", Enabled: true, Prefix: true},
		{Name: "flat", Transport: TransportStdio, Command: "x", Enabled: true},
	} {
		if _, _, err := d.PutServer(s); err != nil {
			t.Fatal(err)
		}
	}
	found, err := d.Discover("flat", []Offer{{Name: "victim__read"}, {Name: "nobody__read"}, {Name: "read"}})
	if err != nil {
		t.Fatal(err)
	}
	if found.Refused["victim__read"] == "" || d.toolByName("victim__read") != nil || d.toolByName("nobody__read") == nil || d.toolByName("read") == nil {
		t.Errorf("%+v", found)
	}
	if _, err := d.Discover("victim", []Offer{{Name: "read"}}); err != nil || d.toolByName("victim__read").Server != "victim" {
		t.Errorf("the server whose name it is did not get it: %v", err)
	}
}
