package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

const (
	capRPS   = 60.0
	capped   = time.Second // a cap is in force within
	wideOpen = 10_000.0    // a limit that drops nothing
)

// capView is what grl cap prints of one.
type capView struct {
	Cap struct {
		Cap struct{ ID string }
	}
}

// TestFaultCaps places a cap by the command, kills the controller while it
// holds, and lifts it.
func TestFaultCaps(t *testing.T) {
	f := newFleet(t, wideOpen, []zoneSize{{1, 2}, {1, 1}})
	began := time.Now()
	l, _ := f.load(calm)
	pause(3 * time.Second)

	var placed capView
	asked := time.Now()
	f.controller.read(&placed, "cap", "shop", "--caller", "web", "--rps", fmt.Sprint(capRPS), "--for", "10m", "--reason", "retry storm")
	measured(t, "cap placed to the first drop at every sidecar", l.firstDrops(asked), capped)
	measured(t, "cap placed to enforcement", l.holds("cap placed", asked, capRPS, capped), capped)
	id := placed.Cap.Cap.ID
	if list := f.controller.do("cap", "list").stdout; !strings.Contains(list, "retry storm") || !strings.Contains(list, "3/3") {
		t.Errorf("grl cap list has no cap held by three clients:\n%s", list)
	}

	f.controller.kill()
	down := time.Now()
	pause(steady)
	l.holds("controller down", down, capRPS, capped)
	up := time.Now()
	f.controller.restart()
	l.holds("controller back", up, capRPS, back)
	if list := f.controller.do("cap", "list").stdout; !strings.Contains(list, "retry storm") {
		t.Errorf("grl cap list after a restart has no cap:\n%s", list)
	}

	lifted := time.Now()
	f.controller.do("cap", "lift", id)
	measured(t, "cap lifted to the last drop", l.lastDrop(lifted), capped)
	l.unhurt("caps", began, -1, began)
}

// TestFaultCapEnds lets a cap end by itself: what it admits then doubles each
// 15 s, until it drops nothing.
func TestFaultCapEnds(t *testing.T) {
	f := newFleet(t, wideOpen, []zoneSize{{1, 2}, {1, 1}})
	l, _ := f.load(quiet)
	pause(2 * time.Second)
	asked := time.Now()
	const held = 3 * time.Second
	f.controller.do("cap", "shop", "--caller", "web", "--rps", fmt.Sprint(capRPS), "--for", held.String(), "--reason", "brief")
	report(t, "cap of 0.6 of the load placed to the first drop", l.firstDrop(asked).Seconds(), 0, "s")
	pause(time.Until(asked.Add(held)))
	ends := time.Now()
	// Twice the limit is more than is offered.
	const full = 15 * time.Second
	pause(full + 4*time.Second)
	admitted := func(from, to time.Duration) float64 {
		answers := l.through(ends.Add(from), ends.Add(to))
		return float64(count(answers, http.StatusOK)) / (to - from).Seconds()
	}
	begin, middle, after := admitted(0, 2*time.Second), admitted(6*time.Second, 9*time.Second), admitted(full+2*time.Second, full+4*time.Second)
	report(t, "admitted as a cap of 60 ends", begin, 0, "requests a second")
	report(t, "7.5 s later", middle, 0, "requests a second")
	report(t, "17 s later", after, 0, "requests a second")
	if begin > 0.8*quiet || middle < begin || middle < 1.15*capRPS || middle > 0.98*quiet {
		t.Errorf("a cap of %v that ends admits %.1f, and 7.5 s later %.1f of %v rps", capRPS, begin, middle, quiet)
	}
	dropped := count(l.through(ends.Add(full+2*time.Second), time.Now().Add(-step)), http.StatusTooManyRequests)
	if dropped > 0 {
		t.Errorf("17 s after the end of a cap, when it admits more than twice, %d requests were dropped in 2 s; %.1f rps were admitted", dropped, after)
	}
	if *measure {
		f.blockEnds(t, l)
	}
}

// blockEnds lets a cap that blocks end, which takes the longest, and checks that
// nothing is dropped two minutes later.
func (f *fleet) blockEnds(t *testing.T, l *load) {
	t.Helper()
	const ramp = 2 * time.Minute
	held := 3 * time.Second
	asked := time.Now()
	f.controller.do("cap", "shop", "--caller", "web", "--block", "--for", held.String(), "--reason", "brief")
	pause(time.Until(asked.Add(held + ramp - 15*time.Second)))
	measured(t, "cap that blocked ended to the last drop", l.lastDrop(asked.Add(held)), ramp+10*time.Second)
}

// firstDrops waits until every sidecar has dropped, and returns how long after
// since the first drop of the last of them was.
func (l *load) firstDrops(since time.Time) time.Duration {
	l.t.Helper()
	var last time.Duration
	eventually(l.t, "a drop at every sidecar", func() bool {
		first := map[int]time.Duration{} // lane → since
		for _, a := range l.through(since, time.Now()) {
			if at := a.sent.Sub(since); a.status == http.StatusTooManyRequests && (first[a.lane] == 0 || at < first[a.lane]) {
				first[a.lane] = at
			}
		}
		last = 0
		for _, at := range first {
			last = max(last, at)
		}
		return len(first) == len(l.lanes)-1
	})
	return last
}

// firstDrop waits until something has been dropped, and returns how long after
// since that was.
func (l *load) firstDrop(since time.Time) (first time.Duration) {
	l.t.Helper()
	eventually(l.t, "a drop", func() bool {
		for _, a := range l.through(since, time.Now()) {
			if a.status == http.StatusTooManyRequests {
				first = a.sent.Sub(since)
				return true
			}
		}
		return false
	})
	return first
}

// lastDrop waits until nothing has been dropped for a while, and returns how
// long after since that began.
func (l *load) lastDrop(since time.Time) time.Duration {
	l.t.Helper()
	var last time.Duration
	eventually(l.t, "no drops any more", func() bool {
		now := time.Now().Add(-2 * step)
		last = 0
		for _, a := range l.through(since, now) {
			if a.status == http.StatusTooManyRequests {
				last = max(last, a.sent.Sub(since))
			}
		}
		return now.Sub(since)-last > steady
	})
	return last
}
