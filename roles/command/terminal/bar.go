package terminal

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

const (
	barAfter  = 2 * time.Second        // what is done sooner shows no bar
	barEach   = 100 * time.Millisecond // between two looks
	barWidth  = 30                     // characters
	clearLine = "\r" + clear
)

// Bar shows on a terminal how far something is. Its methods may be called
// concurrently.
type Bar struct {
	mu    sync.Mutex
	out   io.Writer // nil: nobody looks
	began time.Time
	drawn time.Time // zero: nothing is on the line
}

// NewBar returns a bar that is drawn on w from two seconds on, if that is a
// terminal.
func NewBar(w io.Writer) *Bar {
	if !Is(w) {
		w = nil
	}
	return newBar(w)
}

func newBar(w io.Writer) *Bar { return &Bar{out: w, began: time.Now()} }

// Show says which share is done, in [0, 1], with a text behind the bar.
func (b *Bar) Show(done float64, text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	if b.out == nil || now.Sub(b.began) <= barAfter || now.Sub(b.drawn) <= barEach {
		return
	}
	b.drawn = now
	full := int(barWidth * min(max(done, 0), 1))
	fmt.Fprintf(b.out, clearLine+"[%s%s] %3.0f %% %s",
		strings.Repeat("#", full), strings.Repeat(" ", barWidth-full), 100*done, Printable(text))
}

// Clear removes the bar, before something else is written.
func (b *Bar) Clear() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.drawn.IsZero() {
		fmt.Fprint(b.out, clearLine)
		b.drawn = time.Time{}
	}
}
