package aggregator

import (
	"strings"
	"testing"
	"time"

	"grl/limiter"
	"grl/limiter/law"
	grlv1 "grl/proto/grl/v1"
	"grl/proto/wire"
)

func TestSumOfHosts(t *testing.T) {
	r := newRig(t, revision(1, 2))
	a, b := newSpeaker("a", 1), newSpeaker("b", 2)
	a.join(r)
	b.join(r)
	a.report(said{0, 10, law.Counts{Offered: 5}}, said{1, 1, law.Counts{}})
	b.report(said{0, 20, law.Counts{Offered: 7}})
	if got := r.rps(0); got != 30 {
		t.Errorf("cell 0: %v rps, want 30", got)
	}
	if got, want := r.counts(0), (law.Counts{Offered: 12, Late: 12}); got != want {
		t.Errorf("cell 0: counted %+v, want %+v (all late: it is not known since when)", got, want)
	}
	r.pass(law.T)
	b.report(said{0, 20, law.Counts{Offered: 27}})
	if got, want := r.counts(0), (law.Counts{Offered: 32, Late: 12}); got != want {
		t.Errorf("cell 0: counted %+v, want %+v", got, want)
	}
	r.n.leave(r.now, a.h)
	r.n.leave(r.now, a.h) // a stream closes once, but leaving twice changes nothing
	if got := r.rps(0); got != 20 {
		t.Errorf("cell 0 after a host left: %v rps, want 20", got)
	}
	if got := r.rps(1); got != 0 {
		t.Errorf("cell 1 after its host left: %v rps, want none", got)
	}
}

// F14: a host that is not heard leaves the sum, with all its cells, and returns
// with all of them at any report.
func TestSilentHostLeavesAndReturns(t *testing.T) {
	r := newRig(t, revision(1, 3))
	s := newSpeaker("a", 1)
	s.join(r)
	s.report(said{0, 10, law.Counts{}}, said{1, 20, law.Counts{}}, said{2, 30, law.Counts{}})
	r.full()
	r.pass(law.HostSilent)
	r.n.silence(r.now)
	if r.rps(0) != 10 {
		t.Fatalf("left after exactly %v, want after more", law.HostSilent)
	}
	r.pass(1)
	r.n.silence(r.now)
	for cell := range 3 {
		if got := r.rps(cell); got != 0 {
			t.Errorf("cell %d: %v rps of a silent host", cell, got)
		}
	}
	if m := r.jumps(); len(m) != 1 || len(m[0].GetCell()) != 3 {
		t.Errorf("the parent hears at once of %v, want all 3", m)
	}
	s.report(said{0, 11, law.Counts{Offered: 4}})
	for cell, want := range []float64{11, 20, 30} {
		if got := r.rps(cell); got != want {
			t.Errorf("cell %d: %v rps after the host returned, want %v", cell, got, want)
		}
	}
	if m := r.jumps(); len(m) != 1 || len(m[0].GetCell()) != 3 {
		t.Errorf("the parent hears at once of %v that are back, want all 3", m)
	}
	if got, want := r.counts(0), (law.Counts{Offered: 4, Late: 4}); got != want {
		t.Errorf("counted %+v after a silence, want %+v", got, want)
	}
}

func TestEmptyReportsRenew(t *testing.T) {
	r := newRig(t, revision(1, 1))
	s := newSpeaker("a", 1)
	s.join(r)
	s.report(said{0, 10, law.Counts{}})
	for range 10 {
		r.pass(law.T)
		s.report()
		r.n.silence(r.now)
	}
	if got := r.rps(0); got != 10 {
		t.Errorf("%v rps of a host that renews, want 10", got)
	}
}

