package aggregator

import (
	"log/slog"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"pgregory.net/rapid"

	"grl/limiter"
	"grl/limiter/law"
	grlv1 "grl/proto/grl/v1"
	"grl/proto/statefile"
)

// row is what a parent decided of a cell: so much was offered to the whole
// instance, of which share came from this aggregator.
func row(id limiter.CellID, limit, offered, share float64) statefile.Row {
	return statefile.Row{Cell: id, Verdict: law.Verdict{Admit: law.Admit(offered, limit), Offered: offered, Hosts: 4}, Share: share}
}

// seq returns the stamp of a controller's directive.
func seq(n uint64) law.Stamp { return law.Stamp{Epoch: 1, Sequence: n} }

// fall passes time until the deciders are just silent, while the hosts report
// on.
func (r *rig) fall(hosts ...*speaker) {
	for range 2 {
		r.pass(law.T)
		r.beat(hosts...)
	}
	r.pass(law.T/2 + 1)
}

// beat is what happens at each T.
func (r *rig) beat(hosts ...*speaker) {
	for _, s := range hosts {
		s.report()
	}
	r.n.silence(r.now)
	r.n.tick(r.now)
	r.n.decideAlone(r.now, true)
	for _, s := range hosts {
		s.hear()
	}
}

// ready returns a rig whose sums are complete, with one host that offers so
// much to cell 0.
func ready(t tester, c *limiter.Configuration, rps float64) (*rig, *speaker) {
	r := newRig(t, c)
	return r, r.begin(rps)
}

// begin has one host join that offers so much to cell 0, and passes time until
// the parent may hear of it.
func (r *rig) begin(rps float64) *speaker {
	s := newSpeaker("a", 1)
	s.join(r)
	s.report(said{0, rps, law.Counts{}})
	r.pass(law.Handover)
	s.report()
	r.n.tick(r.now)
	r.n.tick(r.now)
	r.full()
	return s
}

// 5.6: while the controller is silent, the zone keeps its last share of the
// limit, with its own sums.
func TestStandsInForASilentController(t *testing.T) {
	r, s := ready(t, revision(1, 1), 200) // of a limit of 100
	r.say(globalDecider, seq(7), row(cellOf(0), 100, 400, 0.5))
	s.hear()
	for range 2 {
		r.pass(law.T)
		r.beat(s)
	}
	r.pass(law.T / 2)
	if r.n.decideAlone(r.now, true) || len(s.hear()) != 0 {
		t.Fatal("decides alone exactly 2.5 T after the last directive, want after more")
	}
	r.pass(1)
	s.event(said{cell: 0, rps: 250})
	if !r.n.decideAlone(r.now, false) {
		t.Fatal("does not decide alone 2.5 T after the last directive")
	}
	heard := s.hear()
	if len(heard) != 1 || s.taken[globalDecider] != (law.Stamp{Epoch: 1, Sequence: 7, Step: 1}) {
		t.Fatalf("heard %v, want one directive of step 1", heard)
	}
	want := law.Verdict{Admit: float64(float32(0.5 * 100 / 250)), Offered: 250, Hosts: 1}
	got := s.verdicts[cellOf(0)]
	if got.Hot = false; got != want {
		t.Errorf("heard %+v, want %+v", got, want)
	}
	if got := heard[0].GetReportSequence(); got != s.sequence {
		t.Errorf("the directive contains the rates of report %d, want %d", got, s.sequence)
	}
	if got := heard[0].GetCountedSequence(); got != 2 { // all that came since stays with the host
		t.Errorf("the directive confirms the counts of report %d, want 2, of which the parent said so", got)
	}
}

