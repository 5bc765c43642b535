package controller

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"grl/limiter"
	"grl/limiter/law"
	grlv1 "grl/proto/grl/v1"
)

func TestDecidesOnTheSumOfZones(t *testing.T) {
	r := newRig(t, configuration(1, 1))
	r.warm()
	a, b := newSpeaker("a", "z1", 1), newSpeaker("b", "z2", 2)
	a.join(r)
	b.join(r)
	a.report(said{cellOf(0), 1500, law.Counts{}})
	b.report(said{cellOf(0), 500, law.Counts{}})
	if !r.n.decide(r.now) {
		t.Fatal("nothing to publish")
	}
	for s, share := range map[*speaker]float32{a: 0.75, b: 0.25} {
		if s.hear(); s.admits[cellOf(0)] != 0.5 || s.shares[cellOf(0)] != share {
			t.Errorf("%s heard that %v is admitted and its share is %v, want 0.5 and %v", s.hello.Node, s.admits[cellOf(0)], s.shares[cellOf(0)], share)
		}
		if got := s.hear(); got != nil {
			t.Errorf("heard again: %v", got)
		}
	}
	if r.n.decide(r.now) {
		t.Error("publishes although nothing moved")
	}
	r.pass(law.T)
	if !r.n.renew(r.now) {
		t.Error("does not renew at T")
	}
	if got := a.hear(); len(got) != 1 || len(got[0].GetCell()) != 0 || got[0].GetReportSequence() != 1 {
		t.Errorf("heard %v, want an empty directive that contains report 1", got)
	}
}

func TestScopes(t *testing.T) {
	r := newRig(t, configuration(1, 0))
	r.warm()
	a, b := newSpeaker("a", "z1", 1), newSpeaker("b", "z2", 2)
	a.join(r)
	b.join(r)
	z1, z2 := limiter.CellID{Bucket: "pay/zonal", Instance: "z1"}, limiter.CellID{Bucket: "pay/zonal", Instance: "z2"}
	a.report(said{z1, 1000, law.Counts{}}, said{z2, 99999, law.Counts{}}) // not its own
	b.report(said{z2, 250, law.Counts{}})
	r.n.decide(r.now)
	a.hear()
	b.hear()
	if a.admits[z1] != 0.5 || b.admits[z2] != 2 || len(a.admits) != 1 || len(b.admits) != 1 {
		t.Errorf("heard %v and %v, want each zone its own cell", a.admits, b.admits)
	}
}

func TestBandsOfDirectives(t *testing.T) {
	r := newRig(t, configuration(1, 1))
	r.warm()
	s := newSpeaker("a", "z1", 1)
	s.join(r)
	rapidly := 0
	told := func() float64 { return float64(s.admits[cellOf(0)]) }
	decided := func() float64 { i, _ := r.n.cells.Find(cellOf(0)); return r.n.decider.Admit(i) }
	rps := 2000.0
	random := []float64{1, 1.01, 0.995, 1.5, 1.001, 0.2, 0.4, 1.7, 20, 0.05, 1.0005}
	for step := range 200 {
		rps = min(1e6, max(10, rps*random[(step*7)%len(random)]))
		r.pass(law.PublishGap)
		s.report(said{cellOf(0), rps, law.Counts{}})
		if r.n.decide(r.now) {
			rapidly++
		}
		s.hear()
		if law.AdmitMoved(decided(), told()) == law.Jumps && math.Abs(decided()-told()) > 1e-6 {
			t.Fatalf("step %d: decided %v, told %v", step, decided(), told())
		}
		if step%20 == 19 {
			r.n.renew(r.now)
			s.hear()
			if d := math.Abs(decided() - told()); d > 0.0011*told() && decided() <= 2 {
				t.Fatalf("step %d, at T: decided %v, told %v", step, decided(), told())
			}
		}
	}
	if rapidly == 0 || rapidly == 200 {
		t.Errorf("published %d of 200 times at once", rapidly)
	}
}

