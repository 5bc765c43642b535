package simulate

import (
	"slices"
	"strconv"
	"strings"
)

// path returns an SVG path through values, which lie width pixels apart from
// the start of the x axis on. Where there are more of them than pixels, each
// pixel has the lowest and the highest of its values, so that no peak is lost.
func path(values []float64, width float64, x, y axis) string {
	var p pathData
	if width >= 0.5 {
		for i, v := range values {
			p.point(x.from+width*(float64(i)+0.5), y.pixel(v))
		}
		return p.String()
	}
	n, columns := len(values), int(width*float64(len(values)))
	for c := range columns {
		of := values[c*n/columns : (c+1)*n/columns]
		low, high := slices.Min(of), slices.Max(of)
		if of[0] > of[len(of)-1] {
			low, high = high, low // the way it goes
		}
		p.point(x.from+float64(c), y.pixel(low))
		p.point(x.from+float64(c)+0.5, y.pixel(high))
	}
	return p.String()
}

// means returns the means of n values each; what is left at the end is
// dropped.
func means(values []float64, n int) []float64 {
	var out []float64
	for of := range slices.Chunk(values, n) {
		if len(of) < n {
			break
		}
		var sum float64
		for _, v := range of {
			sum += v
		}
		out = append(out, sum/float64(n))
	}
	return out
}

// pathData collects the attribute d of an SVG path. Of points at the same
// height it keeps the first and the last.
type pathData struct {
	text    strings.Builder
	x, y    string // the last point
	pending bool   // it is not written, as the next one may be as high
}

func (p *pathData) point(x, y float64) {
	px, py := pixel(x), pixel(y)
	if p.text.Len() == 0 {
		p.text.WriteString("M" + px + " " + py)
	} else if py != p.y {
		p.flush()
		p.text.WriteString("L" + px + " " + py)
	} else {
		p.pending = true
	}
	p.x, p.y = px, py
}

func (p *pathData) flush() {
	if p.pending {
		p.text.WriteString("L" + p.x + " " + p.y)
		p.pending = false
	}
}

// String returns the path up to the last point.
func (p *pathData) String() string {
	p.flush()
	return p.text.String()
}

// pixel prints a coordinate with at most one decimal.
func pixel(v float64) string {
	return strings.TrimSuffix(strconv.FormatFloat(v, 'f', 1, 64), ".0")
}
