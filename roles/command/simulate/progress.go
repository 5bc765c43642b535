package simulate

import (
	"fmt"
	"io"
	"os"
	"time"
)

const (
	progressAfter = 2 * time.Second        // what is done sooner shows none
	progressEach  = 100 * time.Millisecond // between two looks
	clearLine     = "\r\x1b[K"
)

// Progress shows on a terminal how far a simulation is. It is for one
// goroutine.
type Progress struct {
	out   io.Writer // nil: nobody looks
	began time.Time
	drawn time.Time // zero: nothing is on the line
}

// NewProgress returns a progress that writes to w if that is a terminal.
func NewProgress(w io.Writer) *Progress {
	if !isTerminal(w) {
		w = nil
	}
	return newProgress(w)
}

func newProgress(w io.Writer) *Progress { return &Progress{out: w, began: time.Now()} }

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("TERM") != "dumb"
}

// Second says that a fleet has reached a time. It writes nothing in the first
// two seconds.
func (p *Progress) Second(scenario, law string, at time.Duration) {
	if now := time.Now(); p.out != nil && now.Sub(p.began) > progressAfter && now.Sub(p.drawn) > progressEach {
		p.drawn = now
		fmt.Fprintf(p.out, clearLine+"%s, %s: %d s", scenario, law, int(at/time.Second))
	}
}

// Clear removes the line, before something else is written.
func (p *Progress) Clear() {
	if !p.drawn.IsZero() {
		fmt.Fprint(p.out, clearLine)
		p.drawn = time.Time{}
	}
}
