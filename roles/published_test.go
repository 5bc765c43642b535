package roles_test

import (
	"fmt"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"grl/limiter"
	"grl/roles/rolestest"
)

const shop = `
service: shop
buckets:
  - name: all
    limit: {rps: 1000}
    behavior: deny
`

// load offers evenly spaced requests to a service until the test's bubble ends
// the returned counts are read with total.
type load struct {
	offered, dropped int
}

// offer sends rps evenly spaced requests a second to l for d of virtual time.
func offer(l *limiter.Limiter, service, caller, procedure string, rps float64, d time.Duration) load {
	var sum load
	s := l.Service(service)
	gap := time.Duration(float64(time.Second) / rps)
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(gap) {
		sum.offered++
		if s.Decide(caller, procedure).Dropped {
			sum.dropped++
		}
	}
	return sum
}

func TestPublishedThird(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		plane := rolestest.NewPlane(t, shop)
		plane.Controller()
		plane.Aggregator("a", "z1", "r1")
		hosts := make([]*limiter.Limiter, 3)
		for i := range hosts {
			hosts[i] = plane.Host(fmt.Sprintf("h%d", i), "z1", "r1", "shop", "a")
		}
		results := make([]load, len(hosts))
		done := make(chan bool)
		for i, l := range hosts {
			go func() {
				offer(l, "shop", "web", "p", 500, 5*time.Second)
				results[i] = offer(l, "shop", "web", "p", 500, 20*time.Second)
				done <- true
			}()
		}
		for range hosts {
			<-done
		}
		for i, r := range results {
			if share := float64(r.dropped) / float64(r.offered); math.Abs(share-1.0/3) > 0.01 {
				t.Errorf("host %d dropped %.4f of %d, want a third", i, share, r.offered)
			}
		}
	})
}
