package workflow_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"quartermaster"
	"quartermaster/internal/server/workflow"
)

var (
	update   = flag.Bool("update", false, "write the golden files anew")
	pictures = flag.String("pictures", "", "directory to write all sample pictures to")
)

// tool makes one that leads to a state ("": none) and is available in some
// states; without any it is available in all of them.
func tool(name, state string, in ...string) quartermaster.Tool {
	return quartermaster.Tool{Name: name, State: state, AvailableInStates: in, Enabled: true}
}

func catalog(tools ...quartermaster.Tool) *quartermaster.Catalog {
	changes := make([]quartermaster.Change, len(tools))
	for i := range tools {
		tools[i].ID = fmt.Sprintf("%08d", i)
		changes[i] = quartermaster.Change{Noun: quartermaster.NounTool, Key: tools[i].ID, Tool: &tools[i]}
	}
	return quartermaster.NewCatalog(quartermaster.Project{ID: "p"}).With(1, changes)
}

// research is 003's example (section 5.1).
func research() []quartermaster.Tool {
	return []quartermaster.Tool{
		tool("knowledge-query", "analysis", "undefined", "research"),
		tool("graph-update", "", "analysis", "modification"),
		tool("text-completion", "undefined"),
		tool("complex-analysis", "results", "analysis"),
		tool("reset-workflow", "undefined", "analysis", "results"),
	}
}

// samples are workflows to look at.
func samples() map[string][]quartermaster.Tool {
	linear := []quartermaster.Tool{tool("help", "")}
	steps := []string{"undefined", "intake", "triage", "research", "draft", "review", "approval", "published"}
	for i := range steps[1:] {
		linear = append(linear, tool("go-to-"+steps[i+1], steps[i+1], steps[i]))
	}
	return map[string][]quartermaster.Tool{
		"003":    research(),
		"none":   {tool("echo", ""), tool("time_now", "")},
		"linear": linear,
		"branching": {
			tool("open_ticket", "triage", "undefined"),
			tool("classify_bug", "bug", "triage"), tool("classify_feature", "feature", "triage"), tool("classify_question", "question", "triage"),
			tool("reproduce", "confirmed", "bug"), tool("bisect", "confirmed", "bug"), tool("find_owner", "confirmed", "bug"), tool("search_logs", "confirmed", "bug"),
			tool("estimate", "planned", "feature"), tool("plan_fix", "planned", "confirmed"),
			tool("answer", "closed", "question"), tool("merge", "closed", "in review"),
			tool("write_code", "in review", "planned"), tool("request_changes", "planned", "in review"),
			tool("not_a_bug", "question", "bug"), tool("reopen", "triage", "closed", "question"), tool("comment", "in review", "in review"),
			tool("cancel", "canceled"), tool("wontfix", "closed", "bug", "feature", "question"), tool("old_export", "archived", "legacy"),
		},
		"dense": dense(14, 40),
		"wide":  dense(60, 160),
		"many":  dense(260, 900),
		"names": {
			tool("to-日本語の状態", "日本語の状態", "undefined"), tool("a_tool_with_a_rather_long_name_that_goes_on_and_on", "a state whose name is far too long to be shown in one box", "日本語の状態"),
			tool("emoji", "🚀 launch", "undefined"), tool("WWW", "MMMMMMMMWWWWWWWW", "🚀 launch"), tool("x", "<script>alert(1)</script>", "undefined"),
			tool("illi", "illicit", "undefined"), tool("loop", "illicit", "illicit"), tool("any1", "illicit"), tool("any2", "illicit"),
		},
	}
}

func dense(states, tools int) []quartermaster.Tool {
	name := func(i int) string {
		if i == 0 {
			return "undefined"
		}
		return fmt.Sprintf("state-%d", i)
	}
	var all []quartermaster.Tool
	seed := uint32(7)
	random := func(n int) int { seed = seed*1664525 + 1013904223; return int(seed>>8) % n }
	for i := range tools {
		from := random(states)
		all = append(all, tool(fmt.Sprintf("tool_%d", i), name(random(states)), name(from), name((from+random(3))%states)))
	}
	return all
}

// WF-2: -pictures writes the samples for somebody to look at.
func TestSamples(t *testing.T) {
	for name, tools := range samples() {
		w := workflow.Of(catalog(tools...))
		wellFormed(t, workflow.SVG(w))
		writeSample(t, name, w)
	}
}

func writeSample(t *testing.T, name string, w workflow.Workflow) {
	t.Helper()
	if *pictures == "" {
		return
	}
	for ext, data := range map[string][]byte{".svg": workflow.SVG(w), ".mmd": []byte(workflow.Mermaid(w)), ".dot": []byte(workflow.DOT(w))} {
		if err := os.WriteFile(filepath.Join(*pictures, name+ext), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
