// Package chart draws charts as SVG on the server: plots of load against a limit,
// sparklines, bars and heat maps. It knows no colour: those are classes of the
// stylesheet.
//
// A drawing fills its box: paths lie in a nested svg that is stretched, text and
// flags stand in per cent and pixels outside it. So one drawing serves every width,
// without a script. Whatever the values are, what is drawn lies within the box.
package chart

import (
	"time"

	"github.com/a-h/templ"
)

// Kind says what a line or area shows, and so how it is drawn.
type Kind int

const (
	Offered     Kind = iota // thin grey line
	Admitted                // line with a pale area to zero
	Limit                   // dashed step line
	Candidate               // dotted step line: a candidate, or the limit of a bucket in shadow
	LimitBefore             // the limit before an edit or run
	Dropped                 // on a strip of its own: line with a solid area to zero
	Virtual                 // on a strip of its own: line with a hatched area to zero
	DropRatio               // on a strip of its own, below the axis of times
)

// Line is one line of a strip.
type Line struct {
	Kind Kind
	// Values are in the strip's unit, at equal steps from the plot's From on; NaN:
	// nothing is known. At most 300 are drawn: of more, the highest of each that
	// share a place.
	Values []float64
	// Label stands at the line's end, value first: "10,624 offered"; "": none.
	Label string
}

// Strip is one set of axes.
type Strip struct {
	// Unit stands above the axis: "rps", "%".
	Unit   string
	Height int // pixels of the plot
	// AtLeast is what the axis reaches to at least.
	AtLeast float64
	// Lines are drawn in order. With Offered and Admitted the gap between them is
	// filled as dropped; with Candidate and Admitted what lies between is hatched
	// as virtual drops.
	Lines []Line
}

// Flag marks a moment: a change, a run of the RLC, or a cap.
type Flag struct {
	At     time.Time
	Number int
	Cap    bool // filled square, else a circle
}

// Gap is a span of which nothing is known, or that does not teach.
type Gap struct {
	From, To time.Time
	Text     string
	Slim     bool // along the axis only: "does not teach"
}

// Plot is strips above each other on one time axis.
type Plot struct {
	ID          string // unique on the page
	Title, Desc string // for those who do not see it; Desc has the numbers that matter
	From        time.Time
	Step        time.Duration
	Steps       int
	Strips      []Strip
	Flags       []Flag // in order of time; drawn on the first strip
	Gaps        []Gap
}

// Draw returns a plot as it stands in a page, without a table.
func Draw(p Plot) templ.Component { return draw(drawingOf(p)) }

// Table returns the numbers of a plot as a table that is folded at first: means
// over equal spans, at most 60, and the limits at their ends.
func Table(p Plot) templ.Component { return table(tableOf(p)) }

// Swatch returns the mark of a kind in small, for a key.
func Swatch(k Kind) templ.Component { return swatch(k) }

// Sparkline is a line without axes.
type Sparkline struct {
	Label    string // for those who do not see it
	Values   []float64
	LimitRPS float64 // 0: none
	Before   float64 // the limit before; 0: none
	Shadow   bool    // above the limit is virtual, not dropped
	Wide     bool    // as wide as there is room
}

// Spark returns a sparkline.
func Spark(s Sparkline) templ.Component { return spark(sparkOf(s)) }

// Bar is a horizontal bar of admitted and dropped on a scale up to Of. Virtual
// is part of Admitted.
type Bar struct{ Admitted, Dropped, Virtual, Of float64 }

// BarOf returns a bar.
func BarOf(b Bar) templ.Component { return bar(barOf(b)) }

// WeekHeat is a map of shares by day of the week, Monday first, and hour of the
// day; NaN: nothing is known.
type WeekHeat struct {
	Label  string
	Shares [7][24]float64
}

// Heat returns the map.
func Heat(h WeekHeat) templ.Component { return heat(heatOf(h)) }
