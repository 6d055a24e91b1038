package main

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"quartermaster"
	"quartermaster/internal/opa"
	"quartermaster/internal/resolve"
	"quartermaster/internal/spicedb"
)

// standing is a project that does not change.
type standing struct{ catalog *quartermaster.Catalog }

func (s *standing) Catalog(context.Context, string) (*quartermaster.Catalog, error) {
	return s.catalog, nil
}

const (
	benchTools   = 10_000
	benchReached = 1_000
)

// benchProject has many tools, of which the agent reaches some and the user
// alice may execute every other one of those.
func benchProject(b *testing.B, rego string) *quartermaster.Catalog {
	b.Helper()
	d := quartermaster.NewCatalog(quartermaster.Project{ID: "default", PolicyQuery: quartermaster.DefaultPolicyQuery}).Draft(time.Unix(1, 0))
	check := func(err error) {
		if err != nil {
			b.Fatal(err)
		}
	}
	for i := range benchTools {
		name := fmt.Sprintf("tool_%05d", i)
		_, err := d.CreateTool(quartermaster.Tool{Name: name, Enabled: true, Config: json.RawMessage(`{"builtin":"echo"}`)})
		check(err)
		if i%2 == 0 {
			_, _, err = d.Grant(quartermaster.Grant{Subject: "user:alice", Relation: "executor", Tool: name})
			check(err)
		}
	}
	_, _, err := d.PutAgent(quartermaster.Agent{ID: "a", Tools: []string{"tool_00*"}})
	check(err)
	if rego != "" {
		_, _, err = d.PutPolicy(quartermaster.Policy{Name: "p", Rego: rego})
		check(err)
	}
	return d.Catalog()
}

// What the last two gates add, warm: the same questions without and with them.
func BenchmarkGates(b *testing.B) {
	const one = "package quartermaster.tools\nallow if input.user_id == \"alice\"\n"
	const set = "package quartermaster.tools\nallowed contains t if { some t in input.tools; input.user_id == \"alice\" }\n"
	for _, bb := range []struct {
		name, rego string
		engines    bool
	}{
		{"five gates", "", false},
		{"seven gates, no policy", "", true},
		{"seven gates, allow", one, true},
		{"seven gates, allowed", set, true},
	} {
		b.Run(bb.name, func(b *testing.B) {
			r, catalogs := benchResolver(b, bb.rego, bb.engines)
			caller := quartermaster.Caller{Project: "default", Agent: "a", User: "alice", Role: quartermaster.RoleAgent}
			ask := func(b *testing.B, q quartermaster.Question) {
				for b.Loop() {
					if _, err := r.Resolve(b.Context(), caller, q); err != nil {
						b.Fatal(err)
					}
				}
			}
			b.Run("call", func(b *testing.B) {
				ask(b, quartermaster.Question{Tool: "tool_00500", Arguments: json.RawMessage(`{"x":1}`)})
			})
			b.Run("list of 1000", func(b *testing.B) { ask(b, quartermaster.Question{}) })
			if !bb.engines {
				return
			}
			b.Run("cold list of 1000", func(b *testing.B) {
				revision := catalogs.catalog.Revision()
				for b.Loop() {
					b.StopTimer()
					d := catalogs.catalog.Draft(time.Unix(revision, 0))
					if rego := fmt.Sprintf("%s\n# %d", bb.rego, revision); bb.rego != "" {
						if _, _, err := d.PutPolicy(quartermaster.Policy{Name: "p", Rego: rego}); err != nil {
							b.Fatal(err)
						}
					}
					if _, _, err := d.Grant(quartermaster.Grant{Subject: "user:alice", Relation: "member", Resource: fmt.Sprintf("group:g%d", revision)}); err != nil {
						b.Fatal(err)
					}
					revision++
					catalogs.catalog = d.Catalog()
					b.StartTimer()
					if _, err := r.Resolve(b.Context(), caller, quartermaster.Question{}); err != nil {
						b.Fatal(err)
					}
				}
			})
		})
	}
}

func benchResolver(b *testing.B, rego string, engines bool) (*resolve.Resolver, *standing) {
	b.Helper()
	catalogs := &standing{benchProject(b, rego)}
	if !engines {
		return resolve.New(catalogs, nil, nil), catalogs
	}
	permission, err := spicedb.Open(b.Context(), spicedb.Options{LocalOperator: true})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = permission.Close() })
	policy, err := opa.Open(b.Context(), opa.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = policy.Close() })
	return resolve.New(catalogs, permission, policy), catalogs
}
