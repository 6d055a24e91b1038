package opa

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"

	"quartermaster"
)

// A policy as a team writes it: who, what, in which situation.
const benchRules = `package quartermaster.tools

default allow := false

allow if {
	input.action == "execute"
	data.tools[input.tool_name].enabled
	"tool_user" in data.roles[input.user_id]
	input.state != "locked"
}
`

const benchSet = benchRules + `
allowed contains t if {
	"tool_user" in data.roles[input.user_id]
	input.state != "locked"
	some t in input.tools
	data.tools[t].enabled
}
`

func benchCatalog(b testing.TB, tools int, policy string) *quartermaster.Catalog {
	names := make([]string, tools)
	for i := range names {
		names[i] = fmt.Sprintf("server%02d__tool_%05d", i%20, i)
	}
	c := catalogOf(b, names, map[string]string{"p": policy})
	return withRolesOf(b, c, "alice", "dev", "tool_user")
}

// prepareDirect is the same policy in OPA itself, for comparison.
func prepareDirect(b testing.TB, c *quartermaster.Catalog, query string) rego.PreparedEvalQuery {
	trees, found := parse(modulesOf(c.Policies()))
	if len(found) > 0 {
		b.Fatal(found)
	}
	compiler := ast.NewCompiler()
	if compiler.Compile(trees); compiler.Failed() {
		b.Fatal(compiler.Errors)
	}
	prepared, err := rego.New(rego.Query(query), rego.Compiler(compiler), rego.Store(store(c, docEvery, ast.NewObject()))).PrepareForEval(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	return prepared
}

func directInput(tool any, key string) map[string]any {
	return map[string]any{
		"user_id": "alice", "agent_id": "coder", "action": "execute", "phase": "list", "groups": []any{"default"},
		"state": "undefined", "depth": 0, "context": map[string]any{"tenant_id": "acme"}, key: tool,
	}
}

// One name, asked as the resolver asks for a call: as a list first, then with
// its arguments.
func BenchmarkAdmitWarm(b *testing.B) {
	for name, policy := range map[string]string{"single": benchRules, "set": benchSet} {
		b.Run(name, func(b *testing.B) {
			e, c := open(b, Options{}), benchCatalog(b, 1000, policy)
			tool, who := c.Tools()[500:501], caller("alice")
			judged(b, e, c, who, quartermaster.Question{})
			questions := []quartermaster.Question{{}, call(`{}`)}
			b.ReportAllocs()
			for b.Loop() {
				for _, q := range questions {
					if said, err := e.Judge(b.Context(), c, who, q, tool); err != nil || !said[0].Allowed {
						b.Fatal(said, err)
					}
				}
			}
		})
	}
}

func BenchmarkAdmitDirect(b *testing.B) {
	c := benchCatalog(b, 1000, benchRules)
	prepared := prepareDirect(b, c, "data.quartermaster.tools.allow")
	b.ReportAllocs()
	for b.Loop() {
		for range 2 {
			rs, err := prepared.Eval(b.Context(), rego.EvalInput(directInput(c.Tools()[500].Name, "tool_name")))
			if err != nil || !rs.Allowed() {
				b.Fatal(rs, err)
			}
		}
	}
}

func BenchmarkListWarm(b *testing.B) {
	for name, policy := range map[string]string{"single": benchRules, "set": benchSet} {
		b.Run(name, func(b *testing.B) {
			e, c := open(b, Options{}), benchCatalog(b, 1000, policy)
			judged(b, e, c, caller("alice"), quartermaster.Question{})
			b.ReportAllocs()
			for b.Loop() {
				if _, err := e.Judge(b.Context(), c, caller("alice"), quartermaster.Question{}, c.Tools()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkListCold(b *testing.B) {
	for name, policy := range map[string]string{"single": benchRules, "set": benchSet} {
		b.Run(name, func(b *testing.B) {
			e, c := open(b, Options{}), benchCatalog(b, 1000, policy)
			judged(b, e, c, caller("alice"), quartermaster.Question{})
			d := e.desk("acme")
			for b.Loop() {
				for _, r := range *d.rulings.Load() {
					r.each((*decisions).clear)
				}
				if _, err := e.Judge(b.Context(), c, caller("alice"), quartermaster.Question{}, c.Tools()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkListDirect(b *testing.B) {
	b.Run("single", func(b *testing.B) {
		c := benchCatalog(b, 1000, benchRules)
		prepared := prepareDirect(b, c, "data.quartermaster.tools.allow")
		for b.Loop() {
			for _, tool := range c.Tools() {
				rs, err := prepared.Eval(b.Context(), rego.EvalInput(directInput(tool.Name, "tool_name")))
				if err != nil || !rs.Allowed() {
					b.Fatal(rs, err)
				}
			}
		}
	})
	b.Run("set", func(b *testing.B) {
		c := benchCatalog(b, 1000, benchSet)
		prepared := prepareDirect(b, c, "data.quartermaster.tools.allowed")
		names := make([]any, len(c.Tools()))
		for i, tool := range c.Tools() {
			names[i] = tool.Name
		}
		for b.Loop() {
			rs, err := prepared.Eval(b.Context(), rego.EvalInput(directInput(names, "tools")))
			if err != nil || len(rs[0].Expressions[0].Value.([]any)) != 1000 {
				b.Fatal(rs, err)
			}
		}
	})
}

// From a new revision of the policies, or of the tools, to the first answer.
func BenchmarkPrepare(b *testing.B) {
	for _, tools := range []int{1000, 10_000} {
		c := benchCatalog(b, tools, benchSet)
		b.Run(fmt.Sprintf("policies/%d", tools), func(b *testing.B) {
			e := open(b, Options{})
			for b.Loop() {
				e.mu.Lock()
				clear(e.desks)
				e.mu.Unlock()
				if _, err := e.Judge(b.Context(), c, caller("alice"), quartermaster.Question{}, c.Tools()[:1]); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("documents/%d", tools), func(b *testing.B) {
			e := open(b, Options{})
			p := e.compileProject(c)
			for b.Loop() {
				if _, err := e.desk("acme").prepare(b.Context(), p, c); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("compile", func(b *testing.B) {
		e, c := open(b, Options{}), benchCatalog(b, 1, benchSet)
		for b.Loop() {
			if p := e.compileProject(c); p.err != nil {
				b.Fatal(p.err)
			}
		}
	})
	b.Run("direct", func(b *testing.B) {
		c := benchCatalog(b, 1, benchSet)
		for b.Loop() {
			prepareDirect(b, c, "data.quartermaster.tools.allowed")
		}
	})
}

// What the decisions of 1,000 users over 10,000 tools take up.
func BenchmarkMemory(b *testing.B) {
	e := open(b, Options{})
	c := benchCatalog(b, 10_000, "package quartermaster.tools\n\nallowed contains t if { input.user_id; some t in input.tools }")
	for b.Loop() {
		e.mu.Lock()
		clear(e.desks)
		e.mu.Unlock()
		judged(b, e, c, caller("nobody"), quartermaster.Question{})
		before, was := heap(), e.memory.used.Load()
		for i := range 1000 {
			fill(e, c, fmt.Sprintf("user-%04d", i))
		}
		b.ReportMetric(float64(heap()-before)/(1<<20), "MB")
		b.ReportMetric(float64(e.memory.used.Load()-was)/(1<<20), "MB-counted")
	}
}

// fill keeps a whole list for a user without the cost of evaluating it.
func fill(e *Engine, c *quartermaster.Catalog, user string) {
	d := e.desk("acme")
	a := &asked{catalog: c, caller: caller(user), tools: c.Tools()}
	d.number(a)
	allowed := make([]bool, len(a.tools))
	for i := range allowed {
		allowed[i] = i%2 == 0
	}
	r := (*d.rulings.Load())[0]
	r.keep(a, r.allowed, a.key(nil, r.allowed.reads.fields), a.numbers, allowed)
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
