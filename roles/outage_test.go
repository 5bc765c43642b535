package roles_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"grl/limiter"
	"grl/proto/statefile"
)

const deny1000 = "limit: {rps: 1000}; behavior: deny"

// steady checks that the admitted rate stays at want in each of n seconds.
func (f *fleet) steady(what string, n int, want, tolerance float64) {
	f.t.Helper()
	for second := range n {
		near(f.t, fmt.Sprintf("admitted rate in second %d %s", second+1, what),
			float64(total(f.offer(time.Second)).admitted()), want, tolerance)
	}
}

// A controller that restarts changes nothing: hosts hold their ratios until it
// knows all zones again.
func TestControllerRestartChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, limits(deny1000), []string{"z1", "z2"}, 500, 500, 500, 500)
		f.offer(settling)
		f.steady("before", 3, 1000, 0.02)
		f.Stop("controller")
		f.steady("without controller", 5, 1000, 0.02)
		f.Controller()
		f.steady("after", 10, 1000, 0.02)
		if epoch := f.Fleet().GetEpoch(); epoch != 2 {
			t.Errorf("epoch %d after a restart, want 2", epoch)
		}
	})
}

// A controller whose store is lost begins with the epoch that its first life had,
// and with its first sequences and revision. It is heard all the same, whoever
// else is new.
func TestALostStoreSilencesNobody(t *testing.T) {
	for _, anew := range []string{"", "aggregator-z1"} {
		t.Run(anew, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFleet(t, limits(deny1000), []string{"z1", "z2"}, 500, 500, 500, 500)
				f.offer(3 * time.Minute) // more directives than the second life gives soon
				f.Stop("controller")
				f.Forget("controller")
				if anew != "" {
					f.Stop(anew)
				}
				f.offer(time.Second)
				f.Controller()
				if anew != "" {
					f.Aggregator(anew, "z1", "r1")
				}
				f.offer(10 * time.Second)
				f.steady("after the store was lost", 20, 1000, 0.05)
				f.Limits(limits("limit: {rps: 1500}; behavior: deny")) // no guard rail minds
				f.offer(2 * time.Second)
				f.steady("at a limit of the second life", 5, 1500, 0.05)
			})
		})
	}
}

// An aggregator that restarts changes nothing either: its zone goes on counting
// with its last sums until its hosts have found it.
func TestAggregatorRestartChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, limits(deny1000), []string{"z1", "z2"}, 500, 500, 500, 500)
		f.offer(settling)
		f.Stop("aggregator-z1")
		f.steady("without aggregator", 3, 1000, 0.02)
		f.Aggregator("aggregator-z1", "z1", "r1")
		f.steady("after", 15, 1000, 0.02)
	})
}

// A zone whose aggregator is lost holds, decays and opens; the others keep to
// the share they had for 30 s, and then have the whole limit.
func TestZoneCutOffIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, limits(deny1000), []string{"z1", "z2"}, 1000, 1000)
		f.offer(settling)
		f.Stop("aggregator-z1")
		for second := 1; second <= 60; second++ {
			z2 := float64(f.offer(time.Second)[1].admitted())
			switch {
			case second <= 29:
				near(t, fmt.Sprintf("admitted rate of the other zone in second %d", second), z2, 500, 0.03)
			case second > 33:
				near(t, fmt.Sprintf("admitted rate of the other zone in second %d", second), z2, 1000, 0.03)
			}
		}
	})
}

// Without a controller the zones go on alone, each with its share: the limit
// holds whatever load does meanwhile.
func TestZonesGoOnAlone(t *testing.T) {
	for _, tt := range []struct {
		name     string
		from, to float64 // requests per second of each of four hosts
		want     float64
	}{
		{"the same load", 500, 500, 1000},
		{"twice the load", 500, 1000, 1000},
		{"a surge of 15 times", 125, 1875, 1000},
		{"load falls below the limit", 500, 125, 500},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFleet(t, limits(deny1000), []string{"z1", "z2"}, tt.from, tt.from, tt.from, tt.from)
				f.offer(2 * settling)
				f.Stop("controller")
				f.offer(5 * time.Second)
				for _, h := range f.hosts {
					h.load(tt.to)
				}
				f.offer(500 * time.Millisecond)
				f.steady("without controller", 20, tt.want, 0.05)
				f.Controller()
				f.steady("after", 10, tt.want, 0.03)
			})
		})
	}
}

