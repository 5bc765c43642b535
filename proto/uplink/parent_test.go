package uplink

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"grl/limiter"
	"grl/limiter/law"
	grlv1 "grl/proto/grl/v1"
	"grl/proto/wire"
)

// source is a node with cells pay/b0, pay/b1 … that has received so many
// reports.
type source struct {
	cells    law.Cells
	rates    []law.Rate
	counts   []law.Counts
	contains Contains
	roster   uint64
	alone    bool // it has no nodes below it
}

func newSource(cells int) *source {
	s := &source{rates: make([]law.Rate, cells), counts: make([]law.Counts, cells)}
	for i := range cells {
		s.cells.Index(name(i))
	}
	return s
}

func name(i int) limiter.CellID { return limiter.CellID{Bucket: fmt.Sprintf("pay/b%d", i)} }

func (s *source) Cells() *law.Cells       { return &s.cells }
func (s *source) Rate(i int) law.Rate     { return s.rates[i] }
func (s *source) Counts(i int) law.Counts { return s.counts[i] }
func (s *source) Contains() Contains      { return s.contains }
func (s *source) Roster() uint64          { return s.roster }
func (s *source) Sign(m *grlv1.Report)    { m.ConfigRevision = 7 }

func (s *source) AddRoster(_ time.Time, m *grlv1.Report) {
	if !s.alone {
		m.Nodes = []*grlv1.Node{{Name: "host"}}
	}
}

func (s *source) offer(p *Parent, cell int, rps float64) {
	s.rates[cell] = law.Rate{Offered: law.Micro(rps), Hosts: 1}
	p.Touch(cell)
}

// hearer is what the parent knows from reports.
type hearer struct {
	ids    []limiter.CellID
	rates  map[limiter.CellID]law.Rate
	counts map[limiter.CellID]law.Counts
	last   uint64
}

func newHearer() *hearer {
	return &hearer{rates: make(map[limiter.CellID]law.Rate), counts: make(map[limiter.CellID]law.Counts)}
}

func (h *hearer) hear(t interface{ Fatalf(string, ...any) }, reports []*grlv1.Report) {
	for _, m := range reports {
		var err error
		if h.ids, err = wire.Named(h.ids, m.GetNames()); err == nil {
			err = wire.CheckReport(m, len(h.ids))
		}
		if h.last++; err != nil || m.GetSequence() != h.last || m.GetConfigRevision() != 7 {
			t.Fatalf("report %d, want %d: %v, %v", m.GetSequence(), h.last, err, m)
		}
		for row, number := range m.GetCell() {
			rate, counts := wire.Row(m, row)
			h.rates[h.ids[number]] = rate
			if !m.GetRatesOnly() {
				h.counts[h.ids[number]] = counts
			}
		}
	}
}

// The band delays, it never hides; over streams that begin anew and cells that
// are forgotten.
func TestParentHearsOfAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const cells = 4
		s, p, h, now := newSource(cells), NewParent(), newHearer(), time.Unix(1e9, 0)
		for range rapid.IntRange(1, 50).Draw(t, "steps") {
			cell := rapid.IntRange(0, cells-1).Draw(t, "cell")
			switch rapid.SampledFrom([]string{"offer", "offer", "drift", "count", "jumps", "jumps", "full", "full", "reopen", "forget"}).Draw(t, "what") {
			case "offer":
				s.offer(p, cell, rapid.Float64Range(0, 1e5).Draw(t, "rps"))
			case "drift":
				s.offer(p, cell, s.rates[cell].Offered.RPS()*rapid.Float64Range(0.99, 1.01).Draw(t, "by"))
			case "count":
				s.counts[cell].Offered += rapid.Uint64Range(1, 9).Draw(t, "more")
			case "jumps":
				h.hear(t, p.Jumps(s))
				for i := range cells {
					if got, want := h.rates[name(i)].Offered.RPS(), s.rates[i].Offered.RPS(); law.RateMoved(want, got) == law.Jumps {
						t.Fatalf("cell %d jumped to %v, the parent heard %v", i, want, got)
					}
				}
			case "full":
				h.hear(t, p.Full(now, s))
				for i := range cells {
					got, want := h.rates[name(i)].Offered.RPS(), s.rates[i].Offered.RPS()
					if law.RateMoved(want, got) != law.Still || h.counts[name(i)] != s.counts[i] {
						t.Fatalf("cell %d: the parent heard %v and %+v, it is %v and %+v", i, got, h.counts[name(i)], want, s.counts[i])
					}
				}
			case "reopen":
				p.Reopen(nil)
				h = newHearer()
				h.hear(t, p.Full(now, s))
			case "forget":
				p.Forget(map[int]limiter.CellID{cell: name(cell)})
				s.rates[cell], s.counts[cell] = law.Rate{}, law.Counts{} // as an index that goes to another cell
				h.rates[name(cell)], h.counts[name(cell)] = law.Rate{}, law.Counts{}
			}
		}
	})
}

