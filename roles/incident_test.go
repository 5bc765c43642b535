package roles_test

import (
	"fmt"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"connectrpc.com/connect"

	grlv1 "grl/proto/grl/v1"
)

// cap places a cap on the fleet's service and returns its id.
func (f *fleet) cap(rps float64, d time.Duration) string {
	f.t.Helper()
	r := &grlv1.PlaceCapRequest{Service: "shop", Caller: "web", DurationMs: d.Milliseconds(), Reason: "test"}
	if rps > 0 {
		r.Gate = &grlv1.PlaceCapRequest_Rps{Rps: rps}
	} else {
		r.Gate = &grlv1.PlaceCapRequest_Block{Block: true}
	}
	placed, err := f.Incident().PlaceCap(f.t.Context(), r)
	if err != nil {
		f.t.Fatal(err)
	}
	return placed.GetCap().GetCap().GetId()
}

// A cap is in force at every host within a second, ends by itself, and lets
// twice as much in every 15 s until it is gone; also when the control plane goes
// as soon as it is placed.
func TestCapIsInForceAndRampsOut(t *testing.T) {
	for _, lost := range []bool{false, true} {
		t.Run(fmt.Sprintf("control plane lost %v", lost), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFleet(t, limits("limit: {rps: 100000}; behavior: deny"), []string{"z1", "z2"}, 400, 400, 400, 400)
				f.offer(settling)
				f.cap(100, time.Minute)
				f.offer(time.Second)
				f.steady("capped", 5, 100, 0.1)
				if lost {
					for _, name := range []string{"controller", "aggregator-z1", "aggregator-z2"} {
						f.Stop(name)
					}
				}
				f.offer(48 * time.Second)
				f.steady("just before its end", 5, 100, 0.1)
				f.offer(time.Second) // 60 s
				for quarter := range 8 {
					began := 100 * math.Exp2(float64(quarter))
					got := total(f.offer(15 * time.Second)).admitted()
					// The mean of a doubling is its begin over ln 2.
					want := min(1600, began/math.Ln2)
					if began < 1600 && began*2 > 1600 {
						continue // the limit meets the load somewhere in between
					}
					near(t, fmt.Sprintf("admitted rate in quarter minute %d of the ramp", quarter), float64(got)/15, want, 0.15)
				}
				f.steady("after the ramp", 3, 1600, 0.005)
			})
		})
	}
}

// A cap little below what is offered, by few requests at each of several hosts,
// is in force within a second too.
func TestCapOfFewRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, limits("limit: {rps: 100000}; behavior: deny"), []string{"z1", "z2"}, 33, 33, 33)
		f.offer(settling)
		f.cap(60, time.Minute)
		f.offer(time.Second)
		for i, c := range f.offer(500 * time.Millisecond) {
			if c.dropped == 0 {
				t.Errorf("host %d drops nothing between 1 and 1.5 s after a cap at 60 of 99", i)
			}
		}
		f.offer(time.Second)
		near(t, "admitted rate", float64(total(f.offer(10*time.Second)).admitted())/10, 60, 0.1)
	})
}

// A cap that blocks lets nothing in until its end, then one in a hundred, and
// twice as many every 15 s.
func TestCapThatBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, limits("limit: {rps: 100000}; behavior: deny"), []string{"z1"}, 1000, 1000)
		f.offer(settling)
		f.cap(0, 30*time.Second)
		f.offer(time.Second)
		f.Stop("controller")
		if c := total(f.offer(28 * time.Second)); c.admitted() != 0 {
			t.Errorf("a cap that blocks admitted %d of %d", c.admitted(), c.offered)
		}
		f.offer(time.Second)
		near(t, "share admitted in the first 15 s of the ramp", 1-total(f.offer(15*time.Second)).share(), 0.01/math.Ln2, 0.2)
		f.offer(106 * time.Second)
		f.steady("after the ramp", 3, 2000, 0.005)
	})
}

func TestCapSurvivesTheControllerAndIsLiftedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, limits("limit: {rps: 100000}; behavior: deny"), []string{"z1", "z2"}, 500, 500)
		f.offer(settling)
		id := f.cap(100, time.Hour)
		f.offer(settling)
		f.Stop("controller")
		f.offer(time.Second)
		f.steady("while the controller is away", 5, 100, 0.1)
		f.Controller()
		f.offer(settling)
		f.steady("after it came back", 5, 100, 0.1)
		if _, err := f.Incident().LiftCap(t.Context(), &grlv1.LiftCapRequest{Id: id, Reason: "over"}); err != nil {
			t.Fatal(err)
		}
		f.offer(time.Second)
		f.steady("lifted", 3, 1000, 0.005)
		list, err := f.Incident().ListCaps(t.Context(), &grlv1.ListCapsRequest{})
		if err != nil || len(list.GetCaps()) != 0 {
			t.Errorf("ListCaps = %v, %v; want none", list.GetCaps(), err)
		}
	})
}

