package law

import (
	"math"
	"time"
)

// Mean turns the offered rate of one cell, as its instance sums it, into what
// the cell admits. It averages over as many events as the noise requires
// (3000/limit seconds, at most 20), starts anew when the rate has jumped, and
// begins to drop only when the mean is significantly above the limit. The zero
// value is a cell nobody has reported.
type Mean struct {
	rate    float64   // requests per second
	stepped time.Time // last Step
	jumped  time.Time // last jump of the rate
	active  bool      // dropping
}

// Step takes in the offered rate and the limit, in requests per second (the
// limit positive), and returns limit / mean rate: the share that is admitted
// when below 1. It is above 0 and at most 1e6.
func (m *Mean) Step(now time.Time, offered, limit float64) float64 {
	period := T.Seconds()
	window := min(meanCap.Seconds(), meanEvents/limit)
	deviation := math.Sqrt(m.rate / (2 * period))
	if math.Abs(offered-m.rate) > jumpSigmas*deviation {
		m.rate = offered
		m.jumped = now
	} else {
		// A false jump must be forgotten fast: average over the time since it.
		over := min(window, max(period/2, now.Sub(m.jumped).Seconds()))
		m.rate += (1 - math.Exp(-now.Sub(m.stepped).Seconds()/over)) * (offered - m.rate)
	}
	m.stepped = now

	switch noise := math.Sqrt(limit / (2 * (period + window))); {
	case m.rate > limit+onSigmas*noise:
		m.active = true
	case m.rate <= limit:
		m.active = false
	}
	admit := Admit(m.rate, limit)
	if !m.active {
		return max(admit, 1)
	}
	return admit
}