// As a controller does: at once what jumped by 2 %, at each T the rest, and an
// empty directive renews.
func TestBandsAlone(t *testing.T) {
	r, s := ready(t, revision(1, 2), 20_000)
	r.say(globalDecider, seq(1), row(cellOf(0), 100, 40_000, 0.5), row(cellOf(1), 100, 10, 0.5))
	r.fall(s)
	r.n.decideAlone(r.now, true)
	s.hear()
	turn := func(rps float64, full bool) []*grlv1.Directive {
		s.event(said{cell: 0, rps: rps})
		r.pass(law.PublishGap)
		r.n.decideAlone(r.now, full)
		return s.hear()
	}
	if heard := turn(20_100, false); len(heard) != 0 { // a third of the deviations that make a jump
		t.Errorf("heard %v at once of a drift", heard)
	}
	r.pass(law.T)
	if heard := turn(20_100, true); len(heard) != 1 || len(heard[0].GetCell()) != 1 {
		t.Errorf("heard %v at T of a drift, want the one cell that did", heard)
	}
	r.pass(law.T)
	if heard := turn(20_100, true); len(heard) != 1 || heard[0].GetStep() != 3 {
		t.Errorf("heard %v at T, want a directive that renews", heard)
	}
	if heard := turn(40_000, false); len(heard) != 1 || len(heard[0].GetCell()) != 1 {
		t.Errorf("heard %v at once of a jump, want the one cell that did", heard)
	}
	if got, want := s.admits[cellOf(0)], float32(50.0/40_000); got != want {
		t.Errorf("admits %v, want %v", got, want)
	}
}

// Hot is carried down, and a cell whose flag changed is carried although its
// admit did not move.
func TestHotIsCarriedDown(t *testing.T) {
	r, s := ready(t, revision(1, 1), 10)
	at := row(cellOf(0), 100, 50, 1)
	for i, hot := range []bool{true, false, true} {
		at.Verdict.Hot = hot
		r.say(globalDecider, seq(uint64(i)+1), at)
		if s.hear(); s.verdicts[cellOf(0)].Hot != hot {
			t.Errorf("directive %d: hot %v, want %v", i+1, s.verdicts[cellOf(0)].Hot, hot)
		}
	}
}

func TestAutonomyEnds(t *testing.T) {
	for _, autonomy := range []time.Duration{0, 10 * law.T, law.Autonomy} {
		r, s := ready(t, revision(1, 1), 200)
		r.n.autonomy = autonomy
		r.say(globalDecider, seq(1), row(cellOf(0), 100, 400, 0.5))
		s.hear()
		last, heard := r.now, r.now
		for began := r.now; r.now.Sub(began) < time.Minute; r.pass(law.Delta) {
			s.report()
			if r.n.decideAlone(r.now, true) {
				last = r.now
			}
			if len(s.hear()) > 0 {
				heard = r.now
			}
			if age := r.now.Sub(began); age <= law.DeciderSilent && r.n.standing {
				t.Fatalf("stands in after %v", age)
			}
		}
		want := law.DeciderSilent + autonomy
		if autonomy == 0 {
			want = 0
		}
		if got := last.Sub(r.now.Add(-time.Minute)); got != want {
			t.Errorf("autonomy of %v: the last directive came %v after the controller's, want %v", autonomy, got, want)
		}
		if early := last.Sub(heard); early < 0 || early >= law.RenewEvery {
			t.Errorf("autonomy of %v: a host heard the last one %v before, want less than %v", autonomy, early, law.RenewEvery)
		}
		late := newSpeaker("late", 2)
		late.join(r)
		if heard := late.hear(); len(heard) != 0 {
			t.Errorf("autonomy of %v: a new host hears %v when it is over", autonomy, heard)
		}
	}
}

