package limiter

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func TestInstallKeepsCountsAndRatios(t *testing.T) {
	l := New(Options{})
	each := deny("each", "*", "")
	each.PerCaller = true
	install(t, l, Service{Name: "s", Buckets: []Bucket{deny("b", "a", ""), each, deny("gone", "", "x")}})
	send(l, 7, "a", "x")
	l.Collect(at(0))
	kept, own, gone := cell(t, l, "b", ""), cell(t, l, "each", "a"), cell(t, l, "gone", "")
	kept.SetRatio(1)
	send(l, 2, "a", "x")

	changed := deny("b", "a", "")
	changed.LimitRPS = 20
	install(t, l, Service{Name: "s", Buckets: []Bucket{changed, each}})
	if n := send(l, 3, "a", "x"); n != 3 {
		t.Errorf("dropped %d of 3 after Install, want all: the ratio stays", n)
	}
	l.Collect(at(time.Second))
	wantCounts(t, l, "b", "", Counts{Offered: 12, Dropped: 5})
	if cell(t, l, "b", "") != kept || cell(t, l, "each", "a") != own {
		t.Error("Install made a new cell for an old name")
	}
	if got := kept.Bucket().LimitRPS; got != 20 {
		t.Errorf("limit = %v, want the new one, 20", got)
	}
	if l.Cell(gone.ID()) != nil {
		t.Error("the cell of a removed bucket is still there")
	}
	if gone.Bucket().Name != "gone" {
		t.Error("a removed cell lost its bucket")
	}
	if got := gone.Counts().Offered; got != 7 {
		t.Errorf("the removed cell counts %d, want 7", got)
	}
}

// TestRemovedCellsHarmNobody sets ratios of cells whose words another cell has
// by now.
func TestRemovedCellsHarmNobody(t *testing.T) {
	l := New(Options{})
	install(t, l, Service{Name: "s", Buckets: []Bucket{deny("old", "", "")}})
	old := cell(t, l, "old", "")
	install(t, l)
	install(t, l, Service{Name: "s", Buckets: []Bucket{deny("new", "", "")}})
	if cell(t, l, "new", "").ratio != old.ratio {
		t.Fatal("the test needs the new cell in the place of the old one")
	}
	old.SetRatio(1)
	if send(l, 5, "a", "x") != 0 {
		t.Error("a removed cell drops requests of another")
	}
}

func TestInstallLeavesUnchangedServicesAlone(t *testing.T) {
	l := New(Options{})
	s, other := Service{Name: "s", Buckets: []Bucket{deny("b", "", "")}}, Service{Name: "other"}
	install(t, l, s, other)
	before := l.Service("s").Configuration()
	install(t, l, s)
	if l.Service("s").Configuration() != before {
		t.Error("an unchanged service has another configuration")
	}
	if l.Service("other").Configuration() != nil {
		t.Error("a removed service still has a configuration")
	}
	s.Buckets[0].LimitRPS = 99
	if got := before.Buckets[0].LimitRPS; got != 10 {
		t.Errorf("the installed limit follows the caller's slice to %v", got)
	}
}

func TestInstallRefusesWhole(t *testing.T) {
	l := New(Options{})
	install(t, l, Service{Name: "s", Buckets: []Bucket{deny("b", "", "")}})
	before := l.Service("s").Configuration()
	bad := Bucket{Name: "bad"}
	if err := l.Install(Configuration{Services: []Service{{Name: "s"}, {Name: "x", Buckets: []Bucket{bad}}}}); err == nil {
		t.Fatal("Install accepts a bucket without a limit")
	}
	if l.Service("s").Configuration() != before {
		t.Error("a refused configuration replaced the old one")
	}
}

func TestHandleAcrossInstall(t *testing.T) {
	l := New(Options{})
	h := l.Handle("s", "a", "x")
	h.Decide()
	block := deny("b", "a", "")
	block.Block, block.LimitRPS = true, 0
	install(t, l, Service{Name: "s", Buckets: []Bucket{block}})
	if d := h.Decide(); !d.Dropped || d.Bucket.FullName() != "s/b" {
		t.Errorf("Decide = %+v, want dropped by s/b", d)
	}
	install(t, l)
	if h.Decide().Dropped {
		t.Error("the handle drops after its service lost its limits")
	}
	l.Collect(at(0))
	for k, n := range l.Unlimited() {
		if k.Reason != NoLimits || n != 2 {
			t.Errorf("Unlimited yields %v %d, want no_limits 2", k, n)
		}
	}
}

// TestInstallUnderLoad is case C7: change live limits under load; no panic, no
// gap, and every request counted once.
func TestInstallUnderLoad(t *testing.T) {
	l := New(Options{MaxNames: 50})
	configure := func(revision int) Service {
		each := allow("each", "*", "")
		each.PerCaller = true
		s := Service{Name: "s", Buckets: []Bucket{deny("all", "", ""), each}}
		for i := range 20 {
			b := deny(fmt.Sprintf("b%d", i), fmt.Sprintf("c%d*", i), "")
			b.LimitRPS = float64(1 + revision)
			s.Buckets = append(s.Buckets, b)
		}
		return s
	}
	install(t, l, configure(0))
	all := cell(t, l, "all", "")
	all.SetRatio(0.3)

	var stop atomic.Bool
	var sent, dropped atomic.Uint64
	var senders, others sync.WaitGroup
	for g := range 4 {
		senders.Go(func() {
			h := l.Handle("s", fmt.Sprintf("c%d", g), "x")
			for i := 0; !stop.Load(); i++ {
				var d Decision
				switch i % 3 {
				case 0:
					d = h.Decide()
				case 1:
					d = l.Decide(Request{Service: "s", Caller: fmt.Sprintf("c%d", i%200), Procedure: "x", Verified: i%2 == 0})
				default:
					d = l.Service("s").Decide(fmt.Sprintf("c%d", i%70), "y")
				}
				sent.Add(1)
				if d.Dropped {
					dropped.Add(1)
				}
			}
		})
	}
	var now atomic.Int64
	others.Go(func() {
		for !stop.Load() {
			// Slowly, so that no sender is off the processor for a whole grace.
			l.Collect(at(time.Duration(now.Add(int64(20 * time.Millisecond)))))
			l.Detail()
			runtime.Gosched()
		}
	})
	others.Go(func() {
		for !stop.Load() {
			for c := range l.Cells() {
				c.Counts()
				if c != all {
					c.SetRatio(0)
				}
			}
			l.Cell(CellID{Bucket: "s/each", Caller: "c7"})
			for range l.Unlimited() {
			}
			runtime.Gosched()
		}
	})
	for revision := range 60 {
		install(t, l, configure(revision))
		for before := sent.Load(); sent.Load() < before+200; {
			runtime.Gosched()
		}
	}
	stop.Store(true)
	senders.Wait()
	others.Wait()
	l.Collect(at(time.Duration(now.Load())))
	want := Counts{Offered: sent.Load(), Dropped: dropped.Load()}
	if got := all.Counts(); got != want {
		t.Errorf("counts = %+v, want %+v", got, want)
	}
}
