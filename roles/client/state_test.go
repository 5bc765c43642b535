package client

import (
	"fmt"
	"math"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"grl/limiter"
	"grl/limiter/law"
	grlv1 "grl/proto/grl/v1"
	"grl/proto/wire"
)

// rig is a client's state with its limiter, in virtual steps, and what its
// aggregator knows from the reports.
type rig struct {
	t   testing.TB
	l   *limiter.Limiter
	s   state
	now time.Time

	ids      []limiter.CellID
	rates    map[limiter.CellID]law.Rate
	counts   map[limiter.CellID]law.Counts
	sequence uint64                    // of the last report
	number   map[limiter.CellID]uint32 // of directives
	stamp    uint64
}

func newRig(t testing.TB) *rig {
	r := &rig{t: t, l: limiter.New(limiter.Options{Zone: "z1", Region: "r1"}), now: time.Unix(1e9, 0)}
	r.s = newState(r.l, Config{Zone: "z1", Region: "r1", Hold: 10 * time.Second, Decay: 10 * time.Second})
	r.open()
	return r
}

// open begins a new stream.
func (r *rig) open() {
	r.s.reopen()
	r.ids, r.sequence = nil, 0
	r.rates, r.counts = make(map[limiter.CellID]law.Rate), make(map[limiter.CellID]law.Counts)
	r.number = make(map[limiter.CellID]uint32)
}

// configuration returns one of service pay with so many buckets, each for a
// procedure of its own, and one that is per caller.
func configuration(revision uint64, buckets int) *grlv1.Configuration {
	c := &limiter.Configuration{Epoch: 1, Revision: revision, Services: []limiter.Service{{Name: "pay"}}}
	s := &c.Services[0]
	for i := range buckets {
		s.Buckets = append(s.Buckets, limiter.Bucket{
			Service: "pay", Name: fmt.Sprintf("b%d", i), LimitRPS: 100, Behavior: limiter.Deny,
			Match: limiter.Match{Procedure: limiter.Pattern(fmt.Sprintf("p%d", i))},
		})
	}
	s.Buckets = append(s.Buckets, limiter.Bucket{
		Service: "pay", Name: "each", LimitRPS: 10, Behavior: limiter.Deny, PerCaller: true,
		Match: limiter.Match{Caller: "*", Procedure: "each"},
	})
	return wire.FromConfiguration(c)
}

func (r *rig) install(m *grlv1.Configuration) {
	r.t.Helper()
	if ok, err := r.s.install(m); !ok || err != nil {
		r.t.Fatalf("install r%d: %v, %v", m.GetRevision(), ok, err)
	}
}

func bucketCell(i int) limiter.CellID { return limiter.CellID{Bucket: fmt.Sprintf("pay/b%d", i)} }

// request sends n requests and returns how many were dropped.
func (r *rig) request(caller, procedure string, n int) (dropped int) {
	s := r.l.Service("pay")
	for range n {
		if s.Decide(caller, procedure).Dropped {
			dropped++
		}
	}
	return dropped
}

// pass turns the timer for d.
func (r *rig) pass(d time.Duration) {
	for ; d > 0; d -= law.Delta {
		r.now = r.now.Add(law.Delta)
		r.s.measure(r.now, law.Delta)
		r.s.apply(r.now)
	}
}

// report has the aggregator take the reports of a T, and returns them.
func (r *rig) report() []*grlv1.Report {
	r.t.Helper()
	reports := r.s.reports()
	for _, m := range reports {
		r.sequence++
		if m.GetSequence() != r.sequence {
			r.t.Fatalf("report %d, want %d", m.GetSequence(), r.sequence)
		}
		var err error
		if r.ids, err = wire.Named(r.ids, m.GetNames()); err == nil {
			err = wire.CheckReport(m, len(r.ids))
		}
		if err != nil {
			r.t.Fatal(err)
		}
		for row, number := range m.GetCell() {
			r.rates[r.ids[number]], r.counts[r.ids[number]] = wire.Row(m, row)
		}
	}
	return reports
}

// direct has the aggregator say what was decided.
func (r *rig) direct(admits map[limiter.CellID]float32) {
	r.t.Helper()
	r.stamp++
	if err := r.s.direct(r.now, r.directive(law.Stamp{Epoch: 1, Sequence: r.stamp}, admits)); err != nil {
		r.t.Fatal(err)
	}
	r.s.apply(r.now)
}