func TestPart(t *testing.T) {
	zones := []*grlv1.ZoneSize{
		{Zone: "z1", Region: "r1", Aggregators: 2},
		{Zone: "z2", Region: "r1", Aggregators: 1},
		{Zone: "z1", Region: "r2", Aggregators: 5}, // of the same name, elsewhere
	}
	lone := []*grlv1.ZoneSize{{Zone: "z1", Region: "r1", Aggregators: 1}, {Zone: "z2", Region: "r1", Aggregators: 1}}
	for _, tt := range []struct {
		name  string
		zones []*grlv1.ZoneSize
		scope limiter.Scope
		share float64
		want  float64
	}{
		{"the last share", zones, limiter.Global, 0.7, 0.7},
		{"one of all in the fleet", zones, limiter.Global, 0, 1.0 / 8},
		{"one of those in the region", zones, limiter.Region, 0, 1.0 / 3},
		{"one of those in the zone", zones, limiter.Zone, 0, 1.0 / 2},
		{"the last share of the zone", zones, limiter.Zone, 0.4, 0.4},
		{"the only one in the zone", lone, limiter.Zone, 0.4, 1},
		{"the only one in the zone, a share of the region", lone, limiter.Region, 0.4, 0.4},
		{"nothing is known", nil, limiter.Global, 0, 1},
	} {
		r := newRig(t, nil)
		r.n.zones = tt.zones
		p := r.n.part(&limiter.Bucket{Scope: tt.scope}, &cellState{share: tt.share})
		got := p.Share
		if got == 0 {
			got = p.Even
		}
		if math.Abs(got-tt.want) > 1e-12 {
			t.Errorf("%s: part of the limit %v, want %v", tt.name, got, tt.want)
		}
	}
}

// Fail open: nothing is decided in place of a decider that never spoke.
func TestNobodyStandsInForAnUnknownDecider(t *testing.T) {
	r, s := ready(t, revision(1, 1), 200)
	r.pass(10 * law.T)
	s.report()
	if r.n.decideAlone(r.now, true) || len(s.hear()) != 0 {
		t.Errorf("heard %v, no controller ever spoke", s.admits)
	}
}

// A sum of a few of the hosts would let too much in.
func TestPartialSumsDecideNothing(t *testing.T) {
	r := newRig(t, revision(1, 1))
	r.say(globalDecider, seq(1), row(cellOf(0), 100, 400, 0.5))
	r.pass(law.DeciderSilent + 1)
	s := newSpeaker("a", 1)
	s.join(r)
	s.report(said{0, 200, law.Counts{}})
	r.pass(law.Handover - 1)
	if r.n.decideAlone(r.now, true) {
		t.Error("decides alone before its hosts had time to find it")
	}
	r.pass(1)
	if !r.n.decideAlone(r.now, true) {
		t.Error("does not decide alone 1.2 T after its first host")
	}
}

// Fault 10: a node that stood still has to wait for its hosts again, and then
// for their sums.
func TestHungAggregatorDecidesNothing(t *testing.T) {
	r, s := ready(t, revision(1, 1), 200)
	r.say(globalDecider, seq(1), row(cellOf(0), 100, 400, 0.5))
	s.hear()
	r.fall(s)
	r.n.decideAlone(r.now, true)
	s.hear()
	r.pass(3 * law.T)
	r.n.empty(r.now)
	if len(r.n.hosts) != 0 {
		t.Errorf("%d hosts still there", len(r.n.hosts))
	}
	s.join(r)
	s.report(saidRate(0, 20)) // the first of many
	if r.n.decideAlone(r.now, true) || len(s.hear()) != 0 {
		t.Error("decides alone while its hosts come back")
	}
	r.pass(law.Handover)
	s.report(saidRate(0, 200))
	if r.n.decideAlone(r.now, true); len(s.hear()) != 1 || s.admits[cellOf(0)] != 0.25 {
		t.Errorf("admits %v when its hosts are back, want 0.25", s.admits[cellOf(0)])
	}
}

