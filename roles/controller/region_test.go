package controller

import (
	"testing"
	"time"

	"grl/limiter"
	"grl/limiter/law"
	grlv1 "grl/proto/grl/v1"
	"grl/proto/uplink"
	"grl/proto/wire"
)

// regional is the rig of a region's node, and its stream to that of the parent.
type regional struct {
	*rig
	up     *rig
	p      *uplink.Parent
	c      *child // at the parent
	bootID uint64
	name   string
}

// newRegional returns the node of a region whose parent is up, and joins it.
func newRegional(up *rig, name string, boot uint64) *regional {
	r := &regional{rig: &rig{t: up.t, now: up.now}, up: up, bootID: boot, name: name}
	r.restart()
	return r
}

// restart is a start of the region's controller; it keeps no copy.
func (r *regional) restart() {
	r.now = r.up.now
	r.n = newNode(r.now, nil)
	r.n.regional(r.name, law.Autonomy)
	r.n.lead(7)
	r.n.warm = true
	r.p = uplink.NewParent()
}

// join opens a stream to the parent.
func (r *regional) join() {
	r.t.Helper()
	if r.c != nil {
		r.up.n.leave(r.up.now, r.c)
	}
	hello := r.n.hello(r.p, "ctl-"+r.name, "v", r.bootID)
	before, err := wire.ConfirmedCounts(hello.GetConfirmed())
	if err == nil {
		err = checkHello(hello, Default())
	}
	if err != nil {
		r.t.Fatal(err)
	}
	r.c = r.up.n.join(r.up.now, hello, before)
	r.n.region.parents[r.p] = true
	r.configure()
}

// configure passes the configuration down.
func (r *regional) configure() {
	r.t.Helper()
	m := r.up.n.configurationFor(r.c)
	if m == nil {
		return
	}
	c, err := wire.ToConfiguration(r.n.config, m)
	if err != nil {
		r.t.Fatal(err)
	}
	r.n.takeConfiguration(c, m.GetZones())
}

// tell passes reports up.
func (r *regional) tell(full bool) {
	r.t.Helper()
	for _, m := range r.p.Messages(r.now, r.n.source(r.now, full), r.n.mayPublish(r.now), full) {
		if taken, err := r.up.n.report(r.up.now, r.c, m.GetReport()); err != nil || !taken {
			r.t.Fatalf("report of region %s: taken %v, error %v", r.name, taken, err)
		}
	}
}

// hear passes directives down.
func (r *regional) hear() {
	r.t.Helper()
	r.configure()
	for _, m := range r.up.n.directives(r.c) {
		if err := r.p.Named(m); err != nil {
			r.t.Fatal(err)
		}
		if !r.n.direct(r.now, r.p, m) {
			r.t.Fatalf("region %s refused directive %v", r.name, m)
		}
	}
}

// world is a parent with two regions of one aggregator each.
type world struct {
	up   *rig
	eu   *regional
	us   *regional
	a, b *speaker // of zones eu1 and us1
}

func newWorld(t tester) *world {
	c := configuration(1, 1)
	c.Services[0].Buckets = append(c.Services[0].Buckets,
		limiter.Bucket{Service: "pay", Name: "regional", LimitRPS: 100, Scope: limiter.Region})
	w := &world{up: newRig(t, c)}
	w.up.warm()
	w.eu, w.us = newRegional(w.up, "eu", 1), newRegional(w.up, "us", 2)
	w.a, w.b = newSpeaker("a", "eu1", 3), newSpeaker("b", "us1", 4)
	w.a.hello.Region, w.b.hello.Region = "eu", "us"
	for r, s := range map[*regional]*speaker{w.eu: w.a, w.us: w.b} {
		r.join()
		s.join(r.rig)
	}
	return w
}

func (w *world) pass(d time.Duration) {
	for _, r := range []*rig{w.up, w.eu.rig, w.us.rig} {
		r.pass(d)
	}
}

// round passes what moved all the way up and down.
func (w *world) round() {
	for _, r := range []*regional{w.eu, w.us} {
		r.n.renew(r.now)
		r.tell(true)
	}
	w.up.n.renew(w.up.now)
	for r, s := range map[*regional]*speaker{w.eu: w.a, w.us: w.b} {
		r.hear()
		s.hear()
	}
}