// Fault 22: the same report again, or an older one, with its names.
func TestRepeatedReportsChangeNothing(t *testing.T) {
	r := newRig(t, revision(1, 3))
	s := newSpeaker("a", 1)
	s.join(r)
	first := s.message(said{0, 10, law.Counts{Offered: 1}}, said{1, 20, law.Counts{Offered: 2}})
	second := s.message(said{2, 30, law.Counts{Offered: 3}}, said{0, 15, law.Counts{Offered: 4}})
	for i, m := range []*grlv1.Report{first, first, second, first, second} {
		taken, err := r.n.report(r.now, s.h, m)
		if err != nil {
			t.Fatal(err)
		}
		if want := i == 0 || i == 2; taken != want {
			t.Errorf("report %d of the sequence: taken %v, want %v", i, taken, want)
		}
	}
	for cell, want := range []float64{15, 20, 30} {
		if got := r.rps(cell); got != want {
			t.Errorf("cell %d: %v rps, want %v", cell, got, want)
		}
	}
	s.report(said{1, 25, law.Counts{Offered: 9}}) // numbers have not shifted
	if r.rps(1) != 25 || r.counts(1).Offered != 9 {
		t.Errorf("cell 1: %v rps, %+v, want 25 and 9", r.rps(1), r.counts(1))
	}
}

func TestMalformedReports(t *testing.T) {
	for name, m := range map[string]*grlv1.Report{
		"a cell nobody named": {Sequence: 1, Cell: []uint32{0}},
		"unequal columns":     {Sequence: 1, Names: []*grlv1.CellName{{Bucket: "pay/b0"}}, Cell: []uint32{0}, Offered: []uint64{1, 2}},
		"a name too long":     {Sequence: 1, Names: []*grlv1.CellName{{Bucket: "pay/b0"}, {Bucket: strings.Repeat("x", 1000)}}},
		"a cell named twice":  {Sequence: 1, Names: []*grlv1.CellName{{Bucket: "pay/b0"}, {Bucket: "pay/b0"}}},
		"a cell twice":        {Sequence: 1, Names: []*grlv1.CellName{{Bucket: "pay/b0"}}, Cell: []uint32{0, 0}, Offered: []uint64{1, 0}},
	} {
		r := newRig(t, revision(1, 1))
		s := newSpeaker("a", 1)
		s.join(r)
		if _, err := r.n.report(r.now, s.h, m); err == nil {
			t.Errorf("%s: taken", name)
		}
		r.n.leave(r.now, s.h) // as the stream then does
	}
}

// Fault 58: counts that no host can have would wrap the sums, and with them
// what others counted.
func TestForgedCounts(t *testing.T) {
	r := newRig(t, revision(1, 1))
	honest, evil := newSpeaker("a", 1), newSpeaker("b", 2)
	honest.join(r)
	honest.report(said{0, 10, law.Counts{Offered: 1000}})
	for _, forged := range [][]uint64{{1<<64 - 1}, {5, 1<<64 - 1}, {5, 1 << 40}} {
		evil.join(r)
		for i, offered := range forged {
			r.pass(law.T)
			_, err := r.n.report(r.now, evil.h, evil.message(said{0, 10, law.Counts{Offered: offered}}))
			if last := i == len(forged)-1; (err != nil) != last {
				t.Fatalf("%d requests after %v: error %v", offered, forged[:i], err)
			}
		}
		r.n.leave(r.now, evil.h) // as the stream then does
	}
	if got := r.counts(0).Offered; got < 1000 || got > 1010 {
		t.Errorf("counted %d, want 1000 of the honest host and at most 10", got)
	}
}

// Fault 58: a host that names a cell again and again would be believed as often,
// until the sum wraps and the load of the others is gone.
func TestForgedNames(t *testing.T) {
	r := newRig(t, revision(1, 1))
	honest, evil := newSpeaker("a", 1), newSpeaker("b", 2)
	honest.join(r)
	honest.report(said{0, 100, law.Counts{Offered: 1000}})
	evil.join(r)
	const most = uint64(law.MaxRPS * 1e6)
	for i := range uint32(20000) { // of which 18,447 would wrap the sum
		m := &grlv1.Report{
			Sequence:        uint64(i) + 1,
			Names:           []*grlv1.CellName{{Bucket: "pay/b0"}},
			Cell:            []uint32{i},
			OfferedMicroRps: []uint64{most},
		}
		if _, err := r.n.report(r.now, evil.h, m); err != nil {
			t.Fatal(err)
		}
	}
	if got := r.n.sum.Rate(0); got.Hosts != 2 || got.Offered != law.MicroRPS(most)+100e6 {
		t.Errorf("%v rps of %d hosts, want what two say", got.Offered.RPS(), got.Hosts)
	}
	r.n.leave(r.now, evil.h)
	if got := r.rps(0); got != 100 {
		t.Errorf("%v rps are left, want the 100 of the honest host", got)
	}
}

