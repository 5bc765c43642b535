package yamlfile

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/token"
)

// CheckPiece says what keeps text from being read in one piece; nil: its words do
// not.
func CheckPiece(text string) *Error {
	_, bad := tokenize(text)
	return bad
}

// tokenize cuts a piece into tokens and refuses what our files do without,
// before the library's parser sees it: this is where an alias bomb ends.
func tokenize(text string) (token.Tokens, *Error) {
	tokens := lexer.Tokenize(text)
	if len(tokens) > maxPieceTokens {
		at := placeOf(tokens[0])
		return nil, &Error{
			Line: at.Line, Column: at.Column, Found: fmt.Sprintf("%d words and signs in one value", len(tokens)),
			Expected: "at most 8192 (write a long list with one item on each line)",
		}
	}
	var flow, onLine, line int // open brackets; nesting signs on the line so far
	for _, t := range tokens {
		at := placeOf(t)
		if t.Type == token.InvalidType {
			return nil, &Error{Line: at.Line, Column: at.Column, Problem: "not YAML: " + Clip(t.Error)}
		}
		if what := refused(t); what != "" {
			return nil, &Error{Line: at.Line, Column: at.Column, Found: what, Expected: "plain YAML" + hint(t)}
		}
		if at.Line != line {
			line, onLine = at.Line, 0
		}
		switch t.Type {
		case token.SequenceStartType, token.MappingStartType:
			flow++
		case token.SequenceEndType, token.MappingEndType:
			flow--
		case token.SequenceEntryType, token.MappingValueType:
			if flow == 0 {
				onLine++
			}
		}
		if flow > maxDepth || onLine > maxDepth {
			return nil, tooDeep(at)
		}
	}
	return tokens, nil
}

// refused names a token that our files do without; "" is a welcome one.
func refused(t *token.Token) string {
	switch t.Type {
	case token.AnchorType:
		return "an anchor (&)"
	case token.AliasType:
		return "an alias (*)"
	case token.MergeKeyType:
		return "a merge key (<<)"
	case token.TagType:
		return "a tag (!)"
	case token.LiteralType, token.FoldedType:
		return "a block scalar (| or >)"
	case token.MappingKeyType:
		return "a complex key (?)"
	case token.DirectiveType:
		return "a directive (%)"
	case token.DocumentHeaderType, token.DocumentEndType:
		return "a document marker"
	default:
		return ""
	}
}

func hint(t *token.Token) string {
	if t.Type == token.AliasType {
		return ` (put a pattern that begins with * in quotes: "*")`
	}
	return ""
}

// Quote returns s in quotes, clipped.
func Quote(s string) string {
	const most = 60
	if short := strings.ToValidUTF8(s[:min(len(s), most)], ""); len(short) < len(s) {
		return strconv.Quote(short) + "…"
	}
	return strconv.Quote(s)
}

// Clip returns the printable first line of s, at most 120 bytes of it.
func Clip(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	if len(s) > 120 {
		return strings.ToValidUTF8(s[:120], "") + "…"
	}
	return s
}

func hexByte(c byte) string  { return fmt.Sprintf("0x%02X", c) }
func runeName(r rune) string { return fmt.Sprintf("U+%04X", r) }
