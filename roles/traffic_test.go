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

// TestDirectivesOfAQuietService holds what a fleet of many services rests on:
// however often the cells of others move, a host hears no more of its decider
// than it would alone.
func TestDirectivesOfAQuietService(t *testing.T) {
	for _, load := range []float64{0, 0.5, 0.95, 1.5} {
		t.Run(fmt.Sprintf("load=%v", load), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				quiet, restless := measureDirectives(t, load)
				t.Logf("%.2f directives a second to a host, %.1f to one of the other service", quiet, restless)
				if quiet > 1.5 || quiet < 0.5 {
					t.Errorf("%.2f directives a second to a host of the quiet service, want 0.5 to 1.5", quiet)
				}
				if restless < 10 {
					t.Errorf("%.1f directives a second to a host of the other service: it does not jump about", restless)
				}
			})
		})
	}
}

// measureDirectives returns how many directives a second reach a host of a
// service that is offered load times its limit, while another service has
// traffic that jumps all the time, and how many a host of that one.
func measureDirectives(t *testing.T, load float64) (quiet, restless float64) {
	t.Helper()
	const rps = 500 // of a limit, for each host
	services := []struct {
		name  string
		hosts int
		rps   func(host int, at time.Duration) float64
	}{
		{"shop", 4, func(int, time.Duration) float64 { return rps * load }},
		{"pay", 12, func(host int, at time.Duration) float64 {
			if at/(time.Duration(450+20*host)*time.Millisecond)%2 == 1 {
				return 4 * rps
			}
			return rps
		}},
	}
	var limits []string
	for _, s := range services {
		limits = append(limits, fmt.Sprintf("service: %s\nbuckets: [{name: all, limit: {rps: %d}, behavior: deny}]\n", s.name, rps*s.hosts))
	}
	p := rolestest.NewPlane(t, limits...)
	p.Controller()
	zones := []string{"z1", "z2"}
	for _, zone := range zones {
		p.Aggregator(zone, zone, "r1")
	}
	stop := make(chan struct{})
	t.Cleanup(func() { close(stop) })
	for _, s := range services {
		for i := range s.hosts {
			zone := zones[i%len(zones)]
			l := p.Host(fmt.Sprint(s.name, i), zone, "r1", s.name, zone)
			random := rand.New(rand.NewPCG(uint64(s.hosts), uint64(i)))
			go send(l.Service(s.name), random, stop, func(at time.Duration) float64 { return s.rps(i, at) })
		}
	}
	var rates [2]float64
	take := func(sign float64) {
		for n, s := range services {
			for i := range s.hosts {
				rates[n] += sign * p.Count(fmt.Sprint(s.name, i), "grl_client_directives_total") / float64(s.hosts) / trafficTime.Seconds()
			}
		}
	}
	time.Sleep(15 * time.Second)
	take(-1)
	time.Sleep(trafficTime)
	take(1)
	return rates[0], rates[1]
}

// send offers Poisson traffic of that rate until stop closes.
func send(s *limiter.Callee, random *rand.Rand, stop <-chan struct{}, rps func(at time.Duration) float64) {
	const step = 10 * time.Millisecond
	for at := time.Duration(0); ; at += step {
		select {
		case <-stop:
			return
		case <-time.After(step):
		}
		for due := random.ExpFloat64(); due < rps(at)*step.Seconds(); due += random.ExpFloat64() {
			s.Decide("web", "any")
		}
	}
}