// 5.6: the last aggregator of a zone counts on for 30 s.
func TestZoneIsKept(t *testing.T) {
	r := newRig(t, configuration(1, 1))
	r.warm()
	s := newSpeaker("a", "z1", 1)
	s.join(r)
	s.report(said{cellOf(0), 800, law.Counts{}})
	r.n.leave(r.now, s.c)
	r.n.leave(r.now, s.c)
	r.pass(law.ZoneKept - 1)
	r.n.renew(r.now)
	if got := r.rps(cellOf(0)); got != 800 {
		t.Errorf("%v rps just before 30 s, want 800", got)
	}
	r.pass(1)
	r.n.renew(r.now)
	if got := r.rps(cellOf(0)); got != 0 {
		t.Errorf("%v rps after 30 s, want none", got)
	}
}

func TestHungAggregatorLeaves(t *testing.T) {
	r := newRig(t, configuration(1, 1))
	r.warm()
	s := newSpeaker("a", "z1", 1)
	s.join(r)
	s.report(said{cellOf(0), 800, law.Counts{}})
	r.pass(law.ZoneKept)
	r.n.renew(r.now)
	if got := r.rps(cellOf(0)); got != 0 {
		t.Errorf("%v rps of an aggregator that hangs for 30 s, want none", got)
	}
	s.report()
	if got := r.rps(cellOf(0)); got != 800 {
		t.Errorf("%v rps when it speaks again, want 800", got)
	}
}

// Fault 3: one of two aggregators is lost, its hosts come to the other one.
func TestHandover(t *testing.T) {
	r := newRig(t, configuration(1, 1))
	r.warm()
	a, b := newSpeaker("a", "z1", 1), newSpeaker("b", "z1", 2)
	a.join(r)
	b.join(r)
	a.report(said{cellOf(0), 600, law.Counts{Offered: 10}})
	b.report(said{cellOf(0), 400, law.Counts{Offered: 20}})
	r.n.leave(r.now, a.c)
	for _, step := range []struct {
		at   time.Duration
		b    float64
		want float64
	}{{0, 400, 1000}, {law.T / 2, 700, 1000}, {law.T, 1100, 1100}, {law.Handover, 950, 950}} {
		b.report(said{cellOf(0), step.b, law.Counts{Offered: 20}})
		r.now = time.Unix(1_000_000_000, 0).Add(step.at)
		if got := r.rps(cellOf(0)); got != step.want {
			t.Errorf("%v after the loss: %v rps, want %v", step.at, got, step.want)
		}
	}
	// The zone has one left, which is kept when it goes too.
	r.n.leave(r.now, b.c)
	r.pass(10 * law.T)
	if got := r.rps(cellOf(0)); got != 950 {
		t.Errorf("%v rps of a zone without aggregators, want 950", got)
	}
}

func TestRestartedAggregatorTakesOver(t *testing.T) {
	r := newRig(t, configuration(1, 1))
	r.warm()
	a := newSpeaker("a", "z1", 1)
	a.join(r)
	a.report(said{cellOf(0), 600, law.Counts{Offered: 100}})
	r.n.leave(r.now, a.c)
	r.pass(5 * law.T)
	again := newSpeaker("a", "z1", 2)
	again.join(r)
	again.report(said{cellOf(0), 100, law.Counts{}}) // its hosts come one by one
	if got := r.rps(cellOf(0)); got != 600 {
		t.Errorf("%v rps while hosts come back, want 600 as before", got)
	}
	r.pass(law.Rejoin)
	if got := r.rps(cellOf(0)); got != 100 {
		t.Errorf("%v rps after they had time to, want 100", got)
	}
}

