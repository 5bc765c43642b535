package controller

import (
	"math"
	"testing"
	"time"

	"grl/limiter"
	"grl/limiter/law"
	grlv1 "grl/proto/grl/v1"
	"grl/proto/wire"
)

// takes has the speaker take what the controller has for it.
func (s *speaker) takes() (config *grlv1.Configuration) {
	s.r.t.Helper()
	config = s.r.n.configurationFor(s.c)
	for _, d := range s.r.n.directives(s.c) {
		var err error
		if s.ids, err = wire.Named(s.ids, d.GetNames()); err != nil {
			s.r.t.Fatal(err)
		}
		for row, number := range d.GetCell() {
			s.admits[s.ids[number]] = d.GetAdmit()[row]
		}
	}
	return config
}

// limits returns a configuration of one service whose buckets have these limits.
func limits(revision uint64, rps map[string]float64) *limiter.Configuration {
	s := limiter.Service{Name: "pay"}
	for _, name := range []string{"a", "b", "c"} {
		if limit, ok := rps[name]; ok {
			s.Buckets = append(s.Buckets, limiter.Bucket{
				Service: "pay", Name: name, LimitRPS: limit, Behavior: limiter.Deny, Match: limiter.Match{Procedure: limiter.Pattern(name)},
			})
		}
	}
	return &limiter.Configuration{Epoch: 1, Revision: revision, Services: []limiter.Service{s}}
}

func near(t *testing.T, what string, got float32, want float64) {
	t.Helper()
	if math.Abs(float64(got)-want) > 0.02 {
		t.Errorf("%s: admit %v, want %v", what, got, want)
	}
}

// Zones that a rollout has not reached are decided by the limits they hold:
// changed, removed and added buckets each.
func TestZonesOfARolloutAreDecidedByWhatTheyHold(t *testing.T) {
	from := limits(1, map[string]float64{"a": 1000, "b": 1000})
	next := limits(2, map[string]float64{"a": 500, "c": 100})
	r := newRig(t, from)
	r.warm()
	one, two := newSpeaker("a1", "z1", 1), newSpeaker("a2", "z2", 2)
	one.join(r)
	two.join(r)
	a, b, c := limiter.CellID{Bucket: "pay/a"}, limiter.CellID{Bucket: "pay/b"}, limiter.CellID{Bucket: "pay/c"}
	both := func(rows ...said) {
		for range 30 {
			for _, s := range []*speaker{one, two} {
				s.report(rows...)
			}
			r.pass(law.T)
			r.n.renew(r.now)
			one.takes()
			two.takes()
		}
	}
	both(said{id: a, rps: 1000}, said{id: b, rps: 1000})
	near(t, "before, z1 a", one.admits[a], 0.5)
	near(t, "before, z2 b", two.admits[b], 0.5)

	r.n.install(next, from, []string{"z1"})
	if m := one.takes(); m.GetRevision() != 2 {
		t.Errorf("z1 is sent r%d, want r2", m.GetRevision())
	}
	if m := two.takes(); m != nil {
		t.Errorf("z2 is sent r%d, want nothing", m.GetRevision())
	}
	for range 30 {
		one.report(said{id: a, rps: 1000}, said{id: c, rps: 200})
		two.report(said{id: a, rps: 1000}, said{id: b, rps: 2000})
		r.pass(law.T)
		r.n.renew(r.now)
		one.takes()
		two.takes()
	}
	near(t, "z1 a, by the new limit", one.admits[a], 0.25)
	near(t, "z2 a, by the old limit", two.admits[a], 0.5)
	near(t, "z1 c, new", one.admits[c], 0.5)
	near(t, "z2 b, which the new revision has not", two.admits[b], 0.5)
	if _, told := two.admits[c]; told {
		t.Error("z2 was told of c, which it does not have")
	}

	r.n.install(next, from, []string{"z1", "z2"})
	if m := two.takes(); m.GetRevision() != 2 {
		t.Errorf("z2 is sent r%d once it is reached, want r2", m.GetRevision())
	}
	both(said{id: a, rps: 1000}, said{id: c, rps: 50})
	near(t, "z2 a, reached", two.admits[a], 0.25)

	r.n.install(next, nil, nil)
	both(said{id: a, rps: 1000}, said{id: c, rps: 200})
	near(t, "z1 a, done", one.admits[a], 0.25)
	near(t, "z2 c, done", two.admits[c], 0.25)
	if n := r.n.cells.Count(); n != 2 {
		t.Errorf("%d cells after the rollout, want 2: no twins", n)
	}
}

