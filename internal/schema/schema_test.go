package schema

import (
	"encoding/json"
	"strings"
	"testing"
)

// CAT-1: schemas of 2020-12 and draft-07, and no others by accident.
func TestCheck(t *testing.T) {
	for name, tt := range map[string]struct {
		schema string
		fault  string // "": fine
	}{
		"empty":            {`{}`, ""},
		"2020-12":          {`{"type":"object","properties":{"a":{"$ref":"#/$defs/x"}},"$defs":{"x":{"type":"string"}}}`, ""},
		"draft-07":         {`{"$schema":"http://json-schema.org/draft-07/schema#","definitions":{"x":{"type":"string"}},"properties":{"a":{"$ref":"#/definitions/x"}}}`, ""},
		"wrong type":       {`{"type":"banana"}`, "/type"},
		"wrong property":   {`{"properties":{"a":{"minimum":"x"}}}`, "/properties/a/minimum"},
		"network":          {`{"$ref":"http://127.0.0.1:1/x.json"}`, "outside the schema"},
		"file":             {`{"$ref":"file:///etc/passwd"}`, "outside the schema"},
		"unknown draft":    {`{"$schema":"http://example.com/none"}`, "outside the schema"},
		"dangling":         {`{"$ref":"#/$defs/none"}`, "none"},
		"not even JSON":    {`{`, "JSON"},
		"pattern":          {`{"pattern":"("}`, "pattern"},
		"ECMA pattern":     {`{"pattern":"^(?=.*[a-z])(?!x)\\p{L}+$"}`, ""},
		"refers to itself": {`{"properties":{"next":{"$ref":"#"}}}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			err := Check(json.RawMessage(tt.schema))
			switch {
			case err == nil && tt.fault != "":
				t.Errorf("passed, want a fault with %q", tt.fault)
			case err != nil && (tt.fault == "" || !strings.Contains(err.Error(), tt.fault)):
				t.Errorf("%v, want %q", err, tt.fault)
			}
		})
	}
}