// What hosts count while no parent listens goes up when one does.
func TestCountsOfAnOutageAreNotLost(t *testing.T) {
	r, s := ready(t, revision(1, 1), 200)
	r.say(globalDecider, seq(1), row(cellOf(0), 100, 400, 0.5))
	s.hear()
	r.n.parents = nil
	confirmed := s.confirmed.Message(true).GetOffered()
	total := uint64(0)
	for range 40 {
		r.pass(law.T)
		total += 200
		s.report(said{0, 200, law.Counts{Offered: total}})
		r.n.tick(r.now)
		r.n.decideAlone(r.now, true)
		s.hear()
	}
	if got := s.confirmed.Message(true).GetOffered(); len(got) != len(confirmed) {
		t.Errorf("the host takes %v for confirmed, that no parent heard", got)
	}
	r.n.hello(r.p, "a", "", 1) // a new stream
	r.n.parents = append(r.n.parents, r.p)
	r.heard = newListener()
	r.up()
	if got := r.heard.counts[cellOf(0)].Offered; got != total {
		t.Errorf("the parent hears of %d requests, want %d", got, total)
	}
	r.number = make(map[limiter.CellID]uint32)
	r.say(globalDecider, seq(2))
	s.hear()
	if got := s.confirmed.Message(true).GetOffered(); len(got) != 1 || got[0] != total {
		t.Errorf("the host takes %v for confirmed, want %d", got, total)
	}
}

// regional returns a configuration with a global, a regional and a zonal
// bucket, each of 100 requests a second, and one whose callers share it.
func regional() *limiter.Configuration {
	c := revision(1, 1)
	for name, scope := range map[string]limiter.Scope{"region": limiter.Region, "zone": limiter.Zone} {
		c.Services[0].Buckets = append(c.Services[0].Buckets, limiter.Bucket{
			Service: "pay", Name: name, LimitRPS: 100, Scope: scope, Match: limiter.Match{Procedure: limiter.Pattern(name)},
		})
	}
	c.Services[0].Buckets = append(c.Services[0].Buckets, limiter.Bucket{
		Service: "pay", Name: "fair", LimitRPS: 100, Share: limiter.MaxMin, Match: limiter.Match{Procedure: "fair"},
	})
	return c
}

// The deciders of the fleet and of the region are silent or not, each for
// itself.
func TestDecidersAreSilentApart(t *testing.T) {
	inRegion := limiter.CellID{Bucket: "pay/region", Instance: "r1"}
	r, s := ready(t, regional(), 200)
	r.say(globalDecider, seq(1), row(cellOf(0), 100, 400, 0.5))
	r.say("r1", seq(1), row(inRegion, 100, 400, 0.5))
	s.hear()
	for i := range uint64(5) {
		r.pass(law.T)
		s.report()
		r.say("r1", seq(2+i))
		r.n.decideAlone(r.now, true)
		s.hear()
	}
	if got := s.taken[globalDecider]; got.Step == 0 {
		t.Errorf("the global decider is silent and its last directive is %+v, want one of a step", got)
	}
	if got := s.taken["r1"]; got != seq(6) {
		t.Errorf("the region's decider speaks and its last directive is %+v", got)
	}
	if got := s.admits[inRegion]; got != 0.25 {
		t.Errorf("cell of the region: admits %v, want what its decider said", got)
	}
}

// A caller that comes up meanwhile has a cell that its controller knows nothing
// of: the node may admit an equal part.
func TestNewCellsAlone(t *testing.T) {
	c := regional()
	r, s := ready(t, c, 200)
	r.n.zones = []*grlv1.ZoneSize{{Zone: "z1", Region: "r1", Aggregators: 4}}
	r.say(globalDecider, seq(1), row(cellOf(0), 100, 400, 0.5))
	r.fall(s)
	web := limiter.CellID{Bucket: "pay/each", Caller: "web"}
	s.sequence++
	m := &grlv1.Report{Sequence: s.sequence, RatesOnly: true}
	appendRate(s, m, 10, web, 50)
	appendRate(s, m, 11, limiter.CellID{Bucket: "pay/zone", Instance: "z1"}, 500)
	if _, err := r.n.report(r.now, s.h, m); err != nil {
		t.Fatal(err)
	}
	r.n.decideAlone(r.now, true)
	s.hear()
	if got, want := s.admits[web], float32(10.0/4/50); got != want {
		t.Errorf("admits %v of a new caller, want %v", got, want)
	}
	if got, ok := s.admits[limiter.CellID{Bucket: "pay/zone", Instance: "z1"}]; ok {
		t.Errorf("admits %v of a cell whose decider never spoke", got)
	}
}

