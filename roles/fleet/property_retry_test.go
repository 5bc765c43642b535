package fleet_test

import (
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
