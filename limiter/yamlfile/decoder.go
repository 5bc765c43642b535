package yamlfile

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Decoder gathers what is wrong with the values of a file while they are taken.
// It is for one goroutine.
type Decoder struct {
	File string // for errors
	Errs Errors
}

// Full reports whether there are as many errors as anybody wants to read.
func (d *Decoder) Full() bool { return len(d.Errs) >= MaxErrors }

// Fail notes that the value at key is not what it may be.
func (d *Decoder) Fail(at Place, key, found, expected string) {
	d.Errs = append(d.Errs, &Error{File: d.File, Line: at.Line, Column: at.Column, Key: key, Found: found, Expected: expected})
}

// Problem notes what is wrong where found and expected would not say it.
func (d *Decoder) Problem(at Place, key, problem string) {
	d.Errs = append(d.Errs, &Error{File: d.File, Line: at.Line, Column: at.Column, Key: key, Problem: problem})
}

// Fields says what to do with the value of each key of a mapping.
type Fields map[string]func(v *Node, path string)

// Keys hands the values of a mapping out. Keys that are unknown or repeated are
// errors. seen has the keys met so far.
func (d *Decoder) Keys(n *Node, path string, seen map[string]Place, f Fields) {
	for _, p := range n.Pairs {
		key, at := p.Key.Text, Join(path, p.Key.Text)
		if p.Value == nil {
			seen[key] = p.Key.Place
			continue
		}
		take, known := f[key]
		switch first, again := seen[key]; {
		case p.Key.Kind != Plain && p.Key.Kind != Quoted || !known:
			d.unknownKey(p.Key, path, f)
		case again:
			d.Problem(p.Key.Place, at, fmt.Sprintf("given twice: first on line %d, column %d", first.Line, first.Column))
		default:
			seen[key] = p.Key.Place
			take(p.Value, at)
		}
	}
}

func (d *Decoder) unknownKey(key *Node, path string, f Fields) {
	expected := "one of " + strings.Join(slices.Sorted(maps.Keys(f)), ", ")
	if near := nearest(key.Text, f); near != "" {
		expected = fmt.Sprintf("%q, or %s", near, expected)
	}
	d.Errs = append(d.Errs, &Error{
		File: d.File, Line: key.Line, Column: key.Column, Key: path,
		Problem: "unknown key", Found: key.Describe(), Expected: expected,
	})
}

// Join returns the path of a key below another; "" is the file itself.
func Join(path, key string) string {
	if path == "" {
		return Clip(key)
	}
	return path + "." + Clip(key)
}