// What a configuration changes meanwhile holds at once.
func TestConfigurationChangesAlone(t *testing.T) {
	r, s := ready(t, revision(1, 2), 200)
	r.say(globalDecider, seq(1), row(cellOf(0), 100, 400, 0.5), row(cellOf(1), 100, 400, 0.5))
	r.fall(s)
	r.n.decideAlone(r.now, true)
	c := revision(2, 1) // b1 goes
	c.Services[0].Buckets[0].LimitRPS = 40
	r.n.install(c)
	r.pass(law.T)
	s.report()
	r.n.decideAlone(r.now, true)
	s.hear()
	if got, want := s.admits[cellOf(0)], float32(0.5*40/200); got != want {
		t.Errorf("admits %v, want %v of the new limit", got, want)
	}
}

// Callers that share a limit share the node's part of it.
func TestSharedLimitAlone(t *testing.T) {
	callers := map[string]float64{"a": 10, "b": 30, "c": 400}
	id := func(caller string) limiter.CellID { return limiter.CellID{Bucket: "pay/fair", Caller: caller} }
	r, s := ready(t, regional(), 1)
	var rows []statefile.Row
	for caller, rps := range callers {
		rows = append(rows, row(id(caller), 100, 2*rps, 0.5))
	}
	r.say(globalDecider, seq(1), rows...)
	s.sequence++
	m := &grlv1.Report{Sequence: s.sequence, RatesOnly: true}
	for i, caller := range []string{"a", "b", "c"} {
		appendRate(s, m, 10+i, id(caller), callers[caller])
	}
	if _, err := r.n.report(r.now, s.h, m); err != nil {
		t.Fatal(err)
	}
	r.fall(s)
	r.n.decideAlone(r.now, true)
	s.hear()
	for caller, want := range map[string]float64{"a": 10, "b": 20, "c": 20} { // of 50
		if got := float64(s.admits[id(caller)]) * callers[caller]; math.Abs(got-want) > 0.01 {
			t.Errorf("caller %s is admitted %v rps, want %v", caller, got, want)
		}
	}
}

// Its word wins: all that was told meanwhile is told anew as the parent said it
// last, under stamps that no host refuses.
func TestParentIsBack(t *testing.T) {
	for _, tt := range []struct {
		name  string
		stamp law.Stamp
		want  law.Stamp // that hosts hear
	}{
		{"with its next directive", law.Stamp{Epoch: 1, Sequence: 8}, law.Stamp{Epoch: 1, Sequence: 8}},
		{"a new one", law.Stamp{Epoch: 2, Sequence: 1}, law.Stamp{Epoch: 2, Sequence: 1}},
		{"with a step it took alone", law.Stamp{Epoch: 1, Sequence: 7, Step: 5}, law.Stamp{Epoch: 1, Sequence: 7, Step: 12}},
		{"with its last directive", law.Stamp{Epoch: 1, Sequence: 7, Step: 3}, law.Stamp{Epoch: 1, Sequence: 7, Step: 12}},
		{"with a step below its last, after a restart", law.Stamp{Epoch: 1, Sequence: 7, Step: 1}, law.Stamp{Epoch: 1, Sequence: 7, Step: 12}},
	} {
		r, s := ready(t, revision(1, 2), 200)
		r.say(globalDecider, law.Stamp{Epoch: 1, Sequence: 7, Step: 3}, row(cellOf(0), 100, 400, 0.5), row(cellOf(1), 100, 200, 0.5))
		s.hear()
		for range 10 {
			r.pass(law.T)
			r.beat(s)
		}
		if got, want := s.admits[cellOf(0)], float32(0.25); got != want {
			t.Fatalf("admits %v alone, want %v", got, want)
		}
		if !r.say(globalDecider, tt.stamp, row(cellOf(1), 100, 500, 0.5)) {
			t.Errorf("%s: not taken", tt.name)
		}
		s.hear()
		if got := s.taken[globalDecider]; got != tt.want || s.refused != 0 {
			t.Errorf("%s: hosts took %+v and refused %d, want %+v", tt.name, got, s.refused, tt.want)
		}
		if got := s.verdicts[cellOf(0)]; got.Offered != 400 {
			t.Errorf("%s: hosts know %+v of a cell that the parent says no more of, want what it said last", tt.name, got)
		}
		if got := s.admits[cellOf(1)]; got != 0.2 {
			t.Errorf("%s: admits %v, want 0.2", tt.name, got)
		}
		if r.say(globalDecider, law.Stamp{Epoch: 1, Sequence: 6, Step: 99}, row(cellOf(1), 100, 500, 0.5)) {
			t.Errorf("%s: a paused leader is taken", tt.name)
		}
	}
}

