package roles_test

import (
	"testing"
	"testing/synctest"
	"time"

	grlv1 "grl/proto/grl/v1"
	"grl/proto/statefile"
)

// extend moves the end of a cap to d from now.
func (f *fleet) extend(id string, d time.Duration) {
	f.t.Helper()
	answer, err := f.Incident().ExtendCap(f.t.Context(), &grlv1.ExtendCapRequest{Id: id, DurationMs: d.Milliseconds(), Reason: "not over"})
	if err != nil {
		f.t.Fatal(err)
	}
	if left := time.Duration(answer.GetCap().GetCap().GetRemainingMs()) * time.Millisecond; left > d || left < d-time.Second {
		f.t.Errorf("%v left of an extended cap, want %v", left, d)
	}
}

// A cap that is extended holds until its new end, at hosts that have lost the
// control plane since too, and ramps out from there.
func TestCapIsExtended(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, limits("limit: {rps: 100000}; behavior: deny"), []string{"z1", "z2"}, 400, 400, 400, 400)
		f.offer(settling)
		id := f.cap(100, time.Minute)
		f.offer(40 * time.Second)
		f.extend(id, 3*time.Minute)
		f.offer(time.Second)
		for _, name := range []string{"controller", "aggregator-z1", "aggregator-z2"} {
			f.Stop(name)
		}
		f.offer(30 * time.Second)
		f.steady("10 s after the first end", 20, 100, 0.1)
		f.offer(127 * time.Second)
		f.steady("just before the new end", 2, 100, 0.1)
		f.offer(122 * time.Second) // the ramp
		f.steady("after the ramp", 3, 1600, 0.005)
	})
}

// A host that restarts without a control plane has the new end from its disk.
func TestExtendedCapSurvivesTheHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, limits("limit: {rps: 100000}; behavior: deny"), []string{"z1"})
		f.Keeps = true
		f.add("z1", "r1", 500)
		f.offer(settling)
		id := f.cap(0, 2*time.Minute)
		f.offer(time.Minute)
		f.extend(id, 10*time.Minute)
		f.offer(statefile.GoodAfter + settling) // what did not serve so long is not begun with
		f.Stop("controller")
		f.Stop("aggregator-z1")
		f.Stop("host-0")
		time.Sleep(3 * time.Minute) // past the first end and its ramp
		l := f.Host("host-0", "z1", "r1", "shop", "aggregator-z1")
		dropped := func() (n int) {
			for range 1000 {
				if l.Service("shop").DecideRequest(buy("web")).Dropped {
					n++
				}
			}
			return n
		}
		if n := dropped(); n != 1000 {
			t.Errorf("a restarted host drops %d of 1,000 under an extended cap that blocks, want all", n)
		}
		time.Sleep(10 * time.Minute)
		if n := dropped(); n != 0 {
			t.Errorf("it drops %d of 1,000 after the ramp, want none", n)
		}
	})
}
