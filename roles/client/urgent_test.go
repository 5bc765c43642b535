package client

import (
	"math"
	"testing"
	"time"

	"grl/limiter"
	"grl/limiter/law"
	grlv1 "grl/proto/grl/v1"
	"grl/proto/wire"
)

// sudden has the aggregator take a report between two T, if one is due.
func (r *rig) sudden() *grlv1.Report {
	r.t.Helper()
	if !r.s.urgent(r.now) {
		return nil
	}
	m := r.s.sudden(r.now)
	if m == nil {
		return nil
	}
	r.sequence++
	if m.GetSequence() != r.sequence || !m.GetRatesOnly() {
		r.t.Fatalf("report %d, rates only %v; want %d with rates only", m.GetSequence(), m.GetRatesOnly(), r.sequence)
	}
	if len(m.GetOffered())+len(m.GetDropped())+len(m.GetShadowDropped()) > 0 {
		r.t.Error("a report between two T carries counts")
	}
	var err error
	if r.ids, err = wire.Named(r.ids, m.GetNames()); err != nil {
		r.t.Fatal(err)
	}
	for row, number := range m.GetCell() {
		r.rates[r.ids[number]], _ = wire.Row(m, row)
	}
	return m
}

// verdict has the aggregator say what was decided, of cell 0 alone.
func (r *rig) verdict(v law.Verdict) {
	r.t.Helper()
	r.stamp++
	m := r.directive(law.Stamp{Epoch: 1, Sequence: r.stamp}, map[limiter.CellID]float32{bucketCell(0): float32(v.Admit)})
	m.OfferedMicroRps, m.Hosts = []uint64{uint64(law.Micro(v.Offered))}, []uint32{uint32(v.Hosts)}
	if v.Hot {
		m.Hot = []uint32{r.number[bucketCell(0)]}
	}
	if err := r.s.direct(r.now, m); err != nil {
		r.t.Fatal(err)
	}
}

// offer sends n requests in each interval of d.
func (r *rig) offer(n int, d time.Duration) (dropped int) {
	for ; d > 0; d -= law.Delta {
		dropped += r.request("web", "p0", n)
		r.pass(law.Delta)
	}
	return dropped
}

func TestASurgeIsReportedAtOnce(t *testing.T) {
	r := newRig(t)
	r.install(configuration(1, 2))
	r.request("web", "p1", 1)
	r.offer(50, 2*law.T)
	r.report()
	r.verdict(law.Verdict{Admit: 2, Offered: 1000, Hosts: 1})
	r.offer(50, law.Delta)
	if m := r.sudden(); m != nil {
		t.Fatalf("%d cells reported although nothing changed", len(m.GetCell()))
	}
	r.offer(750, law.Delta)
	m := r.sudden()
	if m == nil || len(m.GetCell()) != 1 || len(m.GetNames()) != 0 {
		t.Fatalf("report %v after one interval of a surge, want one cell, named before", m)
	}
	if got := r.rates[bucketCell(0)].Offered.RPS(); math.Abs(got-15_000) > 1 {
		t.Errorf("reported %v rps, want 15000", got)
	}
	r.offer(750, law.Delta)
	if m := r.sudden(); m != nil {
		t.Error("reported again although nothing changed")
	}
	// The counts come with the report of T.
	r.report()
	if got := r.counts[bucketCell(0)].Offered; got != 41*50+2*750 {
		t.Errorf("counted %d, want %d", got, 41*50+2*750)
	}
}

func TestEventReportsAreBounded(t *testing.T) {
	r := newRig(t)
	r.install(configuration(1, 1))
	r.verdict(law.Verdict{Admit: 1, Offered: 1000, Hosts: 1})
	events := 0
	for i := range 400 { // 20 s of load that jumps up and down, and stays for longer than a burst would
		r.offer(100+1000*((i/9)%2), law.Delta)
		if r.sudden() != nil {
			events++
		}
	}
	if most := law.EventBurst + law.EventRefill*20 + 1; events < law.EventBurst || events > most {
		t.Errorf("%d event reports in 20 s, want %d to %d", events, law.EventBurst, most)
	}
}

func TestHotCellsAreReportedSooner(t *testing.T) {
	r := newRig(t)
	r.install(configuration(1, 1))
	r.offer(100, 2*law.T)
	r.report()
	r.verdict(law.Verdict{Admit: 0.9, Offered: 2000, Hosts: 1, Hot: true})
	reports := 0
	for i := range 40 {
		r.offer(100+i%3, law.Delta)
		if r.sudden() != nil {
			reports++
		}
	}
	if reports < 9 || reports > 11 {
		t.Errorf("%d reports of a hot cell in 2 s, want 10", reports)
	}
	r.verdict(law.Verdict{Admit: 0.9, Offered: 2000, Hosts: 1})
	for i := range 40 {
		r.offer(100+i%3, law.Delta)
		if r.sudden() != nil {
			t.Fatal("reported between two T although the cell is no longer hot")
		}
	}
}

// The guard bounds a surge before anybody else knows of it.
func TestASurgeIsTrimmedUntilItsDirectiveComes(t *testing.T) {
	r := newRig(t)
	r.install(configuration(1, 1))
	r.offer(50, 2*law.T)
	r.report()
	r.verdict(law.Verdict{Admit: 2, Offered: 1000, Hosts: 1}) // a limit of 2000
	r.offer(50, law.Delta)
	first := r.offer(750, law.Delta)
	if first != 0 {
		t.Errorf("%d dropped in the first interval, of which nobody can know", first)
	}
	const ceiling = 2 * 2 * 50 // guard times what the directive meant
	if admitted := 750 - r.offer(750, law.Delta); math.Abs(float64(admitted-ceiling)) > 0.1*ceiling {
		t.Errorf("%d admitted in the second interval, want %d", admitted, ceiling)
	}
}

func TestOnSilenceHold(t *testing.T) {
	r := newRig(t)
	m := configuration(1, 2)
	m.GetServices()[0].GetBuckets()[1].HoldOnSilence = true
	r.install(m)
	r.request("web", "p0", 1)
	r.request("web", "p1", 1)
	r.pass(law.Delta)
	r.direct(map[limiter.CellID]float32{bucketCell(0): 0.5, bucketCell(1): 0.5})
	r.now = r.now.Add(time.Hour)
	r.pass(law.Delta)
	r.pass(law.Delta)
	if dropped := r.request("web", "p0", 1000); dropped != 0 {
		t.Errorf("open: %d of 1000 dropped after an hour of silence, want none", dropped)
	}
	if dropped := r.request("web", "p1", 1000); dropped < 490 || dropped > 510 {
		t.Errorf("hold: %d of 1000 dropped after an hour of silence, want 500", dropped)
	}
}

func TestEpochsAreHeardByDecider(t *testing.T) {
	r := newRig(t)
	r.install(configuration(7, 1))
	for _, d := range []struct {
		decider string
		epoch   uint64
	}{{"global", 3}, {"r1", 9}} {
		m := r.directive(law.Stamp{Epoch: d.epoch, Sequence: 1}, nil)
		m.Decider = d.decider
		if err := r.s.direct(r.now, m); err != nil {
			t.Fatal(err)
		}
	}
	if got := r.s.heard(); got["global"] != 3 || got["r1"] != 9 {
		t.Errorf("heard epochs %v, want 3 of global and 9 of r1", got)
	}
}
