package yamlfile

import (
	"bytes"
	"iter"
	"strings"
)

// Piece is a key of the file with its value, or an item of a list that stands
// below its key on lines of its own: what the YAML library sees at a time.
type Piece struct {
	Kind PieceKind
	Line int    // of the first line, from 1
	Text string // whole lines; cut off beyond MaxPieceBytes
	size int    // bytes of the whole piece

	// Of BadPiece:
	Column          int
	Found, Expected string
}

// PieceKind is what a Piece is.
type PieceKind uint8

const (
	KeyPiece  PieceKind = iota // a key and its value
	ListPiece                  // a key whose value is the item pieces that follow
	ItemPiece                  // "- " and what belongs to it
	BadPiece                   // a line that can be none of these
)

// LeadingWord returns the key that the piece begins with, "" if it does with none.
func (p Piece) LeadingWord() string {
	return p.Text[:len(p.Text)-len(strings.TrimLeft(p.Text, wordChars))]
}

// Pieces cuts data at the keys of the file and at the items of their lists.
// The cuts follow the indentation rules of YAML: what belongs to a key at the
// start of a line, or to an item, is indented deeper than it. The example
// of a key and its value is for errors.
func Pieces(data []byte, example string) iter.Seq[Piece] {
	return func(yield func(Piece) bool) {
		s := splitter{data: data, example: example, item: -1, yield: yield}
		number := 0
		for start := 0; start < len(data); {
			end := len(data)
			if i := bytes.IndexByte(data[start:], '\n'); i >= 0 {
				end = start + i + 1
			}
			number++
			if !s.line(number, start, end) {
				return
			}
			start = end
		}
		s.flush(s.kind)
	}
}

// HasKey reports whether a file has a key at its top, whether or not all of it can
// be read.
func HasKey(data []byte, key string) bool {
	for p := range Pieces(data, "") {
		if p.Kind != BadPiece && p.LeadingWord() == key && strings.HasPrefix(p.Text[len(key):], ":") {
			return true
		}
	}
	return false
}

// splitter holds the piece that is being gathered.
type splitter struct {
	data    []byte
	example string // of a key, for errors
	yield   func(Piece) bool

	open       bool // a piece is being gathered
	kind       PieceKind
	number     int // its first line
	start, end int // its bytes, to the last line that is not blank or a comment

	bare   bool // the open key has nothing behind its colon yet
	inList bool // the last key's value is a list of items
	item   int  // indentation of those items; -1 before the first
	marker bool // a "---" was seen
	any    bool // a key or item was seen
	lost   bool // the last piece was bad; what is below it was reported with it
}

// line takes one line; it reports false when the reader wants no more.
func (s *splitter) line(number, start, end int) bool {
	line := bytes.TrimRight(s.data[start:end], " \r\n")
	body := bytes.TrimLeft(line, " ")
	if len(body) == 0 || body[0] == '#' {
		return true
	}
	indent := len(line) - len(body)
	dash := body[0] == '-' && (len(body) == 1 || body[1] == ' ')

	if indent == 0 && !dash {
		if isMarker(line) {
			return s.documentMarker(number, line)
		}
		if body[0] != ']' && body[0] != '}' {
			return s.begin(KeyPiece, number, start, end) && s.key(line)
		}
	}
	switch {
	case dash && (s.bare && s.item < 0 || s.inList && indent == s.item):
		s.item = indent
		return s.begin(ItemPiece, number, start, end)
	case s.inList && indent <= s.item:
		return s.bad(number, indent, quoteBytes(body), "an item \"- \" indented like the first one, or a key at the start of the line")
	case s.open && indent > 0 || s.open && !dash:
		s.end, s.bare = end, false
		return true
	case s.lost:
		return true
	case dash:
		return s.bad(number, indent, "a list", keysAtStart(s.example))
	default:
		return s.bad(number, indent, quoteBytes(body), "a key at the start of the line")
	}
}

// begin ends the open piece and opens one of kind at the line.
func (s *splitter) begin(kind PieceKind, number, start, end int) bool {
	as := s.kind
	if kind == ItemPiece && s.bare {
		as, s.inList = ListPiece, true
	}
	if !s.flush(as) {
		return false
	}
	s.open, s.kind, s.number, s.start, s.end = true, kind, number, start, end
	s.bare, s.any, s.lost = false, true, false
	return true
}

// key notes whether the key line just begun has its value on later lines.
func (s *splitter) key(line []byte) bool {
	value, found := bytes.CutPrefix(bytes.TrimLeft(line, wordChars), []byte(":"))
	value = bytes.TrimLeft(value, " ")
	s.bare = found && (len(value) == 0 || value[0] == '#')
	s.inList, s.item = false, -1
	return true
}

const wordChars = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_"

func (s *splitter) flush(as PieceKind) bool {
	if !s.open {
		return true
	}
	s.open = false
	size := s.end - s.start
	text := string(s.data[s.start : s.start+min(size, MaxPieceBytes)])
	return s.yield(Piece{Kind: as, Line: s.number, Text: strings.ReplaceAll(text, "\r\n", "\n"), size: size})
}

func (s *splitter) bad(number, indent int, found, expected string) bool {
	s.lost = true
	return s.flush(s.kind) &&
		s.yield(Piece{Kind: BadPiece, Line: number, Column: indent + 1, Found: found, Expected: expected})
}

// documentMarker allows one "---" above everything else.
func (s *splitter) documentMarker(number int, line []byte) bool {
	if string(line) == "---" && !s.marker && !s.any {
		s.marker = true
		return true
	}
	if !s.bad(number, 0, quoteBytes(line), "one document, without directives") {
		return false
	}
	s.bare, s.inList, s.item, s.any = false, false, -1, true
	return true
}

// keysAtStart is what a file may have in place of a list or a value in brackets.
func keysAtStart(example string) string {
	return "keys at the start of the line, such as \"" + example + "\""
}

func isMarker(line []byte) bool {
	if line[0] == '%' {
		return true
	}
	mark := string(line[:min(len(line), 4)])
	return mark == "---" || mark == "..." || mark == "--- " || mark == "... "
}

func quoteBytes(text []byte) string { return Quote(string(text[:min(len(text), 100)])) }