// Trap 6, property 10: no partial sums after a start.
func TestWarmUp(t *testing.T) {
	r := newRig(t, configuration(1, 1), "z1", "z2")
	a, b, c := newSpeaker("a", "z1", 1), newSpeaker("b", "z2", 2), newSpeaker("c", "z3", 3)
	a.join(r)
	a.report(said{cellOf(0), 3000, law.Counts{}})
	r.pass(law.Handover)
	if r.n.decide(r.now) || a.hear() != nil {
		t.Error("published without a zone that was there before the start")
	}
	b.join(r)
	c.join(r) // a zone nobody knew of
	b.report(said{cellOf(0), 1000, law.Counts{}})
	if r.n.decide(r.now) || r.n.renew(r.now) {
		t.Error("published without a zone that is connected")
	}
	c.report(said{cellOf(0), 1000, law.Counts{}})
	if !r.n.decide(r.now) && !r.n.renew(r.now) {
		t.Error("does not publish once all are there")
	}
	if a.hear(); a.admits[cellOf(0)] != 0.2 {
		t.Errorf("admits %v, want 0.2", a.admits[cellOf(0)])
	}

	alone := newRig(t, configuration(1, 1), "z1", "gone")
	s := newSpeaker("a", "z1", 1)
	s.join(alone)
	s.report(said{cellOf(0), 2000, law.Counts{}})
	alone.pass(law.WarmUpMost - 1)
	if alone.n.renew(alone.now) {
		t.Error("published early without a zone")
	}
	alone.pass(1)
	if !alone.n.renew(alone.now) {
		t.Error("waits for ever for a zone that is gone")
	}
}

func TestRepeatedReportsChangeNothing(t *testing.T) {
	r := newRig(t, configuration(1, 2))
	s := newSpeaker("a", "z1", 1)
	s.join(r)
	first := s.message(said{cellOf(0), 10, law.Counts{Offered: 1}})
	second := s.message(said{cellOf(1), 20, law.Counts{Offered: 2}})
	for i, m := range []*grlv1.Report{first, first, second, first, second} {
		taken, err := r.n.report(r.now, s.c, m)
		if want := i == 0 || i == 2; err != nil || taken != want {
			t.Errorf("report %d of the sequence: taken %v, error %v, want %v", i, taken, err, want)
		}
	}
	s.report(said{cellOf(0), 30, law.Counts{Offered: 3}})
	if r.rps(cellOf(0)) != 30 || r.rps(cellOf(1)) != 20 {
		t.Errorf("%v and %v rps, want 30 and 20", r.rps(cellOf(0)), r.rps(cellOf(1)))
	}
}

func TestConfigurationChangeReusesIndices(t *testing.T) {
	r := newRig(t, configuration(1, 3))
	r.warm()
	s := newSpeaker("a", "z1", 1)
	s.join(r)
	s.report(said{cellOf(0), 2000, law.Counts{Offered: 1}}, said{cellOf(1), 4000, law.Counts{Offered: 2}}, said{cellOf(2), 8000, law.Counts{Offered: 3}})
	r.n.decide(r.now)
	s.hear()
	c := configuration(2, 1)
	c.Services[0].Buckets[0].LimitRPS = 500
	r.n.install(c, nil, nil)
	web, app := limiter.CellID{Bucket: "pay/each", Caller: "web"}, limiter.CellID{Bucket: "pay/each", Caller: "app"}
	s.report(said{web, 20, law.Counts{Offered: 7}}, said{app, 40, law.Counts{Offered: 8}}, said{cellOf(1), 5000, law.Counts{Offered: 9}})
	if r.n.cells.Len() != 3 {
		t.Errorf("%d indices in use, want the 3 there were", r.n.cells.Len())
	}
	r.n.decide(r.now)
	s.hear()
	for id, want := range map[limiter.CellID]float32{cellOf(0): 0.25, web: 0.5, app: 0.25} {
		if s.admits[id] != want {
			t.Errorf("%v: heard %v, want %v", id, s.admits[id], want)
		}
	}
	if r.rps(cellOf(1)) != 0 {
		t.Errorf("%v rps of a bucket that went", r.rps(cellOf(1)))
	}
	r.n.install(configuration(3, 3), nil, nil)
	s.report(said{cellOf(1), 5000, law.Counts{Offered: 9}})
	if r.rps(cellOf(1)) != 5000 || r.rps(web) != 20 {
		t.Errorf("%v rps of a bucket that came back, %v of a caller; want 5000 and 20", r.rps(cellOf(1)), r.rps(web))
	}
}

