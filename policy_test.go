package quartermaster

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// GATE-7
func TestPolicyFaults(t *testing.T) {
	const (
		badName = "must be 1 to 128 of A-Z, a-z, 0-9, _, . and -"
		noRego  = "must be a Rego module"
	)
	for name, tt := range map[string]struct {
		policy Policy
		want   []Fault
	}{
		"fine":         {Policy{Name: "office-hours_1.rego", Rego: "package p"}, nil},
		"no name":      {Policy{Rego: "package p"}, []Fault{{"name", badName}}},
		"odd name":     {Policy{Name: "a/b", Rego: "package p"}, []Fault{{"name", badName}}},
		"long name":    {Policy{Name: strings.Repeat("x", 129), Rego: "package p"}, []Fault{{"name", badName}}},
		"no text":      {Policy{Name: "p"}, []Fault{{"rego", noRego}}},
		"blank":        {Policy{Name: "p", Rego: " \n\t"}, []Fault{{"rego", noRego}}},
		"longest":      {Policy{Name: "p", Rego: strings.Repeat("x", 1<<20)}, nil},
		"too long":     {Policy{Name: "p", Rego: strings.Repeat("x", 1<<20+1)}, []Fault{{"rego", "must have at most 1048576 bytes, has 1048577"}}},
		"no text, NUL": {Policy{Name: "p", Rego: "package p\x00"}, []Fault{{"rego", "must not contain a NUL character"}}},
		"no UTF-8":     {Policy{Name: "p", Rego: "package \xff"}, []Fault{{"rego", "must be valid UTF-8"}}},
		"nothing":      {Policy{}, []Fault{{"name", badName}, {"rego", noRego}}},
	} {
		if got := tt.policy.faults(); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
}

// GATE-7, POL-1: the file is what compilers speak of; one that ends in _test
// holds tests.
func TestPolicyFile(t *testing.T) {
	for name, want := range map[string]struct {
		file string
		test bool
	}{
		"p":              {"p.rego", false},
		"p.rego":         {"p.rego", false},
		"p_test":         {"p_test.rego", true},
		"p_test.rego":    {"p_test.rego", true},
		"p.test":         {"p.test.rego", false},
		"test":           {"test.rego", false},
		"_test":          {"_test.rego", true},
		"p_test.rego.v2": {"p_test.rego.v2.rego", false},
		"p.rego.rego":    {"p.rego.rego", false},
		"p_TEST":         {"p_TEST.rego", false},
	} {
		p := Policy{Name: name}
		if p.File() != want.file || p.Test() != want.test {
			t.Errorf("%s: file %s, test %t; want %v", name, p.File(), p.Test(), want)
		}
	}
}

// GATE-7: a query names one rule and can hold nothing else.
func TestValidQuery(t *testing.T) {
	for query, want := range map[string]bool{
		DefaultPolicyQuery: true, "data.a.b": true, "data.soma.tools.allow": true, "data._a.B9": true, "data.a." + strings.Repeat("x", 128): true,
		"": false, "data": false, "data.a": false, "data.": false, "data..a": false, "data.a.": false, ".data.a.b": false, "Data.a.b": false,
		"input.a.b": false, "data.a.9b": false, "data.a.b-c": false, "data.a.b[0]": false, `data.a["b"]`: false, "data.a.b; true": false, "data.a.b == true": false,
		"data.a.b\n": false, " data.a.b": false, "data.a.ä": false, "data.a." + strings.Repeat("x", 129): false, "data.a.b\x00": false,
	} {
		if got := validQuery(query); got != want {
			t.Errorf("%q: %t, want %t", query, got, want)
		}
	}
}

// GATE-7
func TestPutPolicy(t *testing.T) {
	d := NewCatalog(Project{ID: "p"}).Draft(time.Unix(1, 0))
	first, created, err := d.PutPolicy(Policy{Name: "p", Rego: "package p", CreatedAt: time.Unix(9, 0)})
	if err != nil || !created || !first.CreatedAt.Equal(time.Unix(1, 0)) || !first.UpdatedAt.Equal(first.CreatedAt) {
		t.Fatalf("put %+v, created %t: %v", first, created, err)
	}
	if again, created, err := d.PutPolicy(Policy{Name: "p", Rego: "package p"}); err != nil || created || again != first {
		t.Errorf("again %+v, created %t: %v", again, created, err)
	}
	c := d.Catalog()
	d = c.Draft(time.Unix(2, 0))
	next, created, err := d.PutPolicy(Policy{Name: "p", Rego: "package q"})
	if err != nil || created || !next.CreatedAt.Equal(time.Unix(1, 0)) || !next.UpdatedAt.Equal(time.Unix(2, 0)) {
		t.Errorf("changed %+v, created %t: %v", next, created, err)
	}
	want := []Difference{{Action: "update", Noun: NounPolicy, Name: "p", Fields: map[string]FieldChange{"rego": {From: "package p", To: "package q"}}}}
	if got := d.Diff(); !reflect.DeepEqual(got, want) {
		t.Errorf("difference %+v, want %+v", got, want)
	}
	if d.Policy("p") != next || d.Catalog().Policy("p") != next || c.Policy("p") != first || c.Policy("P") != nil {
		t.Error("the draft, its catalog and its base disagree")
	}
	if err := d.DeletePolicy("p"); err != nil || d.Policy("p") != nil || len(d.Catalog().Policies()) != 0 {
		t.Errorf("deleted: %v, left %v", err, d.Catalog().Policies())
	}
	if err := d.DeletePolicy("p"); CodeOf(err) != CodeNotFound || err.Error() != `there is no policy "p"` {
		t.Errorf("deleted twice: %v", err)
	}
	if _, _, err := d.PutPolicy(Policy{Name: "a b"}); CodeOf(err) != CodeInvalidRequest || !strings.HasPrefix(err.Error(), `policy "a b" is not valid: name: `) {
		t.Errorf("not valid: %v", err)
	}
}
