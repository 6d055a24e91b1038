package opa

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"quartermaster"
)

const runaway = `package quartermaster.tools

allow if {
	some i in numbers.range(1, 100000)
	some j in numbers.range(1, 100000)
	i * j < 0
}`

// POL-1, GATE-1: a policy that runs away is cut, fails its own project's
// requests, and takes nothing from another project.
func TestRunaway(t *testing.T) {
	e := open(t, Options{Timeout: 3 * time.Second})
	bad := projectOf(t, "bad", []string{"a", "b"}, map[string]string{"p": runaway})
	good := projectOf(t, "good", []string{"a", "b"}, map[string]string{"p": "package quartermaster.tools\n\nallow if { input.user_id; time.now_ns() > 0 }"})
	var askers sync.WaitGroup
	defer askers.Wait()
	var stop atomic.Bool
	defer stop.Store(true)
	for range 8 {
		askers.Go(func() {
			for !stop.Load() {
				_, err := e.Judge(t.Context(), bad, caller("mallory"), quartermaster.Question{}, bad.Tools())
				if quartermaster.CodeOf(err) != quartermaster.CodeUnavailable || !strings.Contains(err.Error(), "was cut after 3s") {
					t.Error(err)
				}
			}
		})
	}
	for len(e.desk("bad").cores) == 0 { // one of them is at it
		time.Sleep(time.Millisecond)
	}
	for i := range 300 { // evaluated every time: the policy looks at the clock
		names, err := passing(t.Context(), e, good, caller(fmt.Sprint(i)), quartermaster.Question{}, good.Tools())
		if err != nil || len(names) != 2 {
			t.Fatal(names, err)
		}
		if n := len(e.desk("bad").cores); n > cap(e.desk("bad").cores) {
			t.Fatalf("%d evaluations of one project at once", n)
		}
	}
}

// POL-1: a project's policies are compiled once for any number of requests, and
// again only when they change; what they do not read does not matter.
func TestRevisions(t *testing.T) {
	e := open(t, Options{})
	c := catalogOf(t, []string{"a", "b"}, map[string]string{"p": "package quartermaster.tools\n\nallow if \"dev\" in data.roles[input.user_id]"})
	newest := func() *ruling { return (*e.desk("acme").rulings.Load())[0] }

	var askers sync.WaitGroup
	for range 8 {
		askers.Go(func() { judged(t, e, c, caller("alice"), quartermaster.Question{}) })
	}
	askers.Wait()
	first := newest()
	if n := len(*e.desk("acme").rulings.Load()); n != 1 {
		t.Errorf("%d rulings for one revision", n)
	}
	c = edit(t, c, func(d *quartermaster.Draft) error {
		_, err := d.CreateTool(quartermaster.Tool{Name: "c", Enabled: true})
		return err
	})
	judged(t, e, c, caller("alice"), quartermaster.Question{})
	if newest() != first {
		t.Error("made ready again for a tool, though tools are not read")
	}
	c = withRolesOf(t, c, "alice", "dev")
	if got := judged(t, e, c, caller("alice"), quartermaster.Question{}); got != "a b c" {
		t.Errorf("%q passes", got)
	}
	if newest() == first || newest().policy != first.policy {
		t.Error("roles are read: made ready again, but not compiled again")
	}
	c = withPolicy(t, c, "q", "package quartermaster.tools\n\nallow if input.tool_name == \"b\"")
	if got := judged(t, e, c, caller("bob"), quartermaster.Question{}); got != "b" {
		t.Errorf("%q passes", got)
	}
	if newest().policy == first.policy {
		t.Error("not compiled again")
	}
	for i := range 10 {
		c = withPolicy(t, c, "q", fmt.Sprintf("package quartermaster.tools\n\nallow if input.tool_name == \"b\" # %d", i))
		judged(t, e, c, caller("bob"), quartermaster.Question{})
	}
	if n := len(*e.desk("acme").rulings.Load()); n != rulingsKept {
		t.Errorf("%d rulings are kept", n)
	}
	counted := int64(0)
	for _, r := range *e.desk("acme").rulings.Load() {
		r.each(func(d *decisions) {
			for key, found := range d.byKey {
				counted += found.weight(key)
			}
		})
	}
	if used := e.memory.used.Load(); used != counted || used == 0 {
		t.Errorf("%d bytes are counted, %d are there", used, counted)
	}
}

