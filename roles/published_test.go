package roles_test

import (
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"grl/limiter"
	"grl/roles/rolestest"
)

// The published design says what such a limiter does; each test here holds one
// of its numbers, with the three tiers over real streams in virtual time.

// limits returns a limits file of service shop with one bucket.
func limits(bucket string) string {
	return "service: shop\nbuckets:\n  - name: all\n    " + strings.ReplaceAll(bucket, "; ", "\n    ") + "\n"
}

// host is a client and the evenly spaced load on it, which goes on from its
// start to the end of the test or to stop.
type host struct {
	limiter  *limiter.Limiter
	stopped  chan struct{}
	phase    float64    // part of the first gap to wait
	mu       sync.Mutex // guards all below
	rps      float64
	request  limiter.Request
	now, was count // up to now, up to the last offer
}

// count is what happened to the requests of one host.
type count struct{ offered, dropped int }

func (c count) admitted() int { return c.offered - c.dropped }

// share returns the share of requests that were dropped.
func (c count) share() float64 { return float64(c.dropped) / float64(max(c.offered, 1)) }

func total(counts []count) count {
	var sum count
	for _, c := range counts {
		sum.offered += c.offered
		sum.dropped += c.dropped
	}
	return sum
}

func (h *host) run() {
	s := h.limiter.Service("shop")
	time.Sleep(time.Duration(h.phase * float64(time.Second) / h.rps))
	for {
		h.mu.Lock()
		gap := time.Duration(float64(time.Second) / max(h.rps, 0.001))
		h.mu.Unlock()
		select {
		case <-h.stopped:
			return
		case <-time.After(gap):
		}
		h.mu.Lock()
		dropped := s.DecideRequest(h.request).Dropped
		h.now.offered++
		if dropped {
			h.now.dropped++
		}
		h.mu.Unlock()
	}
}

// load changes the load on the host.
func (h *host) load(rps float64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.rps = rps
}

// send changes what the host sends.
func (h *host) send(r limiter.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.request = r
}

// fleet is a control plane with hosts.
type fleet struct {
	*rolestest.Plane
	t       *testing.T
	hosts   []*host
	running sync.WaitGroup
}

// newFleet starts a controller with a limits file, "" for none, an aggregator
// for each zone of region r1, and in turn in these zones one host for each load,
// in requests per second.
func newFleet(t *testing.T, limits string, zones []string, loads ...float64) *fleet {
	t.Helper()
	var files []string
	if limits != "" {
		files = append(files, limits)
	}
	f := &fleet{Plane: rolestest.NewPlane(t, files...), t: t}
	t.Cleanup(func() {
		f.stop(len(f.hosts))
		f.running.Wait()
	})
	f.Controller()
	for _, z := range zones {
		f.Aggregator("aggregator-"+z, z, "r1")
	}
	for i, rps := range loads {
		f.add(zones[i%len(zones)], "r1", rps)
	}
	return f
}

// add starts a host with a load; 0 is none.
func (f *fleet) add(zone, region string, rps float64) {
	f.addTo(zone, region, rps, "aggregator-"+zone)
}

// addTo is add for a host that knows these aggregators.
func (f *fleet) addTo(zone, region string, rps float64, aggregators ...string) {
	l := f.Host(fmt.Sprintf("host-%d", len(f.hosts)), zone, region, "shop", aggregators...)
	h := &host{limiter: l, rps: rps, stopped: make(chan struct{})}
	h.request = limiter.Request{Caller: "web", Procedure: "shop.Shop/Buy"}
	// Hosts are out of step with each other, evenly however many there are.
	_, h.phase = math.Modf(float64(len(f.hosts)) * math.Phi)
	f.hosts = append(f.hosts, h)
	if rps > 0 {
		f.running.Go(h.run)
	}
}

// stop ends the load on the last n hosts and forgets them.
func (f *fleet) stop(n int) {
	for _, h := range f.hosts[len(f.hosts)-n:] {
		close(h.stopped)
	}
	f.hosts = f.hosts[:len(f.hosts)-n]
}

// offer lets the load go on for d and returns what happened to it, host by host.
func (f *fleet) offer(d time.Duration) []count {
	time.Sleep(d)
	counts := make([]count, len(f.hosts))
	for i, h := range f.hosts {
		h.mu.Lock()
		counts[i] = count{h.now.offered - h.was.offered, h.now.dropped - h.was.dropped}
		h.was = h.now
		h.mu.Unlock()
	}
	return counts
}

// near fails the test if got differs from want by more than a share of want.
func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if math.Abs(got-want) > tolerance*want {
		t.Errorf("%s is %.4g, want %.4g within %.2g%%", what, got, want, 100*tolerance)
	}
}

