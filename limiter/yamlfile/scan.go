package yamlfile

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// Scan checks what must hold of each byte before anything else is looked at, and
// that there are at most so many. It reports one error for each line.
func Scan(name string, data []byte, most int) Errors {
	if len(data) > most {
		return Errors{{File: name, Found: BytesText(len(data)), Expected: "at most " + boundText(most)}}
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
		i += size
		if found == "" {
			continue
		}
		errs = append(errs, &Error{File: name, Line: line, Column: utf8.RuneCount(data[start:i-size]) + 1, Found: found, Expected: expected})
		if next := bytes.IndexByte(data[i:], '\n'); next >= 0 {
			i += next
		} else {
			i = len(data)
		}
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