func TestIdleCellsAreForgotten(t *testing.T) {
	r := newRig(t, configuration(1, 2))
	r.warm()
	s := newSpeaker("a", "z1", 1)
	s.join(r)
	s.report(said{cellOf(0), 10, law.Counts{}}, said{cellOf(1), 10, law.Counts{}})
	r.n.renew(r.now)
	s.report(said{cellOf(0), 0, law.Counts{}})
	for range 11 * 60 {
		r.pass(law.T)
		s.report()
		r.n.renew(r.now)
	}
	if _, ok := r.n.cells.Find(cellOf(0)); ok {
		t.Error("a cell that nobody reported for 11 minutes is still known")
	}
	if _, ok := r.n.cells.Find(cellOf(1)); !ok {
		t.Error("a cell with traffic was forgotten")
	}
}

// recorded is what the history has of a cell in all zones.
type recorded map[limiter.CellID]minute

func (h recorded) take(r *rig, all bool) {
	for p, minutes := range r.n.recorder.take(r.now, all) {
		for _, m := range minutes {
			sum := h[p.cell]
			sum.offered += m.offered
			sum.dropped += m.dropped
			sum.shadowDropped += m.shadowDropped
			sum.highest = max(sum.highest, m.highest)
			h[p.cell] = sum
		}
	}
}

// I8: what aggregators counted is in the history once, over streams that close
// and a controller that restarts. Only what was reported to a controller that
// restarted before it had confirmed it is there twice.
func TestCountsAreRecordedOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const cells = 2
		r := newRig(t, configuration(1, cells))
		r.warm()
		history, epoch, twice := make(recorded), uint64(1), uint64(0)
		type member struct {
			*speaker
			counts, known, reported [cells]law.Counts
			begun                   bool
		}
		var members []*member
		for i := range 3 { // two of one zone, one of another
			m := &member{speaker: newSpeaker(fmt.Sprint(i), fmt.Sprint("z", i%2), uint64(i))}
			m.join(r)
			members = append(members, m)
		}
		report := func(m *member) {
			m.report(said{cellOf(0), 5, m.counts[0]}, said{cellOf(1), 7, m.counts[1]})
			m.reported, m.begun = m.counts, true
		}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			m := members[rapid.IntRange(0, 2).Draw(t, "aggregator")]
			switch rapid.SampledFrom([]string{"count", "count", "report", "report", "confirm", "reconnect", "restart", "pass", "flush"}).Draw(t, "what") {
			case "count":
				n := &m.counts[rapid.IntRange(0, cells-1).Draw(t, "cell")]
				offered := rapid.Uint64Range(1, 100).Draw(t, "offered")
				dropped := rapid.Uint64Range(0, offered).Draw(t, "dropped")
				n.Offered += offered
				n.Dropped += dropped
				n.ShadowDropped += rapid.Uint64Range(0, offered-dropped).Draw(t, "shadow")
				if rapid.Bool().Draw(t, "late") {
					n.Late += offered
				}
			case "report":
				report(m)
			case "confirm":
				r.n.renew(r.now)
				for _, m := range members {
					if m.hear(); m.begun {
						m.known = m.reported
					}
				}
			case "reconnect":
				r.n.leave(r.now, m.c)
				m.join(r)
				m.begun = false
			case "restart":
				history.take(r, true)
				epoch++
				r.start(epoch, configuration(1, cells))
				r.warm()
				for _, m := range members {
					for i := range cells {
						twice += m.reported[i].Offered - m.known[i].Offered
					}
					m.join(r)
					m.begun = false
				}
			case "pass":
				r.pass(time.Duration(rapid.Int64Range(0, int64(20*time.Second)).Draw(t, "time")))
			case "flush":
				history.take(r, false)
			}
		}
		for _, m := range members {
			report(m)
		}
		history.take(r, true)
		var got, want minute
		for i := range cells {
			h := history[cellOf(i)]
			got.offered += h.offered
			got.dropped += h.dropped
			got.shadowDropped += h.shadowDropped
			for _, m := range members {
				want.offered += m.counts[i].Offered
				want.dropped += m.counts[i].Dropped
				want.shadowDropped += m.counts[i].ShadowDropped
			}
		}
		if got.offered < want.offered || got.offered > want.offered+twice {
			t.Fatalf("recorded %d of %d requests, of which %d may be there twice", got.offered, want.offered, twice)
		}
		if twice == 0 && (got.dropped != want.dropped || got.shadowDropped != want.shadowDropped) {
			t.Fatalf("recorded %+v, want %+v", got, want)
		}
	})
}

