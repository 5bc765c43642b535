package terminal

import (
	"fmt"
	"io"
	"sync"
	"time"
)

const (
	lineAfter = 2 * time.Second        // what is done sooner shows no line
	lineEach  = 100 * time.Millisecond // between two looks
	clearLine = "\r" + clear
)

// Line shows on a terminal, in place, what something that takes long is at. Its
// methods may be called concurrently.
type Line struct {
	mu    sync.Mutex
	out   io.Writer // nil: nobody looks
	began time.Time
	drawn time.Time // zero: nothing is on the line
}

// NewLine returns a line that is drawn on w from two seconds on, if that is a
// terminal.
func NewLine(w io.Writer) *Line {
	if !Is(w) {
		w = nil
	}
	return newLine(w)
}

func newLine(w io.Writer) *Line { return &Line{out: w, began: time.Now()} }

// Show says what it is at. It writes nothing in the first two seconds, and ten
// times a second at most.
func (l *Line) Show(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if l.out == nil || now.Sub(l.began) <= lineAfter || now.Sub(l.drawn) <= lineEach {
		return
	}
	l.drawn = now
	fmt.Fprint(l.out, clearLine+Printable(fmt.Sprintf(format, args...)))
}

// Clear removes the line, before something else is written.
func (l *Line) Clear() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.drawn.IsZero() {
		fmt.Fprint(l.out, clearLine)
		l.drawn = time.Time{}
	}
}
