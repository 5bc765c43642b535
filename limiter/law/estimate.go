package law

import (
	"math"
	"time"
)

// Estimate is a host's estimate of the offered rate of one cell. It is the
// exponential mean over T, except that it jumps when what came in over the
// last 4 or 8 intervals is no longer explained by chance. The zero value is a
// cell without traffic.
//
// Shorter windows would see a change sooner, but also each pause of a machine
// and the backlog after it; a report that goes out at each T has time.
type Estimate struct {
	rate   float64 // requests per second
	recent [jumpLong]interval
	next   int // where in recent the next interval goes
	since  int // intervals since the last jump, at most len(recent)
}

// Intervals that are looked at for a jump.
const (
	jumpShort = 4
	jumpLong  = 8
)

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

	if rate, jumped := e.jump(); jumped {
		e.rate = rate
		e.since = 0 // counts from before the jump would cause a jump back
		return e.rate
	}
	weight := 1 - math.Exp(-elapsed.Seconds()/T.Seconds())
	e.rate += weight * (offered/elapsed.Seconds() - e.rate)
	if offered == 0 && e.rate < 0.001 {
		e.rate = 0
	}
	return e.rate
}

// jump returns the rate over the shortest recent window that chance does not
// explain: beyond four deviations of a Poisson count, and a tenth of it.
func (e *Estimate) jump() (rate float64, jumped bool) {
	var count, seconds float64
	for w := 1; w <= e.since; w++ { // from the last interval back
		i := e.recent[(e.next-w+len(e.recent))%len(e.recent)]
		count += i.offered
		seconds += i.seconds
		if w != jumpShort && w != jumpLong {
			continue
		}
		expected := e.rate * seconds
		if math.Abs(count-expected) > max(jumpSigmas*math.Sqrt(expected)+3, 0.1*expected) {
			return count / seconds, true
		}
	}
	return 0, false
}
