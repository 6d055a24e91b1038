package quartermaster

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

// CAT-4: stable: these are in databases, and another hash is another definition.
func TestOfferHash(t *testing.T) {
	full := Offer{
		Name: "read_file", Title: "Read", Description: "Reads a <file> & more.\nÄ日",
		InputSchema:  json.RawMessage(`{"type":"object","properties":{"n":{"minimum":-1.5,"maximum":1e3,"enum":[null,true,"\u00e4",9007199254740993]}}}`),
		OutputSchema: json.RawMessage(`{}`), Annotations: json.RawMessage(`{"readOnlyHint":true}`),
	}
	for want, o := range map[string]Offer{
		"95af0cf85dd07d41b83251bbcf6260ffc847e508a2cd5b8297a94e0f13d0e884": {Name: "a"},
		"a294f2a4d13338c193bdb9372234bb16b588fb09bb782d303c697efa8597cefd": full,
	} {
		if got := o.hash(); got != want {
			t.Errorf("%s: %s, want %s", o.Name, got, want)
		}
	}
}

// CAT-4: what means the same has one hash, what does not has another.
func TestOfferHashEqualsMeaning(t *testing.T) {
	schemas := []string{
		`{"a":1}`, `{"a":1.0}`, `{"a":10e-1}`, `{"a":"1"}`, `{"a":[1]}`, `{"a":{"1":1}}`, `{"a":true}`, `{"a":null}`, `{}`, `{"a":0}`,
		`{"a":1,"b":2}`, `{"b":2,"a":1}`, ` { "\u0061" : 1 } `, `{"a":9007199254740993}`, `{"a":9007199254740992}`, `{"a":9007199254740992.0}`,
		`{"a":1e400}`, `{"a":1e401}`, `{"a":0.1}`, `{"a":"x"}`, `{"a":"\u0078"}`, `{"a":[]}`, `{"a":{}}`, `{"a":[[],1]}`, `{"a":[[1]]}`, `{"ab":"c"}`, `{"a":"bc"}`,
	}
	for _, a := range schemas {
		for _, b := range schemas {
			x, y := Offer{Name: "a", InputSchema: json.RawMessage(a)}, Offer{Name: "a", InputSchema: json.RawMessage(b)}
			if got, want := x.hash() == y.hash(), sameJSON(x.InputSchema, y.InputSchema); got != want {
				t.Errorf("%s and %s: the same hash: %t, the same meaning: %t", a, b, got, want)
			}
			y.InputSchema, y.OutputSchema = nil, y.InputSchema
			if x.hash() == y.hash() {
				t.Errorf("%s is the same in another field", a)
			}
		}
	}
}

// What is decoded is what the standard library decodes.
func FuzzReadObject(f *testing.F) {
	for _, seed := range []string{`{}`, `{"a":[1,-2.5e3,"x\"\\\u00e4",null,true,{"b":{}}]}`, ` [ [ ] , { } ] `, `"\ud800"`, `{"a":1,"a":2}`, `1`, `{`, strings.Repeat("[", 100)} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		got, err := readObject(raw)
		var want any
		if wantErr := decodeJSON(raw, &want); !json.Valid(raw) || wantErr != nil {
			if err == nil && raw != nil {
				t.Errorf("%q is taken", raw)
			}
			return
		}
		if err == nil && !reflect.DeepEqual(got, want) {
			t.Errorf("%q is %v, want %v", raw, got, want)
		}
		if err != nil && !strings.Contains(err.Error(), "twice") && !strings.Contains(err.Error(), "deep") {
			t.Errorf("%q: %v", raw, err)
		}
	})
}

// Nothing that a server says makes discovery fail or keep what it cannot.
func FuzzDiscover(f *testing.F) {
	f.Add("a", "A", "Reads.", `{"type":"object"}`, `{"title":"x"}`, true)
	f.Add("a\x00\xff", "\x1b", "\u202e", `{"a":"\u0000"}`, `[`, false)
	f.Add("find_tools", "", "", ``, `null`, false)
	f.Fuzz(func(t *testing.T, name, title, description, schema, annotations string, prefix bool) {
		offers := []Offer{
			{Name: name, Title: title, Description: description, InputSchema: json.RawMessage(schema), Annotations: json.RawMessage(annotations)},
			{Name: "good"},
		}
		c := discovered(t, Server{Name: "s", Prefix: prefix}, offers...)
		rows := c.discovered("s")
		if rows["good"] == nil {
			t.Fatal("the other offer is lost")
		}
		for upstream, row := range rows {
			if f := row.faults(); len(f) > 0 || row.Upstream != upstream || Reserved(row.Name) || c.Tool(row.Name) != row {
				t.Errorf("%q: %+v %v", upstream, row, f)
			}
		}
		d := c.Draft(noon)
		if _, err := d.Discover("s", offers); err != nil || len(d.Changes()) > 0 {
			t.Errorf("again: %v %+v", err, d.Diff())
		}
	})
}
