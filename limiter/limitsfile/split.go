package limitsfile

import (
	"iter"
	"strings"
	"unicode/utf8"
)

// piece is a key of the file with its value, or an item of a list that stands
// below its key on lines of its own: what the YAML library sees at a time.
type piece struct {
	kind pieceKind
	line int    // of the first line, from 1
	text string // whole lines

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

// pieces cuts text at the keys of the file and at the items of their lists.
// The cuts follow the indentation rules of YAML: what belongs to a key at the
// start of a line, or to an item, is indented deeper than it.
func pieces(text string) iter.Seq[piece] {
	return func(yield func(piece) bool) {
		s := splitter{item: -1, yield: yield}
		number := 0
		for start := 0; start < len(text); {
			end := len(text)
			if i := strings.IndexByte(text[start:], '\n'); i >= 0 {
				end = start + i + 1
			}
			number++
			if !s.line(text, number, start, end) {
				return
			}
			start = end
		}
		s.flush(text, s.kind)
	}
}

// splitter holds the piece that is being gathered.
type splitter struct {
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
func (s *splitter) line(text string, number, start, end int) bool {
	line := strings.TrimRight(text[start:end], " \n")
	body := strings.TrimLeft(line, " ")
	if body == "" || body[0] == '#' {
		return true
	}
	indent := len(line) - len(body)
	dash := body == "-" || strings.HasPrefix(body, "- ")

	if indent == 0 && !dash {
		if isMarker(line) {
			return s.documentMarker(text, number, line)
		}
		if body[0] != ']' && body[0] != '}' {
			return s.begin(text, keyPiece, number, start, end) && s.key(line)
		}
	}
	switch {
	case dash && (s.bare && s.item < 0 || s.inList && indent == s.item):
		s.item = indent
		return s.begin(text, itemPiece, number, start, end)
	case s.inList && indent <= s.item:
		return s.bad(text, number, indent, describeLine(body), "an item \"- \" indented like the first one, or a key at the start of the line")
	case s.open && indent > 0 || s.open && !dash:
		s.end, s.bare = end, false
		return true
	case s.lost:
		return true
	case dash:
		return s.bad(text, number, indent, "a list", "keys at the start of the line, such as \"service: payments\"")
	default:
		return s.bad(text, number, indent, describeLine(body), "a key at the start of the line")
	}
}

// begin ends the open piece and opens one of kind at the line.
func (s *splitter) begin(text string, kind pieceKind, number, start, end int) bool {
	as := s.kind
	if kind == itemPiece && s.bare {
		as, s.inList = listPiece, true
	}
	if !s.flush(text, as) {
		return false
	}
	s.open, s.kind, s.number, s.start, s.end = true, kind, number, start, end
	s.bare, s.any, s.lost = false, true, false
	return true
}

// key notes whether the key line just begun has its value on later lines.
func (s *splitter) key(line string) bool {
	value, found := strings.CutPrefix(strings.TrimLeft(line, wordChars), ":")
	value = strings.TrimLeft(value, " ")
	s.bare = found && (value == "" || value[0] == '#')
	s.inList, s.item = false, -1
	return true
}

const wordChars = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_"

func (s *splitter) flush(text string, as pieceKind) bool {
	if !s.open {
		return true
	}
	s.open = false
	return s.yield(piece{kind: as, line: s.number, text: text[s.start:s.end]})
}

func (s *splitter) bad(text string, number, indent int, found, expected string) bool {
	s.lost = true
	return s.flush(text, s.kind) &&
		s.yield(piece{kind: badPiece, line: number, column: indent + 1, found: found, expected: expected})
}

// documentMarker allows one "---" above everything else.
func (s *splitter) documentMarker(text string, number int, line string) bool {
	if line == "---" && !s.marker && !s.any {
		s.marker = true
		return true
	}
	if !s.bad(text, number, 0, describeLine(line), "one document, without directives") {
		return false
	}
	s.bare, s.inList, s.item, s.any = false, false, -1, true
	return true
}

func isMarker(line string) bool {
	return line[0] == '%' || line == "---" || line == "..." || strings.HasPrefix(line, "--- ") || strings.HasPrefix(line, "... ")
}

func describeLine(body string) string { return quote(body) }

// scanBytes checks what must hold of each byte before anything else is looked
// at. It reports one error for each line.
func scanBytes(name string, data []byte) Errors {
	if len(data) > MaxFileBytes {
		return Errors{{File: name, Found: bytesText(len(data)), Expected: "at most 16 MiB"}}
	}
	if strings.HasPrefix(string(data[:min(len(data), 3)]), "\ufeff") {
		return Errors{{File: name, Line: 1, Column: 1, Found: "a byte order mark", Expected: "UTF-8 without one"}}
	}
	var errs Errors
	line, start := 1, 0
	for i := 0; i < len(data) && len(errs) < MaxErrors; {
		if c := data[i]; c >= ' ' && c < 0x7f {
			i++
			continue
		} else if c == '\n' {
			line, start, i = line+1, i+1, i+1
			continue
		}
		r, size := utf8.DecodeRune(data[i:])
		found, expected := badRune(r, size, data[i], i+1 < len(data) && data[i+1] == '\n')
		if found != "" && (len(errs) == 0 || errs[len(errs)-1].Line != line) {
			errs = append(errs, &Error{File: name, Line: line, Column: utf8.RuneCount(data[start:i]) + 1, Found: found, Expected: expected})
		}
		i += size
	}
	return errs
}

// badRune says what is wrong with a rune outside printable ASCII; "" is
// nothing. A carriage return is fine at the end of a line.
func badRune(r rune, size int, c byte, beforeNewline bool) (found, expected string) {
	switch {
	case r == utf8.RuneError && size == 1:
		return "the byte " + hexByte(c), "UTF-8"
	case r == '\t':
		return "a tab", "spaces"
	case r == '\r' && beforeNewline:
		return "", ""
	case r < ' ', r >= 0x7f && r < 0xa0, r == '\u2028', r == '\u2029', r == '\ufeff':
		return "the control character " + runeName(r), "text"
	default:
		return "", ""
	}
}