// A host whose aggregator is lost while both are alone comes with a higher step.
func TestHostOfAnotherAggregatorThatIsAlone(t *testing.T) {
	r, s := ready(t, revision(1, 1), 200)
	r.say(globalDecider, seq(7), row(cellOf(0), 100, 400, 0.5))
	r.fall(s)
	r.n.decideAlone(r.now, true)
	other := newSpeaker("b", 2)
	other.taken[globalDecider] = law.Stamp{Epoch: 1, Sequence: 8, Step: 40}
	other.join(r)
	other.hear() // refused: the node does not know yet
	other.report(said{0, 100, law.Counts{}})
	other.refused = 0
	for step := uint64(41); step < 45; step++ {
		r.pass(law.T)
		r.beat(s, other)
		if got := other.taken[globalDecider]; got != (law.Stamp{Epoch: 1, Sequence: 8, Step: step}) || other.refused != 0 {
			t.Fatalf("took %+v and refused %d, want step %d", got, other.refused, step)
		}
	}
	if got := s.taken[globalDecider]; got.Sequence != 7 {
		t.Errorf("another host took %+v because of it", got)
	}
	// It does not speak for a controller that only the host has heard.
	other.taken[globalDecider] = law.Stamp{Epoch: 2, Sequence: 1}
	r.pass(law.T)
	other.report()
	r.beat(s, other)
	if got := other.taken[globalDecider]; got.Epoch != 2 || got.Step != 0 {
		t.Errorf("a host of a higher epoch took %+v", got)
	}
}

// I1, I7: whatever parents say and in which order they are silent, and however
// often the aggregator restarts, hosts hear of no stamp older than the one
// before, and what a parent said last is what they know when it speaks.
func TestStampsOnlyRise(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const cells = 2
		r, s := ready(t, revision(1, cells), 200)
		said := make(map[limiter.CellID]float32)
		last := seq(1)
		spoken := false
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			switch rapid.SampledFrom([]string{"say", "say", "pass", "pass", "fall", "restart"}).Draw(t, "what") {
			case "say":
				last.Sequence += rapid.Uint64Range(0, 1).Draw(t, "sequences")
				last.Step = rapid.Uint64Range(0, 3).Draw(t, "step")
				cell := cellOf(rapid.IntRange(0, cells-1).Draw(t, "cell"))
				offered := float64(rapid.IntRange(50, 1000).Draw(t, "offered"))
				if r.say(globalDecider, last, row(cell, 100, offered, 0.5)) {
					said[cell] = float32(law.Admit(offered, 100))
					s.hear()
					for id, want := range said {
						if s.admits[id] != want {
							t.Fatalf("host knows %v of %v, the parent said %v", s.admits[id], id, want)
						}
					}
					spoken = true
				}
			case "pass":
				r.pass(law.T)
				r.beat(s)
			case "fall":
				r.fall(s)
				r.beat(s)
			case "restart":
				restarted := newRig(t, nil)
				restarted.now = r.now
				state, _ := r.n.save(r.now)
				if state.Configuration == nil { // nothing new since
					r.n.saved = saved{}
					state, _ = r.n.save(r.now)
				}
				restarted.resume(r, state)
				r = restarted
				s.join(r)
				s.report(saidRate(0, 200))
				r.pass(law.Handover)
				r.beat(s)
				s.refused = 0 // the node had not heard of its step
			}
			if s.refused != 0 {
				t.Fatalf("the host refused %d directives as old; it took %+v", s.refused, s.taken)
			}
			if !spoken && s.taken[globalDecider] != (law.Stamp{}) {
				t.Fatalf("hosts took %+v, no controller ever spoke", s.taken)
			}
		}
	})
}

