package fleet_test

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"grl/roles/fleet"
)

func TestProperty6RetryStorm(t *testing.T) {
	t.Parallel()
	rise, fall := 20*time.Second, 35*time.Second
	var amplified, settle, peaks, back, release figures
	for _, seed := range seeds(t) {
		r := run(t, fleet.Options{Scenario: fleet.Retry}, seed)
		offered := means(&r.Total, r.Total.Offered, rise, fall, time.Second, time.Second)
		amplified = append(amplified, slices.Max(offered)/(2*limit))
		settle = append(settle, r.Metrics.SettleSeconds)
		release = append(release, r.Metrics.ReleaseSeconds)

		after := means(&r.Total, r.Total.Admitted, rise+3*time.Second, fall, time.Second, time.Second)
		peaks = append(peaks, 100*(slices.Max(after)-slices.Min(after))/limit)
		back = append(back, fallsBack(means(&r.Total, r.Total.Ratio, rise, fall, 250*time.Millisecond, 50*time.Millisecond)))
	}
	amplified.each(t, "amplification", 3)
	settle.each(t, "seconds until within 5 %", 3)
	peaks.each(t, "percent from peak to peak", 4)
	back.each(t, "fall of the ratio", 0.01)
	release.each(t, "seconds until drops end", 4)
}

// fallsBack returns how far values fall below one before at most.
func fallsBack(values figures) float64 {
	most, falls := math.Inf(-1), 0.0
	for _, v := range values {
		most = max(most, v)
		falls = max(falls, most-v)
	}
	return falls
}

// The other half of property 6: near the limit, where each drop comes back, an
// oscillation that goes on would be opposite to itself half a period later.
func TestProperty6NoOscillation(t *testing.T) {
	for _, limit := range []float64{10_000, limit} {
		t.Run(fmt.Sprint(limit), func(t *testing.T) {
			t.Parallel()
			const width = 200 * time.Millisecond
			var opposite figures
			for _, seed := range seeds(t) {
				plan := steady(1.1*limit, 110)
				plan.Retries = 2
				r := run(t, fleet.Options{LimitRPS: limit, Plan: plan}, seed)
				if m := r.Metrics.MeanErrorPercent; math.Abs(m) > 5 {
					t.Errorf("admitted is %.1f %% off the limit", m)
				}
				admitted := means(&r.Total, r.Total.Admitted, plan.From+10*time.Second, plan.Length, width, width)
				lowest := 1.0
				for lag := 1; lag <= 25; lag++ {
					lowest = min(lowest, autocorrelation(admitted, lag))
				}
				opposite = append(opposite, -lowest)
			}
			// Of noise alone each has a deviation of 0.045, and the lowest of 25 is
			// 0.1.
			opposite.each(t, "opposite within 5 s", 0.4)
		})
	}
}

// autocorrelation returns how alike values are to those that come so much
// later: from -1, the opposite, to 1.
func autocorrelation(values figures, lag int) float64 {
	mean, with, squares := values.mean(), 0.0, 0.0
	for i, v := range values {
		squares += (v - mean) * (v - mean)
		if i+lag < len(values) {
			with += (v - mean) * (values[i+lag] - mean)
		}
	}
	return with / squares
}