// A change of what a bucket's cells are called is staged too.
func TestRolloutOfOtherCells(t *testing.T) {
	from, next := limits(1, map[string]float64{"a": 1000}), limits(2, map[string]float64{"a": 100})
	next.Services[0].Buckets[0].Scope = limiter.Zone
	r := newRig(t, from)
	r.warm()
	one, two := newSpeaker("a1", "z1", 1), newSpeaker("a2", "z2", 2)
	one.join(r)
	two.join(r)
	global, zonal := limiter.CellID{Bucket: "pay/a"}, limiter.CellID{Bucket: "pay/a", Instance: "z1"}
	r.n.install(next, from, []string{"z1"})
	for range 30 {
		one.report(said{id: zonal, rps: 200})
		two.report(said{id: global, rps: 2000})
		r.pass(law.T)
		r.n.renew(r.now)
		one.takes()
		two.takes()
	}
	near(t, "z1", one.admits[zonal], 0.5)
	near(t, "z2", two.admits[global], 0.5)
}

func TestRolloutThatHarmsIsSeen(t *testing.T) {
	tests := []struct {
		name                 string
		before               float64 // share dropped
		reached, others      float64 // afterwards
		known, expectHarm    bool
		offeredReached, rest uint64
	}{
		{"drops as before", 0.1, 0.12, 0.1, true, false, 1000, 1000},
		{"drops more", 0, 0.3, 0, true, true, 1000, 1000},
		{"the others drop more too", 0, 0.3, 0.28, true, false, 1000, 1000},
		{"too few to tell", 0, 1, 0, true, false, 20, 1000},
		{"no others, more than before", 0.1, 0.3, 0, true, true, 1000, 0},
		{"no others, and nothing known", 0, 0.3, 0, false, false, 1000, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			now := time.Unix(1_000_000, 0)
			w := watch{before: map[string]float64{}, reached: map[string]law.Counts{"pay/a": {}}, others: map[string]law.Counts{}}
			if tt.known {
				w.before["pay/a"] = tt.before
			}
			w.step(now)
			counts := func(n uint64, share float64) law.Counts {
				return law.Counts{Offered: n, Dropped: uint64(share * float64(n))}
			}
			w.count("pay/a", true, counts(tt.offeredReached, tt.reached))
			w.count("pay/a", false, counts(tt.rest, tt.others))
			w.count("pay/other", true, counts(1000, 1))
			if bucket, _ := w.harmed(now.Add(leastWatched-1), nil); bucket != "" {
				t.Errorf("harm to %q seen at once", bucket)
			}
			if bucket, rise := w.harmed(now.Add(leastWatched), nil); (bucket != "") != tt.expectHarm {
				t.Errorf("harmed = %q, %v; want harm: %v", bucket, rise, tt.expectHarm)
			}
		})
	}
}

// What somebody forced may drop what was above its limit at any time since, also
// when less is offered later; and no more than that.
func TestForcedDropsAreNoHarm(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	w := watch{before: map[string]float64{"pay/a": 0}, reached: map[string]law.Counts{"pay/a": {}}, others: map[string]law.Counts{}, agreed: map[string]float64{}}
	above := 0.5 // share of what is offered
	expected := func(string) float64 { return above }
	w.step(now)
	w.count("pay/a", true, law.Counts{Offered: 1000, Dropped: 520})
	if bucket, rise := w.harmed(now.Add(leastWatched), expected); bucket != "" {
		t.Errorf("harm of %v to %q by what was agreed to", rise, bucket)
	}
	above = 0
	if bucket, rise := w.harmed(now.Add(2*leastWatched), expected); bucket != "" {
		t.Errorf("harm of %v to %q once less is offered", rise, bucket)
	}
	w.count("pay/a", true, law.Counts{Offered: 1000, Dropped: 700})
	if bucket, rise := w.harmed(now.Add(3*leastWatched), expected); bucket == "" || math.Abs(rise-0.11) > 1e-9 {
		t.Errorf("harmed = %q, %v; want more than was agreed to, 0.11", bucket, rise)
	}
	w.step(now.Add(time.Minute)) // another zone: what was agreed to is asked anew
	w.count("pay/a", true, law.Counts{Offered: 1000, Dropped: 520})
	if bucket, _ := w.harmed(now.Add(2*time.Minute), expected); bucket == "" {
		t.Error("drops that nothing explains are no harm")
	}
}

