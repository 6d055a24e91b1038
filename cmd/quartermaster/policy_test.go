package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// regoFiles writes files and goes to where they are.
func regoFiles(t *testing.T, files map[string]string) {
	t.Helper()
	t.Chdir(t.TempDir())
	for name, text := range files {
		if err := os.MkdirAll(filepath.Dir(name), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// CLI-1, POL-1: policy list, show, put, delete and query.
func TestPolicyCommands(t *testing.T) {
	regoFiles(t, map[string]string{"access.rego": "package a", "rules/hours.rego": "package h\n", "rules/hours_test.rego": "package h_test", "rules/readme.md": "no"})
	s := newSpeaking(t, map[string]string{
		"POST apply?dryRun=false&prune=false": `200 {"changes":[{"action":"create","noun":"policy","name":"access"},{"action":"update","noun":"policy","name":"hours"}],"warnings":["odd"]}`,
		"GET policies?page=1&size=100":        `200 {"content":[{"name":"access","rego":"# who\npackage quartermaster.tools\n\nallow := true\n","updatedAt":"2026-01-02T03:04:05Z"}],"last":true}`,
		"POST whatif?prune=false":             `200 {}`,
		"GET policies/access":                 `200 {"name":"access","rego":"package a\n\tx\n"}`,
		"DELETE policies/access":              "204 ",
		"GET /api/v1/projects/default":        `200 {"id":"default","policyQuery":"data.quartermaster.tools.allow"}`,
		"PATCH /api/v1/projects/default":      `200 {"id":"default","policyQuery":"data.soma.tools.allow"}`,
	})
	s.says([]string{"policy"}, "NAME    UPDATED               LINES  PACKAGE\naccess  2026-01-02 03:04:05Z  4      quartermaster.tools\n")
	s.says([]string{"policy", "show", "access"}, "package a\n\tx\n")
	s.says([]string{"policy", "put", "access.rego"}, "created policy access\n",
		`POST apply?dryRun=false&prune=false {"quartermaster":"v1","policies":{"access":{"rego":"package a"}}}`)
	s.says([]string{"policy", "put", "other-name", "access.rego"}, "policy other-name is as it was\n",
		`POST apply?dryRun=false&prune=false {"quartermaster":"v1","policies":{"other-name":{"rego":"package a"}}}`)
	s.says([]string{"policy", "put", "access.rego", "rules/"}, "created policy access\nreplaced policy hours\npolicy hours_test is as it was\n",
		`POST apply?dryRun=false&prune=false {"quartermaster":"v1","policies":{"access":{"rego":"package a"},"hours":{"rego":"package h\n"},"hours_test":{"rego":"package h_test"}}}`)
	if code, out, errOut := s.run("package in", "policy", "put", "access", "-"); code != 0 || out != "created policy access\n" || errOut != "warning: odd\n" ||
		s.asked[0] != `POST apply?dryRun=false&prune=false {"quartermaster":"v1","policies":{"access":{"rego":"package in"}}}` {
		t.Errorf("%d %q %q %q", code, out, errOut, s.asked)
	}
	s.says([]string{"policy", "delete", "access"}, "deleted policy access\n")
	s.says([]string{"policy", "query"}, "data.quartermaster.tools.allow\n")
	s.says([]string{"policy", "query", "data.soma.tools.allow"}, "data.soma.tools.allow\n", `PATCH /api/v1/projects/default {"policyQuery":"data.soma.tools.allow"}`)

	s.answers["PATCH /api/v1/projects/default"] = `200 {"id":"default","policyQuery":"data.no.rule","warnings":["nothing defines it"]}`
	if code, out, errOut := s.run("", "policy", "query", "data.no.rule"); code != 0 || out != "data.no.rule\n" || errOut != "warning: nothing defines it\n" {
		t.Errorf("%d %q %q", code, out, errOut)
	}
	s.says([]string{"whatif", "--policy", "rules", "--policy", "access.rego"}, "") // no NAME here
	s.fails([]string{"policy", "put", "-"}, exitUsage, "standard input has no name")
	s.fails([]string{"policy", "put", "access.rego", "-"}, exitUsage, "standard input has no name")
	s.fails([]string{"policy", "put", "none.rego"}, exitUsage, "none.rego")
	s.fails([]string{"policy", "put", "access.rego", "./access.rego"}, exitUsage, "would both be policy access")
	s.fails([]string{"policy", "put"}, exitUsage)
	s.fails([]string{"policy", "show", "none"}, 15)
}

// POL-1: what does not compile, or fails its test, is told with file and line.
func TestPolicyFaults(t *testing.T) {
	regoFiles(t, map[string]string{"rules/access.rego": "package a", "rules/blank.rego": ""})
	const faults = `422 {"code":"invalid_request","detail":"the policies do not compile","errors":[{"location":"body.policies.access:7","message":"rego_parse_error"},
		{"location":"body.policies.blank.rego","message":"must be a Rego module"},{"location":"body.policies.kept:3","message":"unsafe"}]}`
	s := newSpeaking(t, map[string]string{
		"POST apply?dryRun=false&prune=false": faults,
		"POST policies/test":                  strings.ReplaceAll(faults, "body.policies.access", "policies.access"),
		"POST whatif?prune=false":             faults,
	})
	for _, args := range [][]string{{"policy", "put", "rules"}, {"policy", "test", "rules"}, {"whatif", "--policy", "rules"}} {
		code, _, errOut := s.run("", args...)
		want := "quartermaster: the policies do not compile\n  rules/access.rego:7: rego_parse_error\n  rules/blank.rego: policies.blank.rego: must be a Rego module\n  policies.kept:3: unsafe\n"
		if code != 18 || errOut != want {
			t.Errorf("%q: %d\n%s\nwant\n%s", args, code, errOut, want)
		}
	}
}

// POL-1: each test is told; one that fails is told by the exit code, too.
func TestPolicyTest(t *testing.T) {
	regoFiles(t, map[string]string{"rules/access_test.rego": "package a"})
	s := newSpeaking(t, map[string]string{"POST policies/test": `200 {"warnings":["odd"],"tests":[
		{"name":"data.a.test_alice","location":"access_test.rego:7","passed":true,"duration":"1ms"},
		{"name":"data.k.test_kept","location":"kept_test.rego:2","passed":true,"duration":"2ms"}]}`})
	s.says([]string{"policy", "test", "rules/access_test.rego"},
		"✓ rules/access_test.rego:7 data.a.test_alice (1ms)\n✓ kept_test.rego:2 data.k.test_kept (2ms)\n",
		`POST policies/test {"policies":{"access_test":"package a"}}`)
	s.answers["POST policies/test"] = `200 {"tests":[
		{"name":"data.a.test_alice","location":"access_test.rego:7","passed":true,"duration":"1ms"},
		{"name":"data.a.test_bob","location":"access_test.rego:12","passed":false,"reason":"expected\nfalse","duration":"3ms"}]}`
	code, out, errOut := s.run("", "policy", "test", "rules")
	if code != 18 || !strings.HasSuffix(out, "✗ rules/access_test.rego:12 data.a.test_bob (3ms): expected false\n") || errOut != "1 of 2 tests failed\n" {
		t.Errorf("%d %q %q", code, out, errOut)
	}
	if code, out, _ := s.run("", "policy", "test", "-o", "json"); code != 18 || !strings.Contains(out, `"passed": false`) || s.asked[0] != "POST policies/test {}" {
		t.Errorf("%d %s %q", code, out, s.asked)
	}
	s.answers["POST policies/test"] = `200 {"tests":[]}`
	code, out, errOut = s.run("", "policy", "test")
	if code != 0 || out != "" || !strings.HasPrefix(errOut, "no tests") {
		t.Errorf("%d %q %q", code, out, errOut)
	}
}

// CAT-5: an export has policies as they are written, and grants as they are said.
func TestExportOfRules(t *testing.T) {
	s := newSpeaking(t, map[string]string{"GET export": `200 {"quartermaster":"v1","grants":[{"relation":"executor","subject":"user:alice","tool":"echo"}],
		"policies":{"b":{"rego":"package b"},"a":{"rego":"package a\n\nallow if {\n\tinput.x\n}\n"}}}`})
	s.says([]string{"export"}, `quartermaster: v1
policies:
  a:
    rego: |
      package a

      allow if {
      	input.x
      }
  b:
    rego: package b
grants:
  - subject: "user:alice"
    relation: executor
    tool: echo
`)
}