var (
	global = cellOf(0)
	ofEU   = limiter.CellID{Bucket: "pay/regional", Instance: "eu"}
	ofEU1  = limiter.CellID{Bucket: "pay/zonal", Instance: "eu1"}
)

func TestRegionDecidesItsOwnCells(t *testing.T) {
	w := newWorld(t)
	w.a.report(said{global, 3000, law.Counts{}}, said{ofEU, 400, law.Counts{}}, said{ofEU1, 1000, law.Counts{}})
	w.b.report(said{global, 1000, law.Counts{}})
	w.round()
	for id, want := range map[limiter.CellID]float32{global: 0.25, ofEU: 0.25, ofEU1: 0.5} {
		if w.a.admits[id] != want {
			t.Errorf("%v: the aggregator heard %v, want %v", id, w.a.admits[id], want)
		}
	}
	if w.a.shares[global] != 0.75 || w.b.shares[global] != 0.25 || w.a.shares[ofEU] != 1 {
		t.Errorf("shares %v and %v, want those of the whole instance", w.a.shares, w.b.shares)
	}
	// The parent knows all cells, but the regions' own ones are none of its
	// business.
	if w.up.rps(ofEU) != 400 || w.up.rps(ofEU1) != 1000 || w.up.rps(global) != 4000 {
		t.Errorf("the parent counts %v, %v and %v rps", w.up.rps(ofEU), w.up.rps(ofEU1), w.up.rps(global))
	}
	w.pass(law.T)
	w.a.report(said{global, 1000, law.Counts{}}, said{ofEU, 200, law.Counts{}})
	w.eu.n.decide(w.eu.now)
	deciders := make(map[string]*grlv1.Directive)
	for _, m := range w.a.hear() {
		deciders[m.GetDecider()] = m
	}
	if len(deciders) != 1 || deciders["eu"].GetEpoch() != 7 || deciders["eu"].GetReportSequence() != 2 {
		t.Fatalf("heard %v, want one of the region that contains report 2", deciders)
	}
	w.round()
	if w.a.admits[global] != 0.5 || w.b.admits[global] != 0.5 {
		t.Errorf("heard %v and %v of the global cell, want 0.5", w.a.admits[global], w.b.admits[global])
	}
}

// The parent's directive says which report of the region its sums contain; what
// an aggregator hears is which of its own that was.
func TestRegionMapsSequences(t *testing.T) {
	w := newWorld(t)
	w.a.report(said{global, 100, law.Counts{Offered: 10}})
	w.round()
	w.a.rates(said{global, 3000, law.Counts{}}) // report 2
	w.eu.tell(false)
	w.a.rates(said{global, 6000, law.Counts{}}) // report 3, not told yet
	w.up.n.decide(w.up.now)
	w.eu.hear()
	heard := w.a.hear()
	if len(heard) != 1 || heard[0].GetDecider() != globalDecider || heard[0].GetReportSequence() != 2 {
		t.Fatalf("heard %v, want the parent's, which contains report 2", heard)
	}
	// Counts are confirmed once the parent has them: they go up at T, evenly.
	for range 3 {
		w.pass(law.T)
		w.a.report(said{global, 6000, law.Counts{Offered: 10}})
		w.b.report()
		w.round()
	}
	i, _ := w.up.n.cells.Find(global)
	if got := w.up.n.flows[i].sum(w.up.n.ticks).Offered; got != 10 {
		t.Errorf("%d requests counted at the parent, want 10", got)
	}
	w.a.report()
	w.round()
	if confirmed := w.eu.n.region.counts; confirmed == 0 || w.eu.n.own.counts > confirmed {
		t.Errorf("counts of %d reports confirmed by the parent, of %d by the region", confirmed, w.eu.n.own.counts)
	}
}

