package law

import (
	"math"
	"time"
)

// Mean is the offered rate of one cell, averaged over as many events as the
// noise requires: 3,000 of those that come, or of those that the limit admits if
// that is more, at most 20 s; anew from a jump. The zero value is a cell nobody
// has reported.
type Mean struct {
	rate    float64   // requests per second
	over    float64   // seconds that it is taken over now
	stepped time.Time // last Step
	jumped  time.Time // last jump of the rate
	noise   sumNoise
}

// Rate returns the mean in requests per second.
func (m *Mean) Rate() float64 { return m.rate }

// Step takes in the offered rate and the limit, in requests per second (the
// limit positive), of reports that come once in that period, and returns the
// mean rate.
func (m *Mean) Step(now time.Time, offered, limit float64, period time.Duration) float64 {
	m.noise.learn(now, offered, m.rate, period)
	// Small counts are skewed: deviations alone would see jumps up that are chance.
	unlikely := jumpSigmas*deviation(m.noise.factor()*m.rate, period) + sumSlack/period.Seconds()
	if m.stepped.IsZero() || math.Abs(offered-m.rate) > unlikely {
		m.rate, m.over = offered, 0
		m.jumped = now
	} else {
		// A false jump must be forgotten fast, and a true one is told better and
		// better by estimates that are means since it: follow them at first, then
		// average over the time since.
		m.over = min(window(max(limit, m.rate)), max(0, now.Sub(m.jumped)-T/2).Seconds())
		m.rate = follow(m.rate, offered, now.Sub(m.stepped).Seconds(), m.over)
	}
	m.stepped = now
	return m.rate
}

// window returns the seconds that a mean of so many requests per second is
// taken over.
func window(rps float64) float64 { return min(meanCap.Seconds(), meanEvents/rps) }

// follow returns a mean over so many seconds after elapsed more, in which its
// subject was at target. A mean over no time is the target.
func follow(mean, target, elapsed, over float64) float64 {
	if over <= 0 {
		return target
	}
	return mean + (1-math.Exp(-elapsed/over))*(target-mean)
}

// Gate turns the rate offered to one limit into what it admits. Dropping begins
// only when the mean is significantly above the limit, and ends when it is not
// above. The zero value is a limit nobody has been offered to.
type Gate struct {
	mean      Mean
	reference float64   // the rate since it last moved significantly, a slow mean
	referred  time.Time // last change of reference; zero: never
	moved     time.Time // when the rate did; zero: never
	heated    time.Time // last time that it was hot; zero: never
	active    bool      // dropping
	hot       bool
}

// Resume takes in that another decider was dropping, or not, until now.
func (g *Gate) Resume(active bool) { g.active = active }

// Active reports whether the limit drops.
func (g *Gate) Active() bool { return g.active }

// Hot reports whether the rate is near the limit, or above, and moved a moment
// ago: reports are wanted sooner.
func (g *Gate) Hot() bool { return g.hot }

// Step takes in the offered rate and the limit, in requests per second (the
// limit positive), and returns limit / mean rate: the share that is admitted
// when below 1. It is above 0 and at most 1e6.
func (g *Gate) Step(now time.Time, offered, limit float64) float64 {
	every := g.noise(now)
	mean := g.mean.Step(now, offered, limit, every)
	switch noise := math.Sqrt(g.mean.noise.factor() * limit / (2 * (T.Seconds() + g.mean.over))); {
	case mean > limit+onSigmas*noise:
		g.active = true
	case mean <= limit:
		g.active = false
	}
	g.heat(now, offered, limit, every)
	admit := Admit(mean, limit)
	if !g.active {
		return max(admit, 1)
	}
	return admit
}

// noise returns the period whose noise the offered rate has. Estimates that
// were made for a hot cell stay as noisy for a while: a threshold that did not
// know would take what is left of it for a jump, or keep the cell hot.
func (g *Gate) noise(now time.Time) time.Duration {
	return period(g.hot || !g.heated.IsZero() && now.Sub(g.heated) < HotNoise)
}

// heat decides whether the cell is hot: near its limit, and moved a moment ago.
func (g *Gate) heat(now time.Time, offered, limit float64, every time.Duration) {
	switch {
	case g.referred.IsZero(), // the first rate is no move
		offered < nearLimit/2*limit, // nor is one far below the limit
		limit*HotT.Seconds() < hotEvents:
		g.reference = offered
	case math.Abs(offered-g.reference) > max(hotShare*g.reference, hotSigmas*deviation(g.mean.noise.factor()*g.reference, every)):
		g.reference, g.moved = offered, now
	default:
		// One sample as reference would be as noisy as what is compared with it,
		// and the one that was taken for a move is the noisiest of all.
		over := hotWindow
		if !g.moved.IsZero() {
			over = min(over, now.Sub(g.moved))
		}
		g.reference = follow(g.reference, offered, now.Sub(g.referred).Seconds(), over.Seconds())
	}
	g.referred = now
	g.hot = offered > nearLimit*limit && !g.moved.IsZero() && now.Sub(g.moved) < HotFor
	if g.hot {
		g.heated = now
	}
}
