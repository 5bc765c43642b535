package main

import (
	"testing"
	"time"
)

// TestFaultlessTraffic counts what steady overload costs each sidecar on its
// stream.
func TestFaultlessTraffic(t *testing.T) {
	f := newFleet(t, faultLimit, []zoneSize{{1, 3}, {1, 3}})
	began := time.Now()
	l, _ := f.load(calm)
	l.holds("start", began, faultLimit, back)
	pause(3 * time.Second) // nothing moves any more
	reports, directives, from := f.sum("grl_client_reports_total"), f.sum("grl_client_directives_total"), time.Now()
	pause(10 * time.Second)
	hostSeconds := time.Since(from).Seconds() * float64(len(f.sidecars))
	for _, c := range []struct {
		what         string
		count, bound float64
	}{
		{"reports", f.sum("grl_client_reports_total") - reports, 1.3},
		{"directives", f.sum("grl_client_directives_total") - directives, 1.5},
	} {
		report(t, c.what+" of a sidecar", c.count/hostSeconds, c.bound, "a second")
		// A machine that has other things to do sends bursts, which are news.
		if got := c.count / hostSeconds; got > 3*c.bound {
			t.Errorf("%.2f %s a second of a sidecar, want at most %v and slack", got, c.what, c.bound)
		}
	}
}

// sum returns the sum of a metric over all sidecars.
func (f *fleet) sum(name string) (sum float64) {
	f.t.Helper()
	for _, m := range f.sidecars {
		sum += m.must(name)
	}
	return sum
}