func (r *rig) directive(s law.Stamp, admits map[limiter.CellID]float32) *grlv1.Directive {
	m := &grlv1.Directive{Decider: "global", Epoch: s.Epoch, Sequence: s.Sequence, Step: s.Step, ReportSequence: r.sequence, CountedSequence: r.sequence}
	for id, admit := range admits {
		if _, ok := r.number[id]; !ok {
			r.number[id] = uint32(len(r.number))
			m.Names = append(m.Names, wire.FromCellID(id))
		}
		m.Cell = append(m.Cell, r.number[id])
		m.Admit = append(m.Admit, admit)
	}
	return m
}

func TestReportsWhatWasCounted(t *testing.T) {
	r := newRig(t)
	r.install(configuration(1, 2))
	for range 20 {
		r.request("web", "p0", 10)
		r.request("app", "each", 5)
		r.pass(law.Delta)
	}
	r.report()
	each := limiter.CellID{Bucket: "pay/each", Caller: "app"}
	if got := r.counts[bucketCell(0)]; got.Offered != 200 || got.Dropped != 0 {
		t.Errorf("b0: counted %+v, want 200", got)
	}
	if got := r.rates[bucketCell(0)].Offered.RPS(); math.Abs(got-200) > 0.1 {
		t.Errorf("b0: %v rps, want 200", got)
	}
	if got := r.counts[each].Offered; got != 100 {
		t.Errorf("each of app: counted %d, want 100", got)
	}
	if _, ok := r.counts[bucketCell(1)]; ok {
		t.Error("a cell without requests was reported")
	}
}

// A cell that did not move is not carried; a rate of 0 is sent once.
func TestReportsCarryWhatMoved(t *testing.T) {
	r := newRig(t)
	r.install(configuration(1, 1))
	for range 20 {
		r.request("web", "p0", 50)
		r.pass(law.Delta)
	}
	if got := r.report()[0]; len(got.GetCell()) != 1 || len(got.GetNames()) != 1 {
		t.Fatalf("first report %v", got)
	}
	zeros := 0
	for range 60 {
		r.pass(law.T)
		m := r.report()[0]
		if len(m.GetNames()) != 0 {
			t.Fatalf("named again: %v", m)
		}
		if len(m.GetCell()) == 1 && len(m.GetOfferedMicroRps()) == 0 {
			zeros++
		}
	}
	if zeros != 1 || r.rates[bucketCell(0)] != (law.Rate{}) {
		t.Errorf("a rate of 0 was sent %d times, last %+v; want once", zeros, r.rates[bucketCell(0)])
	}
	if m := r.report()[0]; m.GetSequence() == 0 || len(m.GetCell()) != 0 {
		t.Errorf("an idle host reports %v, want an empty report that renews", m)
	}
}

func TestNewStreamBeginsWithAll(t *testing.T) {
	r := newRig(t)
	r.install(configuration(1, 2))
	r.request("web", "p0", 10)
	r.request("web", "p1", 20)
	r.pass(law.T)
	r.report()
	r.pass(law.T)
	r.open()
	r.report()
	if r.counts[bucketCell(0)].Offered != 10 || r.counts[bucketCell(1)].Offered != 20 {
		t.Errorf("a new stream begins with %v, want all counts", r.counts)
	}
}

func TestConfirmedCountsGoIntoTheHello(t *testing.T) {
	r := newRig(t)
	r.install(configuration(1, 1))
	r.request("web", "p0", 10)
	r.pass(law.T)
	r.report()
	r.direct(nil) // contains it
	r.request("web", "p0", 7)
	r.pass(law.T)
	r.report() // not confirmed
	r.open()
	counts, err := wire.ConfirmedCounts(r.s.confirmed.Message(true))
	if err != nil {
		t.Fatal(err)
	}
	if got := counts[bucketCell(0)].Offered; got != 10 {
		t.Errorf("confirmed %d, want 10", got)
	}
}

