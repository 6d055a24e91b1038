package opa

import (
	"fmt"
	"strings"
	"testing"

	"quartermaster"
)

// POL-1: tests of policies are run and reported with their places; those of
// modules that end in _test are no part of what is asked.
func TestTest(t *testing.T) {
	e := open(t, Options{})
	c := catalogOf(t, []string{"read"}, map[string]string{
		"access": "package quartermaster.tools\n\nallow if user_has_role[input.user_id].dev\n",
		"access_test": `package quartermaster.tools_test

import data.quartermaster.tools

test_dev if tools.allow with input as {"user_id": "alice"} with data.roles as {"alice": ["dev"]}

test_other if {
	x := 1
	tools.allow with input as {"user_id": "bob"} with data.roles as {"alice": ["dev"]}
	x == 2
}

test_error if to_number("x") == 1

test_real_roles if tools.allow with input as {"user_id": "carol"}

todo_test_later if false
`,
		"old_test": "package old_test\n\ntest_v0 { true }\n",
	})
	c = withRolesOf(t, c, "carol", "dev")
	report, err := e.Test(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, test := range report.Tests {
		got = append(got, fmt.Sprintf("%s %s %t %s", test.Location, test.Name, test.Passed, test.Reason))
	}
	want := []string{
		"access_test.rego:5 data.quartermaster.tools_test.test_dev true ",
		`access_test.rego:7 data.quartermaster.tools_test.test_other false line 9, tools.allow with input as {"user_id": "bob"} with data.roles as {"alice": ["dev"]}, is not true`,
		`access_test.rego:13 data.quartermaster.tools_test.test_error false access_test.rego:13: eval_builtin_error: to_number: strconv.ParseFloat: parsing "x": invalid syntax`,
		"access_test.rego:15 data.quartermaster.tools_test.test_real_roles true ",
		"old_test.rego:3 data.old_test.test_v0 true ",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if len(report.Failed()) != 2 || len(report.Warnings) != 1 || !strings.Contains(report.Warnings[0], "todo_test_later at access_test.rego:17") {
		t.Errorf("%q", report.Warnings)
	}
}

// POL-1: what does not compile is refused with the place and the compiler's
// words, all of it at once.
func TestTestRefuses(t *testing.T) {
	e := open(t, Options{})
	const head = "package quartermaster.tools\n\n"
	for name, tt := range map[string]struct {
		policies map[string]string
		want     []string // location and message
	}{
		"v1 syntax":        {map[string]string{"a": head + "allow if {\n\tinput.x ==\n}"}, []string{"policies.a:5 unexpected } token"}},
		"v0 syntax":        {map[string]string{"a": head + "allow {\n\tinput.x\n}\n\nallow { input.y == }"}, []string{"policies.a:7 unexpected } token"}},
		"empty":            {map[string]string{"a": "# nothing\n"}, []string{"policies.a empty module"}},
		"unsafe":           {map[string]string{"a": head + "allow if x == 1"}, []string{"policies.a:3 var x is unsafe"}},
		"two at once":      {map[string]string{"a": head + "allow if {", "b.rego": head + "allow if ]"}, []string{"policies.a:3 ", "policies.b.rego:3 "}},
		"types":            {map[string]string{"a": head + "allow if startswith(1, \"a\")"}, []string{"policies.a:3 startswith: invalid argument(s)"}},
		"in a test":        {map[string]string{"a": head + "allow := true", "a_test": "package a_test\n\ntest_x if y"}, []string{"policies.a_test:3 var y is unsafe"}},
		"http.send":        {map[string]string{"a": head + "allow if http.send({})"}, []string{"policies.a:3 http.send is switched off: start the server with --policy-host HOST"}},
		"the environment":  {map[string]string{"a": head + "allow if opa.runtime().env"}, []string{"policies.a:3 opa.runtime is not offered"}},
		"supplied package": {map[string]string{"a": "package roles.mine\n\nallow := true"}, []string{"policies.a:1 data.roles is supplied by Quartermaster"}},
		"one file name":    {map[string]string{"a": head + "allow := true", "a.rego": head + "allow := false"}, []string{"two policies have this file name"}},
		"recursion":        {map[string]string{"a": head + "allow if allow"}, []string{"policies.a:3 rule data.quartermaster.tools.allow is recursive"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := e.Test(t.Context(), catalogOf(t, nil, tt.policies))
			fault, ok := err.(*quartermaster.Error) //nolint:errorlint // it is what the contract names
			if !ok || fault.Code != quartermaster.CodeInvalidRequest || len(fault.Faults) != len(tt.want) {
				t.Fatal(err)
			}
			for i, f := range fault.Faults {
				if got := f.Location + " " + f.Message; !strings.Contains(got, tt.want[i]) {
					t.Errorf("%q, want %q", got, tt.want[i])
				}
			}
		})
	}
}

// POL-1: what compiles and is most likely not meant is a warning.
func TestTestWarns(t *testing.T) {
	e := open(t, Options{})
	for want, c := range map[string]*quartermaster.Catalog{
		"nothing defines data.quartermaster.tools.allow: every tool is refused; the policies define data.soma.tools.allow: set policyQuery to it": catalogOf(t, nil, map[string]string{"a": mustRead(t, "testdata/soma.rego")}),
		"nothing defines data.quartermaster.tools.allow: every tool is refused":                                                                   catalogOf(t, nil, map[string]string{"a": "package x\n\ny := 1"}),
		"data.quartermaster.tools.allowed is an object, not a set: no tool is in it; write allowed contains name if":                              catalogOf(t, nil, map[string]string{"a": "package quartermaster.tools\n\nallowed[t] if some t in input.tools"}),
		"data.quartermaster.tools.allowed looks at the tools together: its answers are not kept, and a call asks it about one tool alone":         catalogOf(t, nil, map[string]string{"a": "package quartermaster.tools\n\nallowed contains t if { some t in input.tools; count(input.tools) < 9 }"}),
		"": catalogOf(t, nil, map[string]string{"a": "package quartermaster.tools\n\nallow if input.user_id"}),
	} {
		report, err := e.Test(t.Context(), c)
		if got := strings.Join(report.Warnings, "\n"); err != nil || got != want || report.Tests == nil {
			t.Errorf("%q, %v; want %q", got, err, want)
		}
	}
	report, err := e.Test(t.Context(), catalogOf(t, nil, nil))
	if err != nil || report.Tests == nil || len(report.Warnings) != 0 {
		t.Errorf("no policies: %+v, %v", report, err)
	}
}
