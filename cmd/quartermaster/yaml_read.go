package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"quartermaster"
)

// place is where something stands in a file that a person has written; without a
// line it is the whole file, or a flag.
type place struct {
	file string
	line int
}

func (p place) String() string {
	if p.line == 0 {
		return p.file
	}
	return p.file + ":" + strconv.Itoa(p.line)
}

// places are where values stand, by their path: tools.echo.groups[0]. A path
// is written as the server writes it in its faults.
type places map[string]place

// maxNodes bounds what aliases can blow a file up to.
const maxNodes = 2_000_000

// readYAML reads one YAML (or JSON) document into ordered values.
func readYAML(file string, data []byte) (any, places, error) {
	r := &yamlReader{file: file, places: places{}, anchors: map[string]ast.Node{}}
	f, err := parser.ParseBytes(withoutMark(data), 0)
	if err != nil {
		return nil, nil, r.syntaxError(err)
	}
	var body ast.Node
	for _, doc := range f.Docs {
		if doc.Body == nil {
			continue
		}
		if body != nil {
			return nil, nil, r.fault(doc.Body, "a second document begins here; a file holds one")
		}
		body = doc.Body
	}
	if body == nil {
		return nil, nil, r.faultAt(1, "the file is empty")
	}
	v, err := r.value(body, "")
	return v, r.places, err
}

// withoutMark skips the byte order mark that some editors begin a file with.
func withoutMark(data []byte) []byte {
	return bytes.TrimPrefix(data, []byte("\uFEFF"))
}

type yamlReader struct {
	file    string
	places  places
	anchors map[string]ast.Node
	nodes   int
	open    []string // aliases that are being followed
}

func (r *yamlReader) syntaxError(err error) error {
	e, ok := errors.AsType[yaml.Error](err)
	if !ok || e.GetToken() == nil {
		return r.faultAt(1, "%v", err)
	}
	return r.faultAt(e.GetToken().Position.Line, "%s", e.GetMessage())
}

func (r *yamlReader) fault(n ast.Node, format string, args ...any) error {
	return r.faultAt(lineOf(n), format, args...)
}

func (r *yamlReader) faultAt(line int, format string, args ...any) error {
	e := quartermaster.Errorf(quartermaster.CodeMalformedRequest, "%s is not valid YAML", r.file)
	e.Faults = []quartermaster.Fault{{
		Location: place{r.file, line}.String(), Message: fmt.Sprintf(format, args...),
	}}
	return e
}

func lineOf(n ast.Node) int {
	switch n := n.(type) {
	case *ast.MappingNode:
		if len(n.Values) > 0 && !n.IsFlowStyle {
			return lineOf(n.Values[0].Key) // its own token is a colon, somewhere
		}
	case *ast.MappingValueNode:
		return lineOf(n.Key)
	}
	return n.GetToken().Position.Line
}

// value reads n, which stands at the path at.
func (r *yamlReader) value(n ast.Node, at string) (any, error) {
	if r.nodes++; r.nodes > maxNodes {
		return nil, r.fault(n, "the aliases in this file make it too large")
	}
	if _, ok := r.places[at]; !ok {
		r.places[at] = place{r.file, lineOf(n)}
	}
	switch n := n.(type) {
	case *ast.MappingNode:
		return r.mapping(n.Values, at)
	case *ast.MappingValueNode:
		return r.mapping([]*ast.MappingValueNode{n}, at)
	case *ast.SequenceNode:
		return r.sequence(n, at)
	case *ast.AnchorNode:
		r.anchors[n.Name.GetToken().Value] = n.Value
		return r.value(n.Value, at)
	case *ast.AliasNode:
		return r.alias(n, at)
	case *ast.TagNode:
		return r.tagged(n, at)
	default:
		return r.scalar(n)
	}
}

func (r *yamlReader) sequence(n *ast.SequenceNode, at string) (any, error) {
	list := make([]any, len(n.Values))
	for i, item := range n.Values {
		v, err := r.value(item, at+"["+strconv.Itoa(i)+"]")
		if err != nil {
			return nil, err
		}
		list[i] = v
	}
	return list, nil
}

