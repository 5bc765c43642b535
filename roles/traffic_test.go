package roles_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"grl/limiter"
	grlv1 "grl/proto/grl/v1"
	"grl/roles/rolestest"
)

const (
	trafficHosts = 4  // of one zone
	trafficRPS   = 50 // that each host sends to each bucket with traffic
	trafficTime  = 20 * time.Second
)

// traffic is what the streams of a host and of its aggregator carry, in bytes
// of messages a second.
type traffic struct{ hostUp, hostDown, aggregatorUp, aggregatorDown float64 }

// TestDocumentedTraffic measures what docs/architecture.md says under "Traffic
// between nodes".
func TestDocumentedTraffic(t *testing.T) {
	text, err := os.ReadFile("../docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile(`(?m)^\| (\d+) \| ([\d.]+) \| ([\d,]+) \| ([\d,]+) \| ([\d,]+) \| ([\d,]+) \|$`).FindAllStringSubmatch(string(text), -1)
	if len(rows) == 0 {
		t.Fatal("docs/architecture.md has no table of traffic")
	}
	for _, row := range rows {
		var n [6]float64 // the columns
		for i := range n {
			if n[i], err = strconv.ParseFloat(strings.ReplaceAll(row[i+1], ",", ""), 64); err != nil {
				t.Fatal(err)
			}
		}
		buckets, load, want := int(n[0]), n[1], traffic{n[2], n[3], n[4], n[5]}
		t.Run(fmt.Sprintf("buckets=%d/load=%v", buckets, load), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				got := measureTraffic(t, buckets, load)
				t.Logf("%.0f bytes/s", got)
				for _, c := range []struct {
					what      string
					got, want float64
				}{
					{"from a host", got.hostUp, want.hostUp},
					{"to a host", got.hostDown, want.hostDown},
					{"from an aggregator", got.aggregatorUp, want.aggregatorUp},
					{"to an aggregator", got.aggregatorDown, want.aggregatorDown},
				} {
					if math.Abs(c.got-c.want) > 5+0.25*c.want {
						t.Errorf("%.0f bytes/s %s, documented are %.0f", c.got, c.what, c.want)
					}
				}
			})
		})
	}
}

// measureTraffic returns the means over trafficTime, when each host sends
// Poisson traffic to so many buckets, which makes load times the limit of each.
func measureTraffic(t *testing.T, buckets int, load float64) traffic {
	t.Helper()
	var limits strings.Builder
	limits.WriteString("service: shop\nbuckets:\n")
	for i := range max(buckets, 1) {
		fmt.Fprintf(&limits, "  - name: bucket-%d\n    match: {procedure: \"shop.Shop/Method%d\"}\n    limit: {rps: %v}\n    behavior: deny\n",
			i, i, trafficHosts*trafficRPS/load)
	}
	p := rolestest.NewPlane(t, limits.String())
	p.Controller()
	p.Aggregator("aggregator", "z1", "r1")
	stop := make(chan struct{})
	t.Cleanup(func() { close(stop) })
	for i := range trafficHosts {
		l := p.Host(fmt.Sprintf("host-%d", i), "z1", "r1", "shop", "aggregator")
		go sendPoisson(l, buckets, rand.New(rand.NewPCG(1, uint64(i))), stop)
	}
	time.Sleep(15 * time.Second) // all names are told, all means settled
	before := bytesOf(p)
	time.Sleep(trafficTime)
	after := bytesOf(p)
	seconds := trafficTime.Seconds()
	return traffic{
		hostUp:         (after.hostUp - before.hostUp) / seconds / trafficHosts,
		hostDown:       (after.hostDown - before.hostDown) / seconds / trafficHosts,
		aggregatorUp:   (after.aggregatorUp - before.aggregatorUp) / seconds,
		aggregatorDown: (after.aggregatorDown - before.aggregatorDown) / seconds,
	}
}

// bytesOf returns what all streams carried so far.
func bytesOf(p *rolestest.Plane) traffic {
	var sum traffic
	for _, n := range p.Fleet().GetNodes() {
		up, down := float64(n.GetBytesReceived()), float64(n.GetBytesSent())
		if n.GetRole() == grlv1.Role_ROLE_CLIENT {
			sum.hostUp += up
			sum.hostDown += down
		} else {
			sum.aggregatorUp += up
			sum.aggregatorDown += down
		}
	}
	return sum
}

// sendPoisson offers trafficRPS to each bucket until stop closes.
func sendPoisson(l *limiter.Limiter, buckets int, random *rand.Rand, stop <-chan struct{}) {
	const step = 10 * time.Millisecond
	s := l.Service("shop")
	procedures := make([]string, buckets)
	for i := range procedures {
		procedures[i] = fmt.Sprintf("shop.Shop/Method%d", i)
	}
	for {
		select {
		case <-stop:
			return
		case <-time.After(step):
		}
		for _, procedure := range procedures {
			for at := random.ExpFloat64(); at < trafficRPS*step.Seconds(); at += random.ExpFloat64() {
				s.Decide("web", procedure)
			}
		}
	}
}
