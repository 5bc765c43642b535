package roles_test

import (
	"context"
	"fmt"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"grl/limiter"
	"grl/limiter/law"
	grlv1 "grl/proto/grl/v1"
	"grl/proto/grl/v1/grlv1connect"
	"grl/proto/wire"
)

// liar is a host that reports what it likes of bucket shop/all.
type liar struct {
	f      *fleet
	zone   string
	boot   uint64
	end    func()
	claims chan float64 // requests per second, for the next reports
}

// lies starts a liar that says a rate every 200 ms, once with counts each T.
func (f *fleet) lies(zone string, rps float64) *liar {
	l := &liar{f: f, zone: zone}
	l.start(rps)
	f.t.Cleanup(func() { l.end() })
	return l
}

// start opens a stream as a process that has just begun.
func (l *liar) start(rps float64) {
	l.boot++
	f, claims, stop, ended := l.f, make(chan float64, 1), make(chan struct{}), make(chan struct{})
	l.claims = claims
	ctx, cancel := context.WithCancel(context.Background())
	l.end = func() { close(stop); <-ended; cancel() }
	s, err := grlv1connect.NewTreeServiceClient(f.Network.Client(f.t), "http://aggregator-"+l.zone).Join(ctx)
	if err != nil {
		f.t.Fatal(err)
	}
	send := func(m *grlv1.JoinRequest) {
		if err := s.Send(m); err != nil {
			f.t.Errorf("send of the liar: %v", err)
		}
	}
	send(&grlv1.JoinRequest{Message: &grlv1.JoinRequest_Hello{Hello: &grlv1.Hello{
		Role: grlv1.Role_ROLE_CLIENT, Node: "liar", Zone: l.zone, Region: "r1", BootId: l.boot, Services: []string{"shop"},
	}}})
	go func() {
		for {
			if _, err := s.Receive(); err != nil {
				return
			}
		}
	}()
	go func() {
		defer close(ended)
		tick := time.NewTicker(law.HotT)
		defer tick.Stop()
		for n := uint64(1); ; n++ {
			select {
			case <-stop:
				_ = s.CloseRequest()
				_ = s.CloseResponse()
				return
			case rps = <-claims:
			case <-tick.C:
			}
			m := &grlv1.Report{Sequence: n, RatesOnly: n%5 != 1}
			if n == 1 {
				m.Names = []*grlv1.CellName{wire.FromCellID(limiter.CellID{Bucket: "shop/all"})}
			}
			var counts law.Counts
			if !m.RatesOnly {
				counts.Offered = n
			}
			wire.AppendRow(m, 0, law.Rate{Offered: law.MicroRPS(rps * 1e6)}, counts)
			send(&grlv1.JoinRequest{Message: &grlv1.JoinRequest_Report{Report: m}})
		}
	}()
}

// Fault 58: what one host claims changes what the others are admitted by at most
// 5 % and one share, whatever it claims.
func TestForgedReportMovesOneShare(t *testing.T) {
	for _, zones := range [][]string{{"z1"}, {"z1", "z2"}} {
		for _, hosts := range []int{4, 20} {
			for _, times := range []float64{1e12, 1e6, 100, 5} {
				t.Run(fmt.Sprintf("%d zones, %d hosts, %g times", len(zones), hosts, times), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { forge(t, zones, hosts, times) })
				})
			}
		}
	}
}

// forge has one of some hosts, which are offered 1.5 times the limit of 1,000,
// claim so many times its load.
func forge(t *testing.T, zones []string, hosts int, times float64) {
	share := 1500 / float64(hosts)
	f := newFleet(t, limits(deny1000), zones)
	for i := range hosts - 1 {
		f.add(zones[i%len(zones)], "r1", share)
	}
	l := f.lies("z1", share)
	f.offer(slow)
	before := float64(total(f.offer(10 * time.Second)).admitted())
	change := func(what string) {
		t.Helper()
		after := float64(total(f.offer(10 * time.Second)).admitted())
		off := after/before - 1
		if most := 0.05 + 1/float64(hosts); math.Abs(off) > most {
			t.Errorf("%s the others are admitted %+.1f %%, want at most %.1f", what, 100*off, 100*most)
		}
	}
	l.claims <- min(times*share, 1e12)
	change("in the first 10 s")
	l.end()
	f.offer(time.Second)
	l.start(min(times*share, 1e12))
	change("after a restart of the liar")
}

// An honest host that alone rises far above the others has what they leave of
// the limit at once, and no more; within minutes its rate is usual, and all are
// admitted the same part.
func TestHonestOutlierHasWhatIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, limits(deny1000), []string{"z1", "z2"})
		for i := range 20 {
			f.add([]string{"z1", "z2"}[i%2], "r1", 10)
		}
		f.offer(slow)
		f.hosts[0].load(700)
		f.offer(500 * time.Millisecond)
		f.steady("below the limit", 10, 890, 0.02)
		f.hosts[0].load(10)
		f.offer(slow)
		f.hosts[0].load(3000)
		f.offer(500 * time.Millisecond)
		for second := range 10 {
			counts := f.offer(time.Second)
			near(t, fmt.Sprintf("admitted rate in second %d", second), float64(total(counts).admitted()), 1000, 0.05)
			near(t, fmt.Sprintf("admitted rate of the others in second %d", second), float64(total(counts[1:]).admitted()), 190, 0.02)
		}
		for minute := range 12 {
			near(t, fmt.Sprintf("admitted rate in minute %d", minute), float64(total(f.offer(time.Minute)).admitted())/60, 1000, 0.04)
		}
		counts := f.offer(time.Minute)
		near(t, "share dropped of the outlier", counts[0].share(), 0.687, 0.02)
		near(t, "share dropped of the others", total(counts[1:]).share(), 0.687, 0.02)
	})
}

// Two outliers in two zones divide what is left: no zone takes all of it.
func TestOutliersOfTwoZonesDivideWhatIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, limits(deny1000), []string{"z1", "z2"})
		for i := range 20 {
			f.add([]string{"z1", "z2"}[i%2], "r1", 10)
		}
		f.offer(slow)
		f.hosts[0].load(2000)
		f.hosts[1].load(1000)
		f.offer(2 * time.Second)
		for second := range 10 {
			counts := f.offer(time.Second)
			near(t, fmt.Sprintf("admitted rate in second %d", second), float64(total(counts).admitted()), 1000, 0.05)
			near(t, fmt.Sprintf("admitted rate of the others in second %d", second), float64(total(counts[2:]).admitted()), 180, 0.02)
			near(t, fmt.Sprintf("part of the smaller one in second %d", second), float64(counts[1].admitted()), 820./3, 0.1)
		}
		f.Stop("controller")
		f.offer(5 * time.Second)
		f.steady("without a controller", 10, 1000, 0.05)
	})
}
