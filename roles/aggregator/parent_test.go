package aggregator

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"grl/limiter/law"
	grlv1 "grl/proto/grl/v1"
	"grl/proto/wire"
)

// The band delays, it never hides: what jumps goes at once, and at each T all
// that differs by more than a thousandth.
func TestBandsHideNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const cells = 4
		r := newRig(t, revision(1, cells))
		s := newSpeaker("a", 1)
		s.join(r)
		l := r.heard
		rates := make([]float64, cells)
		counts := make([]law.Counts, cells)
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			cell := rapid.IntRange(0, cells-1).Draw(t, "cell")
			if rapid.Bool().Draw(t, "drifts") {
				rates[cell] *= 1 + rapid.Float64Range(-0.01, 0.01).Draw(t, "by")
			} else {
				rates[cell] = rapid.Float64Range(0, 1e5).Draw(t, "rps")
			}
			counts[cell].Offered += rapid.Uint64Range(0, 100).Draw(t, "offered")
			s.report(said{cell, rates[cell], counts[cell]})
			if rapid.Bool().Draw(t, "at once") {
				r.jumps()
				got := l.rates[cellOf(cell)].Offered.RPS()
				if want := r.rps(cell); law.RateMoved(want, got) == law.Jumps {
					t.Fatalf("cell %d jumped to %v, and the parent heard %v", cell, want, got)
				}
				continue
			}
			r.up()
			for cell := range cells {
				got, want := l.rates[cellOf(cell)].Offered.RPS(), r.rps(cell)
				if math.Abs(got-want) > 0.001*want {
					t.Fatalf("cell %d: the parent heard %v rps at the last T, it is %v", cell, got, want)
				}
				if l.counts[cellOf(cell)] != r.counts(cell) {
					t.Fatalf("cell %d: the parent heard %+v, it is %+v", cell, l.counts[cellOf(cell)], r.counts(cell))
				}
			}
			if m := r.full(); len(m) != 1 || len(m[0].GetCell()) != 0 {
				t.Fatalf("said again: %v", m)
			}
		}
	})
}

func TestFullReportsAreSplit(t *testing.T) {
	const cells = 2*wire.MaxNew + 3
	r := newRig(t, revision(1, cells))
	s := newSpeaker("a", 1)
	s.join(r)
	for from := 0; from < cells; from += wire.MaxNew {
		var rows []said
		for cell := from; cell < min(from+wire.MaxNew, cells); cell++ {
			rows = append(rows, said{cell, float64(cell + 1), law.Counts{Offered: 1}})
		}
		s.report(rows...)
	}
	r.up()
	l := r.heard
	if len(l.rates) != cells || l.sequence != 3 {
		t.Errorf("the parent heard of %d cells in %d reports, want %d in 3", len(l.rates), l.sequence, cells)
	}
}

// What a directive says it contains is told to each host as the own report.
func TestReportSequencesAreMapped(t *testing.T) {
	r := newRig(t, revision(1, 1))
	a, b := newSpeaker("a", 1), newSpeaker("b", 2)
	a.join(r)
	b.join(r)
	for range 5 {
		a.report(said{0, 10, law.Counts{}})
	}
	b.report()
	r.up() // report 1 contains 5 of a and 1 of b
	for range 4 {
		a.report()
	}
	r.direct(nil)
	if m := a.hear(); m[0].GetReportSequence() != 5 {
		t.Errorf("a heard of its report %d, want 5", m[0].GetReportSequence())
	}
	if m := b.hear(); m[0].GetReportSequence() != 1 {
		t.Errorf("b heard of its report %d, want 1", m[0].GetReportSequence())
	}
	for range 100 {
		a.report() // those before are not remembered
	}
	r.pass(law.T)
	r.direct(nil)
	if m := a.hear(); m[0].GetReportSequence() != 0 {
		t.Errorf("a heard of its report %d, which is long forgotten, want none", m[0].GetReportSequence())
	}
	r.up()
	r.direct(nil)
	if m := a.hear(); m[0].GetReportSequence() != 109 {
		t.Errorf("a heard of its report %d, want 109", m[0].GetReportSequence())
	}
}

func TestParentReopens(t *testing.T) {
	r := newRig(t, revision(1, 2))
	s := newSpeaker("a", 1)
	s.join(r)
	s.report(said{0, 10, law.Counts{Offered: 5}}, said{1, 20, law.Counts{Offered: 6}})
	r.up()
	r.direct(nil) // confirms
	hello := r.n.hello(r.p, "a", "v", 1)
	before, err := wire.ConfirmedCounts(hello.GetConfirmed())
	if err != nil {
		t.Fatal(err)
	}
	if before[cellOf(0)].Offered != 5 || before[cellOf(1)].Offered != 6 {
		t.Errorf("says that %v is confirmed, want 5 and 6", before)
	}
	r.heard = newListener()
	r.full()
	l := r.heard
	if len(l.rates) != 2 || l.counts[cellOf(0)].Offered != 5 {
		t.Errorf("a new stream begins with %v, want all", l.rates)
	}
}

