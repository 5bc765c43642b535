package controller

import (
	"fmt"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"grl/limiter"
	"grl/limiter/law"
	"grl/web/page"
)

// cascade has a bucket of each kind for one service, and caps.
func cascade(revision uint64, caps ...limiter.Cap) *limiter.Configuration {
	bucket := func(name string, caller, procedure limiter.Pattern, behavior limiter.Behavior) limiter.Bucket {
		return limiter.Bucket{Service: "pay", Name: name, LimitRPS: 100, Behavior: behavior, Match: limiter.Match{Caller: caller, Procedure: procedure}}
	}
	s := limiter.Service{Name: "pay", Owner: "team-pay", Buckets: []limiter.Bucket{
		bucket("checkout", "checkout", "p/*", limiter.Deny),
		bucket("each", "*", "p/*", limiter.Allow),
		bucket("p", "", "p/*", limiter.Deny),
		bucket("q", "", "q/*", limiter.Deny),
		bucket("blocked", "", "old", limiter.Deny),
	}}
	s.Buckets[1].PerCaller = true
	s.Buckets[3].CandidateRPS = 40
	s.Buckets[4].LimitRPS, s.Buckets[4].Block = 0, true
	return &limiter.Configuration{Epoch: 1, Revision: revision, Services: []limiter.Service{s}, Caps: caps}
}

func payCell(name, caller string) limiter.CellID {
	return limiter.CellID{Bucket: "pay/" + name, Caller: caller}
}

// byName returns rows by bucket and caller.
func byName(cells []page.Cell) map[string]page.Cell {
	rows := make(map[string]page.Cell)
	for _, c := range cells {
		rows[c.Name+c.Caller] = c
	}
	return rows
}

func TestSightOfACascade(t *testing.T) {
	begun := time.Now()
	capped := limiter.Cap{ID: "7", Service: "pay", Match: limiter.Match{Caller: "bot"}, LimitRPS: 10, Ends: begun.Add(time.Hour)}
	over := limiter.Cap{ID: "6", Service: "pay", Match: limiter.Match{Caller: "checkout"}, LimitRPS: 10, Ends: begun.Add(-time.Second)}
	r := newRig(t, cascade(1, capped, over))
	r.warm()
	s := newSpeaker("a", "z1", 1)
	s.join(r)
	say := func(k uint64) {
		s.report(
			said{payCell("_cap-7", ""), 40, law.Counts{Offered: 40 * k, Dropped: 30 * k}},
			said{payCell("checkout", ""), 200, law.Counts{Offered: 200 * k, Dropped: 100 * k}},
			said{payCell("each", "checkout"), 100, law.Counts{Offered: 100 * k}},
			said{payCell("each", "bot"), 10, law.Counts{Offered: 10 * k, ShadowDropped: 5 * k}},
			said{payCell("p", ""), 150, law.Counts{Offered: 150 * k, Dropped: 50 * k}},
			said{payCell("q", ""), 60, law.Counts{Offered: 60 * k}},
		)
		r.pass(law.T)
		r.n.renew(r.now)
	}
	for k := range uint64(8) {
		say(k + 1)
	}
	c := &Controller{node: r.n}
	got := c.sight()
	rows := byName(got.cells)
	if len(rows) != 8 || len(got.cells) != 8 {
		t.Fatalf("%d rows, want 6 with load, the blocked one and the cap that is over: %+v", len(got.cells), got.cells)
	}
	for name, want := range map[string]page.Cell{
		"_cap-7":       {Cap: "7", LimitRPS: 10, OfferedRPS: 40, DroppedRPS: 30},
		"_cap-6":       {Cap: "6", LimitRPS: 10},
		"checkout":     {Owner: "team-pay", LimitRPS: 100, OfferedRPS: 200, DroppedRPS: 100},
		"eachcheckout": {Owner: "team-pay", LimitRPS: 100, OfferedRPS: 100},
		"eachbot":      {Owner: "team-pay", LimitRPS: 100, OfferedRPS: 10, ShadowDroppedRPS: 5, Capped: true},
		"p":            {Owner: "team-pay", LimitRPS: 100, OfferedRPS: 150, DroppedRPS: 50, Capped: true},
		"q":            {Owner: "team-pay", LimitRPS: 100, OfferedRPS: 60, CandidateRPS: 40, CandidateDroppedRPS: 20, Capped: true},
		"blocked":      {Owner: "team-pay", Block: true, Ratio: 1, Capped: true},
	} {
		row := rows[name]
		near := func(a, b float64) bool { return math.Abs(a-b) < 1e-6 }
		if row.Cap != want.Cap || row.Owner != want.Owner && want.Cap == "" || row.LimitRPS != want.LimitRPS || row.CandidateRPS != want.CandidateRPS ||
			row.Capped != want.Capped || row.Block != want.Block || !near(row.OfferedRPS, want.OfferedRPS) || !near(row.DroppedRPS, want.DroppedRPS) ||
			!near(row.ShadowDroppedRPS, want.ShadowDroppedRPS) || row.CandidateDroppedRPS != want.CandidateDroppedRPS || !near(row.AdmittedRPS, want.OfferedRPS-want.DroppedRPS) {
			t.Errorf("row of %s = %+v, want %+v", name, row, want)
		}
	}
	// What the cap, p and q let through, at which the way of requests ends, and all
	// that is dropped: of checkout's 100 that p drops are not counted there again.
	want := page.Load{OfferedRPS: 350, AdmittedRPS: 10 + 100 + 60, DroppedRPS: 30 + 100 + 50, ShadowDroppedRPS: 5, CandidateDroppedRPS: 20}
	if diff := cmp.Diff(want, got.total, cmpopts.EquateApprox(0, 1e-6)); diff != "" {
		t.Errorf("in all (-want +got):\n%s", diff)
	}
	if c.sight() != got {
		t.Error("looked again within half a second")
	}
}