func (r *yamlReader) mapping(values []*ast.MappingValueNode, at string) (any, error) {
	o := object{}
	seen := map[string]int{}
	for _, m := range values {
		if _, merge := m.Key.(*ast.MergeKeyNode); merge {
			return nil, r.fault(m.Key, "merge keys (<<) are not supported; write the fields out")
		}
		key, err := r.key(m.Key)
		if err != nil {
			return nil, err
		}
		if line, ok := seen[key]; ok {
			return nil, r.fault(m.Key, "the key %q stands already in line %d", key, line)
		}
		seen[key] = lineOf(m.Key)
		below := join(at, key)
		r.places[below] = place{r.file, lineOf(m.Key)}
		v, err := r.value(m.Value, below)
		if err != nil {
			return nil, err
		}
		o = append(o, member{key, v})
	}
	return o, nil
}

func join(at, key string) string {
	if at == "" {
		return key
	}
	return at + "." + key
}

// key reads a key as it is written: 1.50 is the agent "1.50".
func (r *yamlReader) key(n ast.MapKeyNode) (string, error) {
	var inner ast.Node = n
	if k, ok := n.(*ast.MappingKeyNode); ok {
		inner = k.Value
	}
	switch k := inner.(type) {
	case *ast.StringNode:
		return k.Value, r.checkPlain(k)
	case *ast.LiteralNode:
		return k.Value.Value, nil
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.NullNode, *ast.InfinityNode, *ast.NanNode:
		return inner.GetToken().Value, nil
	default:
		return "", r.fault(n, "a key must be text")
	}
}

func (r *yamlReader) alias(n *ast.AliasNode, at string) (any, error) {
	name := n.Value.GetToken().Value
	target, ok := r.anchors[name]
	if !ok {
		return nil, r.fault(n, "there is no anchor &%s before this", name)
	}
	if len(r.open) > 100 {
		return nil, r.fault(n, "the alias *%s contains itself", name)
	}
	r.open = append(r.open, name)
	v, err := r.value(target, at)
	r.open = r.open[:len(r.open)-1]
	return v, err
}

// tagged knows the one tag that people need: this is text.
func (r *yamlReader) tagged(n *ast.TagNode, at string) (any, error) {
	if tag := n.Start.Value; tag != "!!str" {
		return nil, r.fault(n, "the tag %s is not supported", tag)
	}
	switch v := n.Value.(type) {
	case *ast.StringNode, *ast.LiteralNode:
		return r.value(v, at)
	case ast.ScalarNode:
		return v.GetToken().Value, nil
	default:
		return nil, r.fault(n, "!!str must be followed by text")
	}
}

// jsonNumber is a number that JSON writes in the same way. It stays as it is
// written, whatever its size.
var jsonNumber = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$`)

func (r *yamlReader) scalar(n ast.Node) (any, error) {
	text := n.GetToken().Value
	switch n := n.(type) {
	case *ast.StringNode:
		if isPlain(n.GetToken()) && jsonNumber.MatchString(text) {
			return json.Number(text), nil
		}
		return n.Value, r.checkPlain(n)
	case *ast.LiteralNode:
		return n.Value.Value, nil
	case *ast.BoolNode:
		return n.Value, nil
	case *ast.NullNode:
		return nil, nil
	case *ast.IntegerNode:
		if jsonNumber.MatchString(text) {
			return json.Number(text), nil
		}
		return json.Number(fmt.Sprint(n.Value)), nil
	case *ast.FloatNode:
		if jsonNumber.MatchString(text) {
			return json.Number(text), nil
		}
		if math.IsInf(n.Value, 0) || math.IsNaN(n.Value) {
			return nil, r.fault(n, "%s is no number that JSON could carry", text)
		}
		return json.Number(strconv.FormatFloat(n.Value, 'g', -1, 64)), nil
	default:
		return nil, r.fault(n, "%s cannot stand here", strings.TrimSpace(text))
	}
}

func isPlain(t *token.Token) bool {
	return t.Type != token.SingleQuoteType && t.Type != token.DoubleQuoteType
}

// checkPlain refuses a tab in text without quotes: the parser would drop it
// silently.
func (r *yamlReader) checkPlain(n *ast.StringNode) error {
	t := n.GetToken()
	if isPlain(t) && strings.Contains(strings.Trim(t.Origin, " \t\r\n"), "\t") {
		return r.fault(n, "a tab in text without quotes; put the text in quotes")
	}
	return nil
}
