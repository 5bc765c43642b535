package fleet_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"grl/limiter/law"
	"grl/roles/fleet"
)

// The published surge, and how many times the limit it is.
const (
	limit = 44_000.0
	base  = 22_000.0
	surge = 367_000.0
	times = surge / limit
)

func TestProperty4Step(t *testing.T) {
	t.Parallel()
	var settle, over, soon, later figures
	for i, seed := range seeds(t) {
		for phase := range 4 { // of the tick of T; those of timers are random
			at := 20*time.Second + time.Duration(4*phase+i)*law.T/16
			end := at + 10*time.Second
			r := run(t, fleet.Options{Plan: &fleet.Plan{
				Length: end,
				Loads:  []fleet.Load{{Hosts: 1, Knots: jump(at, base, surge)}},
				From:   settled, Change: at, Settled: end,
			}}, seed)
			settle = append(settle, r.Metrics.SettleSeconds)
			over = append(over, r.Metrics.OvershootSeconds)
			soon = append(soon, highest(&r.Total, at+2*law.Delta)/(law.Guard*limit))
			later = append(later, highest(&r.Total, at+4*law.Delta)/(law.Guard*limit))
		}
	}
	settle.each(t, "seconds until within 5 %", 0.5)
	over.each(t, "overshoot in seconds of the limit", 0.12*(times-1))
	// The guard bounds what a host admits, by its own rate or that of a mean
	// host: where the first directive has seen only some hosts rise, the sum of
	// all is up to 1.4 times what it bounds. One turn of the timers later that
	// has passed.
	noise := 4 / math.Sqrt(law.Guard*limit*law.Delta.Seconds()) // four deviations in a slot
	soon.each(t, "times the guard after 2 delta", 1.5+noise)
	later.each(t, "times the guard after 4 delta", 1.1+noise)
}

// highest returns the highest admitted rate of a slot that begins at a time or
// later.
func highest(s *fleet.Series, from time.Duration) float64 {
	most := 0.0
	for i := int((from + s.Slot - 1) / s.Slot); i < len(s.Admitted); i++ {
		most = max(most, s.Admitted[i])
	}
	return most
}

func TestProperty5RampAndPulses(t *testing.T) {
	t.Parallel()
	var ramp, pulse, falsely figures
	for _, seed := range seeds(t) {
		ramp = append(ramp, run(t, fleet.Options{Scenario: fleet.Ramp}, seed).Metrics.OvershootSeconds)
		m := run(t, fleet.Options{Scenario: fleet.Pulse}, seed).Metrics
		const pulses = 10
		pulse = append(pulse, m.OvershootSeconds/pulses)
		falsely = append(falsely, m.FalseDropsSeconds/pulses)
	}
	ramp.each(t, "overshoot of a ramp in seconds of the limit", 1.3)
	pulse.each(t, "overshoot of a pulse in seconds of the limit", 0.8)
	falsely.each(t, "false drops of a pulse in seconds of the limit", 0.05)
}

func TestProperty7Release(t *testing.T) {
	t.Parallel()
	var first, last figures
	for _, seed := range seeds(t) {
		// After the fall 20 hosts have 55 requests in delta in the mean, and the
		// smallest 27; 200 hosts have a tenth of that.
		few := released(t, 20, seed)
		all := released(t, 200, seed)
		first = append(first, few.first.Seconds())
		last = append(last, few.last.Seconds(), all.last.Seconds())
	}
	first.each(t, "seconds until all with 20 requests in delta had no ratio", 2*law.Delta.Seconds())
	last.each(t, "seconds until nobody had one again", 0.5)
}

// release is how long after the end of a surge each host had been without a
// ratio once, and how long after it the last one had a ratio.
type release struct{ first, last time.Duration }

func released(t *testing.T, hosts int, seed uint64) release {
	t.Helper()
	rise, fall := 20*time.Second, 30*time.Second
	knots := append(jump(rise, base, surge), jump(fall, surge, base)...)
	dropped := make([]bool, hosts)
	free := make([]bool, hosts)
	var r release
	run(t, fleet.Options{
		Hosts: hosts,
		Plan:  &fleet.Plan{Length: fall + 5*time.Second, Loads: []fleet.Load{{Hosts: 1, Knots: knots}}},
		Watch: fleet.Watch{Interval: func(i fleet.Interval) {
			switch {
			case i.At < fall:
				dropped[i.Host] = i.Ratio > 0
			case i.Ratio > 0:
				r.last = i.At - fall
			case !free[i.Host]:
				free[i.Host] = true
				r.first = max(r.first, i.At-fall)
			}
		}},
	}, seed)
	if slices.Contains(dropped, false) || slices.Contains(free, false) {
		t.Errorf("of the hosts %v dropped in the surge, and %v ceased after it; want all", dropped, free)
	}
	return r
}