// Fault 15: a region that is cut off goes on with its last share.
func TestRegionGoesOnAlone(t *testing.T) {
	w := newWorld(t)
	w.a.report(said{global, 3000, law.Counts{}})
	w.b.report(said{global, 1000, law.Counts{}})
	w.round()
	var last law.Stamp
	take := func() {
		t.Helper()
		for _, m := range w.a.hear() {
			if m.GetDecider() != globalDecider {
				continue
			}
			stamp := wire.Stamp(m)
			if last.After(stamp) {
				t.Fatalf("heard %v after %v", stamp, last)
			}
			last = stamp
		}
	}
	w.a.hear()
	cut := w.eu.now
	alone := func() (spoke bool) { // one T in which the parent says nothing
		w.eu.pass(law.T)
		w.a.report(said{global, 6000, law.Counts{}})
		w.eu.n.renew(w.eu.now)
		before := last
		take()
		return last != before
	}
	if first, second := alone(), alone(); first || second {
		t.Error("the region decided global cells although the parent was not silent for long")
	}
	if !alone() || last.Step == 0 {
		t.Errorf("%v after the parent fell silent the region does not go on; stamp %v", w.eu.now.Sub(cut), last)
	}
	// 3/4 of the limit of 1000, of what it is offered alone; and the aggregator
	// is told what part that is of the whole.
	if got := w.a.admits[global]; got != 0.125 {
		t.Errorf("admits %v, want 0.125", got)
	}
	if got := w.a.shares[global]; got != 0.75 {
		t.Errorf("the aggregator's share is %v, want 0.75 of the fleet", got)
	}
	for w.eu.now.Sub(cut) < law.DeciderSilent+law.Autonomy-law.T {
		if !alone() {
			t.Fatalf("silent %v after the cut", w.eu.now.Sub(cut))
		}
	}
	alone()
	if first, second := alone(), alone(); first || second {
		t.Errorf("still decides %v after the cut", w.eu.now.Sub(cut))
	}
	if w.eu.n.mayPublish(w.eu.now) && w.a.admits[ofEU] != 0 {
		t.Error("heard of a cell that nobody reported")
	}
	// The parent is back: its word wins, although it goes on under the stamps
	// that it had.
	w.up.now = w.eu.now
	w.us.now = w.eu.now
	w.eu.tell(true)
	w.us.tell(true)
	w.up.n.renew(w.up.now)
	w.eu.hear()
	take()
	if got := w.a.admits[global]; got != float32(1000.0/7000) {
		t.Errorf("admits %v when the parent is back, want 1000/7000", got)
	}
}

// The parent's word wins over what a region decided alone, also where the parent
// has nothing new to say, and also under a stamp that it said before.
func TestParentsWordWins(t *testing.T) {
	w := newWorld(t)
	w.a.report(said{global, 4000, law.Counts{}})
	w.round()
	w.eu.pass(4 * law.T)
	w.a.report(said{global, 8000, law.Counts{}})
	w.eu.n.renew(w.eu.now)
	if w.a.hear(); w.a.admits[global] != 0.125 {
		t.Fatalf("admits %v alone, want 0.125", w.a.admits[global])
	}
	step := w.eu.n.region.global.stamp.Step
	said := &grlv1.Directive{Decider: globalDecider, Epoch: w.eu.n.region.taken.Epoch, Sequence: w.eu.n.region.taken.Sequence}
	if !w.eu.n.direct(w.eu.now, w.eu.p, said) {
		t.Fatal("refused the parent's directive")
	}
	if m := w.a.hear(); len(m) != 1 || m[0].GetStep() != step+1 || w.a.admits[global] != 0.25 {
		t.Errorf("heard %v, admits %v, want the parent's 0.25 under step %d", m, w.a.admits[global], step+1)
	}
}

func TestRegionWithoutAutonomyFallsSilent(t *testing.T) {
	w := newWorld(t)
	w.eu.n.region.autonomy = 0
	w.a.report(said{global, 4000, law.Counts{}})
	w.round()
	w.eu.pass(4 * law.T)
	w.a.report(said{global, 8000, law.Counts{}}, said{ofEU, 400, law.Counts{}})
	w.eu.n.renew(w.eu.now)
	for _, m := range w.a.hear() {
		if m.GetDecider() == globalDecider {
			t.Errorf("heard %v although the parent is silent", m)
		}
	}
	if w.a.admits[ofEU] != 0.25 {
		t.Errorf("admits %v of the region's own cell, want 0.25", w.a.admits[ofEU])
	}
	again := newSpeaker("c", "eu2", 9)
	again.hello.Region = "eu"
	again.join(w.eu.rig)
	if again.hear(); again.admits[global] != 0 {
		t.Error("a new aggregator heard what nobody decides any more")
	}
}

