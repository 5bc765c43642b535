package simulate

import "math"

// axis maps values from 0 to top to pixels.
type axis struct {
	top      float64
	from, to float64 // pixels of 0 and of top
	ticks    []float64
}

// newAxis returns an axis for values up to most, with about n ticks at round
// numbers.
func newAxis(most float64, n int, from, to float64) axis {
	step := roundStep(most / float64(n))
	a := axis{top: most, from: from, to: to}
	for i := 0; float64(i)*step <= most; i++ {
		a.ticks = append(a.ticks, float64(i)*step)
	}
	return a
}

// roundStep returns the smallest of 1, 2 and 5 times a power of ten that is not
// below v, which is positive.
func roundStep(v float64) float64 {
	unit := math.Pow10(int(math.Floor(math.Log10(v))))
	for _, k := range []float64{1, 2, 5} {
		if k*unit >= v {
			return k * unit
		}
	}
	return 10 * unit
}

func (a axis) pixel(v float64) float64 { return a.from + (a.to-a.from)*v/a.top }