// GATE-1: one project's broken policy fails that project alone.
func TestBrokenProject(t *testing.T) {
	e := open(t, Options{})
	bad := projectOf(t, "bad", []string{"a"}, map[string]string{"p": "package quartermaster.tools\n\nallow if {"})
	good := projectOf(t, "good", []string{"a"}, nil)
	for range 3 {
		if _, err := e.Judge(t.Context(), bad, caller("alice"), quartermaster.Question{}, bad.Tools()); quartermaster.CodeOf(err) != quartermaster.CodeUnavailable {
			t.Error(err)
		}
		if got := judged(t, e, good, caller("alice"), quartermaster.Question{}); got != "a" {
			t.Error(got)
		}
	}
}

// POL-1: what is kept stays within its bound, the longest unasked goes first,
// and 10,000 tools for 1,000 users are well within it.
func TestMemoryBound(t *testing.T) {
	e := open(t, Options{})
	c := catalogOf(t, manyNames(10_000), map[string]string{"p": "package quartermaster.tools\n\nallowed contains t if { input.user_id; some t in input.tools; endswith(t, \"1\") }"})
	want := judged(t, e, c, caller("first"), quartermaster.Question{})
	for i := range 1000 {
		fill(e, c, fmt.Sprintf("user-%04d", i))
	}
	if used := e.memory.used.Load(); used > 4<<20 {
		t.Errorf("1,000 users over 10,000 tools take %d bytes", used)
	}
	e.memory.limit = 1 << 20
	fill(e, c, "last")
	entries := (*e.desk("acme").rulings.Load())[0].allowed.decisions.byKey
	if used := e.memory.used.Load(); used > e.memory.limit || len(entries) == 0 {
		t.Errorf("%d bytes with a limit of %d, %d entries", used, e.memory.limit, len(entries))
	}
	for i := range 2000 {
		fill(e, c, fmt.Sprintf("user-%04d", i))
		if used := e.memory.used.Load(); used > e.memory.limit {
			t.Fatalf("%d bytes with a limit of %d", used, e.memory.limit)
		}
	}
	if got := judged(t, e, c, caller("first"), quartermaster.Question{}); got != want {
		t.Error("forgotten, and then another answer")
	}
}

func manyNames(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("tool_%05d", i)
	}
	return names
}

// Tools that come and go do not fill the memory, and none gets the decision of
// another.
func TestNumbersBeginAnew(t *testing.T) {
	e := open(t, Options{})
	c := catalogOf(t, []string{"a", "b"}, map[string]string{"p": "package quartermaster.tools\n\nallow if input.tool_name == \"a\""})
	for i := range 3000 {
		c = edit(t, c, func(d *quartermaster.Draft) error {
			_, err := d.UpdateTool("b", func(tool *quartermaster.Tool) error { tool.Description = fmt.Sprint(i); return nil })
			return err
		})
		if got := judged(t, e, c, caller("alice"), quartermaster.Question{}); got != "a" {
			t.Fatalf("%q passes", got)
		}
	}
	d := e.desk("acme")
	if len(d.numbers) > 1100 || d.era == 0 {
		t.Errorf("%d numbers in era %d", len(d.numbers), d.era)
	}
}

// GATE-1: a question that was asked in another era neither finds nor leaves
// anything.
func TestAnotherEra(t *testing.T) {
	e := open(t, Options{})
	c := catalogOf(t, []string{"a", "b"}, map[string]string{"p": "package quartermaster.tools\n\nallow if input.tool_name == \"a\""})
	judged(t, e, c, caller("alice"), quartermaster.Question{})
	d := e.desk("acme")
	r := (*d.rulings.Load())[0]
	a := &asked{catalog: c, caller: caller("alice"), tools: c.Tools(), answer: []quartermaster.Judgment{{Allowed: true}, {Allowed: true}}}
	d.number(a)
	a.numbers[0], a.numbers[1] = a.numbers[1], a.numbers[0] // as if they had been given out anew
	d.era++
	if err := r.judge(t.Context(), a); err != nil || !a.answer[0].Allowed || a.answer[1].Allowed {
		t.Errorf("%+v, %v", a.answer, err)
	}
	if got := judged(t, e, c, caller("alice"), quartermaster.Question{}); got != "a" {
		t.Errorf("%q passes", got)
	}
}