// A cell of which the parent said nothing gets as large a part as the region has
// of the aggregators.
func TestPartOfUnknownCells(t *testing.T) {
	w := newWorld(t)
	c := newSpeaker("c", "us2", 5)
	c.hello.Region = "us"
	c.join(w.us.rig)
	w.a.report()
	w.b.report()
	w.round()
	w.round() // the parent has heard of all aggregators, and says so
	w.eu.pass(4 * law.T)
	w.a.report(said{global, 1000, law.Counts{}})
	w.eu.n.renew(w.eu.now)
	if w.a.hear(); w.a.admits[global] != float32(1.0/3) {
		t.Errorf("admits %v of 1000 rps against 1000, want a third: one of three aggregators is here", w.a.admits[global])
	}
}

// The parent keeps a region that it lost for 30 s, and its history has it by its
// name.
func TestParentKeepsALostRegion(t *testing.T) {
	w := newWorld(t)
	w.a.report(said{global, 3000, law.Counts{}})
	w.round()
	w.up.n.leave(w.up.now, w.eu.c)
	w.up.pass(law.ZoneKept - 1)
	w.up.n.renew(w.up.now)
	if got := w.up.rps(global); got != 3000 {
		t.Errorf("%v rps just before 30 s, want 3000", got)
	}
	if got := w.up.n.silent(w.up.now); len(got) != 1 || got[0].name != "region eu" {
		t.Errorf("silent are %v, want region eu", got)
	}
	w.up.pass(1)
	w.up.n.renew(w.up.now)
	if got := w.up.rps(global); got != 0 {
		t.Errorf("%v rps after 30 s, want none", got)
	}
}

// A region that restarts says nothing of its sums before they are whole.
func TestRestartedRegionWarmsUp(t *testing.T) {
	w := newWorld(t)
	w.a.report(said{global, 3000, law.Counts{}})
	w.round()
	w.eu.bootID++
	w.eu.restart()
	w.eu.n.warm = false
	w.eu.join()
	w.a.join(w.eu.rig)
	w.eu.tell(true)
	if got := w.up.rps(global); got != 3000 {
		t.Errorf("%v rps while the region warms up, want 3000 as before", got)
	}
	w.pass(law.Handover)
	w.a.report(said{global, 2000, law.Counts{}})
	w.eu.tell(true)
	w.up.pass(law.Rejoin)
	if got := w.up.rps(global); got != 2000 {
		t.Errorf("%v rps when it has, want 2000", got)
	}
}

// The share that a child goes on with when it is cut off is told anew although
// what was decided stays as it was.
func TestSharesThatMoveAreTold(t *testing.T) {
	w := newWorld(t)
	mix := func(eu, us float64) {
		w.a.report(said{global, eu, law.Counts{}})
		w.b.report(said{global, us, law.Counts{}})
		w.pass(law.T)
		w.round()
	}
	mix(3200, 800)
	if w.a.shares[global] != 0.8 {
		t.Fatalf("the share of eu is %v, want 0.8", w.a.shares[global])
	}
	version := w.up.n.own.version
	for range lookEvery + 2 { // the parent's look, and then the region's
		mix(800, 3200)
	}
	if w.up.n.own.version != version {
		t.Error("a cell was decided anew although its sum is the same")
	}
	if w.a.shares[global] != 0.2 || w.b.shares[global] != 0.8 {
		t.Errorf("shares %v and %v after the load moved, want 0.2 and 0.8", w.a.shares[global], w.b.shares[global])
	}
	if i, _ := w.eu.n.cells.Find(global); float32(w.eu.n.region.passed[i].share) != 0.2 {
		t.Errorf("the region's own share is %v, want 0.2", w.eu.n.region.passed[i].share)
	}
}
