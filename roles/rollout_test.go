package roles_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"connectrpc.com/connect"

	grlv1 "grl/proto/grl/v1"
)

// manyLimits returns a limits file of a bucket that all requests match, and of
// as many again that none does.
func manyLimits(all, others int, rps int) string {
	text := fmt.Sprintf("service: shop\nbuckets:\n  - {name: all, limit: {rps: %d}, behavior: deny}\n", all)
	for i := range others {
		text += fmt.Sprintf("  - {name: b%d, match: {caller: c%d}, limit: {rps: %d}, behavior: deny}\n", i, i, rps)
	}
	return text
}

func (f *fleet) apply(r *grlv1.ApplyRequest, text string) (*grlv1.Outcome, error) {
	r.Files = []*grlv1.LimitsFile{{Name: "shop.yaml", Data: []byte(text)}}
	applied, err := f.Config().Apply(f.t.Context(), r)
	return applied.GetOutcome(), err
}

// holding returns the revisions that hosts hold, by zone.
func (f *fleet) holding() string {
	var out []string
	for _, z := range []string{"z1", "z2", "z3"} {
		for _, m := range f.Fleet().GetNodes() {
			if m.GetRole() == grlv1.Role_ROLE_CLIENT && m.GetZone() == z {
				out = append(out, fmt.Sprintf("%s r%d", z, m.GetConfigRevision()))
			}
		}
	}
	return strings.Join(out, ", ")
}

// A change of more than ten buckets goes from zone to zone, a minute each; other
// changes wait meanwhile.
func TestLargeChangeGoesZoneByZone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, manyLimits(1000, 11, 10), []string{"z1", "z2", "z3"}, 200, 200, 200)
		f.offer(settling)
		out, err := f.apply(&grlv1.ApplyRequest{Force: true, Reason: "many"}, manyLimits(1000, 11, 20))
		if err != nil {
			t.Fatal(err)
		}
		if s := out.GetRollout(); s.GetState() != grlv1.Rollout_STATE_RUNNING || len(s.GetReached()) != 1 || len(s.GetWaiting()) != 2 {
			t.Errorf("rollout %v, want one zone reached and two waiting", s)
		}
		f.offer(12 * time.Second) // hosts are listed every ten seconds
		if got := f.holding(); got != "z1 r2, z2 r1, z3 r1" {
			t.Errorf("at first hold %s", got)
		}
		_, err = f.apply(&grlv1.ApplyRequest{}, manyLimits(900, 11, 20))
		if connect.CodeOf(err) != connect.CodeFailedPrecondition || !strings.Contains(err.Error(), "rollout") {
			t.Errorf("a change during a rollout: %v, want a refusal that names it", err)
		}
		f.offer(time.Minute)
		if got := f.holding(); got != "z1 r2, z2 r2, z3 r1" {
			t.Errorf("after a minute hold %s", got)
		}
		// A controller that starts anew goes on where the one before was.
		f.Stop("controller")
		f.Controller()
		f.offer(time.Minute)
		if got := f.holding(); got != "z1 r2, z2 r2, z3 r2" {
			t.Errorf("after two minutes hold %s", got)
		}
		f.offer(2 * time.Minute)
		if s := f.Fleet().GetRollout(); s.GetState() == grlv1.Rollout_STATE_RUNNING {
			t.Errorf("rollout %v, want it done", s)
		}
		if _, err = f.apply(&grlv1.ApplyRequest{}, manyLimits(900, 11, 20)); err != nil {
			t.Errorf("a small change afterwards: %v", err)
		}
		f.offer(12 * time.Second)
		if got := f.holding(); got != "z1 r3, z2 r3, z3 r3" {
			t.Errorf("after a small change hold %s", got)
		}
	})
}

