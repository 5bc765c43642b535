package policy

import (
	"math"
	"slices"
	"time"
)

const (
	day  = 24 * time.Hour
	week = 7 * day

	// volumeShare is the share of the volume above the robust peak: a tenth of
	// what a limit may drop. Lone steps do not set the limit, a busy hour does.
	volumeShare = 0.0001
)

// RobustPeak returns G: the smallest limit that would have dropped at most 0.01 %
// of the volume of steps of equal length, in the unit of rps. Unknown ones are
// left out; of none, or of zeros, it is 0. The result is at most the highest step.
// Source: docs/rlc.md, "Robust peak".
func RobustPeak(rps []float64) float64 {
	above := make([]float64, 0, len(rps))
	sum, highest := 0.0, 0.0
	for _, x := range rps {
		if x > 0 {
			above = append(above, x)
			sum += x
			highest = max(highest, x)
		}
	}
	// What a limit drops is convex in it, made of lines: Newton's steps from below
	// never pass the limit looked for, and end on its line. Each one leaves fewer
	// steps above, so that all together cost little more than one pass.
	dropped := volumeShare * sum
	for limit := 0.0; len(above) > 0; {
		next := max(limit, (sum-dropped)/float64(len(above)))
		kept := above[:0]
		sum = 0
		n := len(above)
		for _, x := range above {
			if x > next {
				kept = append(kept, x)
				sum += x
			}
		}
		limit, above = next, kept
		if len(above) == n || len(above) == 0 {
			return min(limit, highest)
		}
	}
	return 0
}

// SparseFloor returns the least limit for what is rare: two standard deviations
// above a count seen, (√count + 1)², for the root of a Poisson count has a
// standard deviation of a half whatever the rate. Both are in requests per second;
// the count is that of a step. Of 0 it is one request a step.
func SparseFloor(rps float64, step time.Duration) float64 {
	seconds := step.Seconds()
	root := math.Sqrt(max(0, rps)*seconds) + 1
	return root * root / seconds
}

// clamp returns x, at least least and at most most.
func clamp(x, least, most float64) float64 { return min(max(x, least), most) }

// median returns the middle of what is known, of two middles their mean; Unknown
// with fewer than two known.
func median(values []float64) float64 {
	known := slices.DeleteFunc(slices.Clone(values), func(x float64) bool { return !Known(x) })
	if len(known) < 2 {
		return Unknown
	}
	slices.Sort(known)
	half := len(known) / 2
	if len(known)%2 == 1 {
		return known[half]
	}
	return (known[half-1] + known[half]) / 2
}
