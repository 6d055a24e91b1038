package workflow_test

import (
	"fmt"
	"testing"

	"quartermaster"
	"quartermaster/internal/server/workflow"
)

// large has 100,000 tools in 1,000 states; one in ten is open everywhere.
func large() *quartermaster.Catalog {
	tools := make([]quartermaster.Tool, 100_000)
	for i := range tools {
		state := func(n int) string { return fmt.Sprintf("state-%d", (i*7+n*n)%1000) }
		tools[i] = tool(fmt.Sprintf("tool-%06d", i), state(0), state(1), state(5), "undefined")
		if i%10 == 0 {
			tools[i].AvailableInStates = nil
		}
	}
	return catalog(tools...)
}

// WF-2
func BenchmarkOf(b *testing.B) {
	c := large()
	b.ReportAllocs()
	for b.Loop() {
		workflow.Of(c)
	}
}

// WF-2
func BenchmarkSVG(b *testing.B) {
	w := workflow.Of(large())
	for b.Loop() {
		workflow.SVG(w)
	}
}

// WF-2: the worst that the limits of a picture let through: long ways back, all
// across it.
func BenchmarkSVGWorst(b *testing.B) {
	var tools []quartermaster.Tool
	from := "undefined"
	for i := range 99 {
		to := fmt.Sprintf("state-%d", i)
		tools = append(tools, tool("to-"+to, to, from))
		from = to
	}
	for i := range 400 {
		tools = append(tools, tool(fmt.Sprintf("back-%d", i), fmt.Sprintf("state-%d", i%20), fmt.Sprintf("state-%d", 98-i/20)))
	}
	w := workflow.Of(catalog(tools...))
	for b.Loop() {
		workflow.SVG(w)
	}
}
