// Package terminal is what a person at a terminal sees and is asked: tables,
// questions, passwords, and a screen that is drawn again.
package terminal

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"

	"golang.org/x/term"
)

// ErrNoTerminal says that there is nobody to ask.
var ErrNoTerminal = errors.New("there is no terminal to ask for the password: name a file with --password-file")

// Is reports whether w is a terminal that can move its cursor.
func Is(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd())) && os.Getenv("TERM") != "dumb"
}

// Asks reports whether a person can be asked: r and w are both terminals.
func Asks(r io.Reader, w io.Writer) bool {
	f, ok := r.(*os.File)
	return ok && term.IsTerminal(int(f.Fd())) && Is(w)
}

// Colours reports whether what is written to w may have colours.
func Colours(w io.Writer) bool { return Is(w) && os.Getenv("NO_COLOR") == "" }

// Printable returns s without what a terminal would take for commands, and
// without what would show it in another order: such characters become "�". Line
// feeds and tabs stay.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, s)
}

// Confirm asks a question that is answered with yes or no, and reports whether
// the answer is yes. No answer is no. It gives up when ctx ends.
func Confirm(ctx context.Context, r io.Reader, w io.Writer, question string) (bool, error) {
	if _, err := fmt.Fprintf(w, "%s [y/N] ", question); err != nil {
		return false, err
	}
	answer, err := await(ctx, func() (string, error) { return bufio.NewReader(r).ReadString('\n') })
	if err != nil && !errors.Is(err, io.EOF) {
		return false, err
	}
	answer = strings.ToLower(strings.TrimSpace(answer))
	return answer == "y" || answer == "yes", nil
}

// Password asks for a password on the terminal r without showing it. It gives up
// when ctx ends, and leaves the terminal as it was.
func Password(ctx context.Context, r io.Reader, w io.Writer, prompt string) (string, error) {
	f, ok := r.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return "", ErrNoTerminal
	}
	fd := int(f.Fd())
	before, err := term.GetState(fd)
	if err != nil {
		return "", err
	}
	if _, err := fmt.Fprint(w, prompt); err != nil {
		return "", err
	}
	password, err := await(ctx, func() (string, error) {
		text, err := term.ReadPassword(fd)
		return string(text), err
	})
	fmt.Fprintln(w)
	if err != nil {
		return "", fmt.Errorf("read password: %w", errors.Join(err, term.Restore(fd, before)))
	}
	return password, nil
}

// await returns what read does, unless ctx ends first. A read of a terminal
// cannot be interrupted: it goes on until the process ends, soon after.
func await(ctx context.Context, read func() (string, error)) (string, error) {
	type answer struct {
		text string
		err  error
	}
	answers := make(chan answer, 1)
	go func() {
		text, err := read()
		answers <- answer{text, err}
	}()
	select {
	case a := <-answers:
		return a.text, a.err
	case <-ctx.Done():
		return "", errors.New("interrupted")
	}
}
