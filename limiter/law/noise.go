package law

import (
	"math"
	"time"
)

// excess says how much more a rate varies than Poisson traffic would let it:
// real traffic comes in bursts, and a law that took each for a change would
// chase them. The zero value is Poisson's own variance.
type excess float64

// mostLearned bounds what one observation teaches, so that a true change of
// load is not taken for noise.
const mostLearned = 9

// learn takes in an observed variance in units of Poisson's; the memory is
// about so many observations.
func (x *excess) learn(variance, memory float64) {
	*x += excess(min(variance, mostLearned)-1-float64(*x)) / excess(memory)
}

// factor returns by what Poisson's variance is to be multiplied, at least 1.
func (x excess) factor() float64 { return 1 + max(0, float64(x)) }

// sumNoise learns how much a sum of estimates varies.
type sumNoise struct {
	excess
	seen   [2]float64 // the last two sums, a T apart
	at     time.Time  // of the last one
	sights int        // how many of seen there are
}

// learn takes in a sum, in requests per second, whose mean is rate and whose
// estimates are means over that period. What counts is how three sums a T apart
// differ from a straight line: a load that rises or falls steadily is no noise.
func (n *sumNoise) learn(now time.Time, sum, rate float64, period time.Duration) {
	if n.sights > 0 && now.Sub(n.at) < T-Delta {
		return
	}
	if n.sights == 2 && rate > 0 {
		// Two means over T, a T apart, have 1/e of their noise in common.
		lines := 6.0
		if period == T {
			lines = 6 - 8/math.E + 2/(math.E*math.E)
		}
		off := (sum - 2*n.seen[1] + n.seen[0]) / deviation(rate, period)
		n.excess.learn(off*off/lines, noiseSums)
	}
	n.seen[0], n.seen[1], n.at = n.seen[1], sum, now
	n.sights = min(n.sights+1, 2)
}
