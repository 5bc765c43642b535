package limitsfile

import (
	"bytes"
	"cmp"
	"errors"
	"slices"
	"strings"
	"unicode/utf8"

	"grl/limiter/yamlfile"
)

// errPlace says that a value does not stand where the reader says it does.
var errPlace = errors.New("cannot tell where a value begins and ends")

// text is a file that is being edited: what was read, and where its lines begin.
// Its methods panic with errPlace if the text is not what the nodes say.
type text struct {
	data  []byte
	lines []int // offset of each line, and of the end
	edits []edit
}

// edit puts new in the place of data[start:end].
type edit struct {
	start, end int
	new        string
}

func newText(data []byte) *text {
	t := &text{data: data, lines: []int{0}}
	for i, c := range data {
		if c == '\n' {
			t.lines = append(t.lines, i+1)
		}
	}
	t.lines = append(t.lines, len(data))
	return t
}

// edited returns the data with all edits. Of those that begin at one place the
// ones that only insert come first, in the order they were made.
func (t *text) edited() []byte {
	slices.SortStableFunc(t.edits, func(a, b edit) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(min(a.end-a.start, 1), min(b.end-b.start, 1)))
	})
	var out bytes.Buffer
	at := 0
	for _, e := range t.edits {
		if e.start < at {
			panic(errPlace) // edits meet
		}
		out.Write(t.data[at:e.start])
		out.WriteString(e.new)
		at = e.end
	}
	out.Write(t.data[at:])
	return out.Bytes()
}

func (t *text) replace(start, end int, new string) { t.edits = append(t.edits, edit{start, end, new}) }
func (t *text) insert(at int, new string)          { t.replace(at, at, new) }

// start returns the offset of a node.
func (t *text) start(n *yamlfile.Node) int {
	if n.Kind == yamlfile.Mapping && len(n.Pairs) > 0 && !t.isFlow(n) {
		return t.start(n.Pairs[0].Key)
	}
	return t.offset(n.Place)
}

func (t *text) offset(at yamlfile.Place) int {
	if at.Line >= len(t.lines) {
		panic(errPlace)
	}
	offset := t.lines[at.Line-1]
	for range at.Column - 1 {
		_, size := utf8.DecodeRune(t.data[offset:])
		if offset += size; size == 0 {
			panic(errPlace)
		}
	}
	return offset
}

// isFlow reports whether a mapping or list is in brackets.
func (t *text) isFlow(n *yamlfile.Node) bool {
	at := t.offset(n.Place)
	return at < len(t.data) && (n.Kind == yamlfile.Mapping && t.data[at] == '{' || n.Kind == yamlfile.List && t.data[at] == '[')
}

// end returns the offset behind a node.
func (t *text) end(n *yamlfile.Node) int {
	at := t.start(n)
	switch {
	case n.Kind == yamlfile.Quoted:
		return t.quotedEnd(at)
	case n.Kind != yamlfile.Mapping && n.Kind != yamlfile.List:
		return t.plainEnd(at, n.Text)
	case t.isFlow(n):
		at++
		if last := lastOf(n); last != nil {
			at = t.end(last)
		}
		for at = t.skip(at); t.byte(at) == ','; at = t.skip(at + 1) {
		}
		if c := t.byte(at); c != '}' && c != ']' {
			panic(errPlace)
		}
		return at + 1
	case lastOf(n) == nil:
		panic(errPlace)
	default:
		return t.end(lastOf(n))
	}
}

// lastOf returns the last value of a mapping or list; nil: it is empty.
func lastOf(n *yamlfile.Node) *yamlfile.Node {
	switch {
	case len(n.Pairs) > 0:
		return n.Pairs[len(n.Pairs)-1].Value
	case len(n.Items) > 0:
		return n.Items[len(n.Items)-1]
	default:
		return nil
	}
}

func (t *text) byte(at int) byte {
	if at >= len(t.data) {
		panic(errPlace)
	}
	return t.data[at]
}

func (t *text) quotedEnd(at int) int {
	quote := t.byte(at)
	if quote != '"' && quote != '\'' {
		panic(errPlace)
	}
	for at++; ; at++ {
		switch c := t.byte(at); {
		case c == '\\' && quote == '"':
			at++
		case c == quote && quote == '\'' && at+1 < len(t.data) && t.data[at+1] == quote:
			at++
		case c == quote:
			return at + 1
		}
	}
}

// plainEnd follows a scalar without quotes, which may go on over lines.
func (t *text) plainEnd(at int, value string) int {
	for _, word := range strings.Fields(value) {
		for t.byte(at) == ' ' || t.data[at] == '\r' || t.data[at] == '\n' {
			at++
		}
		if !bytes.HasPrefix(t.data[at:], []byte(word)) {
			panic(errPlace)
		}
		at += len(word)
	}
	return at
}

// skip returns the offset of what follows space, line ends and comments.
func (t *text) skip(at int) int {
	for ; at < len(t.data); at++ {
		switch t.data[at] {
		case ' ', '\r', '\n':
		case '#':
			if i := bytes.IndexByte(t.data[at:], '\n'); i >= 0 {
				at += i
			} else {
				return len(t.data)
			}
		default:
			return at
		}
	}
	return at
}

// skipSpace returns the offset of what follows space and line ends.
func (t *text) skipSpace(at int) int {
	return at + len(t.data[at:]) - len(bytes.TrimLeft(t.data[at:], " \r\n"))
}

// skipBack returns the offset behind what precedes space.
func (t *text) skipBack(at int) int { return len(bytes.TrimRight(t.data[:at], " ")) }

// line returns the index in lines of the line that an offset is in.
func (t *text) line(at int) int {
	i, found := slices.BinarySearch(t.lines[:len(t.lines)-1], at)
	if !found {
		i--
	}
	return i
}

// content returns a line without its end and the space before that.
func (t *text) content(line int) []byte {
	return bytes.TrimRight(t.data[t.lines[line]:t.lines[line+1]], " \r\n")
}

// body returns the content of a line without indentation.
func (t *text) body(line int) []byte { return bytes.TrimLeft(t.content(line), " ") }

func (t *text) isComment(line int) bool { return bytes.HasPrefix(t.body(line), []byte("#")) }

// eol returns how the lines of the file end.
func (t *text) eol() string {
	if i := bytes.IndexByte(t.data, '\n'); i > 0 && t.data[i-1] == '\r' {
		return "\r\n"
	}
	return "\n"
}

// insertLines puts lines, each of which ends in "\n", after a line.
func (t *text) insertLines(line int, lines string) {
	at := t.lines[line+1]
	lines = strings.ReplaceAll(lines, "\n", t.eol())
	if at == len(t.data) && !bytes.HasSuffix(t.data, []byte("\n")) {
		lines = t.eol() + strings.TrimSuffix(lines, t.eol())
	}
	t.insert(at, lines)
}

// removeLines takes away lines from one to another.
func (t *text) removeLines(first, last int) { t.replace(t.lines[first], t.lines[last+1], "") }
