package opa

import (
	"fmt"
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"
)

// reads is what a rule's answer can depend on, found by looking at every rule
// that it can come to. It is never too little: a look that cannot be told
// counts as a look at everything.
type reads struct {
	fields   fields
	docs     docs
	volatile bool // calls what answers differently from time to time
	// apart: the set rule decides on each tool by itself, whatever the others.
	apart   bool
	unknown []string // fields of input that are never there, with their places
}

// fields are those of the input that change from question to question.
type fields uint16

const (
	fieldUser fields = 1 << iota
	fieldAgent
	fieldTool
	fieldTools
	fieldGroups
	fieldState
	fieldDepth
	fieldPhase
	fieldArguments
	fieldEvery fields = 1<<iota - 1
)

var fieldsByName = map[string]fields{
	"user_id": fieldUser, "agent_id": fieldAgent, "tool_name": fieldTool, "tools": fieldTools,
	"groups": fieldGroups, "state": fieldState, "depth": fieldDepth, "phase": fieldPhase,
	"arguments": fieldArguments,
	"action":    0, "context": 0, // the same for every question of a project
}

// docs are the documents that come from the catalog.
type docs uint8

const (
	docTools docs = 1 << iota
	docGroups
	docRoles
	docProject
	docEvery docs = 1<<iota - 1
)

// supplied are the names under which policies find them.
var supplied = map[string]docs{"tools": docTools, "groups": docGroups, "roles": docRoles, "project": docProject}

// alsoVolatile are functions that look at the clock though OPA does not say so.
var alsoVolatile = []string{
	"crypto.x509.parse_and_verify_certificates",
	"crypto.x509.parse_and_verify_certificates_with_options",
}

var volatile = func() map[string]bool {
	names := map[string]bool{}
	for _, b := range ast.Builtins {
		names[b.Name] = b.Nondeterministic || slices.Contains(alsoVolatile, b.Name)
	}
	return names
}()

// analysis gathers what rules read.
type analysis struct {
	reads
	at        *ast.Location // of the rule that is looked at
	whole     bool          // some rule takes the input as it is
	manyTools int           // looks at input.tools
}

// analyze looks at the rules that answer for ref, and at all they can come to.
func analyze(compiler *ast.Compiler, ref ast.Ref, rules []*ast.Rule) reads {
	var a analysis
	seen := map[*ast.Rule]bool{}
	var visit func(r *ast.Rule)
	visit = func(r *ast.Rule) {
		for ; r != nil && !seen[r]; r = r.Else {
			seen[r] = true
			a.look(r)
			for next := range compiler.Graph.Dependencies(r) {
				visit(next.(*ast.Rule))
			}
		}
	}
	for _, r := range compiler.GetRules(ref) {
		visit(r)
	}
	own := 0
	for _, r := range rules {
		for ; r != nil; r = r.Else {
			own += drawsOne(r)
		}
	}
	a.apart = own == a.manyTools && !a.whole
	slices.Sort(a.unknown) // rules come in no order
	return a.reads
}

// look takes down what one rule mentions; its else stands for itself.
func (a *analysis) look(rule *ast.Rule) {
	alone := *rule
	alone.Else = nil
	a.at = rule.Location
	var visitor *ast.GenericVisitor
	visitor = ast.NewGenericVisitor(func(x any) bool {
		switch x := x.(type) {
		case ast.Ref:
			a.ref(x)
			for _, term := range x[1:] {
				visitor.Walk(term)
			}
			_, named := x[0].Value.(ast.Var)
			return named
		case ast.Var:
			a.ref(ast.Ref{ast.NewTerm(x)})
		}
		return false
	})
	visitor.Walk(&alone)
}

func (a *analysis) ref(ref ast.Ref) {
	var first string
	if len(ref) > 1 {
		s, _ := ref[1].Value.(ast.String)
		first = string(s)
	}
	switch {
	case ref[0].Equal(ast.InputRootDocument):
		a.input(first)
	case !ref[0].Equal(ast.DefaultRootDocument):
		a.volatile = a.volatile || volatile[ref.String()]
	case first == "":
		a.docs = docEvery
	default:
		a.docs |= supplied[first]
	}
}

// input takes down a look at a field; "": at one that cannot be told.
func (a *analysis) input(name string) {
	field, known := fieldsByName[name]
	switch {
	case name == "":
		a.whole, a.fields = true, fieldEvery
	case !known:
		a.unknown = append(a.unknown, "input."+name+" at "+place(a.at))
	case field == fieldTools:
		a.manyTools++
	}
	a.fields |= field
}

// drawsOne reports whether a set rule does no more with the candidates than to
// draw one of them, whose name is then the answer: in
//
//	allowed contains t if { some t in input.tools; ... }
//	allowed := {t | some t in input.tools; ...}
//
// nothing about t can depend on the others. It counts the looks at input.tools
// that are so, which are one at most.
func drawsOne(rule *ast.Rule) int {
	body, drawn := rule.Body, rule.Head.Key
	if drawn == nil {
		body, drawn = comprehended(rule)
	}
	if drawn == nil {
		return 0
	}
	for _, expr := range body {
		if position, ok := draws(expr, drawn); ok && mentions(rule, position) == 1 {
			return 1
		}
	}
	return 0
}

// comprehended finds the set comprehension that is a rule's whole value.
func comprehended(rule *ast.Rule) (ast.Body, *ast.Term) {
	if rule.Head.Value == nil {
		return nil, nil
	}
	for _, expr := range rule.Body {
		if !expr.IsEquality() || expr.Negated || len(expr.With) > 0 {
			continue
		}
		left, right := expr.Operand(0), expr.Operand(1)
		set, ok := right.Value.(*ast.SetComprehension)
		if whole, isVar := left.Value.(ast.Var); ok && isVar && left.Equal(rule.Head.Value) && mentions(rule.Body, whole) == 1 {
			return set.Body, set.Term
		}
	}
	return nil, nil
}

// draws reads drawn = input.tools[position].
func draws(expr *ast.Expr, drawn *ast.Term) (position ast.Var, ok bool) {
	if !expr.IsEquality() || expr.Negated || len(expr.With) > 0 {
		return "", false
	}
	left, right := expr.Operand(0), expr.Operand(1)
	if right.Equal(drawn) {
		left, right = right, left
	}
	ref, isRef := right.Value.(ast.Ref)
	if _, isVar := drawn.Value.(ast.Var); !isVar || !isRef || !left.Equal(drawn) || len(ref) != 3 {
		return "", false
	}
	position, isVar := ref[2].Value.(ast.Var)
	return position, isVar && ref[:2].Equal(toolsRef)
}

var toolsRef = ast.MustParseRef("input.tools")

func mentions(where any, v ast.Var) (n int) {
	ast.WalkVars(where, func(x ast.Var) bool {
		if x == v {
			n++
		}
		return false
	})
	return n
}

// place is where something stands, for people.
func place(l *ast.Location) string { return fmt.Sprintf("%s:%d", l.File, l.Row) }
