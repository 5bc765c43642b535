package roles_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	grlv1 "grl/proto/grl/v1"
	"grl/roles/rolestest"
)

const regional = `service: shop
buckets:
  - name: regional
    match: {procedure: shop.Shop/Look}
    scope: region
    limit: {rps: 300}
    behavior: deny
  - name: all
    match: {procedure: shop.Shop/Buy}
    limit: {rps: 1000}
    behavior: deny
`

// newRegions starts a controller, one of each region below it, and in each
// region two zones with an aggregator and one host each, with these loads.
func newRegions(t *testing.T, limits string, eu, us float64) *fleet {
	t.Helper()
	f := &fleet{Plane: rolestest.NewPlane(t, limits), t: t}
	t.Cleanup(func() {
		f.stop(len(f.hosts))
		f.running.Wait()
	})
	f.Controller()
	for _, r := range []struct {
		name string
		rps  float64
	}{{"eu", eu}, {"us", us}} {
		f.Region(r.name)
		for _, zone := range []string{r.name + "1", r.name + "2"} {
			f.Aggregator("aggregator-"+zone, zone, r.name, r.name)
			f.add(zone, r.name, r.rps)
		}
	}
	return f
}

// Two regions of two zones hold one global limit together, and each its own.
func TestRegionsHoldTheirLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newRegions(t, regional, 800, 400)
		f.offer(settling)
		f.steady("of all regions", 5, 1000, 0.02)
		for _, h := range f.hosts {
			r := h.request
			r.Procedure = "shop.Shop/Look"
			h.send(r)
		}
		f.offer(settling)
		f.steady("of two regions", 5, 600, 0.03)

		roles := make(map[grlv1.Role]int)
		for _, n := range f.Fleet().GetNodes() {
			roles[n.GetRole()]++
		}
		if roles[grlv1.Role_ROLE_CONTROLLER] != 2 || roles[grlv1.Role_ROLE_AGGREGATOR] != 4 || roles[grlv1.Role_ROLE_CLIENT] != 4 {
			t.Errorf("the fleet has %v, want two regional controllers, four aggregators and four clients", roles)
		}
		offered := make(map[string]float64)
		for _, b := range f.Buckets() {
			offered[b.GetInstance()] += b.GetOfferedRps()
		}
		near(t, "what the regions are offered, as the parent knows", offered["eu"]+offered["us"], 2400, 0.05)
	})
}

// Fault 15: a region that is cut off goes on with its last share, so that what
// both admit is the limit and not twice the limit.
func TestRegionCutOffGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newRegions(t, regional, 800, 400)
		f.offer(settling)
		f.Stop("controller")
		f.steady("without the parent", 20, 1000, 0.05)
		if !f.FleetAt("eu").GetAlone() {
			t.Error("the region does not say that it is alone")
		}
		f.Controller()
		f.offer(5 * time.Second)
		f.steady("after", 5, 1000, 0.02)
		if f.FleetAt("eu").GetAlone() {
			t.Error("the region says that it is alone although its parent is back")
		}
	})
}

// A region's controller that restarts while its parent is away still knows the
// limits: its aggregators get them, and its part of the global one holds.
func TestRegionRestartsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newRegions(t, regional, 800, 400)
		f.offer(settling)
		f.Stop("controller")
		f.offer(5 * time.Second)
		f.Stop("eu")
		f.offer(time.Second)
		f.Region("eu")
		f.steady("after the restart", 15, 1000, 0.05)
		f.Stop("aggregator-eu1")
		f.Aggregator("aggregator-eu1", "eu1", "eu", "eu")
		f.steady("with an aggregator that knows nothing", 5, 1000, 0.1)
		f.Controller()
		f.offer(5 * time.Second)
		f.steady("with the parent", 5, 1000, 0.02)
	})
}

// A parent whose store is lost is heard by its regions, and by all below.
func TestALostStoreOfTheParentSilencesNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newRegions(t, regional, 800, 400)
		f.offer(3 * time.Minute)
		f.Stop("controller")
		f.Forget("controller")
		f.offer(time.Second)
		f.Controller()
		f.offer(10 * time.Second)
		f.steady("after the parent's store was lost", 20, 1000, 0.05)
		if f.FleetAt("eu").GetAlone() {
			t.Error("the region is alone although its parent is there")
		}
	})
}

// What aggregators tell of who sends comes through a region to the top.
func TestDetailsPassThroughRegions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newRegions(t, regional, 100, 100)
		f.offer(25 * time.Second)
		for controller, want := range map[string]float64{"eu": 2000, "controller": 4000} {
			var offered uint64
			for _, hour := range f.Traffic(controller, "shop") {
				for _, b := range hour.GetBuckets() {
					for _, c := range b.GetCallers() {
						offered += c.GetOffered()
					}
				}
			}
			// At least those of the first ten seconds.
			near(t, "requests by caller that "+controller+" knows of", min(float64(offered), want), want, 0.02)
		}
	})
}

// A zone of a region that falls silent is told of above the region too, in
// figures and alerts, until its aggregator is back.
func TestSilentZoneOfARegionIsKnownAbove(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newRegions(t, regional, 200, 200)
		f.offer(time.Minute)
		silent := func(when, want string) {
			t.Helper()
			var got []string
			for _, z := range f.Fleet().GetSilent() {
				got = append(got, fmt.Sprintf("%s of %s, counted %v", z.GetName(), z.GetRegion(), z.GetCounted()))
			}
			if s := strings.Join(got, "; "); s != want {
				t.Errorf("%s: silent are %q, want %q", when, s, want)
			}
			for _, b := range f.Buckets() {
				lacks := want != "" && b.GetBucket() == "shop/all" // nobody calls the other
				if got := len(b.GetSilentZones()) == 1; got != lacks {
					t.Errorf("%s: %s lacks %q", when, b.GetBucket(), b.GetSilentZones())
				}
			}
		}
		silent("at first", "")
		f.Stop("aggregator-eu2")
		f.offer(2 * time.Second)
		silent("while it counts", "eu2 of eu, counted true")
		f.offer(32 * time.Second)
		silent("when it does not any more", "eu2 of eu, counted false")
		f.wantLoud("without an aggregator", "FIRING HOST_LOST eu2\nFIRING DIRECTIVE_STALE eu2")

		f.Stop("eu")
		f.offer(2 * time.Second)
		silent("without the region", "region eu of eu, counted true")
		f.Region("eu")
		f.offer(20 * time.Second)
		silent("with it again", "eu2 of eu, counted false")

		f.Aggregator("aggregator-eu2", "eu2", "eu", "eu")
		f.offer(settling)
		silent("back", "")
		f.offer(80 * time.Second)
		f.wantLoud("with the aggregator again", "")
	})
}