func TestDirectivesOpenHoldAndFade(t *testing.T) {
	r := newRig(t)
	r.install(configuration(1, 1))
	if got := r.request("web", "p0", 1000); got != 0 {
		t.Errorf("dropped %d of 1000 before any directive", got)
	}
	r.direct(map[limiter.CellID]float32{bucketCell(0): 0.25})
	shares := []struct {
		name string
		wait time.Duration
		want float64
	}{
		{"at once", 0, 0.75},
		{"held", 10 * time.Second, 0.75},
		{"half decayed", 5 * time.Second, 0.375},
		{"open", 5 * time.Second, 0},
		{"open for good", time.Hour, 0},
	}
	for _, s := range shares {
		if s.wait == time.Hour { // in one step: the timer may have slept
			r.now = r.now.Add(s.wait)
			r.s.apply(r.now)
		}
		r.pass(s.wait % time.Hour)
		if got := float64(r.request("web", "p0", 10_000)) / 10_000; math.Abs(got-s.want) > 0.01 {
			t.Errorf("%s: dropped %v, want %v", s.name, got, s.want)
		}
	}
	r.direct(nil)
	if got := float64(r.request("web", "p0", 10_000)) / 10_000; math.Abs(got-0.75) > 0.01 {
		t.Errorf("after an empty directive renewed: dropped %v, want 0.75", got)
	}
}

// I1: what a client applies never goes back.
func TestOlderDirectivesAreRefused(t *testing.T) {
	r := newRig(t)
	r.install(configuration(1, 1))
	for _, s := range []struct {
		name  string
		stamp law.Stamp
		admit float32
		want  float64
	}{
		{"the first", law.Stamp{Epoch: 2, Sequence: 2}, 0.5, 0.5},
		{"older", law.Stamp{Epoch: 2, Sequence: 1}, 0.9, 0.5},
		{"of a paused leader", law.Stamp{Epoch: 1, Sequence: 9}, 0.9, 0.5},
		{"another part", law.Stamp{Epoch: 2, Sequence: 2}, 0.4, 0.4},
		{"newer", law.Stamp{Epoch: 3, Sequence: 1}, 0.3, 0.3},
	} {
		if err := r.s.direct(r.now, r.directive(s.stamp, map[limiter.CellID]float32{bucketCell(0): s.admit})); err != nil {
			t.Fatal(err)
		}
		i, _ := r.s.table.Find(bucketCell(0))
		if got := r.s.cells[i].host.Verdict.Admit; math.Abs(got-s.want) > 1e-6 {
			t.Errorf("%s: admits %v, want %v", s.name, got, s.want)
		}
	}
	// An older one does not renew either.
	heard := r.s.deciders["global"].heard
	r.now = r.now.Add(time.Second)
	if err := r.s.direct(r.now, r.directive(law.Stamp{Epoch: 2, Sequence: 9}, nil)); err != nil {
		t.Fatal(err)
	}
	if got := r.s.deciders["global"].heard; !got.Equal(heard) {
		t.Error("an older directive renewed")
	}
}

func TestMalformedDirectivesEndTheStream(t *testing.T) {
	for name, m := range map[string]*grlv1.Directive{
		"no admits":           {Names: []*grlv1.CellName{{Bucket: "pay/b0"}}, Cell: []uint32{0}},
		"a cell nobody named": {Cell: []uint32{7}, Admit: []float32{1}},
	} {
		r := newRig(t)
		r.install(configuration(1, 1))
		if err := r.s.direct(r.now, m); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
}

func TestNumbersThatNoControllerComputes(t *testing.T) {
	for _, admit := range []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1)), -1, 0, 2} {
		r := newRig(t)
		r.install(configuration(1, 1))
		r.direct(map[limiter.CellID]float32{bucketCell(0): admit})
		if got := r.request("web", "p0", 1000); got != 0 {
			t.Errorf("admit %v drops %d of 1000, want none", admit, got)
		}
	}
}