// A report that speaks of a bucket before its configuration is here.
func TestReportsBeforeTheConfiguration(t *testing.T) {
	r := newRig(t, nil)
	s := newSpeaker("a", 1)
	s.join(r)
	s.report(said{0, 10, law.Counts{Offered: 5}})
	if got := r.n.cells.Count(); got != 0 {
		t.Fatalf("%d cells without a configuration", got)
	}
	r.n.install(revision(1, 1))
	r.pass(law.T)
	s.report(said{0, 10, law.Counts{Offered: 8}})
	if got := r.counts(0); got.Offered != 8 {
		t.Errorf("counted %+v once the configuration is here, want all 8", got)
	}
}

func TestDirectiveOrder(t *testing.T) {
	r := newRig(t, revision(1, 1))
	steps := []struct {
		name  string
		stamp law.Stamp
		admit float32
		taken bool
	}{
		{"the first", law.Stamp{Epoch: 2, Sequence: 5}, 0.9, true},
		{"another part of it", law.Stamp{Epoch: 2, Sequence: 5}, 0.8, true},
		{"an older sequence", law.Stamp{Epoch: 2, Sequence: 4}, 0.1, false},
		{"a paused leader", law.Stamp{Epoch: 1, Sequence: 99}, 0.1, false},
		{"a step", law.Stamp{Epoch: 2, Sequence: 5, Step: 1}, 0.7, true},
		{"the one before it", law.Stamp{Epoch: 2, Sequence: 5}, 0.1, false},
		{"the next", law.Stamp{Epoch: 2, Sequence: 6}, 0.6, true},
		{"a new leader", law.Stamp{Epoch: 3, Sequence: 1}, 0.5, true},
	}
	want := float32(0)
	for _, s := range steps {
		if got := r.directStamped(s.stamp, map[limiter.CellID]float32{cellOf(0): s.admit}); got != s.taken {
			t.Errorf("%s: taken %v, want %v", s.name, got, s.taken)
		}
		if s.taken {
			want = s.admit
		}
		i, _ := r.n.cells.Find(cellOf(0))
		if got := float32(r.n.states[i].told.Admit); got != want {
			t.Errorf("%s: admits %v, want %v", s.name, got, want)
		}
	}
	if got := r.n.heard[globalDecider]; got != 3 {
		t.Errorf("highest epoch %d, want 3", got)
	}
}

// F16, 5.2: a new host gets the current directive when it joins, and each host
// each one of a T once.
func TestHostsHearDirectives(t *testing.T) {
	r := newRig(t, revision(7, 2))
	a := newSpeaker("a", 1)
	a.join(r)
	a.report(said{0, 10, law.Counts{Offered: 3}})
	r.up()
	r.direct(map[limiter.CellID]float32{cellOf(0): 0.5, cellOf(1): 0.25})
	if got := a.hear(); len(got) != 1 || got[0].GetReportSequence() != 1 {
		t.Fatalf("heard %v, want one directive that contains report 1", got)
	}
	if a.admits[cellOf(0)] != 0.5 || a.admits[cellOf(1)] != 0.25 || a.revision != 7 {
		t.Errorf("heard %v of r%d", a.admits, a.revision)
	}
	if got := a.hear(); len(got) != 0 {
		t.Errorf("heard %v again", got)
	}
	r.pass(law.T)
	r.direct(nil) // renews
	if got := a.hear(); len(got) != 1 || len(got[0].GetCell()) != 0 {
		t.Errorf("heard %v, want an empty directive", got)
	}
	b := newSpeaker("b", 2)
	b.join(r)
	b.hear()
	if b.admits[cellOf(0)] != 0.5 || b.admits[cellOf(1)] != 0.25 {
		t.Errorf("a new host heard %v, want all that holds", b.admits)
	}
}

