package limitsfile

import (
	"bytes"
	"iter"
	"strings"
)

// piece is a key of the file with its value, or an item of a list that stands
// below its key on lines of its own: what the YAML library sees at a time.
type piece struct {
	kind pieceKind
	line int    // of the first line, from 1
	text string // whole lines; cut off beyond maxPieceBytes
	size int    // bytes of the whole piece

	// Of kind bad:
	column          int
	found, expected string
}

type pieceKind uint8

const (
	keyPiece  pieceKind = iota // a key and its value
	listPiece                  // a key whose value is the item pieces that follow
	itemPiece                  // "- " and what belongs to it
	badPiece                   // a line that can be none of these
)

// pieces cuts data at the keys of the file and at the items of their lists.
// The cuts follow the indentation rules of YAML: what belongs to a key at the
// start of a line, or to an item, is indented deeper than it.
func pieces(data []byte) iter.Seq[piece] {
	return func(yield func(piece) bool) {
		s := splitter{data: data, item: -1, yield: yield}
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

// splitter holds the piece that is being gathered.
type splitter struct {
	data  []byte
	yield func(piece) bool

	open       bool // a piece is being gathered
	kind       pieceKind
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
			return s.begin(keyPiece, number, start, end) && s.key(line)
		}
	}
	switch {
	case dash && (s.bare && s.item < 0 || s.inList && indent == s.item):
		s.item = indent
		return s.begin(itemPiece, number, start, end)
	case s.inList && indent <= s.item:
		return s.bad(number, indent, quoteBytes(body), "an item \"- \" indented like the first one, or a key at the start of the line")
	case s.open && indent > 0 || s.open && !dash:
		s.end, s.bare = end, false
		return true
	case s.lost:
		return true
	case dash:
		return s.bad(number, indent, "a list", "keys at the start of the line, such as \"service: payments\"")
	default:
		return s.bad(number, indent, quoteBytes(body), "a key at the start of the line")
	}
}

// begin ends the open piece and opens one of kind at the line.
func (s *splitter) begin(kind pieceKind, number, start, end int) bool {
	as := s.kind
	if kind == itemPiece && s.bare {
		as, s.inList = listPiece, true
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

func (s *splitter) flush(as pieceKind) bool {
	if !s.open {
		return true
	}
	s.open = false
	size := s.end - s.start
	text := string(s.data[s.start : s.start+min(size, maxPieceBytes)])
	return s.yield(piece{kind: as, line: s.number, text: strings.ReplaceAll(text, "\r\n", "\n"), size: size})
}

func (s *splitter) bad(number, indent int, found, expected string) bool {
	s.lost = true
	return s.flush(s.kind) &&
		s.yield(piece{kind: badPiece, line: number, column: indent + 1, found: found, expected: expected})
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

func isMarker(line []byte) bool {
	if line[0] == '%' {
		return true
	}
	mark := string(line[:min(len(line), 4)])
	return mark == "---" || mark == "..." || mark == "--- " || mark == "... "
}

func quoteBytes(text []byte) string { return quote(string(text[:min(len(text), 100)])) }
