package limitsfile

import (
	"errors"
	"fmt"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// Bounds on one piece. Within them the library needs milliseconds, whatever
// the text is; without them some of its work grows with the square.
const (
	maxPieceBytes  = 32 << 10
	maxPieceTokens = 8192
	maxDepth       = 16
)

// node is a value of the file with its place.
type node struct {
	place
	kind  nodeKind
	text  string // of a scalar
	pairs []pair // of a mapping, in order
	items []*node
}

type pair struct{ key, value *node }

type nodeKind uint8

const (
	nullNode   nodeKind = iota
	plainNode           // a string without quotes
	quotedNode          // a string in quotes
	numberNode          // what YAML takes for a number, .inf and .nan included
	boolNode
	mappingNode
	listNode
)

// describe says what n is, for an error.
func (n *node) describe() string {
	switch n.kind {
	case nullNode:
		return "nothing"
	case mappingNode:
		return "a mapping"
	case listNode:
		return "a list"
	case quotedNode:
		return quote(n.text) + " in quotes"
	case plainNode:
		return quote(n.text)
	default:
		return clip(n.text) // a number or a boolean, as written
	}
}

// syntaxError is what is wrong with a piece's YAML.
type syntaxError struct {
	place
	problem, found, expected string
}

// parsePiece turns a piece into a tree. A panic of the library is an error
// like any other.
func parsePiece(p piece) (n *node, bad *syntaxError) {
	offset := p.line - 1
	defer func() {
		if r := recover(); r != nil {
			n, bad = nil, &syntaxError{place: place{p.line, 1}, problem: "not YAML that can be read"}
		}
	}()
	if p.size > maxPieceBytes {
		return nil, &syntaxError{
			place: place{p.line, 1}, found: bytesText(p.size) + " in one value",
			expected: "at most 32 KiB (write a long list with one item on each line)",
		}
	}
	tokens, bad := tokenize(p.text)
	if bad != nil {
		bad.line += offset
		return nil, bad
	}
	file, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		bad := describeSyntax(err)
		bad.line += offset
		return nil, bad
	}
	if len(file.Docs) != 1 || file.Docs[0].Body == nil {
		return nil, &syntaxError{place: place{p.line, 1}, problem: "not a key with a value"}
	}
	n, bad = convert(file.Docs[0].Body, 1)
	if bad != nil {
		bad.line += offset
		return nil, bad
	}
	n.shift(offset)
	return n, nil
}

func describeSyntax(err error) *syntaxError {
	var placed interface {
		GetToken() *token.Token
		GetMessage() string
	}
	if !errors.As(err, &placed) {
		return &syntaxError{place: place{1, 1}, problem: "not YAML"}
	}
	return &syntaxError{place: placeOf(placed.GetToken()), problem: "not YAML: " + clip(placed.GetMessage())}
}

func placeOf(t *token.Token) place {
	if t == nil || t.Position == nil {
		return place{1, 1}
	}
	return place{max(t.Position.Line, 1), max(t.Position.Column, 1)}
}

// shift moves a tree down by lines.
func (n *node) shift(lines int) {
	n.line += lines
	for _, p := range n.pairs {
		p.key.shift(lines)
		p.value.shift(lines)
	}
	for _, item := range n.items {
		item.shift(lines)
	}
}

// convert turns what the library read into a tree.
func convert(from ast.Node, depth int) (*node, *syntaxError) {
	at := placeOf(from.GetToken())
	if depth > maxDepth {
		return nil, tooDeep(at)
	}
	switch from := from.(type) {
	case ast.MapNode:
		return convertMapping(from, at, depth)
	case *ast.SequenceNode:
		n := &node{place: at, kind: listNode}
		for _, value := range from.Values {
			item, bad := convert(value, depth+1)
			if bad != nil {
				return nil, bad
			}
			n.items = append(n.items, item)
		}
		return n, nil
	case ast.ScalarNode:
		return convertScalar(from, at)
	default:
		return nil, &syntaxError{place: at, found: strings.ToLower(from.Type().String()), expected: "plain YAML"}
	}
}

func convertMapping(from ast.MapNode, at place, depth int) (*node, *syntaxError) {
	n := &node{place: at, kind: mappingNode}
	for pairs := from.MapRange(); pairs.Next(); {
		key, bad := convert(pairs.Key(), depth+1)
		if bad != nil {
			return nil, bad
		}
		value, bad := convert(pairs.Value(), depth+1)
		if bad != nil {
			return nil, bad
		}
		if value.kind == nullNode {
			value.place = key.place // the library puts what is missing anywhere
		}
		n.pairs = append(n.pairs, pair{key, value})
	}
	if len(n.pairs) > 0 && n.pairs[0].key.line <= at.line {
		// The library gives the colon of a mapping that has no braces.
		n.place = earlier(at, n.pairs[0].key.place)
	}
	return n, nil
}

func earlier(a, b place) place {
	if b.line < a.line || b.line == a.line && b.column < a.column {
		return b
	}
	return a
}

func convertScalar(from ast.ScalarNode, at place) (*node, *syntaxError) {
	t := from.GetToken()
	n := &node{place: at, text: t.Value}
	switch from.(type) {
	case *ast.NullNode:
		n.kind = nullNode
	case *ast.BoolNode:
		n.kind = boolNode
	case *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		n.kind = numberNode
	case *ast.StringNode:
		n.kind = plainNode
		if t.Type == token.SingleQuoteType || t.Type == token.DoubleQuoteType {
			n.kind = quotedNode
		}
	default:
		return nil, &syntaxError{place: at, found: strings.ToLower(from.Type().String()), expected: "plain YAML"}
	}
	return n, nil
}

func tooDeep(at place) *syntaxError {
	return &syntaxError{place: at, found: "more than 16 levels of nesting", expected: "at most 16"}
}

func bytesText(n int) string {
	if n >= 1<<20 {
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
}
