package main

import (
	"math"
	"syscall"
	"testing"
	"time"
)

const (
	faultLimit = 150.0 // requests per second
	calm       = 300.0
	busy       = 450.0
	back       = 5 * time.Second // enforcement must be back within
	dead       = time.Second     // a killed process stays dead for
)

// TestFaultOfEachRole kills or stops one process after the other under load.
// Each time the load changes, so that ratios from before are wrong: only a loop
// that is closed again brings the admitted rate back.
func TestFaultOfEachRole(t *testing.T) {
	f := newFleet(t, faultLimit, []zoneSize{{2, 3}, {1, 3}})
	began := time.Now()
	l, _ := f.load(calm)
	measured(t, "start to enforcement", l.holds("start", began, faultLimit, back), back)
	l.unhurt("start", began, -1, began)

	restart := func(m *member) time.Time {
		m.kill()
		pause(dead)
		again := time.Now()
		m.restart()
		return again
	}
	pair, single, sidecar := f.aggregators[0], f.aggregators[2], 4
	faults := []struct {
		name   string
		lane   int // whose requests may fail
		inject func() time.Time
	}{
		{"kill of the controller", -1, func() time.Time { return restart(f.controller) }},
		{"kill of a zone's only aggregator", -1, func() time.Time { return restart(single) }},
		{"kill of one of two aggregators", -1, func() time.Time {
			pair.kill() // its hosts move; it stays away
			return time.Now()
		}},
		{"return of one of two aggregators", -1, func() time.Time {
			pair.restart()
			return time.Now()
		}},
		{"kill of a sidecar", sidecar, func() time.Time { return restart(f.sidecars[sidecar]) }},
		{"hang of a zone's only aggregator", -1, func() time.Time {
			hung := time.Now()
			single.signal(syscall.SIGSTOP)
			pause(5 * time.Second)
			single.signal(syscall.SIGCONT)
			if noticed := f.controller.last("aggregator left"); noticed.Before(hung) {
				t.Error("the controller did not notice a hung aggregator")
			} else {
				measured(t, "hung aggregator noticed", noticed.Sub(hung), 3500*time.Millisecond)
			}
			return time.Now()
		}},
	}
	rate := calm
	for _, fault := range faults {
		rate = calm + busy - rate
		injected := time.Now()
		since := fault.inject()
		l.set(rate)
		up := since
		if fault.lane >= 0 {
			up = f.sidecars[fault.lane].up
			measured(t, "sidecar serves again", up.Sub(since), 500*time.Millisecond)
		}
		measured(t, fault.name, l.holds(fault.name, since, faultLimit, back), back)
		// A request may have been under way to a sidecar when it was killed.
		l.unhurt(fault.name, injected.Add(-time.Second), fault.lane, up)
		eventually(t, fault.name+": each host counted once", func() bool {
			offered := f.controller.must("grl_controller_offered_requests_per_second")
			return math.Abs(offered-rate) < 0.1*rate
		})
	}
}

// pause lets real time pass; a fault lasts as long as it lasts.
func pause(d time.Duration) { <-time.After(d) }