// TestSightOfAnotherConfiguration looks in parts, while the configuration
// changes.
func TestSightOfAnotherConfiguration(t *testing.T) {
	r := newRig(t, cascade(1))
	c := &Controller{node: r.n}
	if got := len(c.look(1).cells); got != 5 {
		t.Fatalf("%d rows, want one a bucket", got)
	}
	next := configuration(2, 3)
	r.n.install(next, nil, nil)
	got := byName(c.look(1).cells)
	if len(got) != 5 || got["b0"].Service != "pay" || got["zonal"].Scope != limiter.Zone {
		t.Errorf("rows %v, want those of the configuration that came", got)
	}
}

// TestSightWhileConfigurationsCome looks while other ones are installed all the
// time: each sight is of one of them.
func TestSightWhileConfigurationsCome(t *testing.T) {
	c := &Controller{node: newRig(t, configuration(1, 2000)).n}
	done := make(chan struct{})
	var installer sync.WaitGroup
	installer.Go(func() {
		for i := uint64(2); ; i++ {
			select {
			case <-done:
				return
			default:
			}
			c.mu.Lock()
			c.node.install(configuration(i, 2000+int(i%2)), nil, nil)
			c.mu.Unlock()
		}
	})
	for range 30 {
		c.sights.last.Store(nil)
		if n := len(c.sight().cells); n != 2002 && n != 2003 {
			t.Errorf("%d rows, want all of a configuration", n)
		}
	}
	close(done)
	installer.Wait()
}

// BenchmarkSight looks at all cells of 30 zones.
func BenchmarkSight(b *testing.B) {
	for _, zones := range []int{1, 30} {
		b.Run(fmt.Sprint(zones, " zones, 100,000 cells"), func(b *testing.B) {
			r, _ := benchRig(b, zones, 100_000)
			c := &Controller{node: r.n}
			c.look(sightPart)
			b.ReportAllocs()
			for b.Loop() {
				if s := c.look(sightPart); len(s.cells) != 100_000 {
					b.Fatalf("%d rows", len(s.cells))
				}
			}
		})
	}
	b.Run("again", func(b *testing.B) {
		r, _ := benchRig(b, 1, 1000)
		c := &Controller{node: r.n}
		b.ReportAllocs()
		for b.Loop() {
			c.sights.last.Store(&sight{at: time.Now()})
			c.sight()
		}
	})
}
