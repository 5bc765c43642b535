package controller

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"grl/limiter/law"
)

// TestPartsByZone has two zones offer to two cells of a bucket, of which one
// zone falls silent.
func TestPartsByZone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, cascade(1))
		r.now = time.Now()
		r.warm()
		a, b := newSpeaker("a", "z1", 1), newSpeaker("b", "z2", 2)
		a.join(r)
		b.join(r)
		tick := func(k uint64, speakers ...*speaker) {
			for i, s := range speakers {
				scale := float64(3 - 2*i) // z1 offers three times as much
				n := uint64(scale) * k
				s.report(
					said{payCell("each", "web"), 10 * scale, law.Counts{Offered: 10 * n, ShadowDropped: 5 * n}},
					said{payCell("each", "app"), 20 * scale, law.Counts{Offered: 20 * n}},
					said{payCell("p", ""), 100 * scale, law.Counts{Offered: 100 * n, Dropped: 75 * n}},
				)
			}
			time.Sleep(law.T)
			r.now = time.Now()
			r.n.renew(r.now)
		}
		for k := range uint64(6) {
			tick(k+1, a, b)
		}
		v := view{Controller: &Controller{node: r.n}}
		check := func(when, bucket string, want ...[4]float64) { // offered, dropped, virtually dropped, share
			t.Helper()
			parts := v.Parts(bucket, "")
			if len(parts) != len(want) {
				t.Fatalf("%s: %s in %d zones, want %d: %+v", when, bucket, len(parts), len(want), parts)
			}
			for i, p := range parts {
				got := [4]float64{p.OfferedRPS, p.DroppedRPS, p.ShadowDroppedRPS, p.Share}
				for j := range got {
					if math.Abs(got[j]-want[i][j]) > 1e-6 {
						t.Errorf("%s: %s in %s: %v, want %v", when, bucket, p.Zone, got, want[i])
						break
					}
				}
				if p.Zone != []string{"z1", "z2"}[i] || p.Region != "r1" || p.Hosts != 2 {
					t.Errorf("%s: part %d of %s is %+v", when, i, bucket, p)
				}
			}
		}
		check("both", "pay/p", [4]float64{300, 225, 0, 0.75}, [4]float64{100, 75, 0, 0.25})
		check("both", "pay/each", [4]float64{90, 0, 15, 0.75}, [4]float64{30, 0, 5, 0.25})
		check("nobody", "pay/blocked")
		check("no such", "pay/none")
		// All parts together are what the rows say.
		for _, c := range v.Cells() {
			sum := 0.0
			for _, p := range v.Parts(c.Bucket(), c.Instance) {
				sum += p.OfferedRPS
			}
			if c.Caller == "" && math.Abs(sum-c.OfferedRPS) > 1e-6 {
				t.Errorf("%s is offered %v, its parts %v", c.Bucket(), c.OfferedRPS, sum)
			}
		}
		if parts := v.Parts("pay/p", "eu"); len(parts) != 0 {
			t.Errorf("of another instance: %+v", parts)
		}

		r.n.leave(r.now, b.c)
		for k := range uint64(5) {
			tick(k+7, a)
		}
		parts := v.Parts("pay/p", "")
		if len(parts) != 2 || parts[0].Silent || !parts[1].Silent || parts[1].OfferedRPS != 100 || parts[1].SilentFor != 5*law.T || parts[1].AutonomousFor != law.DeciderSilent+law.Autonomy-5*law.T {
			t.Errorf("one zone is silent: %+v", parts)
		}
		for k := range uint64(30) {
			tick(k+12, a)
		}
		parts = v.Parts("pay/p", "")
		if len(parts) != 2 || parts[0].Zone != "z1" || parts[0].Share != 1 {
			t.Fatalf("a zone that was silent for too long: %+v", parts)
		}
		if p := parts[1]; !p.Silent || p.Counted || p.OfferedRPS != 0 || p.SilentFor != 35*law.T || p.AutonomousFor != 0 {
			t.Errorf("the zone that was silent for too long: %+v", p)
		}
	})
}
