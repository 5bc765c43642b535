package backtest

import (
	"math"
	"slices"
	"time"

	"grl/policy"
)

// The simple rules that grl's policies are compared with. Each looks at the window
// before now.

// rule is a policy made of a function of the window before now.
type rule struct {
	window time.Duration
	limit  func(s policy.Series, now time.Time) float64
}

func (r rule) Compute(in policy.Input) policy.Result {
	return policy.Result{LimitRPS: r.limit(in.Series.Between(in.Now.Add(-r.window), in.Now), in.Now)}
}

func known(rps []float64) []float64 {
	return slices.DeleteFunc(slices.Clone(rps), math.IsNaN)
}

// quantile interpolates.
func quantile(values []float64, q float64) float64 {
	slices.Sort(values)
	at := q * float64(len(values)-1)
	i := int(at)
	j := min(i+1, len(values)-1)
	return values[i] + (at-float64(i))*(values[j]-values[i])
}

// highest is the history maximum times 1.2.
func highest(s policy.Series, _ time.Time) float64 { return 1.2 * slices.Max(known(s.RPS)) }

// high is the 99.9th percentile times 1.5.
func high(s policy.Series, _ time.Time) float64 { return 1.5 * quantile(known(s.RPS), 0.999) }

// sameHour is the maximum of the same hour of the week, times 1.2.
func sameHour(s policy.Series, now time.Time) float64 {
	most := math.NaN()
	for at := now.Truncate(time.Hour).Add(-week); !at.Add(time.Hour).Before(s.Start); at = at.Add(-week) {
		for _, x := range known(s.Between(at, at.Add(time.Hour)).RPS) {
			if !(x <= most) {
				most = x
			}
		}
	}
	if math.IsNaN(most) {
		return highest(s, now)
	}
	return 1.2 * most
}

// lastHour is the maximum of the last hour times 1.5.
func lastHour(s policy.Series, now time.Time) float64 {
	of := known(s.Between(now.Add(-time.Hour), now).RPS)
	if len(of) == 0 {
		return highest(s, now)
	}
	return 1.5 * slices.Max(of)
}
