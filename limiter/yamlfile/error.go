package yamlfile

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Error is one thing in a file that does not hold.
type Error struct {
	// File is the file's name; "" where Problem says it.
	File string `json:"file,omitempty"`
	// Line and Column count from 1, columns in characters; both are 0 when
	// the file as a whole is meant.
	Line   int `json:"line,omitempty"`
	Column int `json:"column,omitempty"`
	// Key is the path of the key meant, such as buckets[0].limit.rps; "" when
	// none is.
	Key string `json:"key,omitempty"`
	// Problem says what is wrong where Found and Expected do not suffice.
	Problem string `json:"problem,omitempty"`
	// Found and Expected are what the file says and what it may say; "" when
	// Problem says all.
	Found    string `json:"found,omitempty"`
	Expected string `json:"expected,omitempty"`
}

// Error returns "file:line:column: key: problem: found x, expected y", without
// the parts that are empty.
func (e *Error) Error() string {
	at := e.File
	if e.Line > 0 {
		at += fmt.Sprintf(":%d:%d", e.Line, e.Column)
	}
	parts := slices.DeleteFunc([]string{at, e.Key, e.Problem, e.comparison()}, func(part string) bool { return part == "" })
	return strings.Join(parts, ": ")
}

func (e *Error) comparison() string {
	switch {
	case e.Found == "":
		return ""
	case e.Expected == "":
		return "found " + e.Found
	default:
		return "found " + e.Found + ", expected " + e.Expected
	}
}

// Errors are all the things that do not hold, sorted by file and place. It is
// never empty where it is returned as an error.
type Errors []*Error

// Error returns one line for each error.
func (e Errors) Error() string {
	lines := make([]string, len(e))
	for i, one := range e {
		lines[i] = one.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns the single errors.
func (e Errors) Unwrap() []error {
	errs := make([]error, len(e))
	for i, one := range e {
		errs[i] = one
	}
	return errs
}

// Sorted sorts e by file and place, in place, and returns it.
func (e Errors) Sorted() Errors {
	slices.SortStableFunc(e, func(a, b *Error) int {
		return cmp.Or(strings.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return e
}
