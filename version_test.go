package quartermaster

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"
)

// CAT-4: a diff says what is different, where, and no more.
func TestDefinitionChanges(t *testing.T) {
	long := strings.Repeat("long ", 200)
	for name, tt := range map[string]struct {
		from, to Offer
		want     []DefinitionChange
	}{
		"nothing":   {Offer{Name: "a"}, Offer{Name: "a"}, nil},
		"respelled": {Offer{InputSchema: json.RawMessage(`{"a":1,"b":2}`)}, Offer{InputSchema: json.RawMessage(` {"b":2.0, "a":1}`)}, nil},
		"texts": {Offer{Name: "a", Title: "A", Description: "x"}, Offer{Name: "a", Description: "y\u200b"}, []DefinitionChange{
			{"title", "A", ""}, {"description", "x", "y‹U+200B›"},
		}},
		"schemas": {
			Offer{InputSchema: json.RawMessage(`{"type":"object","properties":{"a":{"type":"string","enum":["x","y"]},"b":{"type":"string"}},"required":["a"]}`)},
			Offer{InputSchema: json.RawMessage(`{"type":"object","properties":{"a":{"type":"string","enum":["x","z"],"default":null},"c":{"type":"integer"}},"required":["a","c"]}`), OutputSchema: json.RawMessage(`{}`)},
			[]DefinitionChange{
				{"inputSchema.properties.a.default", "", "null"},
				{"inputSchema.properties.a.enum[1]", "y", "z"},
				{"inputSchema.properties.b", `{"type":"string"}`, ""},
				{"inputSchema.properties.c", "", `{"type":"integer"}`},
				{"inputSchema.required", `["a"]`, `["a","c"]`},
				{"outputSchema", "", "{}"},
			},
		},
		"far behind": {Offer{Description: long + "Safe."}, Offer{Description: long + "Bad."}, []DefinitionChange{
			{"description", "…" + strings.Repeat("long ", 8) + "Safe.", "…" + strings.Repeat("long ", 8) + "Bad."},
		}},
	} {
		if got := tt.from.ChangesTo(&tt.to); !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s: got\n%+v\nwant\n%+v", name, got, tt.want)
		}
	}
	many := map[string]any{}
	for i := range 300 {
		many[fmt.Sprint(i)] = long
	}
	raw, _ := json.Marshal(many)
	lines := (&Offer{InputSchema: json.RawMessage(`{}`)}).ChangesTo(&Offer{InputSchema: raw})
	if len(lines) != maxDiffLines+1 || lines[maxDiffLines].Field != "and 200 more" || utf8.RuneCountInString(lines[0].To) != maxDiffText {
		t.Errorf("%d lines, the last %+v", len(lines), lines[len(lines)-1])
	}
}
