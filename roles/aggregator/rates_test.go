package aggregator

import (
	"testing"
	"time"

	"grl/limiter/law"
	grlv1 "grl/proto/grl/v1"
)

// An event report carries the cells that triggered it; it renews the others,
// and counts stay as they were.
func TestRatesBetweenPeriods(t *testing.T) {
	r := newRig(t, revision(1, 2))
	s := newSpeaker("a", 1)
	s.join(r)
	s.report(said{0, 10, law.Counts{Offered: 5}}, said{1, 20, law.Counts{Offered: 6}})
	before := r.counts(0)
	for range 5 {
		r.pass(law.T)
		s.event(saidRate(0, 15))
		r.n.silence(r.now)
	}
	if r.rps(0) != 15 || r.rps(1) != 20 || r.counts(0) != before {
		t.Errorf("%v and %v rps, counted %+v, want 15, 20 and %+v", r.rps(0), r.rps(1), r.counts(0), before)
	}
	r.pass(law.HostSilent + 1)
	r.n.silence(r.now)
	s.event(saidRate(0, 16))
	if r.rps(0) != 16 || r.rps(1) != 20 {
		t.Errorf("%v and %v rps after a silence, want 16 and 20", r.rps(0), r.rps(1))
	}
}

// The counts of a T go on evenly over a T, however many events lie between.
func TestEventsDoNotDisturbCounts(t *testing.T) {
	played := func(events bool) []law.Counts {
		r := newRig(t, revision(1, 1))
		s := newSpeaker("a", 1)
		s.join(r)
		var out []law.Counts
		total := uint64(0)
		for turn := range 8 {
			if turn%2 == 0 { // half way between two ticks of the node
				total += 1000
				s.report(said{0, 1000, law.Counts{Offered: total}})
			} else {
				r.n.tick(r.now)
				out = append(out, r.n.played.Counts(0))
			}
			if events {
				s.event(saidRate(0, 1000+float64(turn)))
			}
			r.pass(law.T / 4)
			if events {
				s.event(saidRate(0, 2000+float64(turn)))
			}
			r.pass(law.T / 4)
		}
		return out
	}
	want := played(false)
	for i, got := range played(true) {
		if got != want[i] {
			t.Errorf("T %d: %+v was released, want %+v as without events", i, got, want[i])
		}
	}
}

// A cell that an event was the first to name: what the host counted of it
// before this stream is late, what comes later is not.
func TestCountsOfCellsThatAnEventNamed(t *testing.T) {
	r := newRig(t, revision(1, 2))
	s := newSpeaker("a", 1)
	s.join(r)
	s.event(saidRate(0, 10), saidRate(1, 10))
	r.pass(100 * time.Millisecond)
	s.report(said{0, 10, law.Counts{Offered: 100}})
	r.pass(time.Millisecond) // the second part of the same
	s.report(said{1, 10, law.Counts{Offered: 200}})
	for cell, want := range []law.Counts{{Offered: 100, Late: 100}, {Offered: 200, Late: 200}} {
		if got := r.counts(cell); got != want {
			t.Errorf("cell %d: counted %+v, want %+v", cell, got, want)
		}
	}
	r.pass(law.T)
	s.report(said{0, 10, law.Counts{Offered: 110}}, said{1, 10, law.Counts{Offered: 210}})
	for cell, want := range []law.Counts{{Offered: 110, Late: 100}, {Offered: 210, Late: 200}} {
		if got := r.counts(cell); got != want {
			t.Errorf("cell %d: counted %+v, want %+v", cell, got, want)
		}
	}
}

func TestCountsInAReportOfRates(t *testing.T) {
	r := newRig(t, revision(1, 1))
	s := newSpeaker("a", 1)
	s.join(r)
	m := s.message(said{0, 10, law.Counts{Offered: 5}})
	m.RatesOnly = true
	if _, err := r.n.report(r.now, s.h, m); err == nil {
		t.Error("taken")
	}
}

