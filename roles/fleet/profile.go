package fleet

import (
	"slices"
	"sort"
	"time"
)

// profile is a rate over time of which the integral is known.
type profile struct {
	knots []Knot
	sums  []float64 // requests from the first knot until each
	jumps []time.Duration
}

func newProfile(knots []Knot) *profile {
	p := &profile{knots: slices.Clone(knots), sums: make([]float64, len(knots))}
	for i := 1; i < len(knots); i++ {
		a, b := knots[i-1], knots[i]
		p.sums[i] = p.sums[i-1] + (b.At-a.At).Seconds()*(a.RPS+b.RPS)/2
		if a.At == b.At {
			p.jumps = append(p.jumps, a.At)
		}
	}
	return p
}

// until returns the requests from the first knot until t; they are negative
// before it.
func (p *profile) until(t time.Duration) float64 {
	i := sort.Search(len(p.knots), func(i int) bool { return p.knots[i].At > t })
	if i == 0 {
		return (t - p.knots[0].At).Seconds() * p.knots[0].RPS
	}
	a := p.knots[i-1]
	span := (t - a.At).Seconds()
	if i == len(p.knots) {
		return p.sums[i-1] + span*a.RPS
	}
	b := p.knots[i]
	slope := (b.RPS - a.RPS) / (b.At - a.At).Seconds()
	return p.sums[i-1] + span*(a.RPS+slope*span/2)
}

// between returns the requests from a to b.
func (p *profile) between(a, b time.Duration) float64 {
	if len(p.knots) == 1 {
		return (b - a).Seconds() * p.knots[0].RPS
	}
	return max(0, p.until(b)-p.until(a))
}

// cut returns the first jump between a and b, b if there is none.
func (p *profile) cut(a, b time.Duration) time.Duration {
	i := sort.Search(len(p.jumps), func(i int) bool { return p.jumps[i] > a })
	if i < len(p.jumps) && p.jumps[i] < b {
		return p.jumps[i]
	}
	return b
}
