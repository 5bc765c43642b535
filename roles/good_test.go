package roles_test

import (
	"testing"
	"testing/synctest"
	"time"
)

// A region that restarts while its parent is away begins with the newest limits
// that it had held for a minute, not with those of a moment before its end.
func TestARegionBeginsWithLimitsThatHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bucket := func(rps string) string {
			return "service: shop\nbuckets:\n  - {name: all, scope: region, match: {procedure: shop.Shop/Buy}, limit: {rps: " + rps + "}, behavior: deny}\n"
		}
		f := newRegions(t, bucket("400"), 500, 500)
		f.offer(2 * time.Minute)
		f.steady("of two regions that held it", 3, 800, 0.03)
		f.Limits(bucket("600"))
		f.offer(settling)
		f.steady("of a new limit", 3, 1200, 0.05)

		f.Stop("controller")
		f.Stop("eu")
		f.Region("eu")
		f.offer(15 * time.Second)
		var eu, us int
		for i, c := range f.offer(10 * time.Second) {
			if i < 2 {
				eu += c.admitted()
			} else {
				us += c.admitted()
			}
		}
		near(t, "rate of the region that restarted", float64(eu)/10, 400, 0.05)
		near(t, "rate of the other one", float64(us)/10, 600, 0.05)

		f.Controller()
		f.offer(settling + 5*time.Second)
		f.steady("once the parent is back", 5, 1200, 0.05)
	})
}
