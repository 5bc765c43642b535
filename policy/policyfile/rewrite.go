package policyfile

import (
	"bytes"
	"errors"
	"slices"
	"strings"

	"grl/limiter/yamlfile"
)

// Key is a key at the top of a policy file and its value as YAML: one line, or
// lines below the key if it begins with a line feed. An empty value means that
// the key is not there.
type Key struct{ Name, Value string }

// errRewrite says that a file cannot be edited key by key.
var errRewrite = errors.New("rewrite policy: the text would say something else")

// Rewrite returns a policy file in which some keys have other values. All other
// lines, with their comments and order, stay byte for byte, and so does a comment
// behind a value of one line; one among the lines of a value goes with it. A key
// that is new comes last. The values need not hold: that is for Parse to say.
//
// What is returned was read again and says what was asked for; else there is an
// error, as where the file cannot be read.
func Rewrite(data []byte, changes []Key) ([]byte, error) {
	before, err := topOf(data)
	if err != nil {
		return nil, err
	}
	eol := "\n"
	if bytes.Contains(data, []byte("\r\n")) {
		eol = "\r\n"
	}
	lines := strings.SplitAfter(string(data), "\n")
	if last := len(lines) - 1; lines[last] == "" {
		lines = lines[:last]
	} else {
		lines[last] += eol
	}
	spans := spansOf(data)
	for _, c := range changes {
		text := strings.ReplaceAll(lineOf(c), "\n", eol)
		at, there := spans[c.Name]
		switch {
		case !there:
			lines = append(lines, text)
			continue
		case c.Value != "" && at.first == at.last && !strings.HasPrefix(c.Value, "\n"):
			text = strings.TrimSuffix(text, eol) + commentBehind(lines[at.first], before[c.Name]) + eol
		}
		for i := at.first + 1; i <= at.last; i++ {
			lines[i] = ""
		}
		lines[at.first] = text
	}
	after := []byte(strings.Join(lines, ""))
	return after, check(before, after, changes)
}

func lineOf(c Key) string {
	switch {
	case c.Value == "":
		return ""
	case strings.HasPrefix(c.Value, "\n"):
		return c.Name + ":" + strings.TrimRight(c.Value, "\n") + "\n"
	}
	return c.Name + ": " + c.Value + "\n"
}

// topOf returns the values of the keys of a file.
func topOf(data []byte) (map[string]*yamlfile.Node, error) {
	var d yamlfile.Decoder
	top := d.ReadFile(data, MaxFileBytes, "name: nightly")
	if len(d.Errs) > 0 {
		return nil, d.Errs.Sorted()
	}
	values := make(map[string]*yamlfile.Node, len(top.Pairs))
	for _, p := range top.Pairs {
		values[p.Key.Text] = p.Value
	}
	return values, nil
}

// span is the lines of a key, from 0.
type span struct{ first, last int }

func spansOf(data []byte) map[string]span {
	spans := make(map[string]span)
	open := ""
	for p := range yamlfile.Pieces(data, "name: nightly") {
		last := p.Line - 1 + strings.Count(strings.TrimRight(p.Text, "\n"), "\n")
		if p.Kind != yamlfile.ItemPiece {
			open = p.LeadingWord()
			spans[open] = span{p.Line - 1, last}
		} else {
			spans[open] = span{spans[open].first, last}
		}
	}
	return spans
}

// commentBehind returns the comment behind a value that stands on one line with
// its key, with the space before it.
func commentBehind(line string, value *yamlfile.Node) string {
	if value == nil || value.Kind == yamlfile.Null {
		return ""
	}
	line = strings.TrimRight(line, "\r\n")
	for at := strings.LastIndex(line, " #"); at > 0; at = strings.LastIndex(line[:at], " #") {
		// It is one if the line says the same without it.
		rest, err := topOf([]byte(line[:at] + "\n"))
		if err != nil || len(rest) != 1 {
			continue
		}
		for _, n := range rest {
			if same(n, value) && !strings.Contains(strings.TrimRight(line[:at], " "), " #") {
				return strings.Repeat(" ", at-len(strings.TrimRight(line[:at], " "))) + line[at:]
			}
		}
	}
	return ""
}

// check makes sure that a file says what it said before, but for the changes.
func check(before map[string]*yamlfile.Node, after []byte, changes []Key) error {
	now, err := topOf(after)
	if err != nil {
		return err
	}
	for name, n := range before {
		if !slices.ContainsFunc(changes, func(c Key) bool { return c.Name == name }) && !same(n, now[name]) {
			return errRewrite
		}
	}
	for _, c := range changes {
		want, err := topOf([]byte(lineOf(c)))
		if err != nil {
			return err
		}
		// A name may be another once it is YAML: "floor " becomes "floor".
		if c.Value != "" && (len(want) != 1 || want[c.Name] == nil) || !same(want[c.Name], now[c.Name]) {
			return errRewrite
		}
	}
	return nil
}

// same reports whether two values are, wherever and however they are written.
func same(a, b *yamlfile.Node) bool {
	if a == nil || b == nil {
		return a == b
	}
	kind := func(n *yamlfile.Node) yamlfile.Kind {
		if n.Kind == yamlfile.Quoted {
			return yamlfile.Plain
		}
		return n.Kind
	}
	return kind(a) == kind(b) && a.Text == b.Text && slices.EqualFunc(a.Items, b.Items, same) &&
		slices.EqualFunc(a.Pairs, b.Pairs, func(p, q yamlfile.Pair) bool { return p.Key.Text == q.Key.Text && same(p.Value, q.Value) })
}
