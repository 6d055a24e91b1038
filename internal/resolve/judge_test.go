package resolve

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"quartermaster"
)

// sayings is what an engine says when it is asked.
type sayings func(ctx context.Context, catalog *quartermaster.Catalog, caller quartermaster.Caller, question quartermaster.Question, tools []*quartermaster.Tool) ([]quartermaster.Judgment, error)

// engine is one by hand that answers what it is told to. It serves both gates.
type engine struct {
	quartermaster.Permission
	answer  sayings
	users   func(*quartermaster.Catalog) []string
	holders func(*quartermaster.Catalog, *quartermaster.Tool) []quartermaster.Holder
}

func (e engine) Judge(ctx context.Context, catalog *quartermaster.Catalog, caller quartermaster.Caller, question quartermaster.Question, tools []*quartermaster.Tool) ([]quartermaster.Judgment, error) {
	return e.answer(ctx, catalog, caller, question, tools)
}

func (e engine) Suppose(context.Context, *quartermaster.Catalog) (quartermaster.Judge, func(), error) {
	return e, func() {}, nil
}

func (e engine) Users(_ context.Context, catalog *quartermaster.Catalog) ([]string, error) {
	return e.users(catalog), nil
}

func (e engine) Holders(_ context.Context, catalog *quartermaster.Catalog, tool *quartermaster.Tool) ([]quartermaster.Holder, error) {
	return e.holders(catalog, tool), nil
}

func passes(n int) []quartermaster.Judgment {
	return slices.Repeat([]quartermaster.Judgment{{Allowed: true}}, n)
}

const threeTools = `
quartermaster: v1
tools: {a: {}, b: {}, c: {}}
agents: {m: {tools: [a, b, c]}}
`

// GATE-1: a gate that cannot answer fails the request, closed: list, call and
// explain alike, never with fewer tools and never with more.
func TestJudgeFails(t *testing.T) {
	catalog := catalogOf(t, []byte(threeTools))
	caller := quartermaster.Caller{Project: "default", Agent: "m"}
	for name, answer := range map[string]sayings{
		"an error": func(_ context.Context, _ *quartermaster.Catalog, _ quartermaster.Caller, _ quartermaster.Question, tools []*quartermaster.Tool) ([]quartermaster.Judgment, error) {
			return passes(len(tools)), errors.New("secret address refused the connection")
		},
		"an error of ours": func(_ context.Context, _ *quartermaster.Catalog, _ quartermaster.Caller, _ quartermaster.Question, tools []*quartermaster.Tool) ([]quartermaster.Judgment, error) {
			return passes(len(tools)), quartermaster.Errorf(quartermaster.CodeToolNotFound, "none")
		},
		"too few": func(_ context.Context, _ *quartermaster.Catalog, _ quartermaster.Caller, _ quartermaster.Question, tools []*quartermaster.Tool) ([]quartermaster.Judgment, error) {
			return passes(len(tools) - 1), nil
		},
		"too many": func(_ context.Context, _ *quartermaster.Catalog, _ quartermaster.Caller, _ quartermaster.Question, tools []*quartermaster.Tool) ([]quartermaster.Judgment, error) {
			return passes(len(tools) + 1), nil
		},
		"nothing": func(context.Context, *quartermaster.Catalog, quartermaster.Caller, quartermaster.Question, []*quartermaster.Tool) ([]quartermaster.Judgment, error) {
			return nil, nil
		},
		"too late": func(ctx context.Context, _ *quartermaster.Catalog, _ quartermaster.Caller, _ quartermaster.Question, _ []*quartermaster.Tool) ([]quartermaster.Judgment, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		},
		"too late without saying so": func(ctx context.Context, _ *quartermaster.Catalog, _ quartermaster.Caller, _ quartermaster.Question, tools []*quartermaster.Tool) ([]quartermaster.Judgment, error) {
			<-ctx.Done()
			return passes(len(tools)), nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			fine := engine{answer: func(_ context.Context, _ *quartermaster.Catalog, _ quartermaster.Caller, _ quartermaster.Question, tools []*quartermaster.Tool) ([]quartermaster.Judgment, error) {
				return passes(len(tools)), nil
			}}
			for gate, r := range map[string]*Resolver{
				"permission": New(fixed{catalog}, engine{answer: answer}, nil),
				"policy":     New(fixed{catalog}, fine, engine{answer: answer}),
			} {
				for _, q := range []quartermaster.Question{{}, {Tool: "a"}, {Tool: "a", Arguments: json.RawMessage(`{}`)}, {Explain: true}, {Tool: "a", Explain: true}} {
					ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
					res, err := r.Resolve(ctx, caller, q)
					cancel()
					if res != nil || quartermaster.CodeOf(err) != quartermaster.CodeUnavailable {
						t.Errorf("%s, asked %+v: %v, %v; want %s", gate, q, res, err, quartermaster.CodeUnavailable)
					}
					if err != nil && (!strings.Contains(err.Error(), gate) || strings.Contains(err.Error(), "secret")) {
						t.Errorf("%s: said %q", gate, err)
					}
				}
			}
		})
	}
}

