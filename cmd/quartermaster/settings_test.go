package main

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// CLI-1: a configuration file holds values and lists of values; what has no
// value is absent, and anything else is refused by its name.
func TestReadConfig(t *testing.T) {
	tests := map[string]struct {
		yaml string
		want map[string][]string
		says string
	}{
		"values":        {yaml: "listen: 127.0.0.1:0\nport: 7070\non: true\napply: [a, b]\n", want: map[string][]string{"listen": {"127.0.0.1:0"}, "port": {"7070"}, "on": {"true"}, "apply": {"a", "b"}}},
		"nothing":       {yaml: "# later\n", want: map[string][]string{}},
		"no value":      {yaml: "database:\nlisten: ~\napply: []\n", want: map[string][]string{}},
		"a mark":        {yaml: "\uFEFFlisten: a\n", want: map[string][]string{"listen": {"a"}}},
		"a map":         {yaml: "listen: {host: hunter2}\n", says: "config.yaml: listen: must be a value"},
		"a nested list": {yaml: "apply: [[hunter2]]\n", says: "config.yaml: apply: must be a value"},
		"a hole":        {yaml: "apply: [hunter2, ~]\n", says: "config.yaml: apply: must be a value"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "config.yaml")
			if err := os.WriteFile(file, []byte(tt.yaml), 0o600); err != nil {
				t.Fatal(err)
			}
			got, err := readConfig(file)
			if tt.says != "" {
				if err == nil || !strings.Contains(err.Error(), tt.says) || strings.Contains(err.Error(), "hunter2") {
					t.Errorf("got %v %v, want %s", got, err, tt.says)
				}
				return
			}
			if err != nil || !reflect.DeepEqual(got, tt.want) {
				t.Errorf("got %v %v, want %v", got, err, tt.want)
			}
		})
	}
}