func TestHostHearsTheSecondPartOfADirective(t *testing.T) {
	r := newRig(t, revision(1, 2))
	s := newSpeaker("a", 1)
	s.join(r)
	r.directStamped(law.Stamp{Epoch: 1, Sequence: 1}, map[limiter.CellID]float32{cellOf(0): 0.5})
	s.hear()
	r.directStamped(law.Stamp{Epoch: 1, Sequence: 1}, map[limiter.CellID]float32{cellOf(1): 0.25})
	s.hear()
	if s.admits[cellOf(1)] != 0.25 {
		t.Errorf("heard %v, want both parts", s.admits)
	}
}

func TestNothingIsPassedOnOfASilentController(t *testing.T) {
	r := newRig(t, revision(1, 1))
	r.direct(map[limiter.CellID]float32{cellOf(0): 0.5})
	r.pass(25 * law.T / 10)
	s := newSpeaker("a", 1)
	s.join(r)
	if got := s.hear(); len(got) != 1 {
		t.Fatalf("heard %d directives 2.5 T after the last, want 1", len(got))
	}
	r.pass(1)
	other := newSpeaker("b", 2)
	other.join(r)
	if got := other.hear(); len(got) != 0 {
		t.Errorf("heard %v of a controller silent for more than 2.5 T", got)
	}
}

func TestHostHearsOnlyOfItsServices(t *testing.T) {
	c := revision(1, 1)
	c.Services = append(c.Services, limiter.Service{Name: "shop", Buckets: []limiter.Bucket{{Service: "shop", Name: "all", LimitRPS: 5}}})
	r := newRig(t, c)
	r.direct(map[limiter.CellID]float32{cellOf(0): 0.5, {Bucket: "shop/all"}: 0.5})
	s := newSpeaker("a", 1)
	s.join(r)
	s.hear()
	if _, ok := s.admits[limiter.CellID{Bucket: "shop/all"}]; ok || len(s.admits) != 1 {
		t.Errorf("heard %v, want pay only", s.admits)
	}
}

// C4, and trap of reused indices: cells of a configuration that went, on all
// streams at once.
func TestConfigurationChangeReusesIndices(t *testing.T) {
	r := newRig(t, revision(1, 3))
	s := newSpeaker("a", 1)
	s.join(r)
	s.report(said{0, 10, law.Counts{Offered: 1}}, said{1, 20, law.Counts{Offered: 2}}, said{2, 30, law.Counts{Offered: 3}})
	r.full()
	r.direct(map[limiter.CellID]float32{cellOf(0): 0.5, cellOf(1): 0.5, cellOf(2): 0.5})
	s.hear()

	r.n.install(revision(2, 1)) // b1 and b2 go
	if got := r.n.cells.Count(); got != 1 {
		t.Fatalf("%d cells after two of three went", got)
	}
	r.pass(law.T)
	// The host has not heard yet and still speaks of b1.
	s.report(said{1, 25, law.Counts{Offered: 5}})
	// Callers' cells take the free indices.
	for i, caller := range []string{"web", "app"} {
		id := limiter.CellID{Bucket: "pay/each", Caller: caller}
		s.sequence++
		m := &grlv1.Report{Sequence: s.sequence}
		wire.AppendRow(m, s.numbers.Number(10+i, id, &m.Names), law.Rate{Offered: law.Micro(float64(100 + i)), Hosts: 1}, law.Counts{Offered: uint64(100 + i)})
		if _, err := r.n.report(r.now, s.h, m); err != nil {
			t.Fatal(err)
		}
	}
	if got := r.n.cells.Len(); got != 3 {
		t.Errorf("%d indices in use, want the 3 there were", got)
	}
	for i, caller := range []string{"web", "app"} {
		index, ok := r.n.cells.Find(limiter.CellID{Bucket: "pay/each", Caller: caller})
		if !ok || r.n.sum.Rate(index).Offered.RPS() != float64(100+i) || r.n.sum.Counts(index).Offered != uint64(100+i) || r.n.states[index] != (cellState{since: r.now}) {
			t.Errorf("caller %s at %d: %+v %+v %+v", caller, index, r.n.sum.Rate(index), r.n.sum.Counts(index), r.n.states[index])
		}
	}
	// Both streams give the new cells numbers of their own.
	reports := r.full()
	if got := reports[0].GetNames(); len(got) != 2 {
		t.Fatalf("names to the parent %v, want the two new cells", got)
	}
	for _, number := range reports[0].GetCell() {
		if number == 1 || number == 2 {
			t.Errorf("number %d of a cell that went is used again", number)
		}
	}
	web := limiter.CellID{Bucket: "pay/each", Caller: "web"}
	r.direct(map[limiter.CellID]float32{web: 0.75})
	s.hear()
	if s.admits[web] != 0.75 || s.admits[cellOf(1)] != 0.5 {
		t.Errorf("the host heard %v", s.admits)
	}

	// And b1 comes back: the host's number for it is bound anew.
	r.n.install(revision(3, 3))
	r.pass(law.T)
	s.report(said{1, 40, law.Counts{Offered: 9}})
	if r.rps(1) != 40 || r.counts(1).Offered != 7 {
		t.Errorf("cell that came back: %v rps, %+v; want 40 and 7, what came since it was known", r.rps(1), r.counts(1))
	}
}