// The first state of a stream comes in several reports; none of it is a burst.
func TestFirstReportsAreLate(t *testing.T) {
	r := newRig(t, configuration(1, 2))
	s := newSpeaker("a", "z1", 1)
	s.join(r)
	s.report(said{cellOf(0), 5, law.Counts{Offered: 1_000_000}})
	r.pass(10 * time.Millisecond)
	s.report(said{cellOf(1), 5, law.Counts{Offered: 1_000_000}})
	h := make(recorded)
	h.take(r, true)
	for i := range 2 {
		if got := h[cellOf(i)]; got.offered != 1_000_000 || got.highest != 0 {
			t.Errorf("cell %d: recorded %+v, want a million and no highest second", i, got)
		}
	}
}

// A cell that has been quiet has its burst in the highest second.
func TestBurstsOfQuietCells(t *testing.T) {
	r := newRig(t, configuration(1, 1))
	s := newSpeaker("a", "z1", 1)
	s.join(r)
	n := law.Counts{}
	s.report(said{cellOf(0), 0, n})
	for burst := range 6 {
		for range 3 { // seconds without
			r.pass(law.T)
			s.report()
		}
		r.pass(law.T)
		n.Offered += 300
		s.report(said{cellOf(0), 300, n})
		if burst == 0 { // named before; nothing was late
			h := make(recorded)
			h.take(r, true)
			if got := h[cellOf(0)]; got.highest < 150 || got.highest > 300 || got.offered != 300 {
				t.Errorf("recorded %+v of a burst of 300", got)
			}
		}
	}
}

// A report that breaks the protocol ends its stream, and nothing else: what the
// child named before is what leaves with it.
func TestMalformedReports(t *testing.T) {
	for name, m := range map[string]*grlv1.Report{
		"a cell nobody named": {Sequence: 1, Cell: []uint32{0}},
		"unequal columns":     {Sequence: 1, Names: []*grlv1.CellName{{Bucket: "pay/b0"}}, Cell: []uint32{0}, Offered: []uint64{1, 2}},
		"a name too long":     {Sequence: 1, Names: []*grlv1.CellName{{Bucket: "pay/b0"}, {Bucket: strings.Repeat("x", 1000)}}},
		"a cell twice":        {Sequence: 1, Names: []*grlv1.CellName{{Bucket: "pay/b0"}}, Cell: []uint32{0, 0}, Offered: []uint64{1, 0}},
	} {
		r := newRig(t, configuration(1, 1))
		c := r.n.join(r.now, &grlv1.Hello{Node: "a", Zone: "z1", Region: "r1"}, map[limiter.CellID]law.Counts{})
		if _, err := r.n.report(r.now, c, m); err == nil {
			t.Errorf("%s: taken", name)
		}
		r.n.leave(r.now, c) // as the stream then does
		if len(r.n.children) != 0 {
			t.Errorf("%s: %d children are left", name, len(r.n.children))
		}
	}
}