// Only the last of several reports contains all that was received before them,
// and only those with counts contain counts.
func TestReportsContain(t *testing.T) {
	const cells = wire.MaxNew + 1
	s, p, now := newSource(cells), NewParent(), time.Unix(1e9, 0)
	for i := range cells {
		s.offer(p, i, 100)
		s.counts[i].Offered = 1
	}
	check := func(what string, m *grlv1.Report, rates, counts uint64, counted bool) {
		t.Helper()
		if got, ok := p.Rates(m.GetSequence()); !ok || got != rates {
			t.Errorf("%s: contains the rates of %d reports, %v, want %d", what, got, ok, rates)
		}
		if got, ok := p.Counted(m.GetSequence()); ok != counted || got != counts {
			t.Errorf("%s: contains the counts of %d reports, %v, want %d, %v", what, got, ok, counts, counted)
		}
	}
	s.contains = Contains{Rates: 10, Counts: 4}
	first := p.Full(now, s)
	if len(first) != 2 {
		t.Fatalf("%d reports, want 2", len(first))
	}
	check("the first of two", first[0], 0, 0, true)
	check("the second of two", first[1], 10, 4, true)
	s.contains = Contains{Rates: 12, Counts: 9}
	s.offer(p, 0, 1000)
	check("a jump", p.Jumps(s)[0], 12, 0, false)
	for i := range cells {
		s.offer(p, i, 5000)
	}
	s.contains = Contains{Rates: 13, Counts: 9}
	jumps := p.Jumps(s)
	check("a jump of all", jumps[len(jumps)-1], 13, 0, false)
	check("the next full one", p.Full(now, s)[0], 13, 9, true)
	if _, ok := p.Rates(99); ok {
		t.Error("a report that was not sent contains something")
	}
	if _, ok := p.Counted(0); ok {
		t.Error("no report contains counts")
	}
}

func TestMessages(t *testing.T) {
	s, p, now := newSource(1), NewParent(), time.Unix(1e9, 0)
	s.offer(p, 0, 100)
	reports := func(ready, full bool) (out []*grlv1.Report) {
		for _, m := range p.Messages(now, s, ready, full) {
			if m.GetReport() != nil {
				out = append(out, m.GetReport())
			}
		}
		return out
	}
	if got := reports(false, false); len(got) != 0 {
		t.Errorf("not ready: %v", got)
	}
	if got := reports(false, true); len(got) != 1 || !got[0].GetWarming() || len(got[0].GetCell()) != 0 || len(got[0].GetNodes()) != 1 {
		t.Errorf("not ready, at T: %v, want one that says who is there", got)
	}
	if got := reports(true, false); len(got) != 1 || got[0].GetRatesOnly() || len(got[0].GetCell()) != 1 || len(got[0].GetNodes()) != 0 {
		t.Errorf("ready for the first time: %v, want all", got)
	}
	if got := reports(true, false); len(got) != 0 {
		t.Errorf("nothing moved: %v", got)
	}
	s.roster++
	if got := reports(true, true); len(got) != 1 || len(got[0].GetCell()) != 0 || len(got[0].GetNodes()) != 1 {
		t.Errorf("at T, another node: %v, want an empty report that shows it", got)
	}
	now = now.Add(rosterEvery)
	if got := reports(true, true); len(got) != 1 || len(got[0].GetNodes()) != 1 {
		t.Errorf("10 s later: %v, want the nodes again", got)
	}
	if got := reports(true, true); len(got) != 1 || len(got[0].GetNodes()) != 0 || got[0].GetNoNodes() {
		t.Errorf("nothing changed: %v, want nothing said of nodes", got)
	}
	s.alone, s.roster = true, s.roster+1
	if got := reports(true, true); len(got) != 1 || len(got[0].GetNodes()) != 0 || !got[0].GetNoNodes() {
		t.Errorf("the last node left: %v, want that there are none", got)
	}
	p.Add(&grlv1.Detail{WindowMs: 5})
	if got := p.Messages(now, s, true, false); len(got) != 1 || got[0].GetDetail().GetWindowMs() != 5 {
		t.Errorf("%v, want the detail", got)
	}
}

