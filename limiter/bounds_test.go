package limiter

import (
	"fmt"
	"runtime"
	"testing"
	"time"
)

// TestScanIsBounded is G11: a million distinct callers, with legitimate ones
// among them.
func TestScanIsBounded(t *testing.T) {
	const strangers = 1_000_000
	l := New(Options{})
	each := deny("each", "*", "")
	each.PerCaller = true
	blocked := deny("blocked", "stranger-77*", "")
	blocked.Block, blocked.LimitRPS = true, 0
	install(t, l, Service{Name: "s", Buckets: []Bucket{each, blocked, deny("exact", "late", "x")}})
	send(l, 10, "early", "x")
	before := heap()
	dropped := 0
	for i := range strangers {
		dropped += send(l, 1, fmt.Sprintf("stranger-%d", i), "x")
	}
	send(l, 10, "early", "x")
	send(l, 10, "late", "x")
	l.Collect(at(0))
	if grown := int64(heap()) - int64(before); grown > 64<<20 {
		t.Errorf("heap grew by %d MiB, want at most 64", grown>>20)
	}
	// 77, 77x, 77xx, 77xxx, 77xxxx: those beyond the bound on names too.
	if dropped != 11_111 {
		t.Errorf("dropped %d, want the 11,111 whose names begin with stranger-77", dropped)
	}
	cells := 0
	for range l.Cells() {
		cells++
	}
	if cells > defaultMaxNames+10 {
		t.Errorf("%d cells, want at most one for each of %d callers", cells, defaultMaxNames)
	}
	tab := l.Service("s").table.Load()
	if len(tab.leaves) > defaultMaxNames+10 {
		t.Errorf("%d leaves, want at most one for each of %d callers", len(tab.leaves), defaultMaxNames)
	}
	wantCounts(t, l, "each", "early", Counts{Offered: 20})
	wantCounts(t, l, "each", "late", Counts{Offered: 10})
	wantCounts(t, l, "exact", "", Counts{Offered: 10})
	var sum Counts
	for c := range l.Cells() {
		if c.ID().Bucket == "s/each" {
			sum.add(c.Counts())
		}
	}
	if want := uint64(strangers - dropped + 30); sum.Offered != want {
		t.Errorf("each is offered %d over all callers, want %d", sum.Offered, want)
	}
	runtime.KeepAlive(l)
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func TestPairsAreBounded(t *testing.T) {
	l := New(Options{MaxNames: 10})
	each := deny("each", "*", "")
	each.PerCaller = true
	install(t, l, Service{Name: "s", Buckets: []Bucket{each, deny("named", "late", "rare"), deny("p", "", "p1*")}})
	for caller := range 30 {
		for procedure := range 30 {
			send(l, 1, fmt.Sprintf("c%d", caller), fmt.Sprintf("p%d", procedure))
		}
	}
	send(l, 3, "late", "rare")
	l.Collect(at(0))
	tab := l.Service("s").table.Load()
	if tab.count[own] > maxOwnLeaves*10+1 || tab.count[byCaller] > maxMixedLeaves*10 || tab.count[byClass] > 10 {
		t.Errorf("leaves by level = %v, want at most 41, 40 and 10", tab.count)
	}
	wantCounts(t, l, "named", "", Counts{Offered: 3})
	wantCounts(t, l, "p", "", Counts{Offered: 30 * 11})
	wantCounts(t, l, "each", "c0", Counts{Offered: 30})
	wantCounts(t, l, "each", Other, Counts{Offered: 30 * 20})
}

func TestServicesAreBounded(t *testing.T) {
	l := New(Options{})
	install(t, l, Service{Name: "s", Buckets: []Bucket{deny("b", "", "")}})
	for i := range 3 * maxServices {
		l.Decide(Request{Service: fmt.Sprint(i)})
	}
	if n := len(*l.services.Load()); n > maxServices+2 {
		t.Errorf("%d services, want at most %d", n, maxServices+2)
	}
	if l.Service("2999") != l.Service(Other) {
		t.Error("a service beyond the bound is not Other")
	}
	install(t, l, Service{Name: "2999", Buckets: []Bucket{deny("b", "", "")}})
	if l.Service("2999").Configuration() == nil {
		t.Error("the bound keeps a service with a configuration out")
	}
}

func TestIdleNamesAreForgotten(t *testing.T) {
	l := New(Options{MaxNames: 2})
	each := deny("each", "*", "")
	each.PerCaller = true
	install(t, l, Service{Name: "s", Buckets: []Bucket{each, deny("b", "", "")}})
	h := l.Handle("s", "late", "x")
	l.Collect(at(0))
	send(l, 1, "a", "x")
	send(l, 1, "b", "x")
	h.Decide() // beyond the bound
	l.Collect(at(time.Second))
	if c := cell(t, l, "each", Other); c.Counts().Offered != 1 {
		t.Errorf("_other is offered %d, want 1", c.Counts().Offered)
	}
	if l.Cell(CellID{Bucket: "s/each", Caller: "c"}) != nil {
		t.Error("Cell makes a cell beyond the bound")
	}
	now := time.Second
	for now < idle+time.Minute {
		now += 5 * time.Second
		send(l, 1, "a", "x")
		l.Collect(at(now))
	}
	tab := l.Service("s").table.Load()
	if len(tab.callers.held) != 1 || len(tab.leaves) != 1 {
		t.Errorf("%d callers and %d leaves, want a alone", len(tab.callers.held), len(tab.leaves))
	}
	if n := len(l.retired); n != 0 {
		t.Errorf("%d batches of leaves are still retired, want none", n)
	}
	ids := map[CellID]bool{}
	for c := range l.Cells() {
		ids[c.ID()] = true
	}
	if len(ids) != 2 || !ids[CellID{Bucket: "s/each", Caller: "a"}] {
		t.Errorf("cells = %v, want b's and a's", ids)
	}
	// There is room now, and the handle notices.
	h.Decide()
	l.Collect(at(now))
	wantCounts(t, l, "each", "late", Counts{Offered: 1})
	steps := uint64((idle + time.Minute) / (5 * time.Second))
	wantCounts(t, l, "b", "", Counts{Offered: steps + 4})
}

// TestReusedCountersStartAtNothing: leaves come and go in the same words.
func TestReusedCountersStartAtNothing(t *testing.T) {
	l := New(Options{})
	install(t, l, Service{Name: "s", Buckets: []Bucket{deny("b", "", "")}})
	now := time.Duration(0)
	for i := range 50 {
		send(l, i, fmt.Sprint(i), "x")
		for range 3 {
			l.Collect(at(now))
			now += idle
		}
	}
	wantCounts(t, l, "b", "", Counts{Offered: 50 * 49 / 2})
	if n := len(l.counts.chunks); n != 1 {
		t.Errorf("%d chunks of counters, want 1", n)
	}
}

// TestClassesAreBounded: where a configuration tells more pairs of classes
// apart than there may be leaves, the buckets of callers still hold.
func TestClassesAreBounded(t *testing.T) {
	const n = 300 // squared, it is above the bound
	l := New(Options{MaxNames: 1})
	s := Service{Name: "s"}
	for i := range n {
		caller, procedure := deny(fmt.Sprintf("c%d", i), fmt.Sprintf("c%d", i), ""), deny(fmt.Sprintf("p%d", i), "", fmt.Sprintf("p%d", i))
		if i%2 == 0 {
			caller.Block, caller.LimitRPS = true, 0
		}
		s.Buckets = append(s.Buckets, caller, procedure)
	}
	install(t, l, s)
	for procedure := range n {
		for caller := range n {
			want := 1 - caller%2
			if got := send(l, 1, fmt.Sprintf("c%d", caller), fmt.Sprintf("p%d", procedure)); got != want {
				t.Fatalf("c%d to p%d: dropped %d of 1, want %d", caller, procedure, got, want)
			}
		}
	}
	l.Collect(at(0))
	wantCounts(t, l, "c0", "", Counts{Offered: n, Dropped: n})
	wantCounts(t, l, "c1", "", Counts{Offered: n})
	if got, most := len(l.Service("s").table.Load().leaves), maxClassLeaves+n+2*maxOwnLeaves; got > most {
		t.Errorf("%d leaves, want at most %d", got, most)
	}
}