// What jumps goes up as rates; the counts follow with all others at T.
func TestJumpsSayRatesOnly(t *testing.T) {
	r, s := ready(t, revision(1, 1), 10)
	s.report(said{0, 500, law.Counts{Offered: 70}})
	m := r.jumps()
	if len(m) != 1 || !m[0].GetRatesOnly() || len(m[0].GetOffered()) != 0 {
		t.Fatalf("said at once: %v, want rates only", m)
	}
	if got := r.heard.rates[cellOf(0)].Offered.RPS(); got != 500 {
		t.Errorf("the parent heard %v rps, want 500", got)
	}
	if r.up(); r.heard.counts[cellOf(0)].Offered != 70 {
		t.Errorf("the parent heard of %+v at T, want 70", r.heard.counts[cellOf(0)])
	}
}

// Trap 1, pairing: each host hears which of its reports are in the rates of the
// sums, exactly, and apart from that of which the counts have gone up.
func TestRatesAndCountsAreMappedApart(t *testing.T) {
	r := newRig(t, revision(1, 2))
	a, b := newSpeaker("a", 1), newSpeaker("b", 2)
	a.join(r)
	b.join(r)
	hear := func(what string, s *speaker, rates, counts uint64) {
		t.Helper()
		var m *grlv1.Directive
		for _, m = range s.hear() {
		}
		if m.GetReportSequence() != rates || m.GetCountedSequence() != counts {
			t.Errorf("%s: contains the rates of report %d and the counts of %d, want %d and %d", what, m.GetReportSequence(), m.GetCountedSequence(), rates, counts)
		}
	}
	a.report(said{0, 100, law.Counts{Offered: 10}}) // a1
	b.report(said{0, 100, law.Counts{Offered: 10}}) // b1
	r.full()                                        // counts are still on their way
	r.direct(nil)
	hear("after the first reports, a", a, 1, 0)
	hear("after the first reports, b", b, 1, 0)

	a.event(saidRate(0, 5000)) // a2
	r.jumps()
	b.event(saidRate(0, 7000)) // b2, not sent yet
	r.pass(law.T)
	r.direct(nil)
	hear("after an event of a, a", a, 2, 0)
	hear("after an event of a, b", b, 1, 0)

	r.n.tick(r.now)
	r.n.tick(r.now)
	a.event(saidRate(0, 5100))                       // a3: the parent's next report has its rate
	a.report(said{0, 5100, law.Counts{Offered: 20}}) // a4: and its rate, not its counts
	r.full()
	r.pass(law.T)
	r.direct(nil)
	hear("after two ticks, a", a, 4, 1)
	hear("after two ticks, b", b, 2, 1)
	if got := a.confirmed.Message(true).GetOffered(); len(got) != 1 || got[0] != 10 {
		t.Errorf("a takes %v for confirmed, want 10", got)
	}
}

// A host whose report is in none of the sums, or too long ago, hears so: its
// rate is then that of a mean host.
func TestUnknownReportsAreNotNamed(t *testing.T) {
	r := newRig(t, revision(1, 1))
	a := newSpeaker("a", 1)
	a.join(r)
	a.report(said{0, 10, law.Counts{}})
	r.full()
	old := r.heard.sequence
	for range 100 { // jumps, of which the parent's directive knows none
		a.event(saidRate(0, 10))
		a.event(saidRate(0, 5000))
		r.jumps()
		a.event(saidRate(0, 10))
		r.jumps()
	}
	r.heard.sequence = old
	r.direct(nil)
	if m := a.hear(); m[0].GetReportSequence() != 0 {
		t.Errorf("the directive contains report %d, want none that is remembered", m[0].GetReportSequence())
	}
	b := newSpeaker("b", 2)
	b.join(r)
	b.report(said{0, 10, law.Counts{}})
	if m := b.hear(); m[0].GetReportSequence() != 0 {
		t.Errorf("the directive contains report %d of a host that joined after it", m[0].GetReportSequence())
	}
}
