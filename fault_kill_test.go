package main

import (
	"math"
	"net/http"
	"slices"
	"syscall"
	"testing"
	"time"
)

const (
	faultLimit = 150.0 // requests per second
	quiet      = 100.0 // rates offered
	calm       = 300.0
	busy       = 450.0
	back       = 5 * time.Second // enforcement must be back within
	dead       = time.Second     // a killed process stays dead for
)

// TestFaultOfEachRole kills or stops one process after the other under load.
// Each time the load rises meanwhile, so that ratios from before are wrong: only
// a loop that is closed again brings the admitted rate back.
func TestFaultOfEachRole(t *testing.T) {
	f := newFleet(t, faultLimit, []zoneSize{{2, 3}, {1, 3}})
	began := time.Now()
	l, _ := f.load(quiet)
	pause(3 * time.Second)
	surge := time.Now()
	l.set(calm)
	measured(t, "surge to enforcement", l.holds("surge", surge, faultLimit, back), 3*time.Second)
	l.unhurt("surge", began, -1, began)
	if dropped := count(l.through(began, surge), http.StatusTooManyRequests); dropped > 0 {
		t.Errorf("%d requests were dropped below the limit, want none", dropped)
	}

	restart := func(m *member) time.Time {
		m.kill()
		pause(dead)
		again := time.Now()
		m.restart()
		return again
	}
	hang := func(m *member) time.Time {
		m.signal(syscall.SIGSTOP)
		pause(5 * time.Second)
		m.signal(syscall.SIGCONT)
		return time.Now()
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
		{"hang of the controller", -1, func() time.Time { return hang(f.controller) }},
		{"hang of a zone's only aggregator", -1, func() time.Time {
			hung := time.Now()
			again := hang(single)
			if noticed := f.controller.last("child left"); noticed.Before(hung) {
				t.Error("the controller did not notice a hung aggregator")
			} else {
				measured(t, "hung aggregator noticed", noticed.Sub(hung), 3500*time.Millisecond)
			}
			return again
		}},
	}
	survivors := slices.Concat([]*member{f.controller, f.aggregators[1]}, f.sidecars[:sidecar])
	var before []size
	for i, fault := range faults {
		if i == 1 { // from now on the controller is one of them
			before = sizes(survivors)
		}
		injected := time.Now()
		since := fault.inject()
		l.set(busy)
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
			return math.Abs(offered-busy) < 0.1*busy
		})
		ended := time.Now()
		l.set(calm)
		l.holds("after the "+fault.name, ended, faultLimit, back)
		l.unhurt("after the "+fault.name, ended, -1, ended)
	}
	compareSizes(t, "all faults", before, sizes(survivors))
}

// pause lets real time pass; a fault lasts as long as it lasts.
func pause(d time.Duration) { <-time.After(d) }
