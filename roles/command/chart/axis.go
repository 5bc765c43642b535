package chart

import "math"

// Axis maps values from 0 to Top to pixels.
type Axis struct {
	Top      float64
	From, To float64 // pixels of 0 and of Top
	Ticks    []float64
}

// NewAxis returns an axis for values up to most, above 0, with about n ticks at
// round numbers.
func NewAxis(most float64, n int, from, to float64) Axis {
	step := roundStep(most / float64(n))
	a := Axis{Top: most, From: from, To: to}
	for i := 0; float64(i)*step <= most; i++ {
		a.Ticks = append(a.Ticks, float64(i)*step)
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

// Pixel returns where a value lies.
func (a Axis) Pixel(v float64) float64 { return a.From + (a.To-a.From)*v/a.Top }
