package controller

import (
	"testing"
	"time"

	"grl/limiter/law"
	grlv1 "grl/proto/grl/v1"
)

// rates says rates only, as a child does at once.
func (s *speaker) rates(rows ...said) {
	s.r.t.Helper()
	for i := range rows {
		rows[i].counts = law.Counts{}
	}
	m := s.message(rows...)
	m.RatesOnly = true
	if taken, err := s.r.n.report(s.r.now, s.c, m); err != nil || !taken {
		s.r.t.Fatalf("report %d: taken %v, error %v", s.sequence, taken, err)
	}
}

// Rates said between two periods move the sum, renew the child, and leave what
// was counted, and over which span, alone.
func TestRatesOnly(t *testing.T) {
	r := newRig(t, configuration(1, 2))
	r.warm()
	s := newSpeaker("a", "z1", 1)
	s.join(r)
	n := law.Counts{Offered: 1000, Dropped: 10}
	s.report(said{cellOf(0), 100, n})
	h := make(recorded)
	h.take(r, true)
	r.pass(law.T - 50*time.Millisecond)
	s.rates(said{cellOf(0), 4000, n}, said{cellOf(1), 7, n}) // one of them new
	if got := r.rps(cellOf(0)); got != 4000 {
		t.Errorf("%v rps after rates were said, want 4000", got)
	}
	if i, _ := r.n.cells.Find(cellOf(0)); r.n.flows[i].sum(r.n.ticks) != n {
		t.Errorf("counted %+v, want %+v as before", r.n.flows[i].sum(r.n.ticks), n)
	}
	if h.take(r, true); h[cellOf(0)].offered != 1000 || h[cellOf(1)].offered != 0 {
		t.Errorf("recorded %+v, want what was counted before", h)
	}
	r.n.decide(r.now)
	m := s.hear()
	if len(m) != 1 || m[0].GetReportSequence() != 2 || m[0].GetCountedSequence() != 1 {
		t.Fatalf("heard %v, want that it contains the rates of report 2 and the counts of report 1", m)
	}
	// The counts are those of a whole T, although the child was heard 50 ms ago.
	r.pass(50 * time.Millisecond)
	n.Offered += 200
	s.report(said{cellOf(0), 4000, n})
	clear(h)
	if h.take(r, true); h[cellOf(0)].offered != 200 || h[cellOf(0)].highest > 200 || h[cellOf(0)].highest < 100 {
		t.Errorf("recorded %+v, want 200 over a second", h[cellOf(0)])
	}
	r.n.renew(r.now)
	if m := s.hear(); len(m) != 1 || m[0].GetCountedSequence() != 3 {
		t.Errorf("heard %v, want that the counts of report 3 are contained", m)
	}
}

// A directive contains what had been received when it was decided, not what
// came while it was under way.
func TestDirectiveContainsWhatWasReceived(t *testing.T) {
	r := newRig(t, configuration(1, 1))
	r.warm()
	a, b := newSpeaker("a", "z1", 1), newSpeaker("b", "z2", 2)
	a.join(r)
	b.join(r)
	a.report(said{cellOf(0), 1500, law.Counts{}})
	b.report(said{cellOf(0), 500, law.Counts{}})
	r.n.decide(r.now)
	a.rates(said{cellOf(0), 9000, law.Counts{}})
	for s, want := range map[*speaker]uint64{a: 1, b: 1} {
		if m := s.hear(); len(m) != 1 || m[0].GetReportSequence() != want {
			t.Errorf("%s heard %v, want that it contains report %d", s.hello.GetNode(), m, want)
		}
	}
}

// What is hot is said, and said again when it no longer is.
func TestHotIsPublished(t *testing.T) {
	r := newRig(t, configuration(1, 1))
	r.warm()
	s := newSpeaker("a", "z1", 1)
	s.join(r)
	hot := func(all []*grlv1.Directive) (said, hot bool) {
		for _, m := range all {
			said, hot = said || len(m.GetCell()) > 0, hot || len(m.GetHot()) > 0
		}
		return said, hot
	}
	s.report(said{cellOf(0), 500, law.Counts{}})
	r.n.renew(r.now)
	if _, is := hot(s.hear()); is {
		t.Error("hot before anything moved")
	}
	s.rates(said{cellOf(0), 3000, law.Counts{}})
	r.n.decide(r.now)
	if _, is := hot(s.hear()); !is {
		t.Error("not hot after a jump above the limit")
	}
	for range law.HotFor / law.T {
		r.pass(law.T)
		s.report()
		r.n.renew(r.now)
	}
	if told, is := hot(s.hear()); !told || is {
		t.Errorf("told %v, hot %v after %v without a move, want told that it no longer is", told, is, law.HotFor)
	}
}
