package opa

import (
	"strings"
	"testing"

	"quartermaster"
)

// POL-1: what compiles but could never be asked, or could ask for more memory
// than there is, is refused before it is saved, with the place.
func TestRefusedBeforeSaved(t *testing.T) {
	e := open(t, Options{})
	for rego, want := range map[string]string{
		"package quartermaster.tools\nallow(x) := true\n":                    "is a function",
		"package quartermaster.tools\nallow if bits.lsh(1, 20000000000) > 0": "bits.lsh",
	} {
		_, err := e.Test(t.Context(), catalogOf(t, []string{"a"}, map[string]string{"p": rego}))
		if quartermaster.CodeOf(err) != quartermaster.CodeInvalidRequest || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "policies.p:2") {
			t.Errorf("%s: %v", rego, err)
		}
	}
}