// C7, C10: a limit changes under load; indices are reused; nothing is left of
// the cells that went.
func TestConfigurationChange(t *testing.T) {
	r := newRig(t)
	r.install(configuration(1, 3))
	for i := range 3 {
		r.request("web", fmt.Sprintf("p%d", i), 10*(i+1))
	}
	r.pass(law.T)
	r.report()
	r.direct(map[limiter.CellID]float32{bucketCell(0): 0.5, bucketCell(1): 0.01, bucketCell(2): 0.01})
	r.install(configuration(2, 1))
	r.request("app", "each", 40)
	r.request("bat", "each", 50)
	r.request("web", "p0", 1000)
	r.pass(law.T)
	r.report()
	for caller, want := range map[string]uint64{"app": 40, "bat": 50} {
		id := limiter.CellID{Bucket: "pay/each", Caller: caller}
		if got := r.counts[id]; got.Offered != want || got.Dropped != 0 {
			t.Errorf("caller %s: counted %+v, want %d and no drops", caller, got, want)
		}
	}
	if got := r.counts[bucketCell(0)]; got.Offered != 1010 || math.Abs(float64(got.Dropped)-500) > 20 {
		t.Errorf("b0, which stayed: counted %+v, want 1010 and half of 1000 dropped", got)
	}
	// b1 comes back without what was decided of it before.
	r.install(configuration(3, 3))
	if got := r.request("web", "p1", 100); got != 0 {
		t.Errorf("dropped %d of 100 by a directive for a bucket that went", got)
	}
	r.pass(law.T)
	r.report()
	if got := r.counts[bucketCell(1)].Offered; got != 100 {
		t.Errorf("b1: counted %d since it came back, want 100", got)
	}
}

func TestOlderConfigurationsAreNotTaken(t *testing.T) {
	r := newRig(t)
	r.install(configuration(5, 1))
	if ok, err := r.s.install(configuration(4, 3)); ok || err != nil {
		t.Errorf("r4 after r5: %v, %v", ok, err)
	}
	bad := configuration(6, 1)
	bad.Services[0].Buckets[0].Behavior = 77
	if ok, err := r.s.install(bad); ok || err == nil {
		t.Error("an unknown behavior was taken")
	}
	m := r.report()[0]
	if m.GetConfigRevision() != 5 || m.GetRefusedRevision() != 6 || m.GetRefusedReason() == "" {
		t.Errorf("reports %v, want that r5 is held and r6 refused", m)
	}
	r.install(configuration(7, 1))
	if m := r.report()[0]; m.GetRefusedRevision() != 0 || m.GetConfigRevision() != 7 {
		t.Errorf("reports %v, want r7 and no refusal", m)
	}
	change := &grlv1.Configuration{Epoch: 1, Revision: 9, Base: 8}
	if _, err := r.s.install(change); !wire.NeedsWhole(err) {
		t.Errorf("change of r8 to r7: %v, want an error that needs a whole one", err)
	}
}

// M8: a caller that stays away is forgotten; when it comes back its requests
// are counted from 0, under a new number.
func TestIdleCallersAreForgotten(t *testing.T) {
	r := newRig(t)
	r.install(configuration(1, 1))
	id := limiter.CellID{Bucket: "pay/each", Caller: "app"}
	r.request("app", "each", 3)
	r.pass(law.T)
	r.report()
	r.direct(map[limiter.CellID]float32{id: 5})
	for range 60 { // decays to nothing
		r.pass(law.T)
		r.report()
	}
	for range 12 {
		r.now = r.now.Add(time.Minute)
		r.s.measure(r.now, time.Minute)
		r.s.sweep()
	}
	if _, ok := r.s.table.Find(id); ok {
		t.Fatal("a caller that was away for twelve minutes is still known")
	}
	r.request("app", "each", 7)
	r.pass(law.T)
	m := r.report()[0]
	if len(m.GetNames()) != 1 || m.GetCell()[0] == 0 {
		t.Errorf("reports %v, want a new name and number", m)
	}
	if got := r.counts[id].Offered; got != 7 {
		t.Errorf("counted %d, want 7", got)
	}
	if before, _ := wire.ConfirmedCounts(r.s.confirmed.Message(true)); before[id].Offered != 0 {
		t.Errorf("says that %d are confirmed of a cell that began anew", before[id].Offered)
	}
}

// A caller's name may be any bytes; one such must not stop all reports.
func TestCallersThatAreNoText(t *testing.T) {
	r := newRig(t)
	r.install(configuration(1, 1))
	r.request("app\xff", "each\xc0", 3)
	r.request("app\xff", "each", 3)
	r.pass(law.T)
	for _, m := range r.report() {
		if _, err := proto.Marshal(m); err != nil {
			t.Error(err)
		}
	}
	if _, err := proto.Marshal(fromDetail(r.l.Detail())); err != nil {
		t.Error(err)
	}
}

