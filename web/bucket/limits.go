package bucket

import (
	"context"
	"math"
	"time"

	"grl/limiter"
	"grl/web/page"
)

// mostInstances bounds those whose limits are added up.
const mostInstances = 50

// limits are the limits of what a query looks at, at each step of a series.
type limits struct {
	enforced, judged []float64          // requests per second; NaN: none
	changes          []page.LimitChange // of the bucket, or of its first instance
	several          int                // instances whose limits are added up
}

// limits reads which limits there were. Of a bucket that has one for each caller
// there are none to draw, unless one caller is looked at.
func (s site) limits(ctx context.Context, q query, now sum, b *limiter.Bucket, from time.Time, step time.Duration, n int) (limits, error) {
	out := limits{enforced: unknown(n), judged: unknown(n)}
	instances := now.instances()
	if q.Instance != "" {
		instances = []string{q.Instance}
	}
	each := b != nil && b.PerCaller && q.Caller == ""
	for i, instance := range instances[:min(len(instances), mostInstances)] {
		changes, err := s.Backend.Limits(ctx, q.bucket(), instance, from)
		if err != nil {
			return out, err
		}
		if i == 0 {
			out.changes = changes
		}
		if !each {
			out.several++
			out.add(changes, from, step)
		}
	}
	return out, nil
}

func unknown(n int) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = math.NaN()
	}
	return out
}

// add adds the limits of one instance. A limit that is not enforced is one that
// is judged; where there is neither, nothing is known of the sum.
func (l *limits) add(changes []page.LimitChange, from time.Time, step time.Duration) {
	next := 0
	var present *page.LimitChange
	for i := range l.enforced {
		for next < len(changes) && !changes[next].At.After(from.Add(time.Duration(i)*step)) {
			present = &changes[next]
			next++
		}
		if present == nil {
			continue
		}
		enforced, judged := limitsOf(present)
		l.enforced[i] = plus(l.enforced[i], enforced)
		l.judged[i] = plus(l.judged[i], judged)
	}
}

// plus adds what is known.
func plus(a, b float64) float64 {
	switch {
	case math.IsNaN(a):
		return b
	case math.IsNaN(b):
		return a
	}
	return a + b
}

// limitsOf returns the limit that is enforced, and that which is judged; NaN:
// there is none.
func limitsOf(c *page.LimitChange) (enforced, judged float64) {
	enforced, judged = math.NaN(), math.NaN()
	switch {
	case c.Behavior != limiter.Deny && c.LimitRPS > 0:
		judged = c.LimitRPS
	case c.Behavior == limiter.Deny && c.Block:
		enforced = 0
	case c.Behavior == limiter.Deny && c.LimitRPS > 0:
		enforced = c.LimitRPS
	}
	if c.CandidateRPS > 0 {
		judged = c.CandidateRPS
	}
	return enforced, judged
}
