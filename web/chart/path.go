package chart

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// mostPoints is how many points of a line are drawn.
const mostPoints = 300

// huge is above any load; what is higher is drawn as this, so that no sum or
// product of values is infinite.
const huge = 1e15

// clean returns values as they can be drawn: what is not finite is not known, and
// nothing is below zero.
func clean(values []float64) []float64 {
	out := make([]float64, len(values))
	for i, v := range values {
		switch {
		case math.IsNaN(v), math.IsInf(v, 0):
			out[i] = math.NaN()
		default:
			out[i] = min(max(v, 0), huge)
		}
	}
	return out
}

// thin returns at most mostPoints for steps values, of which some at the end may
// be missing: the highest of those that share a place.
func thin(values []float64, steps int) []float64 {
	values = values[:min(len(values), steps)]
	if steps <= mostPoints {
		return values
	}
	out := make([]float64, (len(values)*mostPoints+steps-1)/steps)
	for i := range out {
		out[i] = math.NaN()
	}
	for i, v := range values {
		if at := i * mostPoints / steps; math.IsNaN(out[at]) || v > out[at] {
			out[at] = v
		}
	}
	return out
}

// number prints a coordinate with three significant digits.
func number(v float64) string {
	decimals := 2
	switch {
	case v >= 99.95:
		decimals = 0
	case v >= 9.995:
		decimals = 1
	}
	s := strconv.FormatFloat(v, 'f', decimals, 64)
	if decimals > 0 {
		s = strings.TrimSuffix(strings.TrimRight(s, "0"), ".")
	}
	return s
}

// space maps places and values to coordinates: a place is as wide as 1, a value
// of 0 lies at the bottom and one of top at 0.
type space struct {
	places      int     // along the axis, at least 1
	height, top float64 // top is positive
	whole       bool    // coordinates are whole
}

func (s space) y(v float64) float64 { return s.height * (1 - min(v/s.top, 1)) }

// print prints the coordinate of a value.
func (s space) print(v float64) string {
	if s.whole {
		return strconv.Itoa(int(math.Round(s.y(v))))
	}
	return number(s.y(v))
}

// width is that of the view box: the line begins and ends at its sides.
func (s space) width() int { return max(1, s.places-1) }

// runs calls f with each range of places [from, to) for which ok holds.
func runs(n int, ok func(int) bool, f func(from, to int)) {
	for i := 0; i < n; i++ {
		from := i
		for i < n && ok(i) {
			i++
		}
		if i > from {
			f(from, i)
		}
	}
}

func known(values []float64) func(int) bool {
	return func(i int) bool { return !math.IsNaN(values[i]) }
}

// pen writes the data of a path.
type pen struct{ b strings.Builder }

// to goes to a point; the letter of a line may be left out after a move.
func (p *pen) to(move bool, x int, y string) {
	letter := byte(' ')
	if move {
		letter = 'M'
	}
	p.b.WriteByte(letter)
	p.b.WriteString(strconv.Itoa(x))
	p.b.WriteByte(' ')
	p.b.WriteString(y)
}

// spot is a place with the index of its value.
type spot struct{ x, i int }

// spots returns those of a range of values. A value alone gets two, so that it
// is as long as a place.
func (s space) spots(from, to int) []spot {
	if to == from+1 {
		x := min(from, s.width()-1)
		return []spot{{x, from}, {x + 1, from}}
	}
	out := make([]spot, 0, to-from)
	for i := from; i < to; i++ {
		out = append(out, spot{i, i})
	}
	return out
}

// line returns a path through the known values.
func (s space) line(values []float64) string {
	var p pen
	runs(len(values), known(values), func(from, to int) {
		for k, at := range s.spots(from, to) {
			p.to(k == 0, at.x, s.print(values[at.i]))
		}
	})
	return p.b.String()
}

// steps returns a path that keeps each value until the next.
func (s space) steps(values []float64) string {
	var p pen
	runs(len(values), known(values), func(from, to int) {
		last := s.print(values[from])
		x := min(from, s.width()-1)
		p.to(true, x, last)
		for i := from + 1; i < to; i++ {
			if y := s.print(values[i]); y != last {
				p.b.WriteString("H" + strconv.Itoa(i) + "V" + y)
				last = y
			}
		}
		p.b.WriteString("H" + strconv.Itoa(max(min(to, s.width()), x+1)))
	})
	return p.b.String()
}

// area returns the areas between the known values and zero.
func (s space) area(values []float64) string {
	var p pen
	runs(len(values), known(values), func(from, to int) {
		spots := s.spots(from, to)
		p.to(true, spots[0].x, s.print(0))
		for _, at := range spots {
			p.to(false, at.x, s.print(values[at.i]))
		}
		p.to(false, spots[len(spots)-1].x, s.print(0))
		p.b.WriteByte('Z')
	})
	return p.b.String()
}

// noticed is the share of the height from which a difference can be seen.
const noticed = 0.002

// between returns the areas where upper lies above lower, each with the point
// before and after it.
func (s space) between(upper, lower []float64) string {
	n := min(len(upper), len(lower))
	both := func(i int) bool { return !math.IsNaN(upper[i]) && !math.IsNaN(lower[i]) }
	var p pen
	runs(n, func(i int) bool { return both(i) && upper[i]-lower[i] > noticed*s.top }, func(from, to int) {
		if from > 0 && both(from-1) {
			from--
		}
		if to < n && both(to) {
			to++
		}
		spots := s.spots(from, to)
		for k, at := range spots {
			p.to(k == 0, at.x, s.print(max(upper[at.i], lower[at.i])))
		}
		for k, at := range slices.Backward(spots) {
			level := 0 < k && k < len(spots)-1 && lower[spots[k-1].i] == lower[at.i] && lower[spots[k+1].i] == lower[at.i]
			if !level {
				p.to(false, at.x, s.print(lower[at.i]))
			}
		}
		p.b.WriteByte('Z')
	})
	return p.b.String()
}
