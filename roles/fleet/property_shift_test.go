package fleet_test

import (
	"math"
	"testing"
	"time"

	"grl/limiter/law"
	"grl/roles/fleet"
)

func TestProperty8Shift(t *testing.T) {
	t.Parallel()
	var off figures
	for _, seed := range seeds(t) {
		r := run(t, fleet.Options{Scenario: fleet.Shift}, seed)
		worst := 0.0
		for _, mean := range means(&r.Total, r.Total.Admitted, settled, r.Length, time.Second, r.Total.Slot) {
			worst = max(worst, 100*math.Abs(mean/limit-1))
		}
		off = append(off, worst)
	}
	off.each(t, "percent between the limit and any mean of a second", 6)
}

func TestProperty8LoneHost(t *testing.T) {
	t.Parallel()
	var trimmed, last, without figures
	for _, seed := range seeds(t) {
		for _, guard := range []float64{law.Guard, -1} {
			r := run(t, fleet.Options{Scenario: fleet.LoneHost, Guard: guard}, seed)
			if guard < 0 {
				without = append(without, r.Metrics.FalseDropsSeconds)
				continue
			}
			trimmed = append(trimmed, r.Metrics.FalseDropsSeconds)
			last = append(last, lastDrops(&r.Total).Seconds()-20)
		}
	}
	trimmed.each(t, "trimmed of a lone host in seconds of the limit", 0.15)
	last.each(t, "seconds until nothing is trimmed", loop.Seconds())
	without.each(t, "trimmed without a guard", 0)
}

// loop is how long the way from a change to the ratios of all hosts takes: two
// turns of the timer, the links up and down, two nodes that wait for more, and
// the time between two directives.
const loop = 2*law.Delta + 2*(10+40)*time.Millisecond + 2*law.Coalesce + law.PublishGap

// lastDrops returns when the last slot ended in which more than 0.1 % of the
// limit was dropped.
func lastDrops(s *fleet.Series) time.Duration {
	var last time.Duration
	for i := range s.Offered {
		if s.Offered[i]-s.Admitted[i] > 0.001*s.Limit {
			last = time.Duration(i+1) * s.Slot
		}
	}
	return last
}