func saidRate(cell int, rps float64) said { return said{cell: cell, rps: rps} }

// Directives alone come together, 20 ms after what moved first, at least 50 ms
// apart, and each T.
func TestPaceAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, err := New(Options{Config: Default(), Log: slog.New(slog.DiscardHandler), Registry: prometheus.NewRegistry()})
		if err != nil {
			t.Fatal(err)
		}
		r := newRig(t, revision(1, 1))
		r.now = time.Now().Add(-law.Handover)
		s := r.begin(200)
		r.say(globalDecider, seq(1), row(cellOf(0), 100, 400, 0.5))
		s.hear()
		a.node = r.n
		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = a.standIn(t.Context())
		}()
		t.Cleanup(func() { <-done })
		time.Sleep(law.DeciderSilent + law.Delta)
		event := func(rps float64) {
			a.mu.Lock()
			r.now = time.Now()
			s.event(said{cell: 0, rps: rps})
			a.mu.Unlock()
			wake(a.moved)
		}
		turn := func() uint64 {
			synctest.Wait()
			a.mu.Lock()
			defer a.mu.Unlock()
			return a.node.deciders[globalDecider].turn
		}
		before := turn()
		event(300)
		time.Sleep(law.Coalesce - 1)
		if got := turn() - before; got != 0 {
			t.Errorf("%d directives before %v passed", got, law.Coalesce)
		}
		event(400)
		time.Sleep(time.Nanosecond)
		if got := turn() - before; got != 1 {
			t.Errorf("%d directives %v after a jump, want 1", got, law.Coalesce)
		}
		event(800)
		time.Sleep(law.PublishGap - 1)
		if got := turn() - before; got != 1 {
			t.Errorf("%d directives within %v, want 1", got, law.PublishGap)
		}
		time.Sleep(time.Nanosecond)
		if got := turn() - before; got != 2 {
			t.Errorf("%d directives %v after the last one, want 2", got, law.PublishGap)
		}
		time.Sleep(10 * law.T)
		if got := turn() - before - 2; got != 10 {
			t.Errorf("%d directives in 10 T in which nothing moved, want 10", got)
		}
	})
}

// BenchmarkAlone decides 10,000 cells in place of a controller, as at each T.
func BenchmarkAlone(b *testing.B) {
	const cells = 10_000
	r := newRig(b, revision(1, cells))
	s := newSpeaker("a", 1)
	s.join(r)
	for from := 0; from < cells; from += 500 {
		rows := make([]said, 500)
		for i := range rows {
			rows[i] = saidRate(from+i, 150)
		}
		s.report(rows...)
		var decided []statefile.Row
		for i := range rows {
			decided = append(decided, row(cellOf(from+i), 100, 300, 0.5))
		}
		r.say(globalDecider, seq(1), decided...)
	}
	r.pass(law.DeciderSilent + 1)
	s.report()
	b.ReportAllocs()
	for b.Loop() {
		r.now = r.now.Add(time.Millisecond)
		if !r.n.decideAlone(r.now, true) {
			r.n.deciders[globalDecider].heard = r.now.Add(-law.DeciderSilent - 1)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*cells), "ns/cell")
}

func appendRate(s *speaker, m *grlv1.Report, index int, id limiter.CellID, rps float64) {
	appendRow(s, m, index, id, law.Rate{Offered: law.Micro(rps)}, law.Counts{})
}
