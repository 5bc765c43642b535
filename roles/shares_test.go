package roles_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"grl/limiter"
)

// buy is a request of a caller.
func buy(caller string) limiter.Request {
	return limiter.Request{Caller: caller, Procedure: "shop.Shop/Buy"}
}

// A limit divided among callers, tiers and attempts, over the three tiers of
// the tree.
func TestALimitIsDivided(t *testing.T) {
	first, retry := buy("web"), buy("web")
	retry.Attempt = 1
	high, low := buy("web"), buy("web")
	high.Tier = 1 // the first value that the limits file names
	tests := []struct {
		name   string
		bucket string
		sent   []limiter.Request
		rps    []float64
		want   []float64 // admitted, requests per second
	}{
		{
			"in proportion", "limit: {rps: 1000}; behavior: deny",
			[]limiter.Request{buy("a"), buy("b"), buy("c"), buy("d"), buy("e")},
			[]float64{100, 100, 200, 400, 5000},
			[]float64{17, 17, 34, 69, 862},
		},
		{
			"max-min", "share: max-min; limit: {rps: 1000}; behavior: deny",
			[]limiter.Request{buy("a"), buy("b"), buy("c"), buy("d"), buy("e")},
			[]float64{100, 100, 200, 400, 5000},
			[]float64{100, 100, 200, 300, 300},
		},
		{
			"max-min by weight", "share: max-min; weights: {e: 4}; limit: {rps: 1000}; behavior: deny",
			[]limiter.Request{buy("a"), buy("b"), buy("c"), buy("d"), buy("e")},
			[]float64{100, 100, 200, 400, 5000},
			[]float64{100, 100, 133, 133, 533},
		},
		{
			"tiers by caller",
			"tiers: [{name: top, callers: [a, c]}, {name: middle, callers: [b, d]}, {name: rest}]; limit: {rps: 1000}; behavior: deny",
			[]limiter.Request{buy("a"), buy("b"), buy("c"), buy("d"), buy("e")},
			[]float64{100, 100, 200, 400, 5000},
			[]float64{100, 100, 200, 400, 200},
		},
		{
			"tiers by header",
			"tiers: [{name: top, header: {name: x-priority, values: [high]}}, {name: rest}]; limit: {rps: 1000}; behavior: deny",
			[]limiter.Request{high, low},
			[]float64{600, 1600},
			[]float64{600, 400},
		},
		{
			"retries first", "retries: first-shed; limit: {rps: 1000}; behavior: deny",
			[]limiter.Request{first, retry},
			[]float64{800, 1600},
			[]float64{800, 200},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFleet(t, limits(tt.bucket), []string{"z1", "z2"})
				for _, zone := range []string{"z1", "z2"} {
					for i, r := range tt.sent {
						f.add(zone, "r1", tt.rps[i]/2)
						f.hosts[len(f.hosts)-1].send(r)
					}
				}
				f.offer(slow)
				counts := f.offer(20 * time.Second)
				for i, want := range tt.want {
					got := float64(counts[i].admitted()+counts[i+len(tt.sent)].admitted()) / 20
					near(t, fmt.Sprintf("admitted rate of request %d", i), got, want, 0.03)
				}
				near(t, "admitted rate", float64(total(counts).admitted())/20, 1000, 0.02)

				// The zones go on dividing while they are alone.
				f.Stop("controller")
				f.offer(5 * time.Second)
				counts = f.offer(20 * time.Second)
				near(t, "admitted rate without controller", float64(total(counts).admitted())/20, 1000, 0.02)
				for i, want := range tt.want {
					got := float64(counts[i].admitted()+counts[i+len(tt.sent)].admitted()) / 20
					near(t, fmt.Sprintf("admitted rate of request %d without controller", i), got, want, 0.05)
				}
			})
		})
	}
}

// Ten hops that each drop a tenth break a tenth of the journeys if they drop
// the same ones, and two thirds if each draws for itself.
func TestCoherentDropsBreakFewJourneys(t *testing.T) {
	const hops, journeys = 10, 4000
	for _, tt := range []struct {
		coherent string
		want     float64 // share of journeys that break
	}{{"coherent: trace; ", 0.1}, {"", 0.65}} {
		t.Run(strings.TrimSuffix(tt.coherent, "; "), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFleet(t, limits(tt.coherent+"limit: {rps: 9000}; behavior: deny"), []string{"z1", "z2"},
					1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000)
				// Between two turns of the hosts' timers: the journeys are no surge.
				f.offer(2*settling + 17*time.Millisecond)
				broken := 0
				for n := range journeys {
					r := buy("web")
					r.TraceID = [16]byte{0: 1, 8: byte(n >> 8), 15: byte(n)}
					dropped := false
					for _, h := range f.hosts[:hops] {
						dropped = h.limiter.Service("shop").DecideRequest(r).Dropped || dropped
					}
					if dropped {
						broken++
					}
				}
				near(t, "share of journeys broken", float64(broken)/journeys, tt.want, 0.15)
			})
		})
	}
}

// Cells of a shared limit whose load is all in one zone keep what they had when
// the zones are alone: the high tier in one zone, the low one in the other.
func TestATierInOneZoneKeepsItsRankAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, limits("tiers: [{name: top, callers: [a]}, {name: rest}]; limit: {rps: 1000}; behavior: deny"), []string{"z1", "z2"}, 900, 900)
		f.hosts[0].send(buy("a"))
		f.hosts[1].send(buy("b"))
		f.offer(slow)
		check := func(what string) {
			for range 20 {
				counts := f.offer(time.Second)
				near(t, "top tier "+what, float64(counts[0].admitted()), 900, 0.05)
				near(t, "all "+what, float64(total(counts).admitted()), 1000, 0.05)
			}
		}
		check("with a controller")
		f.Stop("controller")
		f.offer(5 * time.Second)
		check("without")
	})
}

// Callers that come with a new name each time do not get past a limit that
// callers share.
func TestCallersThatDoNotReturnAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, limits("share: max-min; limit: {rps: 100}; behavior: deny"), []string{"z1", "z2"}, 10, 10)
		var admitted, offered [30]int // by second
		began := time.Now()
		for n := 0; time.Since(began) < 30*time.Second; n++ {
			second := int(time.Since(began) / time.Second)
			offered[second]++
			if !f.hosts[n%2].limiter.Service("shop").DecideRequest(buy(fmt.Sprint("new-", n))).Dropped {
				admitted[second]++
			}
			time.Sleep(time.Second / 600)
		}
		for second, n := range admitted {
			if second >= 5 && n > 150 {
				t.Errorf("second %d: %d of %d requests of ever new callers admitted, limit 100", second, n, offered[second])
			}
		}
	})
}