func TestDetailsAddUp(t *testing.T) {
	var d details
	for host := range 3 {
		d.add(&grlv1.Detail{
			Buckets: []*grlv1.BucketCallers{{
				Bucket:  "pay/each",
				Callers: []*grlv1.CallerCounts{{Caller: "web", Offered: 10, Dropped: 2, ShadowDropped: 1}, {Caller: fmt.Sprint("h", host), Offered: 1}},
				Rest:    &grlv1.CallerCounts{Offered: 5},
			}},
			Services: []*grlv1.ServicePairs{{Service: "new", RestOffered: 4, Pairs: []*grlv1.PairCounts{{Caller: "web", Procedure: "p", Offered: 3}}}},
		})
	}
	m := d.take(detailEvery)
	b := m.GetBuckets()[0]
	if got := b.GetCallers()[0]; got.GetCaller() != "web" || got.GetOffered() != 30 || got.GetDropped() != 6 || got.GetShadowDropped() != 3 {
		t.Errorf("largest caller %v", got)
	}
	if len(b.GetCallers()) != 4 || b.GetRest().GetOffered() != 15 {
		t.Errorf("callers %v, rest %v", b.GetCallers(), b.GetRest())
	}
	if s := m.GetServices()[0]; s.GetPairs()[0].GetOffered() != 9 || s.GetRestOffered() != 12 {
		t.Errorf("pairs %v", s)
	}
	if d.take(detailEvery) != nil {
		t.Error("told twice")
	}
}

func TestDetailsKeepTheLargest(t *testing.T) {
	var d details
	total := uint64(0)
	for i := range uint64(200) {
		d.add(&grlv1.Detail{Buckets: []*grlv1.BucketCallers{{Bucket: "b", Callers: []*grlv1.CallerCounts{{Caller: fmt.Sprint(i), Offered: i}}}}})
		total += i
	}
	b := d.take(detailEvery).GetBuckets()[0]
	sum := b.GetRest().GetOffered()
	for i, c := range b.GetCallers() {
		if want := 199 - uint64(i); c.GetOffered() != want {
			t.Fatalf("caller %d: %v, want %d", i, c, want)
		}
		sum += c.GetOffered()
	}
	if len(b.GetCallers()) != detailTop || sum != total {
		t.Errorf("%d callers, %d in all, want %d and %d", len(b.GetCallers()), sum, detailTop, total)
	}
}

// Fault 42: callers and procedures without end, and names as long as they may
// be; nothing is lost from the sums, and the parent takes the message.
func TestDetailsAreBounded(t *testing.T) {
	for _, width := range []int{1, detailBytes - 5, 2 * detailBytes} {
		var d details
		const buckets, callers = 50, 1000
		for b := range buckets {
			m := &grlv1.BucketCallers{Bucket: fmt.Sprint("b", b)}
			for c := range callers {
				m.Callers = append(m.Callers, &grlv1.CallerCounts{Caller: fmt.Sprintf("%0*d", width, c), Offered: 1 << 40})
			}
			d.add(&grlv1.Detail{Buckets: []*grlv1.BucketCallers{m}})
		}
		for i := range 2 * detailNames {
			pairs := []*grlv1.PairCounts{{Caller: fmt.Sprintf("%0*d", width, i), Procedure: fmt.Sprintf("%0*d", width, i), Offered: 1 << 40}}
			d.add(&grlv1.Detail{Services: []*grlv1.ServicePairs{{Service: fmt.Sprintf("%0*d", width, i), Pairs: pairs}}})
		}
		m := d.take(time.Second)
		if size := proto.Size(m); size > wire.MaxDown {
			t.Errorf("names of %d bytes: a message of %d bytes, the parent takes %d", width, size, wire.MaxDown)
		}
		for _, b := range m.GetBuckets() {
			sum := b.GetRest().GetOffered()
			for _, c := range b.GetCallers() {
				sum += c.GetOffered()
			}
			if sum != callers<<40 {
				t.Errorf("names of %d bytes: %s: %d in all, want %d", width, b.GetBucket(), sum, callers<<40)
			}
		}
	}
}

// As many hosts as there may be, with names as long as they may be, do not make
// a report that the parent refuses.
func TestRosterIsBounded(t *testing.T) {
	r := newRig(t, revision(1, 1))
	long := strings.Repeat("n", 250)
	for i := range 4000 {
		h := newSpeaker(fmt.Sprint(long, i), uint64(i))
		h.hello.Version = long
		h.join(r)
		m := h.message()
		m.RefusedRevision, m.RefusedReason = 1, strings.Repeat("r", 10*wire.MaxReason)
		if _, err := r.n.report(r.now, h.h, m); err != nil {
			t.Fatal(err)
		}
	}
	m := r.full()[0]
	if size := proto.Size(m); size > rosterBytes || len(m.GetNodes()) < 1000 {
		t.Errorf("%d hosts in %d bytes, want many in at most %d", len(m.GetNodes()), size, rosterBytes)
	}
}