func TestReopen(t *testing.T) {
	s, p, now := newSource(2), NewParent(), time.Unix(1e9, 0)
	if got := p.Reopen(map[string]uint64{"global": 4}); len(got.GetCell()) != 0 || p.Said("global") != 4 || p.Said("r1") != 0 {
		t.Errorf("the first hello confirms %v and says epoch %d", got, p.Said("global"))
	}
	s.counts[1].Offered = 5
	sequence := p.Full(now, s)[0].GetSequence()
	p.Counted(sequence)
	s.counts[1].Offered = 9
	p.Full(now, s) // not confirmed
	got, err := wire.ConfirmedCounts(p.Reopen(nil))
	if err != nil || got[name(1)].Offered != 5 || p.Said("global") != 0 {
		t.Errorf("the next hello confirms %v, %v, and says epoch %d", got, err, p.Said("global"))
	}
	if m := p.Full(now, s)[0]; m.GetSequence() != 1 || len(m.GetNames()) != 1 || m.GetOffered()[0] != 9 {
		t.Errorf("the next stream begins with %v", m)
	}
}

// Feed sends at each beat and Coalesce after each wake, and stops at the first
// error or with its context.
func TestFeed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewParent()
		var mu sync.Mutex // guards got
		var got []bool
		failure := errors.New("gone")
		ended := make(chan error, 1)
		go func() {
			ended <- p.Feed(t.Context(), func(*grlv1.JoinRequest) error { return failure }, func(full bool) []*grlv1.JoinRequest {
				mu.Lock()
				defer mu.Unlock()
				if got = append(got, full); len(got) < 4 {
					return nil
				}
				return []*grlv1.JoinRequest{{}}
			})
		}()
		see := func(what string, want ...bool) {
			t.Helper()
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%s: %v, want %v", what, got, want)
			}
		}
		p.Wake()
		time.Sleep(law.Coalesce - 1)
		see("woken a moment ago")
		p.Wake() // of the same surge
		time.Sleep(time.Nanosecond)
		see("coalesced", false)
		time.Sleep(law.Coalesce)
		see("woken meanwhile", false, false)
		p.Wake()
		p.Beat()
		see("T within a surge", false, false, true)
		p.Beat()
		if err := <-ended; !errors.Is(err, failure) {
			t.Errorf("ended with %v, want what send said", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		go func() { ended <- p.Feed(ctx, nil, nil) }()
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("ended with %v, want canceled", err)
		}
	})
}

// Against a model that forgets nothing: what is still remembered is right.
func TestReceipts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var r Receipts
		var all []receipt
		sequence, received := uint64(0), uint64(0)
		for range rapid.IntRange(0, 150).Draw(t, "reports") {
			sequence += rapid.Uint64Range(1, 3).Draw(t, "sequences")
			received += rapid.Uint64Range(0, 3).Draw(t, "received")
			r.Note(sequence, received)
			all = append(all, receipt{sequence, received})
		}
		recent := all[max(0, len(all)-len(r.ring)):]
		asked := rapid.Uint64Range(0, sequence+1).Draw(t, "asked")
		want, known := uint64(0), false
		for _, at := range recent {
			if at.sequence == asked {
				want, known = at.received, true
			}
		}
		if got, ok := r.Received(asked); got != want || ok != known {
			t.Fatalf("Received(%d) = %d, %v, want %d, %v", asked, got, ok, want, known)
		}
		first := rapid.Uint64Range(0, received+1).Draw(t, "first")
		want = 0
		for _, at := range recent {
			if at.received <= first {
				want = at.sequence
			}
		}
		if got := r.Contained(first); got != want {
			t.Fatalf("Contained(%d) = %d, want %d", first, got, want)
		}
	})
}

func TestDirty(t *testing.T) {
	var d Dirty
	for range 2 {
		for _, i := range []int{3, 0, 3, 1000, 0} {
			d.Touch(i)
		}
		if got := fmt.Sprint(d.Look()); got != "[3 0 1000]" {
			t.Errorf("dirty %s, want each once", got)
		}
		if got := d.Look(); len(got) != 0 {
			t.Errorf("dirty %v after a look", got)
		}
	}
}

// BenchmarkFull forms a report of 10,000 cells, all moved.
func BenchmarkFull(b *testing.B) {
	const cells = 10_000
	s, p, now := newSource(cells), NewParent(), time.Unix(1e9, 0)
	turn := uint64(0)
	b.ReportAllocs()
	for b.Loop() {
		turn++
		for i := range cells {
			s.rates[i].Offered = law.Micro(100 * math.Pow(2, float64(turn%2)))
			s.counts[i].Offered = turn * 10
		}
		p.Full(now, s)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*cells), "ns/cell")
}
