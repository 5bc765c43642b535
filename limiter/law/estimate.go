package law

import (
	"math"
	"time"
)

// Estimate is a host's estimate of the offered rate of one cell. It is the
// exponential mean over T, except that it jumps when what came in over the
// last 1, 2, 4 or 8 intervals is no longer explained by chance, and then is the
// mean since the jump until T has passed: the interval in which load changes is
// only partly of the new rate. The zero value is a cell without traffic.
type Estimate struct {
	rate   float64 // requests per second
	over   float64 // seconds the mean is over since a jump, until T; 0: T
	recent [8]interval
	next   int // where in recent the next interval goes
	since  int // intervals since the last jump, at most len(recent)
}

// interval is what one turn of the timer found.
type interval struct {
	offered float64
	seconds float64
}

// Step takes in what was offered in the interval that just ended and returns
// the rate in requests per second. An interval must be longer than 0.
func (e *Estimate) Step(offered float64, elapsed time.Duration) float64 {
	e.recent[e.next] = interval{offered, elapsed.Seconds()}
	e.next = (e.next + 1) % len(e.recent)
	e.since = min(e.since+1, len(e.recent))

	if rate, seconds := e.jump(); seconds > 0 {
		e.rate, e.over = rate, seconds
		e.since = 0 // counts from before the jump would cause a jump back
		return e.rate
	}
	over := T.Seconds()
	if e.over > 0 && e.over+elapsed.Seconds() < over {
		e.over += elapsed.Seconds()
		over = e.over
	} else {
		e.over = 0
	}
	weight := 1 - math.Exp(-elapsed.Seconds()/over)
	e.rate += weight * (offered/elapsed.Seconds() - e.rate)
	if offered == 0 && e.rate < 0.001 {
		e.rate = 0
	}
	return e.rate
}

// jump returns the rate over the shortest recent window that chance does not
// explain, beyond four deviations of a Poisson count and a tenth of it, and the
// seconds of that window; 0 if there is none.
func (e *Estimate) jump() (rate, seconds float64) {
	var count float64
	for w := 1; w <= e.since; w++ {
		i := e.recent[(e.next-w+len(e.recent))%len(e.recent)]
		count += i.offered
		seconds += i.seconds
		if w&(w-1) != 0 {
			continue // windows of 1, 2, 4 and 8
		}
		expected := e.rate * seconds
		if math.Abs(count-expected) > max(jumpSigmas*math.Sqrt(expected)+3, 0.1*expected) {
			return count / seconds, seconds
		}
	}
	return 0, 0
}