const (
	// settling is more than the time from a change of load to enforcement.
	settling = 4 * time.Second
	// slow is that of hosts with so little traffic that none of them can tell a
	// change from chance: their estimates, and then the mean at the controller,
	// approach the new rate over seconds.
	slow = 15 * time.Second
)

// "1.5 times the limit drops a third", in every instance.
func TestAThirdIsDroppedInEveryInstance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, limits("limit: {rps: 1000}; behavior: deny"), []string{"z1", "z2"}, 500, 400, 300, 200, 100)
		f.offer(settling)
		counts := f.offer(20 * time.Second)
		for i, c := range counts {
			near(t, fmt.Sprintf("share dropped at host %d", i), c.share(), 1.0/3, 0.02)
		}
		near(t, "admitted rate", float64(total(counts).admitted())/20, 1000, 0.01)
	})
}

// "Fail open": without a control plane all is admitted, after hold and decay.
func TestAllIsAdmittedWithoutControlPlane(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, limits("limit: {rps: 100}; behavior: deny"), []string{"z1"}, 200, 200)
		f.offer(settling)
		f.Stop("aggregator-z1")
		f.Stop("controller")
		near(t, "share dropped while held", total(f.offer(9*time.Second)).share(), 0.75, 0.03)
		// From 10 s on the ratio falls from 0.75 to 0 in 10 s; one second in
		// the middle of that.
		f.offer(5500 * time.Millisecond)
		// The last directive was up to a second old when it began.
		near(t, "share dropped in the middle of decay", total(f.offer(time.Second)).share(), 0.34, 0.15)
		f.offer(5 * time.Second)
		if c := total(f.offer(time.Minute)); c.dropped != 0 {
			t.Errorf("dropped %d of %d after hold and decay, want none", c.dropped, c.offered)
		}
	})
}

// A controller that is gone alone: its zones go on with the limit for 30 s, and
// then the hosts hold, decay and open as if all were gone.
func TestAllIsAdmittedWithoutController(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, limits("limit: {rps: 100}; behavior: deny"), []string{"z1"}, 200, 200)
		f.offer(settling)
		f.Stop("controller")
		near(t, "share dropped while the zone is alone", total(f.offer(30*time.Second)).share(), 0.75, 0.02)
		f.offer(25 * time.Second) // autonomy, hold and decay end
		if c := total(f.offer(time.Minute)); c.dropped != 0 {
			t.Errorf("dropped %d of %d, want none", c.dropped, c.offered)
		}
		f.Controller()
		f.offer(settling + 3*time.Second) // redial, warm-up
		near(t, "share dropped after its return", total(f.offer(10*time.Second)).share(), 0.75, 0.02)
	})
}

// Evenly spaced load at the limit drops nothing.
func TestNothingIsDroppedAtTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, limits("limit: {rps: 1000}; behavior: deny"), []string{"z1", "z2"}, 400, 300, 200, 100)
		if c := total(f.offer(time.Minute)); c.dropped != 0 {
			t.Errorf("dropped %d of %d, want none", c.dropped, c.offered)
		}
	})
}

// A shadow bucket drops nothing, and counts what it would have dropped.
func TestShadowBucketDropsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, limits("limit: {rps: 100}; behavior: allow"), []string{"z1"}, 100, 200)
		f.offer(settling)
		before := f.shadowDropped()
		c := total(f.offer(20 * time.Second))
		if c.dropped != 0 {
			t.Errorf("dropped %d of %d, want none", c.dropped, c.offered)
		}
		near(t, "share of virtual drops", float64(f.shadowDropped()-before)/float64(c.offered), 2.0/3, 0.02)
	})
}

func (f *fleet) shadowDropped() uint64 {
	var sum uint64
	for _, h := range f.hosts {
		h.limiter.Collect(time.Now())
		for c := range h.limiter.Cells() {
			sum += c.Counts().ShadowDropped
		}
	}
	return sum
}

// Each scope enforces its own: the whole fleet, each region, or each zone.
func TestEachScopeEnforcesItsOwn(t *testing.T) {
	for _, tt := range []struct {
		scope string
		want  map[string]float64 // zone → admitted, of 300 offered in each
	}{
		{"global", map[string]float64{"z1": 50, "z2": 50, "z3": 50, "z4": 50}},
		{"region", map[string]float64{"z1": 100, "z2": 100, "z3": 100, "z4": 100}},
		{"zone", map[string]float64{"z1": 200, "z2": 200, "z3": 200, "z4": 200}},
	} {
		t.Run(tt.scope, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFleet(t, limits("scope: "+tt.scope+"; limit: {rps: 200}; behavior: deny"), nil)
				zones := []string{"z1", "z2", "z3", "z4"}
				for i, zone := range zones {
					region := []string{"r1", "r1", "r2", "r2"}[i]
					f.Aggregator("aggregator-"+zone, zone, region)
					f.add(zone, region, 300)
				}
				f.offer(settling)
				for i, c := range f.offer(20 * time.Second) {
					near(t, "admitted rate in "+zones[i], float64(c.admitted())/20, tt.want[zones[i]], 0.03)
				}
			})
		})
	}
}

