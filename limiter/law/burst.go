package law

import "time"

const (
	// burstKept is how long a burst is remembered that does not come again.
	burstKept = 4 * time.Second
	// burstFall is the share of the rate that a burst looked like below which the
	// rate has fallen once it is over.
	burstFall = 0.25
	// burstGaps is how many times as long as the gaps between bursts a mean is
	// taken, but for no longer than they are remembered: a shorter one would be of
	// one burst, or of none.
	burstGaps = 4
)

// bursts says how many requests come at once now and then, and no more for some
// time after: a caller whose workers keep step, or that sends in batches. So
// many more or less than expected are no change of the rate. The zero value
// knows of none.
type bursts struct {
	size  float64 // requests; 0: none known
	quiet float64 // seconds since half as many came
	gap   float64 // seconds between two, in the mean; 0: there was one
	last  float64 // requests of the last interval

	// A rise that may turn out to be a burst.
	peak float64 // the rate that was jumped up to; 0: there was none lately
	rise float64 // requests since, with those of the jump
	age  int     // intervals since
}

// rose takes in that the rate jumped up, because of so many requests.
func (b *bursts) rose(rate, requests float64) { b.peak, b.rise, b.age = rate, requests, 0 }

// step takes in an interval, after which the rate is rate. What rose and has
// fallen again within the longest window of a jump was a burst.
func (b *bursts) step(offered, seconds, rate float64) {
	if b.peak > 0 && b.age > 0 {
		b.rise += offered
	}
	switch b.age++; {
	case b.peak == 0:
	case rate < burstFall*b.peak:
		b.size, b.quiet, b.peak = max(b.size, b.rise), 0, 0
	case b.age > jumpLong:
		b.peak = 0
	}
	b.quiet += seconds
	if b.size > 0 && offered+b.last >= b.size/2 { // one may lie on both sides of a turn of the timer
		if b.quiet > 2*seconds {
			b.space(b.quiet)
		}
		b.quiet = 0
	}
	b.last = offered
	if b.quiet > burstKept.Seconds() {
		b.size, b.gap = 0, 0
	}
}

// space takes in how long after the one before a burst came.
func (b *bursts) space(seconds float64) {
	if b.gap == 0 {
		b.gap = seconds
	}
	b.gap += (seconds - b.gap) / burstGaps
}

// over returns how long a mean is to be taken, if over is what would do without
// bursts.
func (b *bursts) over(over time.Duration) time.Duration {
	if b.size == 0 {
		return over
	}
	return max(over, T, min(burstKept, time.Duration(burstGaps*b.gap*float64(time.Second))))
}
