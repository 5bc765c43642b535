package roles_test

import (
	"testing"
	"testing/synctest"
	"time"

	"grl/limiter"
	grlv1 "grl/proto/grl/v1"
	"grl/roles/rolestest"
	"grl/store"
)

const figuresLimits = `service: shop
buckets:
  - name: checkout
    match: {caller: checkout, procedure: Buy}
    limit: {rps: 30}
    behavior: deny
  - name: each
    match: {caller: "*"}
    per: caller
    limit: {rps: 20}
    behavior: allow
  - name: buy
    match: {procedure: Buy}
    limit: {rps: 60}
    candidate: {rps: 10}
    behavior: deny
`

const figuresList = `  - name: "list"
    match: {procedure: List}
    limit: {rps: 10}
    behavior: deny
`

const figuresAll = `  - name: all
    limit: {rps: 50}
    behavior: deny
`

// counted is a fleet whose hosts are sent requests, and what these did with them.
type counted struct {
	*rolestest.Plane
	t             *testing.T
	hosts         []*limiter.Limiter
	sent, dropped uint64
	buys          uint64 // admitted, to Buy by a caller that says who it is
	unlimited     uint64 // to List by nobody
}

func newCounted(t *testing.T, limits string) *counted {
	p := &counted{Plane: rolestest.NewPlane(t, limits), t: t}
	p.Controller()
	for _, zone := range []string{"z1", "z2"} {
		p.Aggregator("aggregator-"+zone, zone, "r1")
		p.hosts = append(p.hosts, p.Host("host-"+zone, zone, "r1", "shop", "aggregator-"+zone))
	}
	time.Sleep(15 * time.Second)
	return p
}

func (p *counted) send(d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		for _, l := range p.hosts {
			for i, request := range [][2]string{{"checkout", "Buy"}, {"checkout", "Buy"}, {"web", "Buy"}, {"web", "List"}, {"", "List"}} {
				for range i + 1 {
					p.sent++
					switch {
					case l.Service("shop").Decide(request[0], request[1]).Dropped:
						p.dropped++
					case request[1] == "Buy":
						p.buys++
					case request[0] == "":
						p.unlimited++
					}
				}
			}
		}
	}
}

// history returns what the history has of the fleet.
func (p *counted) history() *grlv1.Minute {
	p.t.Helper()
	sum := &grlv1.Minute{}
	time.Sleep(2 * time.Minute) // all is reported, and its minute written
	synctest.Wait()
	for _, m := range p.History(store.FleetBucket) {
		if m.GetOffered() != m.GetAdmitted()+m.GetDropped() || m.GetShadowDropped() > m.GetAdmitted() {
			p.t.Errorf("minute %v does not add up", m)
		}
		sum.Offered += m.GetOffered()
		sum.Dropped += m.GetDropped()
		sum.ShadowDropped += m.GetShadowDropped()
		sum.CandidateDropped += m.GetCandidateDropped()
	}
	return sum
}

// The history of the fleet has each request once, whichever buckets it passed,
// also while the configuration changes.
func TestFleetCountsEachRequestOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newCounted(t, figuresLimits+figuresAll)
		p.send(90 * time.Second)
		got := p.history()
		if got.Offered != p.sent || got.Dropped != p.dropped || p.dropped == 0 {
			t.Errorf("counted %d requests and %d drops, hosts sent %d and dropped %d", got.Offered, got.Dropped, p.sent, p.dropped)
		}
		if got.ShadowDropped == 0 || got.CandidateDropped == 0 {
			t.Errorf("%d shadow drops and %d of the candidate, want some", got.ShadowDropped, got.CandidateDropped)
		}
		p.Limits(figuresLimits + figuresList + figuresAll)
		p.send(10 * time.Second)
		if got := p.history(); got.Offered != p.sent || got.Dropped != p.dropped || p.Fleet().GetRevision() != 2 {
			t.Errorf("over a change to r%d counted %d requests and %d drops, hosts sent %d and dropped %d", p.Fleet().GetRevision(), got.Offered, got.Dropped, p.sent, p.dropped)
		}
	})
}

// Where nothing selects all, what passes a bucket of callers and then one of a
// procedure counts in both: each that buys and says who it is, and is admitted, or
// dropped by the second one. What no bucket selects does not count.
func TestFleetWithoutALimitOfAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newCounted(t, figuresLimits)
		p.send(90 * time.Second)
		got := p.history()
		checkout := uint64(0)
		for _, m := range p.History("shop/checkout") {
			checkout += m.GetDropped()
		}
		if want := p.sent - p.unlimited + p.buys + p.dropped - checkout; got.Offered != want || got.Dropped != p.dropped || p.dropped <= checkout {
			t.Errorf("counted %d requests, %d drops; want %d, with %d twice, and %d dropped", got.Offered, got.Dropped, want, p.buys+p.dropped-checkout, p.dropped)
		}
	})
}