// Restarts in an outage forget neither limits nor ratios: an aggregator goes on
// alone for what is left of its time, a host holds, decays and opens.
func TestRestartsInAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, limits(deny1000), nil)
		f.Keeps = true
		for _, zone := range []string{"z1", "z2"} {
			f.Aggregator("aggregator-"+zone, zone, "r1")
			f.add(zone, "r1", 1000)
		}
		f.offer(statefile.GoodAfter + settling) // what did not serve so long is not begun with
		f.Stop("controller")
		f.offer(5 * time.Second)
		f.Stop("aggregator-z1")
		f.offer(time.Second)
		f.Aggregator("aggregator-z1", "z1", "r1")
		f.offer(2 * time.Second)
		f.steady("after an aggregator restarted in an outage", 10, 1000, 0.05)

		f.Stop("aggregator-z1")
		f.offer(2 * time.Second)
		share := func() float64 {
			f.Stop("host-0")
			l := f.Host("host-0", "z1", "r1", "shop", "aggregator-z1")
			dropped := 0
			for range 1000 {
				if l.Service("shop").DecideRequest(buy("web")).Dropped {
					dropped++
				}
			}
			return float64(dropped) / 1000
		}
		near(t, "share that a host drops after a restart", share(), 0.5, 0.05)
		time.Sleep(13 * time.Second)
		if got := share(); got < 0.1 || got > 0.4 {
			t.Errorf("a host that restarts while it decays drops %v, want part of a half", got)
		}
		time.Sleep(10 * time.Second)
		if got := share(); got > 0 {
			t.Errorf("a host that restarts after hold and decay drops %v, want nothing", got)
		}
	})
}

// The guard is the host's own: a surge while a host has no aggregator is
// trimmed all the same, to twice what the last directive meant it to admit.
func TestAHostBoundsASurgeAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, limits(deny1000), []string{"z1"}, 500)
		f.offer(2 * settling)
		f.Stop("aggregator-z1")
		f.Stop("controller")
		f.offer(time.Second)
		f.hosts[0].load(7500)
		f.offer(100 * time.Millisecond)
		near(t, "admitted in the hold", float64(total(f.offer(5*time.Second)).admitted())/5, 2000, 0.1)
	})
}

// Of two aggregators in a zone one is lost: its hosts move to the other, and
// nobody is counted twice or not at all.
func TestHostsMoveToTheOtherAggregator(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, limits(deny1000), nil)
		f.Aggregator("a", "z1", "r1")
		f.Aggregator("b", "z1", "r1")
		for range 8 {
			f.addTo("z1", "r1", 250, "a", "b")
		}
		f.offer(settling)
		f.steady("with both", 3, 1000, 0.02)
		f.Stop("a")
		f.steady("with one", 10, 1000, 0.03)
		f.Aggregator("a", "z1", "r1")
		f.Stop("b")
		f.steady("with the other", 10, 1000, 0.03)
	})
}

// ledger adds up what happened to the load, to compare it with the history.
type ledger struct {
	*fleet
	sum []count
}

func (l *ledger) offer(d time.Duration) {
	counts := l.fleet.offer(d)
	if l.sum == nil {
		l.sum = make([]count, len(counts))
	}
	for i, c := range counts {
		l.sum[i].offered += c.offered
		l.sum[i].dropped += c.dropped
	}
}

