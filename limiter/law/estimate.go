package law

import (
	"math"
	"time"
)

// Estimate is a host's estimate of the offered rate of one cell. It is the
// exponential mean over the reporting period, except that it jumps when what
// came in lately is no longer explained by chance. The zero value is a cell
// without traffic.
type Estimate struct {
	rate   float64 // requests per second
	recent [jumpLong]interval
	next   int           // where in recent the next interval goes
	since  int           // intervals since the last jump, at most len(recent)
	period time.Duration // of the last Step
	young  bool          // the rate is a plain mean, over less than a period
	over   float64       // seconds of that mean
	mixed  interval      // the first of the jump's window; zero once it is left out
	noise  excess        // of the counts
	bursts bursts        // that came lately
	even   float64       // the rate without the swing from burst to burst
}

// jumpLong is the longest of the windows, of 1, 2, 4 and 8 intervals, that are
// looked at for a jump.
const jumpLong = 8

// interval is what one turn of the timer found.
type interval struct {
	offered float64
	seconds float64
}

// Step takes in what was offered in the interval that just ended and returns
// the rate in requests per second; over is the reporting period, or more where
// requests come in bursts. Both durations
// must be longer than 0.
func (e *Estimate) Step(offered float64, elapsed, over time.Duration) float64 {
	jumped := e.step(offered, elapsed, e.bursts.over(over))
	e.bursts.step(offered, elapsed.Seconds(), e.rate)
	if jumped || e.bursts.gap == 0 {
		e.even = e.rate
	} else {
		// The mean swings from burst to burst, and who looks at it once a period
		// may see it at the same point of the swing each time.
		e.even += (1 - math.Exp(-elapsed.Seconds()/e.bursts.gap)) * (e.rate - e.even)
	}
	return e.even
}

// step moves the rate, and reports whether it jumped.
func (e *Estimate) step(offered float64, elapsed, over time.Duration) (jumped bool) {
	e.learn(offered, elapsed.Seconds())
	e.recent[e.next] = interval{offered, elapsed.Seconds()}
	e.next = (e.next + 1) % len(e.recent)
	e.since = min(e.since+1, len(e.recent))

	if rate, seconds, first, jumped := e.jump(); jumped {
		if rate > e.rate {
			e.bursts.rose(rate, rate*seconds)
		}
		e.rate, e.over, e.mixed = rate, seconds, first
		e.young = true
		e.since = 0 // counts from before the jump would cause a jump back
		return true
	}
	e.unmix()
	if over > e.period && e.period != 0 {
		e.young, e.over = true, e.period.Seconds() // as long as it remembers
	}
	e.period = over
	e.rate += e.weight(elapsed.Seconds(), over.Seconds()) * (offered/elapsed.Seconds() - e.rate)
	if offered == 0 && e.rate < 0.001 {
		e.rate = 0
	}
	return false
}

// learn takes in how an interval's count differs from that of the one before: in
// Poisson traffic the square of the difference is the sum of both on average,
// however fast the load changes.
func (e *Estimate) learn(offered, seconds float64) {
	last := e.recent[(e.next+len(e.recent)-1)%len(e.recent)]
	if last.seconds == 0 {
		return
	}
	before := last.offered * seconds / last.seconds
	if sum := offered + before; sum > 0 {
		e.noise.learn((offered-before)*(offered-before)/sum, noiseIntervals)
	}
}

// unmix leaves the first interval of a jump's window out of the mean as soon as
// there is another one: the load changed somewhere within it, so it is partly
// from before, or it is the burst that was taken for a jump.
func (e *Estimate) unmix() {
	if e.mixed.seconds == 0 {
		return
	}
	count, seconds := e.rate*e.over-e.mixed.offered, e.over-e.mixed.seconds
	e.mixed = interval{}
	if seconds <= 0 {
		e.over = 0 // the interval to come is all there is
		return
	}
	e.rate, e.over = max(0, count)/seconds, seconds
}

// weight returns that of the last interval in the mean. A jump rests on few
// requests, and may be false: until a period has passed the mean is over all
// since the jump, so the jump is soon exact, or forgotten. So is what a hot cell
// showed last, when it is reported less often again.
func (e *Estimate) weight(elapsed, over float64) float64 {
	steady := 1 - math.Exp(-elapsed/over)
	if e.young {
		e.over += elapsed
		if weight := elapsed / e.over; weight > steady {
			return weight
		}
		e.young = false
	}
	return steady
}

// jump returns the rate over the shortest recent window that chance does not
// explain, with its length and its first interval: beyond four deviations of
// such a count and five requests, and a tenth of it; and a burst more, if there
// are bursts.
func (e *Estimate) jump() (rate, seconds float64, first interval, jumped bool) {
	var count float64
	for w := 1; w <= e.since; w++ { // from the last interval back
		i := e.recent[(e.next-w+len(e.recent))%len(e.recent)]
		count += i.offered
		seconds += i.seconds
		if w&(w-1) != 0 {
			continue // no power of two
		}
		expected := e.rate * seconds
		if math.Abs(count-expected) > max(jumpSigmas*math.Sqrt(e.noise.factor()*expected)+jumpSlack, jumpShare*expected)+e.bursts.size {
			return count / seconds, seconds, i, true
		}
	}
	return 0, 0, interval{}, false
}