// Zones that are away when a step is due are not passed over: neither all of
// them, when the controller was away itself, nor a single one.
func TestRolloutWaitsForZonesThatAreAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, manyLimits(1000, 11, 10), []string{"z1", "z2", "z3"}, 200, 200, 200)
		f.offer(settling)
		if _, err := f.apply(&grlv1.ApplyRequest{Force: true, Reason: "many"}, manyLimits(1000, 11, 20)); err != nil {
			t.Fatal(err)
		}
		f.offer(12 * time.Second)
		f.Stop("controller")
		f.offer(2 * time.Minute)
		f.Controller()
		f.offer(25 * time.Second)
		s := f.Fleet().GetRollout()
		if len(s.GetReached()) != 2 || len(s.GetWaiting()) != 1 {
			t.Fatalf("after the controller was away for two steps: %v, want one zone more", s)
		}
		last := s.GetWaiting()[0]
		if got := f.holding(); !strings.Contains(got, last+" r1") || strings.Count(got, "r2") != 2 {
			t.Errorf("after the controller was away for two steps hold %s", got)
		}
		f.offer(10 * time.Second)
		f.Stop("aggregator-" + last)
		f.offer(35 * time.Second)
		if s := f.Fleet().GetRollout(); s.GetState() != grlv1.Rollout_STATE_RUNNING || len(s.GetReached()) != 2 {
			t.Errorf("while a zone is away: rollout %v, want it to wait", s)
		}
		f.Aggregator("aggregator-"+last, last, "r1")
		f.offer(15 * time.Second)
		if s := f.Fleet().GetRollout(); s.GetState() != grlv1.Rollout_STATE_RUNNING || len(s.GetReached()) != 3 {
			t.Errorf("after it is back: rollout %v, want it in the last zone", s)
		}
	})
}

// A forced limit may drop what it was said to drop: the rollout goes on.
func TestForcedDropsDoNotStopARollout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, manyLimits(1000, 11, 10), []string{"z1", "z2", "z3"}, 200, 200, 200)
		f.offer(settling)
		lower := manyLimits(300, 11, 20)
		if _, err := f.apply(&grlv1.ApplyRequest{}, lower); connect.CodeOf(err) != connect.CodeFailedPrecondition {
			t.Fatalf("without force: %v, want it refused", err)
		}
		if _, err := f.apply(&grlv1.ApplyRequest{Force: true, Reason: "half of it may go"}, lower); err != nil {
			t.Fatal(err)
		}
		for reached := 1; reached <= 3; reached++ {
			f.offer(50 * time.Second)
			if s := f.Fleet().GetRollout(); s.GetState() != grlv1.Rollout_STATE_RUNNING || len(s.GetReached()) != reached {
				t.Fatalf("rollout %v, want it in %d zones", s, reached)
			}
			f.offer(10 * time.Second)
		}
		f.offer(12 * time.Second)
		if got := f.holding(); got != "z1 r2, z2 r2, z3 r2" {
			t.Errorf("in the end hold %s", got)
		}
		f.steady("in the end", 5, 300, 0.02)
	})
}

// A change that drops more than it may in its first zone is taken back by
// itself, without ever reaching another one.
func TestHarmfulChangeStopsByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before := manyLimits(1000, 200, 10)
		f := newFleet(t, before, []string{"z1", "z2", "z3"}, 200, 200, 200)
		f.offer(settling)
		// What is offered where the new bucket matches nobody can tell, so no guard
		// rail minds it.
		harmful := manyLimits(1000, 211, 10) + "  - {name: new, match: {procedure: \"shop.Shop/*\"}, limit: {rps: 60}, behavior: deny}\n"
		if _, err := f.apply(&grlv1.ApplyRequest{}, harmful); err != nil {
			t.Fatal(err)
		}
		f.offer(5 * time.Second)
		if got := f.Fleet().GetRollout(); got.GetState() != grlv1.Rollout_STATE_RUNNING {
			t.Fatalf("rollout %v, want it running", got)
		}
		f.offer(50 * time.Second)
		got := f.Fleet().GetRollout()
		if got.GetState() != grlv1.Rollout_STATE_STOPPED || len(got.GetReached()) != 1 || !strings.Contains(got.GetReason(), "shop/new") {
			t.Errorf("rollout %v, want it stopped in its first zone because of shop/new", got)
		}
		f.offer(12 * time.Second)
		if held := f.holding(); held != "z1 r3, z2 r3, z3 r3" {
			t.Errorf("hosts hold %s, want r3, which equals r1", held)
		}
		f.steady("after it was taken back", 5, 600, 0.005)
	})
}
