package yamlfile

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
	MaxPieceBytes  = 32 << 10 // of its text
	maxPieceTokens = 8192
	maxDepth       = 16
)

// Place is a position in a file, both counted from 1 and columns in
// characters; zero means none.
type Place struct{ Line, Column int }

// Node is a value of a file with its place.
type Node struct {
	Place
	Kind  Kind
	Text  string // of a scalar
	Pairs []Pair // of a mapping, in order
	Items []*Node
}

// Pair is a key of a mapping and its value; nil: it is there and could not be
// read, which was reported.
type Pair struct{ Key, Value *Node }

// Kind is what a Node is.
type Kind uint8

const (
	Null   Kind = iota
	Plain       // a string without quotes
	Quoted      // a string in quotes
	Number      // what YAML takes for a number, .inf and .nan included
	Bool
	Mapping
	List
)

// Describe says what n is, for an error.
func (n *Node) Describe() string {
	switch n.Kind {
	case Null:
		return "nothing"
	case Mapping:
		return "a mapping"
	case List:
		return "a list"
	case Quoted:
		return Quote(n.Text) + " in quotes"
	case Plain:
		return Quote(n.Text)
	default:
		return Clip(n.Text) // a number or a boolean, as written
	}
}

// Parse turns a piece into a tree. What is wrong with it has no File. A panic of
// the library is an error like any other.
func (p Piece) Parse() (n *Node, bad *Error) {
	defer func() {
		if r := recover(); r != nil {
			n, bad = nil, &Error{Line: p.Line, Column: 1, Problem: "not YAML that can be read"}
		}
	}()
	if p.size > MaxPieceBytes {
		return nil, &Error{
			Line: p.Line, Column: 1, Found: BytesText(p.size) + " in one value",
			Expected: "at most 32 KiB (write a long list with one item on each line)",
		}
	}
	n, bad = parse(p.Text)
	if bad != nil {
		bad.Line += p.Line - 1
		return nil, bad
	}
	if n == nil {
		return nil, &Error{Line: p.Line, Column: 1, Problem: "not a key with a value"}
	}
	n.shift(p.Line - 1)
	return n, nil
}

// parse turns text into a tree whose places count from its first line; nil: there
// is nothing in it.
func parse(text string) (*Node, *Error) {
	tokens, bad := tokenize(text)
	if bad != nil {
		return nil, bad
	}
	file, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		return nil, describeSyntax(err)
	}
	if len(file.Docs) != 1 || file.Docs[0].Body == nil {
		return nil, nil
	}
	return convert(file.Docs[0].Body, 1)
}

func describeSyntax(err error) *Error {
	var placed interface {
		GetToken() *token.Token
		GetMessage() string
	}
	if !errors.As(err, &placed) {
		return &Error{Line: 1, Column: 1, Problem: "not YAML"}
	}
	at := placeOf(placed.GetToken())
	return &Error{Line: at.Line, Column: at.Column, Problem: "not YAML: " + Clip(placed.GetMessage())}
}

func placeOf(t *token.Token) Place {
	if t == nil || t.Position == nil {
		return Place{1, 1}
	}
	return Place{max(t.Position.Line, 1), max(t.Position.Column, 1)}
}

// shift moves a tree down by lines.
func (n *Node) shift(lines int) {
	n.Line += lines
	for _, p := range n.Pairs {
		p.Key.shift(lines)
		p.Value.shift(lines)
	}
	for _, item := range n.Items {
		item.shift(lines)
	}
}

// convert turns what the library read into a tree.
func convert(from ast.Node, depth int) (*Node, *Error) {
	at := placeOf(from.GetToken())
	if depth > maxDepth {
		return nil, tooDeep(at)
	}
	switch from := from.(type) {
	case ast.MapNode:
		return convertMapping(from, at, depth)
	case *ast.SequenceNode:
		n := &Node{Place: at, Kind: List}
		for _, value := range from.Values {
			item, bad := convert(value, depth+1)
			if bad != nil {
				return nil, bad
			}
			n.Items = append(n.Items, item)
		}
		return n, nil
	case ast.ScalarNode:
		return convertScalar(from, at)
	default:
		return nil, &Error{Line: at.Line, Column: at.Column, Found: strings.ToLower(from.Type().String()), Expected: "plain YAML"}
	}
}

func convertMapping(from ast.MapNode, at Place, depth int) (*Node, *Error) {
	n := &Node{Place: at, Kind: Mapping}
	for pairs := from.MapRange(); pairs.Next(); {
		key, bad := convert(pairs.Key(), depth+1)
		if bad != nil {
			return nil, bad
		}
		value, bad := convert(pairs.Value(), depth+1)
		if bad != nil {
			return nil, bad
		}
		if value.Kind == Null {
			value.Place = key.Place // the library puts what is missing anywhere
		}
		n.Pairs = append(n.Pairs, Pair{key, value})
	}
	if len(n.Pairs) > 0 && n.Pairs[0].Key.Line <= at.Line {
		// The library gives the colon of a mapping that has no braces.
		n.Place = earlier(at, n.Pairs[0].Key.Place)
	}
	return n, nil
}

func earlier(a, b Place) Place {
	if b.Line < a.Line || b.Line == a.Line && b.Column < a.Column {
		return b
	}
	return a
}

func convertScalar(from ast.ScalarNode, at Place) (*Node, *Error) {
	t := from.GetToken()
	n := &Node{Place: at, Text: t.Value}
	switch from.(type) {
	case *ast.NullNode:
		n.Kind = Null
	case *ast.BoolNode:
		n.Kind = Bool
	case *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		n.Kind = Number
	case *ast.StringNode:
		n.Kind = Plain
		if t.Type == token.SingleQuoteType || t.Type == token.DoubleQuoteType {
			n.Kind = Quoted
		}
	default:
		return nil, &Error{Line: at.Line, Column: at.Column, Found: strings.ToLower(from.Type().String()), Expected: "plain YAML"}
	}
	return n, nil
}

func tooDeep(at Place) *Error {
	return &Error{Line: at.Line, Column: at.Column, Found: "more than 16 levels of nesting", Expected: "at most 16"}
}

// BytesText returns a size in KiB or MiB.
func BytesText(n int) string {
	if n >= 1<<20 {
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
}

// boundText returns a bound of whole KiB or MiB.
func boundText(n int) string { return strings.Replace(BytesText(n), ".0 ", " ", 1) }