// Only the fleet and the own region decide here; others would be kept, and told
// of in each report, without an end.
func TestDirectivesOfStrangers(t *testing.T) {
	r := newRig(t)
	r.install(configuration(1, 1))
	for i := range 5 {
		m := &grlv1.Directive{Decider: fmt.Sprintf("r%d", i), Epoch: 1, Sequence: 1, Cell: []uint32{0}, Admit: []float32{0.5}}
		if i == 0 {
			m.Names = []*grlv1.CellName{wire.FromCellID(bucketCell(0))}
		}
		if err := r.s.direct(r.now, m); err != nil {
			t.Fatal(err)
		}
	}
	var taken []string
	for _, m := range r.report()[0].GetTaken() {
		taken = append(taken, m.GetDecider())
	}
	if len(taken) != 1 || taken[0] != "r1" || len(r.s.deciders) != 1 {
		t.Errorf("took directives of %q and keeps %d deciders, want r1, its region, alone", taken, len(r.s.deciders))
	}
}

// Whatever an aggregator sends, the client does not stop, and drops nothing it
// has no valid ratio for.
func FuzzDirective(f *testing.F) {
	for _, m := range []*grlv1.Directive{
		{Decider: "global", Epoch: 1, Sequence: 1, Names: []*grlv1.CellName{{Bucket: "pay/b0"}}, Cell: []uint32{0}, Admit: []float32{0.5}},
		{Decider: "r1", Epoch: 1 << 63, ReportSequence: 1 << 63, Names: []*grlv1.CellName{{Bucket: "pay/each", Caller: "x"}, {}}, Cell: []uint32{1, 0}, Admit: []float32{-1, 0}},
		{Cell: []uint32{0}},
	} {
		data, err := proto.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m := &grlv1.Directive{}
		if proto.Unmarshal(data, m) != nil {
			return
		}
		r := newRig(t)
		r.install(configuration(1, 1))
		r.request("web", "p0", 10)
		r.pass(law.Delta)
		r.report()
		for range 2 { // twice: the second one names all again
			if r.s.direct(r.now, m) != nil {
				break
			}
			r.pass(law.Delta)
			r.report()
		}
		for c := range r.l.Cells() {
			if n := c.Counts(); n.Dropped > n.Offered {
				t.Fatalf("cell %v counted %+v", c.ID(), n)
			}
		}
		r.s.reopen()
		r.s.sweep()
		r.install(configuration(2, 0))
	})
}

// The client's side of a report of 200 active cells: find what moved, make the
// message, write its bytes.
func BenchmarkReportEncode(b *testing.B) {
	const cells = 200
	r := newRig(b)
	r.install(configuration(1, cells))
	for i := range cells {
		r.request("web", fmt.Sprintf("p%d", i), 50)
	}
	r.pass(law.T)
	r.report()
	b.ReportAllocs()
	var size int
	for b.Loop() {
		b.StopTimer()
		r.direct(nil) // confirms, as it does each T
		for i := range r.s.cells {
			at := &r.s.cells[i]
			at.counts.Offered += uint64(30 + i%40)
			at.counts.Dropped += uint64(i % 10)
			at.host.Step(2+float64((int(at.counts.Offered)+i*7)%50)/20, law.Delta)
		}
		b.StartTimer()
		size = 0
		for _, m := range r.s.reports() {
			data, err := proto.Marshal(m)
			if err != nil {
				b.Fatal(err)
			}
			size += len(data)
			r.sequence = m.GetSequence()
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*cells), "ns/cell")
	b.ReportMetric(float64(size), "B/report")
}

// What a host sends that is steady: a report of the T in which nothing moved.
func TestBytesOfAnIdleHost(t *testing.T) {
	r := newRig(t)
	r.install(configuration(1, 50))
	r.direct(map[limiter.CellID]float32{bucketCell(0): 2})
	if got := proto.Size(r.report()[0]); got > 64 {
		t.Errorf("an idle host's report has %d bytes, want at most 64", got)
	}
}