// history ends the load and returns what the history then has of it.
func (l *ledger) history() (sum count) {
	l.t.Helper()
	for _, h := range l.hosts {
		h.load(0.0001)
	}
	l.offer(3 * time.Minute) // all is reported and flushed
	for _, m := range l.History("shop/all") {
		sum.offered += int(m.GetOffered())
		sum.dropped += int(m.GetDropped())
		if m.GetOffered() != m.GetAdmitted()+m.GetDropped() {
			l.t.Errorf("minute %v: offered %d, admitted %d, dropped %d", time.UnixMilli(m.GetStartMs()).UTC(), m.GetOffered(), m.GetAdmitted(), m.GetDropped())
		}
		if m.GetHighestSecond() > 2020 {
			l.t.Errorf("minute %v: highest second %d of 2000 rps", time.UnixMilli(m.GetStartMs()).UTC(), m.GetHighestSecond())
		}
	}
	return sum
}

// Every request is counted once in the history, whatever streams break.
func TestHistoryCountsEveryRequestOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := ledger{fleet: newFleet(t, limits(deny1000), []string{"z1", "z2"}, 800, 600, 400, 200)}
		l.offer(30 * time.Second)
		for range 10 {
			for _, name := range []string{"aggregator-z1", "controller", "aggregator-z2"} {
				l.Network.Break(name)
				l.offer(1700 * time.Millisecond)
			}
		}
		if got, want := l.history(), total(l.sum); got != want {
			t.Errorf("history has %+v, want %+v", got, want)
		}
	})
}

// What a killed node had not passed on and had confirmed is counted again, not
// lost: at most the last few seconds of its load.
func TestHistoryLosesNothingWithAKilledNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := ledger{fleet: newFleet(t, limits(deny1000), []string{"z1", "z2"}, 800, 600, 400, 200)}
		l.offer(30 * time.Second)
		l.Stop("aggregator-z1")
		l.offer(5 * time.Second)
		l.Aggregator("aggregator-z1", "z1", "r1")
		l.offer(20 * time.Second)
		l.Stop("controller")
		l.offer(5 * time.Second)
		l.Controller()
		l.offer(20 * time.Second)
		const again = 4 * (1200 + 2000) // seconds, times the load of both
		if got, want := l.history(), total(l.sum); got.offered < want.offered || got.offered > want.offered+again {
			t.Errorf("history has %+v, want %+v and at most %d more", got, want, again)
		}
	})
}

// A changed limit is in force at once, under load and without a gap.
func TestChangedLimitIsInForce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, limits(deny1000), []string{"z1", "z2"}, 1000, 1000)
		f.offer(settling)
		f.steady("at the old limit", 3, 1000, 0.02)
		f.Limits(limits("limit: {rps: 1200}; behavior: deny"))
		f.offer(time.Second)
		f.steady("at the new limit", 5, 1200, 0.03)
		f.Limits("service: shop\nowner: nobody\n")
		f.offer(time.Second)
		if c := total(f.offer(10 * time.Second)); c.dropped != 0 {
			t.Errorf("dropped %d of %d after the bucket was removed, want none", c.dropped, c.offered)
		}
	})
}

// Each caller of a per-caller bucket has the limit for itself.
func TestEachCallerHasTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, limits("match: {caller: '*'}; per: caller; limit: {rps: 100}; behavior: deny"), []string{"z1", "z2"})
		for i, caller := range []string{"a", "a", "b", "b", "c", ""} {
			f.add([]string{"z1", "z2"}[i%2], "r1", 100)
			f.hosts[i].send(limiter.Request{Caller: caller, Procedure: "shop.Shop/Buy"})
		}
		f.offer(settling)
		counts := f.offer(20 * time.Second)
		for i, want := range []float64{50, 50, 50, 50, 100, 100} {
			near(t, fmt.Sprintf("admitted rate of host %d", i), float64(counts[i].admitted())/20, want, 0.03)
		}
	})
}

// A fleet that has nothing to do for an hour, and then a surge.
func TestAnHourOfIdling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, limits(deny1000), []string{"z1", "z2"}, 0.5, 0.5)
		f.offer(time.Hour)
		for _, h := range f.hosts {
			h.load(1000)
		}
		f.offer(settling)
		f.steady("after the surge", 5, 1000, 0.03)
	})
}
