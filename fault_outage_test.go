package main

import (
	"net/http"
	"testing"
	"time"
)

// TestFaultOfTheControllerInASurge kills the controller for ten seconds, in
// which load rises to 15 times: the zones go on alone, and keep to the limit.
func TestFaultOfTheControllerInASurge(t *testing.T) {
	limit := 80.0
	if *measure { // more than a machine with other tests, and their checks, can bear
		limit = 300
	}
	before := limit / 2
	surge := 15 * before
	f := newFleet(t, limit, []zoneSize{{1, 2}, {1, 2}})
	began := time.Now()
	l, _ := f.load(before)
	pause(6 * time.Second) // the sums know all hosts
	f.controller.kill()
	pause(4 * time.Second) // noticed
	rose := time.Now()
	l.set(surge)
	pause(6 * time.Second)
	f.controller.restart()
	measured(t, "surge without a controller to enforcement", l.holds("surge without a controller", rose, limit, time.Second), time.Second)
	report(t, "overshoot of a surge without a controller", l.above(rose, rose.Add(5*time.Second), limit), 0.8, "s of the limit")
	if over := l.above(rose, rose.Add(5*time.Second), limit); over > 5*0.8 {
		t.Errorf("a surge without a controller let through %.2f s of the limit more than it", over)
	}
	back := time.Now()
	measured(t, "return of the controller in a surge", l.holds("return of the controller in a surge", back, limit, time.Second), time.Second)
	l.unhurt("controller lost in a surge", began, -1, began)
	if dropped := count(l.through(began, rose), http.StatusTooManyRequests); dropped > 0 {
		t.Errorf("%d requests were dropped below the limit, want none", dropped)
	}
}

// TestFaultOfAZoneCutOff cuts the network between one zone and the controller
// for eight seconds, silently, at twice the limit: both sides keep to their
// share.
func TestFaultOfAZoneCutOff(t *testing.T) {
	f := newFleet(t, faultLimit, []zoneSize{{1, 2}, {1, 2}})
	began := time.Now()
	l, _ := f.load(calm)
	l.holds("start", began, faultLimit, back)
	pause(2 * time.Second)

	cut := time.Now()
	f.relays[0].cut()
	pause(8 * time.Second)
	mended := time.Now()
	f.relays[0].mend()
	over := l.above(cut, mended, faultLimit)
	report(t, "overshoot while a zone is cut off", over, 0.3, "s of the limit")
	if over > 5*0.3 {
		t.Errorf("while a zone was cut off %.2f s of the limit more than it were admitted:\n%s", over, l.history(cut))
	}
	measured(t, "zone cut off", l.holds("zone cut off", cut, faultLimit, time.Second), time.Second)
	measured(t, "return of a zone", l.holds("return of a zone", mended, faultLimit, back), back)
	l.unhurt("zone cut off", began, -1, began)
	if alone := f.aggregators[0].last("decider is silent: deciding alone with the last share"); alone.Before(cut) {
		t.Error("the aggregator that was cut off did not go on alone")
	}
}

// above returns what was admitted above the limit in a span, in seconds of it.
func (l *load) above(from, to time.Time, limit float64) float64 {
	admitted := count(l.through(from, to), http.StatusOK)
	return max(0, float64(admitted)/limit-to.Sub(from).Seconds())
}