// A cap holds a service that has no limits otherwise, and one that no limits
// file exists for.
func TestCapOfAServiceWithoutLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, "service: other\nowner: nobody\n", []string{"z1", "z2"})
		f.offer(3 * time.Second) // so that hosts do not tell details just as their aggregators do
		f.add("z1", "r1", 500)
		f.add("z2", "r1", 500)
		f.offer(25 * time.Second) // details come every ten seconds
		preview, err := f.Incident().PlaceCap(t.Context(), &grlv1.PlaceCapRequest{
			Service: "shop", Caller: "web", Gate: &grlv1.PlaceCapRequest_Rps{Rps: 250}, DurationMs: 60_000, Reason: "test", DryRun: true,
		})
		if err != nil {
			t.Fatal(err)
		}
		near(t, "predicted share dropped", preview.GetEffect().GetDropShare(), 0.75, 0.05)
		f.steady("after a dry run", 2, 1000, 0.005)
		f.cap(250, time.Minute)
		f.offer(time.Second)
		f.steady("capped", 5, 250, 0.05)
	})
}

// A cap needs no limits at all: the store may be empty.
func TestCapOverAnEmptyStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, "", []string{"z1", "z2"}, 500, 500)
		f.offer(settling)
		f.cap(250, time.Minute)
		f.offer(time.Second)
		f.steady("capped", 5, 250, 0.05)
	})
}

func TestDisableStopsAllDropping(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, limits("limit: {rps: 100}; behavior: deny"), []string{"z1", "z2"}, 500, 500)
		f.offer(settling)
		f.cap(50, time.Hour)
		f.offer(settling)
		f.steady("before", 3, 50, 0.1)
		if _, err := f.Incident().Disable(t.Context(), &grlv1.DisableRequest{All: true, Reason: "test"}); err != nil {
			t.Fatal(err)
		}
		f.offer(time.Second)
		f.steady("disabled", 5, 1000, 0.005)
		if _, err := f.Incident().Enable(t.Context(), &grlv1.EnableRequest{All: true, Reason: "test"}); err != nil {
			t.Fatal(err)
		}
		f.offer(settling)
		f.steady("enabled again", 3, 50, 0.1)
		if _, err := f.Incident().Disable(t.Context(), &grlv1.DisableRequest{Service: "shop", Reason: "test"}); err != nil {
			t.Fatal(err)
		}
		f.offer(time.Second)
		f.steady("one service disabled", 5, 1000, 0.005)
	})
}

// A host's switch file stops its dropping, and the tree shows it.
func TestSwitchFileIsSeenFromAbove(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, limits("limit: {rps: 100}; behavior: deny"), []string{"z1"})
		f.Keeps = true
		f.add("z1", "r1", 200)
		f.add("z1", "r1", 200)
		f.offer(settling)
		f.Disable("host-0")
		f.offer(3 * time.Second)
		counts := f.offer(5 * time.Second)
		if counts[0].dropped != 0 || counts[1].dropped == 0 {
			t.Errorf("dropped %d and %d, want none at the first host alone", counts[0].dropped, counts[1].dropped)
		}
		for _, m := range f.Fleet().GetNodes() {
			if m.GetRole() == grlv1.Role_ROLE_CLIENT && m.GetDisabledHere() != (m.GetName() == "host-0") {
				t.Errorf("%s is disabled by its file: %v", m.GetName(), m.GetDisabledHere())
			}
		}
	})
}

// What a candidate would drop is counted at the controller, second by second;
// promoted, it is the limit.
func TestCandidateIsJudgedAndPromoted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, limits("limit: {rps: 1000}; behavior: deny; candidate: {rps: 700}"), []string{"z1", "z2"}, 400, 400)
		f.offer(settling)
		f.steady("with a candidate", 3, 800, 0.005)
		f.offer(3 * time.Minute)
		var drops, seconds float64
		for _, m := range f.History("shop/all") {
			if drops += float64(m.GetCandidateDropped()); m.GetCandidateDropped() > 0 {
				seconds += 60
			}
		}
		near(t, "candidate's drops a second", drops/seconds, 100, 0.1)
		for _, b := range f.Buckets() {
			if b.GetCandidateRps() != 700 {
				t.Errorf("%s has candidate %v, want 700", b.GetBucket(), b.GetCandidateRps())
			}
			near(t, "candidate's drops now", b.GetCandidateDroppedRps(), 100, 0.2)
		}
		_, err := f.Config().Promote(t.Context(), &grlv1.PromoteRequest{Bucket: "shop/all"})
		if connect.CodeOf(err) != connect.CodeFailedPrecondition {
			t.Errorf("promoting what drops an eighth: %v, want a guard rail", err)
		}
		if _, err = f.Config().Promote(t.Context(), &grlv1.PromoteRequest{Bucket: "shop/all", Force: true, Reason: "test"}); err != nil {
			t.Fatal(err)
		}
		f.offer(settling)
		f.steady("promoted in the first of two zones", 5, 750, 0.03)
		f.offer(time.Minute)
		f.steady("promoted", 5, 700, 0.03)
	})
}
