// Package chart has what pictures of lines are made of: axes with round numbers,
// and paths of SVG.
package chart

import (
	"strconv"
	"strings"
)

// Path collects the attribute d of an SVG path. Of points at the same height it
// keeps the first and the last of a row. Its zero value is empty.
type Path struct {
	text    strings.Builder
	x, y    string // the last point
	pending bool   // it is not written, as the next one may be as high
	apart   bool   // the next point begins a new line
}

// Point adds a point, in pixels, to the line.
func (p *Path) Point(x, y float64) {
	px, py := Coordinate(x), Coordinate(y)
	switch {
	case p.text.Len() == 0 || p.apart:
		p.text.WriteString("M" + px + " " + py)
		p.apart = false
	case py != p.y:
		p.flush()
		p.text.WriteString("L" + px + " " + py)
	default:
		p.pending = true
	}
	p.x, p.y = px, py
}

// Break ends the line; the next point begins another.
func (p *Path) Break() {
	p.flush()
	p.apart = true
}

func (p *Path) flush() {
	if p.pending {
		p.text.WriteString("L" + p.x + " " + p.y)
		p.pending = false
	}
}

// String returns the path up to the last point.
func (p *Path) String() string {
	p.flush()
	return p.text.String()
}

// Coordinate prints pixels with at most one decimal.
func Coordinate(v float64) string {
	return strings.TrimSuffix(strconv.FormatFloat(v, 'f', 1, 64), ".0")
}
