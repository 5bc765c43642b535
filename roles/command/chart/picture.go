package chart

import (
	"fmt"
	"html"
	"strings"
)

// Picture collects the elements of an SVG picture that grows downwards. Its zero
// value is empty. Places are in pixels, classes those of its style.
type Picture struct {
	strings.Builder
	At int // the first free pixel
}

// Text writes a text at a place.
func (p *Picture) Text(class string, x, y float64, text string) {
	fmt.Fprintf(p, "<text class=%q x=%q y=%q>%s</text>\n", class, Coordinate(x), Coordinate(y), html.EscapeString(text))
}

// Line draws a straight line.
func (p *Picture) Line(class string, x1, y1, x2, y2 float64) {
	fmt.Fprintf(p, "<path class=%q d=\"M%s %sL%s %s\"/>\n", class, Coordinate(x1), Coordinate(y1), Coordinate(x2), Coordinate(y2))
}
