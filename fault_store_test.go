package main

import (
	"net/http"
	"testing"
	"time"
)

// TestFaultOfTheStore deletes the controller's database. The new one begins
// above the epoch that nodes have heard, so that they take its directives, and
// with the limits of the directory.
func TestFaultOfTheStore(t *testing.T) {
	f := newFleet(t, faultLimit, []zoneSize{{1, 2}, {1, 2}})
	began := time.Now()
	l, _ := f.load(calm)
	l.holds("start", began, faultLimit, back)
	for range 2 { // epochs that a new database would begin far below
		f.controller.kill()
		f.controller.restart()
		f.controller.process.await("leads")
	}
	l.holds("restarts", time.Now(), faultLimit, back)
	epoch := f.controller.must("grl_controller_epoch")
	if epoch < 3 {
		t.Fatalf("epoch %v after three starts, want at least 3", epoch)
	}

	for _, fault := range []struct {
		name string
		lost []*member
	}{
		{"store lost", []*member{f.controller}},
		{"store and aggregators lost", f.controlPlane()}, // only hosts remember the epoch
	} {
		for _, m := range fault.lost {
			m.kill()
		}
		removeAll(t, f.db)
		since := time.Now()
		for _, m := range fault.lost {
			m.restart()
		}
		l.set(busy)
		measured(t, fault.name, l.holds(fault.name, since, faultLimit, back), back)
		now := f.controller.must("grl_controller_epoch")
		if now <= epoch {
			t.Errorf("%s: epoch %v, want more than %v, which nodes had heard", fault.name, now, epoch)
		}
		epoch = now
		ended := time.Now()
		l.set(calm)
		l.holds("after "+fault.name, ended, faultLimit, back)
		for i, m := range f.sidecars {
			if age := m.must("grl_client_directive_age_seconds"); age > slack(time.Second).Seconds() {
				t.Errorf("%s: sidecar %d took its last directive %v s ago", fault.name, i, age)
			}
		}
	}
	l.unhurt("store lost", began, -1, began)
	if dropped := count(l.through(began, time.Now()), http.StatusTooManyRequests); dropped == 0 {
		t.Error("nothing was ever dropped")
	}
}
