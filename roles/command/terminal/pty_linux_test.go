package terminal

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// pty returns the two ends of a terminal: what a person sees and types, and what
// a program has.
func pty(t *testing.T) (person, program *os.File) {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = person.Close() })
	number, err := unix.IoctlGetInt(int(person.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(person.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = program.Close() })
	if err := unix.IoctlSetWinsize(int(person.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 3, Col: 20}); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TERM", "xterm")
	return person, program
}

// see reads what the program writes until it has written want, and returns all
// of it.
func see(t *testing.T, person *os.File, want string) string {
	t.Helper()
	var seen strings.Builder
	buffer := make([]byte, 256)
	for !strings.Contains(seen.String(), want) {
		n, err := person.Read(buffer)
		if err != nil {
			t.Fatalf("saw %q, want %q: %v", seen.String(), want, err)
		}
		seen.Write(buffer[:n])
	}
	return seen.String()
}

func typed(t *testing.T, person *os.File, text string) {
	t.Helper()
	if _, err := person.WriteString(text); err != nil {
		t.Fatal(err)
	}
}

func TestPasswordIsNotShown(t *testing.T) {
	person, program := pty(t)
	if !Is(program) || !Asks(program, program) {
		t.Fatal("no terminal")
	}
	passwords := make(chan string, 1)
	go func() {
		password, err := Password(t.Context(), program, program, "Password: ")
		if err != nil {
			t.Error(err)
		}
		_, _ = program.WriteString("end")
		passwords <- password
	}()
	see(t, person, "Password: ")
	// Until the program has turned the echo off, what is typed would be shown: a
	// person waits for the prompt, which comes before that by a moment.
	for echoes(t, program) {
	}
	typed(t, person, "secret\n")
	if seen := see(t, person, "end"); strings.Contains(seen, "secret") {
		t.Errorf("the terminal shows %q", seen)
	}
	if got := <-passwords; got != "secret" {
		t.Errorf("password %q, want secret", got)
	}
}

// echoes reports whether the terminal shows what is typed.
func echoes(t *testing.T, program *os.File) bool {
	t.Helper()
	settings, err := unix.IoctlGetTermios(int(program.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	return settings.Lflag&unix.ECHO != 0
}

func TestPasswordGivesUpAndRestoresTheTerminal(t *testing.T) {
	person, program := pty(t)
	ctx, cancel := context.WithCancel(t.Context())
	errs := make(chan error, 1)
	go func() {
		_, err := Password(ctx, program, program, "Password: ")
		errs <- err
	}()
	see(t, person, "Password: ")
	for echoes(t, program) {
	}
	cancel()
	err := <-errs
	if err == nil || !echoes(t, program) {
		t.Errorf("gave up with %v, echo %v", err, echoes(t, program))
	}
	// The read that was left behind ends, before its file is another one.
	typed(t, person, "x\n")
	see(t, person, "x\r\n")
	for waiting := 1; waiting > 0; {
		if waiting, err = unix.IoctlGetInt(int(program.Fd()), unix.TIOCINQ); err != nil {
			t.Fatal(err)
		}
	}
}

func TestScreen(t *testing.T) {
	person, program := pty(t)
	before, err := term.GetState(int(program.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	s, err := OpenScreen(program, program)
	if err != nil {
		t.Fatal(err)
	}
	if s.Rows() != 3 {
		t.Errorf("%d rows, want 3", s.Rows())
	}
	if err := s.Draw("one\ntwo\nthree\nfour\n"); err != nil {
		t.Fatal(err)
	}
	if seen := see(t, person, "three"); !strings.HasPrefix(seen, enter+home) || strings.Contains(seen, "four") {
		t.Errorf("saw %q", seen)
	}
	typed(t, person, "q") // without a line feed
	if key := <-s.Keys(); key != 'q' {
		t.Errorf("key %q, want q", key)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	see(t, person, leave)
	if after, err := term.GetState(int(program.Fd())); err != nil || *after != *before {
		t.Errorf("the terminal is not as it was: %v", err)
	}
}
