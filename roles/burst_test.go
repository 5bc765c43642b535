package roles_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// Callers whose workers keep step send all they have at once, now and then: the
// limit holds as for any other traffic.
func TestBurstsAreHeldToTheLimit(t *testing.T) {
	for _, size := range []int{10, 100, 1000} {
		for _, gap := range []time.Duration{167 * time.Millisecond, 500 * time.Millisecond} {
			t.Run(fmt.Sprintf("%d each %v", size, gap), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					rate := float64(size) / gap.Seconds()
					limit := rate / 3
					f := newFleet(t, limits(fmt.Sprintf("limit: {rps: %.3f}; behavior: deny", limit)), []string{"z1"}, 0)
					f.offer(settling)
					h := f.hosts[0]
					bursts := func(d time.Duration) (admitted float64) {
						for until := time.Now().Add(d); time.Now().Before(until); {
							for range size {
								if !h.limiter.Service("shop").DecideRequest(h.request).Dropped {
									admitted++
								}
							}
							time.Sleep(gap)
						}
						return admitted
					}
					first := bursts(6 * time.Second)
					if most := 2.5 * 6 * limit; first > most {
						t.Errorf("%.0f admitted in the first 6 s, want %.0f at most", first, most)
					}
					got := bursts(20*time.Second) / 20
					t.Logf("%+.1f %% off", 100*(got-limit)/limit)
					near(t, "admitted rate", got, limit, 0.15) // the mean still holds the first seconds
				})
			})
		}
	}
}