// GATE-1: the zero value denies, with or without a reason.
func TestZeroJudgmentRefuses(t *testing.T) {
	catalog := catalogOf(t, []byte(threeTools))
	caller := quartermaster.Caller{Project: "default", Agent: "m"}
	verdicts := engine{answer: func(_ context.Context, _ *quartermaster.Catalog, _ quartermaster.Caller, _ quartermaster.Question, tools []*quartermaster.Tool) ([]quartermaster.Judgment, error) {
		all := passes(len(tools))
		for i, tool := range tools {
			switch tool.Name {
			case "a":
				all[i] = quartermaster.Judgment{}
			case "b":
				all[i] = quartermaster.Judgment{Why: &quartermaster.Why{Reason: "it depends"}}
			}
		}
		return all, nil
	}}
	for _, r := range []*Resolver{New(fixed{catalog}, verdicts, nil), New(fixed{catalog}, nil, verdicts)} {
		res, err := r.Resolve(t.Context(), caller, quartermaster.Question{})
		if err != nil || !slices.Equal(seenNames(res.Tools), []string{"c"}) {
			t.Errorf("listed %v, %v; want c", seenNames(res.Tools), err)
		}
		for name, want := range map[string]string{"a": "engine refuses it", "b": "it depends"} {
			if got := agree(t, r, caller, catalog, res)[name]; got.Gate != r.chain[5].name || !strings.Contains(got.Reason, want) {
				t.Errorf("%s: %+v, want %q", name, got, want)
			}
		}
	}
}

