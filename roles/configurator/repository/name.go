package repository

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"grl/limiter/limitsfile"
)

const (
	// mostErrors is how many files an error names.
	mostErrors = 20
	// mostName is how much of a name an error has, in bytes.
	mostName = 256
)

// checkText returns which files have a name that is not UTF-8: no message can
// carry it. The error is a limitsfile.Errors.
func checkText(files []limitsfile.Source) error {
	var errs limitsfile.Errors
	for _, f := range files {
		if !utf8.ValidString(f.Name) {
			errs = append(errs, notUTF8(f.Name))
		}
	}
	if len(errs) == 0 {
		return nil
	}
	return firstErrors(errs)
}

func notUTF8(name string) *limitsfile.Error {
	return &limitsfile.Error{File: name, Problem: "the name is not UTF-8: rename the file"}
}

// firstErrors returns an error that can be shown and sent. Of limitsfile.Errors it
// names the first 20, and says how many more there are; others stay as they are.
func firstErrors(err error) error {
	all := limitsfile.Errors(nil)
	if !errors.As(err, &all) {
		return err
	}
	var some limitsfile.Errors
	for _, e := range all[:min(len(all), mostErrors)] {
		short := *e
		short.File = printable(e.File)
		some = append(some, &short)
	}
	if more := len(all) - len(some); more > 0 {
		some = append(some, &limitsfile.Error{Problem: fmt.Sprintf("and %d more", more)})
	}
	return some
}

// printable returns a name as it is, or in quotes where it is not UTF-8 or too
// long.
func printable(name string) string {
	switch {
	case len(name) > mostName:
		return strconv.Quote(strings.ToValidUTF8(name[:mostName], "\ufffd")) + "…"
	case !utf8.ValidString(name):
		return strconv.Quote(name)
	default:
		return name
	}
}
