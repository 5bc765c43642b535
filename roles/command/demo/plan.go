package demo

import (
	"iter"
	"math"
	"strings"
	"time"
)

// baseSpeed is how fast the trace plays outside the surge.
const baseSpeed = 3

// phase is a third of the demo.
type phase int

const (
	beforeSurge phase = iota
	inSurge
	afterSurge
)

func (p phase) String() string { return [...]string{"before", "surge", "after"}[p] }

// plan says what is sent when, and what the limits are.
type plan struct {
	calls  []call
	third  time.Duration // whole seconds; the first two last so long
	total  time.Duration // whole seconds
	surge  float64       // how much faster the trace plays in it
	limits limits
}

// newPlan returns the plan of a demo of so many seconds.
func newPlan(calls []call, seconds int, surge float64) plan {
	p := plan{
		calls: calls,
		third: time.Duration(seconds/3) * time.Second,
		total: time.Duration(seconds) * time.Second,
		surge: surge,
	}
	p.limits = p.limitsOf()
	return p
}

// at returns the phase of a moment.
func (p plan) at(elapsed time.Duration) phase {
	switch {
	case elapsed < p.third:
		return beforeSurge
	case elapsed < 2*p.third:
		return inSurge
	default:
		return afterSurge
	}
}

// schedule yields what is sent, in order, and when.
func (p plan) schedule() iter.Seq2[time.Duration, kind] {
	return func(yield func(time.Duration, kind) bool) {
		for loop := time.Duration(0); ; loop += traceSpan {
			for _, c := range p.calls {
				due := p.due(loop + c.at)
				if due >= p.total || !yield(due, c.kind) {
					return
				}
			}
		}
	}
}

// due returns when a moment of the looped trace is played.
func (p plan) due(traced time.Duration) time.Duration {
	surgeFrom := baseSpeed * p.third
	surgeSpeed := baseSpeed * p.surge
	surgeTo := surgeFrom + time.Duration(surgeSpeed*float64(p.third))
	switch {
	case traced < surgeFrom:
		return traced / baseSpeed
	case traced < surgeTo:
		return p.third + time.Duration(float64(traced-surgeFrom)/surgeSpeed)
	default:
		return 2*p.third + (traced-surgeTo)/baseSpeed
	}
}

// limits are what the three buckets allow, in requests per second.
type limits struct {
	all       float64 // enforced: twice the mean before the surge
	products  float64 // in shadow: twice the mean of productcatalogservice
	perCaller float64 // in shadow: more than any caller sends before the surge
}

func (p plan) limitsOf() limits {
	var all, products float64
	for due, k := range p.schedule() {
		if due >= p.third {
			break
		}
		all++
		if strings.HasPrefix(k.procedure, productsPrefix) {
			products++
		}
	}
	seconds := p.third.Seconds()
	return limits{
		all:       math.Round(2 * all / seconds),
		products:  math.Round(2 * products / seconds),
		perCaller: math.Round(1.5 * all / seconds),
	}
}
