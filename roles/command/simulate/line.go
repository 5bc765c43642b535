package simulate

import (
	"slices"

	"grl/roles/command/chart"
)

// path returns an SVG path through values, which lie width pixels apart from
// the start of the x axis on. Where there are more of them than pixels, each
// pixel has the lowest and the highest of its values, so that no peak is lost.
func path(values []float64, width float64, x, y chart.Axis) string {
	var p chart.Path
	if width >= 0.5 {
		for i, v := range values {
			p.Point(x.From+width*(float64(i)+0.5), y.Pixel(v))
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
		p.Point(x.From+float64(c), y.Pixel(low))
		p.Point(x.From+float64(c)+0.5, y.Pixel(high))
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