// M8: what is idle goes away everywhere.
func TestIdleCellsAreForgotten(t *testing.T) {
	r := newRig(t, revision(1, 2))
	s := newSpeaker("a", 1)
	s.join(r)
	s.report(said{0, 10, law.Counts{Offered: 5}}, said{1, 10, law.Counts{Offered: 5}})
	r.full()
	r.direct(map[limiter.CellID]float32{cellOf(0): 1, cellOf(1): 1})
	s.hear()
	r.n.sweep(r.now)
	s.report(said{0, 0, law.Counts{Offered: 6}})
	for range 11 {
		r.pass(time.Minute)
		s.report()
		r.n.sweep(r.now)
	}
	if _, ok := r.n.cells.Find(cellOf(0)); ok {
		t.Error("a cell without traffic for 11 minutes is still known")
	}
	if _, ok := r.n.cells.Find(cellOf(1)); !ok {
		t.Error("a cell with traffic was forgotten")
	}
	// Its requests count on when they come again: the host's counter goes on.
	s.report(said{0, 3, law.Counts{Offered: 9}})
	if got := r.counts(0).Offered; got != 3 {
		t.Errorf("counted %d of a cell that came back, want the 3 new ones", got)
	}
}

func TestDirectedCellsWithoutTrafficAreForgotten(t *testing.T) {
	r := newRig(t, revision(1, 1))
	r.direct(map[limiter.CellID]float32{cellOf(0): 1})
	r.n.sweep(r.now)
	r.pass(idleCell + 1)
	r.n.sweep(r.now)
	if got := r.n.cells.Count(); got != 0 {
		t.Errorf("%d cells that nobody ever offered anything, want none", got)
	}
}

func TestMayReport(t *testing.T) {
	r := newRig(t, revision(1, 1))
	if r.n.mayReport(r.now.Add(time.Hour)) {
		t.Error("reports without ever having had a host")
	}
	newSpeaker("a", 1).join(r)
	if r.n.mayReport(r.now.Add(law.Handover - 1)) {
		t.Error("reports before its hosts had time to find it")
	}
	if !r.n.mayReport(r.now.Add(law.Handover)) {
		t.Error("does not report 1.2 T after its first host")
	}
}

func TestEpochOfHellos(t *testing.T) {
	r := newRig(t, nil)
	s := newSpeaker("a", 1)
	s.hello.Heard = []*grlv1.Heard{{Decider: "global", Epoch: 81}}
	s.join(r)
	forged := newSpeaker("b", 2)
	forged.hello.Heard = []*grlv1.Heard{{Decider: "global", Epoch: 1<<63 - 1}}
	forged.join(r)
	if got := r.n.heard[globalDecider]; got != 81 {
		t.Errorf("highest epoch %d, want 81", got)
	}
}