// TestRolloutOverAnHour changes limits by the hour while a revision is on its
// way: zones that it has not reached go on by what they hold at that hour.
func TestRolloutOverAnHour(t *testing.T) {
	from := limits(1, map[string]float64{"a": 1000, "b": 1000, "c": 1000})
	next := limits(2, map[string]float64{"a": 500, "b": 1000, "c": 500})
	r := newRig(t, from)
	r.warm()
	one, two := newSpeaker("a1", "z1", 1), newSpeaker("a2", "z2", 2)
	one.join(r)
	two.join(r)
	a, b, c := limiter.CellID{Bucket: "pay/a"}, limiter.CellID{Bucket: "pay/b"}, limiter.CellID{Bucket: "pay/c"}
	both := func() {
		for range 30 {
			for _, s := range []*speaker{one, two} {
				s.report(said{id: a, rps: 1000}, said{id: b, rps: 1000}, said{id: c, rps: 1000})
			}
			r.pass(law.T)
			r.n.renew(r.now)
			one.takes()
			two.takes()
		}
	}
	both()
	r.n.install(next, from, []string{"z1"})
	both()
	near(t, "z1 a, before the hour", one.admits[a], 0.25)
	near(t, "z2 a, before the hour", two.admits[a], 0.5)
	watched := r.n.stage.watch.since

	// Of a the old limit moves, of b the new one, and of c the old one to what the
	// new one is.
	from, next = limits(1, map[string]float64{"a": 200, "b": 1000, "c": 500}), limits(2, map[string]float64{"a": 500, "b": 200, "c": 500})
	from.Serial, next.Serial = 1, 1
	r.n.install(next, from, []string{"z1"})
	if m := one.takes(); m.GetRevision() != 2 || m.GetSerial() != 1 || len(m.GetServices()) != 1 {
		t.Errorf("z1 is sent %v, want the service of r2", m)
	}
	if m := two.takes(); m.GetRevision() != 1 || m.GetSerial() != 1 || len(m.GetServices()) != 1 {
		t.Errorf("z2 is sent %v, want the service of r1", m)
	}
	both()
	near(t, "z1 a, by the new limit", one.admits[a], 0.25)
	near(t, "z2 a, by the old limit of this hour", two.admits[a], 0.1)
	near(t, "z1 b, by the new limit of this hour", one.admits[b], 0.1)
	near(t, "z2 b, by the old limit", two.admits[b], 0.5)
	near(t, "z1 c", one.admits[c], 0.25)
	near(t, "z2 c, which has come to be the same", two.admits[c], 0.25)
	if w := r.n.stage.watch; !w.since.After(watched) || len(w.before) != 0 {
		t.Errorf("watched since %v with %v before, want anew", w.since, w.before)
	}

	watched = r.n.stage.watch.since
	capped, held := *next, *from
	capped.Serial, held.Serial = 2, 2
	r.n.install(&capped, &held, []string{"z1"})
	both()
	if !r.n.stage.watch.since.Equal(watched) {
		t.Error("a change beside the limits began to count anew")
	}
	capped.Serial = 3
	r.n.install(&capped, &held, []string{"z1", "z2"})
	both()
	near(t, "z2 a, reached", two.admits[a], 0.25)
	near(t, "z2 b, reached", two.admits[b], 0.1)
	near(t, "z2 c, reached", two.admits[c], 0.25)
	done := capped
	done.Serial = 4
	r.n.install(&done, nil, nil)
	both()
	if n := r.n.cells.Count(); n != 3 {
		t.Errorf("%d cells after the rollout, want 3: no twins", n)
	}
}