// The number of hosts and how load is spread over them does not matter.
func TestAnyNumberOfUnequalHosts(t *testing.T) {
	for _, n := range []int{1, 10, 200} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				loads := make([]float64, n)
				sum := 0.0
				for i := range loads {
					loads[i] = 1 / float64(i+1) // the first has most, the last next to nothing
					sum += loads[i]
				}
				for i := range loads {
					loads[i] *= 1500 / sum
				}
				f := newFleet(t, limits("limit: {rps: 1000}; behavior: deny"), []string{"z1", "z2"}, loads...)
				f.offer(slow)
				counts := f.offer(20 * time.Second)
				near(t, "admitted rate", float64(total(counts).admitted())/20, 1000, 0.01)
				for i, c := range counts {
					// The coin of each worker is within 1 + 0.12 sqrt(n) of its
					// share.
					if slack := 2 + 0.12*math.Sqrt(float64(c.offered)) + 0.01*float64(c.offered); math.Abs(float64(c.dropped)-float64(c.offered)/3) > slack {
						t.Errorf("host %d dropped %d of %d, want a third within %.0f", i, c.dropped, c.offered, slack)
					}
				}
			})
		})
	}
}

// A limit smaller than the number of hosts still admits itself.
func TestLimitOfThreeOverFiftyHosts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		loads := make([]float64, 50)
		for i := range loads {
			loads[i] = 0.12 // 6 rps in all
		}
		f := newFleet(t, limits("limit: {rps: 3}; behavior: deny"), []string{"z1", "z2"}, loads...)
		f.offer(time.Minute) // the mean is over 20 s
		near(t, "admitted in five minutes", float64(total(f.offer(5*time.Minute)).admitted()), 900, 0.05)
	})
}

// An instance without traffic costs nothing: it weighs nothing in the sums, so
// the others keep the whole limit, and reports no cell.
func TestInstanceWithoutTrafficCostsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		loads := make([]float64, 41)
		loads[0] = 300
		f := newFleet(t, limits("limit: {rps: 200}; behavior: deny"), []string{"z1"}, loads...)
		f.offer(settling)
		near(t, "admitted rate", float64(total(f.offer(20*time.Second)).admitted())/20, 200, 0.01)
		if hosts := f.Buckets()[0].GetHosts(); hosts != 1 {
			t.Errorf("%d hosts have traffic, want 1 of 41", hosts)
		}
	})
}

// Scaling out and in keeps the total.
func TestScaleOutAndInKeepsTheTotal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, limits("limit: {rps: 1000}; behavior: deny"), []string{"z1", "z2"}, 1500)
		f.offer(settling)
		near(t, "admitted rate of 1 host", float64(total(f.offer(10*time.Second)).admitted())/10, 1000, 0.01)

		f.hosts[0].load(15)
		for i := 1; i < 100; i++ {
			f.add([]string{"z1", "z2"}[i%2], "r1", 15)
		}
		f.offer(slow)
		near(t, "admitted rate of 100 hosts", float64(total(f.offer(10*time.Second)).admitted())/10, 1000, 0.01)

		f.stop(99)
		for i := 1; i < 100; i++ {
			f.Stop(fmt.Sprintf("host-%d", i))
		}
		f.hosts[0].load(1500)
		f.offer(settling)
		near(t, "admitted rate of 1 host again", float64(total(f.offer(10*time.Second)).admitted())/10, 1000, 0.01)
	})
}

// A surge of 15 times is enforced in half a second (published: 2-3 s), and when
// it ends, drops end as soon.
func TestSurgeIsEnforcedInHalfASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, limits("limit: {rps: 400}; behavior: deny"), []string{"z1", "z2"}, 50, 50, 50, 50)
		if c := total(f.offer(10 * time.Second)); c.dropped != 0 {
			t.Errorf("dropped %d of %d before the surge, want none", c.dropped, c.offered)
		}
		for _, h := range f.hosts {
			h.load(750)
		}
		if c := total(f.offer(500 * time.Millisecond)); c.admitted() > 200+400 {
			t.Errorf("admitted %d in the first half second, want at most a second of the limit more than 200", c.admitted())
		}
		f.steady("of the surge", 10, 400, 0.05)
		for _, h := range f.hosts {
			h.load(50)
		}
		f.offer(500 * time.Millisecond)
		if c := total(f.offer(10 * time.Second)); c.dropped != 0 {
			t.Errorf("dropped %d of %d after the surge, want none", c.dropped, c.offered)
		}
	})
}
