package terminal

import (
	"io"
	"strings"
)

// barWidth is that of a bar, in characters.
const barWidth = 30

// Bar is a Line that shows how far something is.
type Bar struct{ line *Line }

// NewBar returns a bar that is drawn as NewLine's are.
func NewBar(w io.Writer) *Bar { return &Bar{NewLine(w)} }

// Show says which share is done, in [0, 1], with a text behind the bar.
func (b *Bar) Show(done float64, text string) {
	full := int(barWidth * min(max(done, 0), 1))
	b.line.Show("[%s%s] %3.0f %% %s", strings.Repeat("#", full), strings.Repeat(" ", barWidth-full), 100*done, text)
}

// Clear removes the bar, before something else is written.
func (b *Bar) Clear() { b.line.Clear() }
