package aggregator

import (
	"fmt"
	"math"
	"testing"

	"grl/limiter/law"
	"grl/proto/statefile"
)

// usually returns a rig in which four hosts have been offered 10 rps of pay/b0,
// and a decider left room for 60 of 100.
func usually(t tester) (*rig, []*speaker) {
	r := newRig(t, revision(1, 1))
	all := make([]*speaker, 4)
	for i := range all {
		all[i] = newSpeaker(fmt.Sprint("h", i), 1)
		all[i].join(r)
	}
	for range 10 {
		r.pass(law.T)
		for _, s := range all {
			s.report(said{0, 10, law.Counts{}})
		}
	}
	r.decide(7)
	return r, all
}

// decide has the controller say what holds at the rates it was told last.
func (r *rig) decide(sequence uint64) {
	r.t.Helper()
	r.full()
	rate := r.heard.rates[cellOf(0)]
	offered := rate.Offered.RPS()
	r.say(globalDecider, law.Stamp{Epoch: 1, Sequence: sequence}, statefile.Row{Cell: cellOf(0), Verdict: law.Verdict{
		Admit: law.Admit(offered, 100), Offered: offered, Hosts: float64(rate.Hosts), Excess: rate.Excess.RPS(),
	}})
}

func TestAnOutlierIsToldByItsClaim(t *testing.T) {
	r, all := usually(t)
	for _, s := range all {
		s.hear()
	}
	check := func(what string, s *speaker, admitted, claim float64) {
		t.Helper()
		if got := claim * min(1, float64(s.admits[cellOf(0)])); math.Abs(got-admitted) > 0.02*admitted {
			t.Errorf("%s: told to admit %.4g rps of %.4g, want %.4g", what, got, claim, admitted)
		}
	}
	if len(all[0].hear()) != 0 {
		t.Error("a host is told twice")
	}
	all[0].report(said{0, 1000, law.Counts{}})
	counted := r.n.sum.Rate(0).Offered.RPS() - 30
	if got := r.rps(0); got != counted+30 || counted > 40 {
		t.Errorf("%.4g rps are summed up, want %.4g", got, counted+30)
	}
	if m := all[0].hear(); len(m) != 0 {
		t.Errorf("told %v before the decider knows", m)
	}
	r.decide(8)
	for _, s := range all {
		s.hear()
	}
	check("once it is decided", all[0], 70, 1000)
	if v := all[0].verdicts[cellOf(0)]; v.Offered != 1000 || v.Hosts != 1 || v.Excess != 0 {
		t.Errorf("told %+v, want that it goes by its own rate", v)
	}
	check("the others", all[1], 10, 10)
	if got := r.heard.rates[cellOf(0)].Excess.RPS(); math.Abs(got-(1000-counted)) > 1 {
		t.Errorf("the parent hears of an excess of %.4g, want %.4g", got, 1000-counted)
	}

	if got := r.n.countOutliers(); got != 1 {
		t.Errorf("%d outliers, want 1", got)
	}
	if got := r.n.outliers(r.now); len(got) != 0 {
		t.Errorf("%v is shown at once", got)
	}
	r.pass(outlierAfter)
	if got := r.n.outliers(r.now); len(got) != 1 || got[0].node != "h0" || got[0].bucket != "pay/b0" {
		t.Errorf("%v is shown after a while, want h0", got)
	}
	if got := r.n.outliers(r.now); len(got) != 0 {
		t.Errorf("%v is shown again", got)
	}

	// It has less, then no more than is plausible.
	all[0].event(said{0, 500, law.Counts{}})
	r.decide(9)
	all[0].hear()
	check("with less", all[0], 70, 500)
	all[0].event(said{0, 15, law.Counts{}})
	r.decide(10)
	all[0].hear()
	check("with what is plausible", all[0], 15, 15)
	r.decide(11)
	if all[0].hear(); len(all[0].h.held) != 0 {
		t.Errorf("still told by its claim: %v", all[0].h.held)
	}
}

// A host that opens its stream anew is who it was; one that begins anew is a
// mean one.
func TestUsualSurvivesTheStream(t *testing.T) {
	r, all := usually(t)
	for i := range 600 { // 60 rps become usual
		r.pass(law.T)
		for _, s := range all[1:] {
			s.report(said{0, 10, law.Counts{}})
		}
		all[0].report(said{0, 10 + min(50, float64(i)/10), law.Counts{}})
	}
	counted := func(s *speaker) float64 {
		s.report(said{0, 90, law.Counts{}})
		return s.h.child.Rate(0).Offered.RPS()
	}
	if got := counted(all[0]); got != 90 {
		t.Fatalf("%.4g of 90 rps count where 60 are usual", got)
	}
	r.n.leave(r.now, all[0].h)
	all[0].join(r)
	if got := counted(all[0]); got != 90 {
		t.Errorf("%.4g of 90 rps count on the next stream, want all", got)
	}
	r.n.leave(r.now, all[0].h)
	again := newSpeaker("h0", 2)
	again.join(r)
	if got := counted(again); got > 35 {
		t.Errorf("%.4g of 90 rps count after a restart, want those of a host as the others", got)
	}
}