// GATE-6, GATE-7: engines are asked in bulk, once, about what is left; a call
// asks the policy a second time, with its arguments; an explanation carries the
// engine's own words.
func TestJudgeIsAsked(t *testing.T) {
	catalog := catalogOf(t, []byte(threeTools))
	caller := quartermaster.Caller{Project: "default", Agent: "m", User: "u"}
	type asking struct {
		gate      string
		tools     string
		arguments string
	}
	var log []asking
	watch := func(gate string) engine {
		return engine{answer: func(_ context.Context, of *quartermaster.Catalog, c quartermaster.Caller, q quartermaster.Question, tools []*quartermaster.Tool) ([]quartermaster.Judgment, error) {
			if of != catalog {
				t.Error("asked about another catalog")
			}
			if c.User != "u" || c.State != quartermaster.StateUndefined {
				t.Errorf("asked for %+v", c)
			}
			log = append(log, asking{gate, strings.Join(seenNames(tools), " "), string(q.Arguments)})
			all := passes(len(tools))
			for i, tool := range tools {
				all[i].Why = &quartermaster.Why{Reason: gate + " says yes"}
				if gate == "permission" && tool.Name == "b" {
					all[i] = quartermaster.Judgment{Why: &quartermaster.Why{Reason: "no relation", Remedy: "grant it"}}
				}
				if q.Arguments != nil && strings.Contains(string(q.Arguments), "forbidden") {
					all[i] = quartermaster.Judgment{Why: &quartermaster.Why{Reason: "these arguments are forbidden"}}
				}
			}
			return all, nil
		}}
	}
	r := New(fixed{catalog}, watch("permission"), watch("policy"))
	for _, tt := range []struct {
		question quartermaster.Question
		want     []asking
		tools    string
	}{
		{quartermaster.Question{}, []asking{{"permission", "a b c", ""}, {"policy", "a c", ""}}, "a c"},
		{quartermaster.Question{Tool: "a"}, []asking{{"permission", "a", ""}, {"policy", "a", ""}}, "a"},
		{quartermaster.Question{Tool: "b"}, []asking{{"permission", "b", ""}, {"policy", "", ""}}, ""},
		{quartermaster.Question{Tool: "echo"}, []asking{{"permission", "", ""}, {"policy", "", ""}}, ""},
		{quartermaster.Question{Tool: "none"}, []asking{{"permission", "", ""}, {"policy", "", ""}}, ""},
		{
			quartermaster.Question{Tool: "a", Arguments: json.RawMessage(`{"x":1}`)},
			[]asking{{"permission", "a", ""}, {"policy", "a", ""}, {"policy", "a", `{"x":1}`}},
			"a",
		},
		{
			quartermaster.Question{Tool: "a", Arguments: json.RawMessage(`{"x":"forbidden"}`)},
			[]asking{{"permission", "a", ""}, {"policy", "a", ""}, {"policy", "a", `{"x":"forbidden"}`}},
			"",
		},
	} {
		log = nil
		res, err := r.Resolve(t.Context(), caller, tt.question)
		if err != nil || strings.Join(seenNames(res.Tools), " ") != tt.tools {
			t.Errorf("%+v: %v, %v; want %q", tt.question, seenNames(res.Tools), err, tt.tools)
		}
		if !slices.Equal(log, tt.want) {
			t.Errorf("%+v: asked %v, want %v", tt.question, log, tt.want)
		}
		for range res.Refusals { // GATE-8: the reason is at hand; nobody is asked again
		}
		if !slices.Equal(log, tt.want) {
			t.Errorf("%+v: telling the refusals asked %v", tt.question, log)
		}
	}
	if e := explanation(t, r, caller, "b"); e.Gate != quartermaster.GatePermission || e.Reason != "no relation" || e.Remedy != "grant it" {
		t.Errorf("explained as %+v", e)
	}
	if e := explanation(t, r, caller, "a"); !e.Allowed || e.Gates[5].Reason != "permission says yes" || e.Gates[6].Reason != "policy says yes" {
		t.Errorf("explained as %+v", e)
	}
	res, err := r.Resolve(t.Context(), caller, quartermaster.Question{Tool: "a", Arguments: json.RawMessage(`"forbidden"`)})
	if err != nil {
		t.Fatal(err)
	}
	for _, refusal := range res.Refusals {
		if refusal.Reason != "these arguments are forbidden" {
			t.Errorf("refused: %+v", refusal)
		}
	}
}

// SPEC 6: the order of the gates is fixed; one without an engine is left out.
func TestGates(t *testing.T) {
	yes := judge(func(quartermaster.Question, *quartermaster.Tool) bool { return true })
	five := []quartermaster.Gate{"registry", "capsule", "depth", "group", "state"}
	for _, tt := range []struct {
		r    *Resolver
		want []quartermaster.Gate
	}{
		{New(nil, nil, nil), five},
		{New(nil, yes, nil), append(slices.Clone(five), "permission")},
		{New(nil, nil, yes), append(slices.Clone(five), "policy")},
		{New(nil, yes, yes), append(slices.Clone(five), "permission", "policy")},
	} {
		if got := tt.r.Gates(); !slices.Equal(got, tt.want) {
			t.Errorf("%v, want %v", got, tt.want)
		}
	}
}

// A catalog that cannot be read fails the request as it is.
func TestCatalogFails(t *testing.T) {
	r := New(broken{}, nil, nil)
	if _, err := r.Resolve(t.Context(), quartermaster.Caller{}, quartermaster.Question{}); quartermaster.CodeOf(err) != quartermaster.CodeNotFound {
		t.Error(err)
	}
}

type broken struct{}

func (broken) Catalog(context.Context, string) (*quartermaster.Catalog, error) {
	return nil, quartermaster.Errorf(quartermaster.CodeNotFound, "there is no such project")
}
