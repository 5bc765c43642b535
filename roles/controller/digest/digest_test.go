package digest

import (
	"fmt"
	"math"
	"runtime"
	"testing"
	"time"

	"grl/limiter"
	"grl/policy/verdict"
	"grl/store"
)

// start is a Monday.
var start = time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)

// series counts the same each minute of some hours.
func series(id limiter.CellID, hours int, offered, lost, highest uint64, damaged ...int) store.CellSeries {
	n := hours * 60
	s := store.CellSeries{
		Cell: id, Offered: make([]uint64, n), Dropped: make([]uint64, n), ShadowDropped: make([]uint64, n),
		HighestSecond: make([]uint64, n), CandidateDropped: make([]uint64, n), Damaged: damaged,
		Zones: [][]byte{make([]byte, (hours+7)/8), make([]byte, (hours+7)/8)},
	}
	for i := range hours {
		s.Zones[i%2][i/8] |= 1 << (i % 8)
	}
	for i := range n {
		s.Offered[i], s.ShadowDropped[i], s.HighestSecond[i] = offered, lost, highest
	}
	return s
}

// idle is what one counted that has history of all hours, and no requests.
func idle(hours int) store.CellSeries { return series(limiter.CellID{}, hours, 0, 0, 0) }

func cellOf(bucket string) limiter.CellID { return limiter.CellID{Bucket: bucket} }

func TestDamagedHoursAreNotKnown(t *testing.T) {
	d := New(10)
	d.Know(idle(48), start)
	d.Put(series(cellOf("s/b"), 48, 60, 0, 5, 3, 4), start, start)
	b := &limiter.Bucket{Service: "s", Name: "b", LimitRPS: 10}
	now := start.Add(47*time.Hour + time.Minute)
	if e := d.Evidence(b, start, now); len(e) != 1 || e[0].Days != 46.0/24 || e[0].Offered != 46*3600 {
		t.Errorf("evidence = %+v, want 46 hours", e)
	}
	d.Put(series(cellOf("s/b"), 1, 60, 6, 5), start.Add(3*time.Hour), start) // it was read again, and held
	if e := d.Evidence(b, start, now); e[0].Days != 47.0/24 || e[0].Dropped != 360 {
		t.Errorf("evidence = %+v, want 47 hours", e[0])
	}
}

// TestJudgedSinceMinutes: hours that were not judged from end to end are not
// whole ones.
func TestJudgedSinceMinutes(t *testing.T) {
	d := New(10)
	d.Know(idle(48), start)
	d.Put(series(cellOf("s/b"), 48, 60, 0, 5), start, start)
	b := &limiter.Bucket{Service: "s", Name: "b", LimitRPS: 10}
	since := start.Add(20*time.Hour + 58*time.Minute)
	for _, of := range []time.Duration{4 * time.Minute, 90 * time.Minute} {
		if e := d.Evidence(b, since, since.Add(of)); len(e) != 1 || e[0].Days != of.Hours()/24 {
			t.Errorf("judged for %v: %+v, want %v days", of, e, of.Hours()/24)
		}
	}
}

func TestHeadroomOfDaysThatAreNotKnown(t *testing.T) {
	d := New(10)
	d.Know(idle(48), start.Add(48*time.Hour))
	d.Put(series(cellOf("s/b"), 24, 60, 0, 5), start.Add(48*time.Hour), time.Time{})
	b := &limiter.Bucket{Service: "s", Name: "b", LimitRPS: 10, Behavior: limiter.Deny}
	h := d.Headroom(b, start.Add(95*time.Hour), func(string, time.Time) float64 { return 10 })
	want := [7]float64{math.NaN(), math.NaN(), math.NaN(), math.NaN(), math.NaN(), 0.5, 0} // on the last day it was idle
	for i, got := range h[0].Days {
		if got != want[i] && !(math.IsNaN(got) && math.IsNaN(want[i])) {
			t.Errorf("day %d = %v, want %v", i, got, want[i])
		}
	}
	for _, none := range []float64{0, math.NaN()} {
		h = d.Headroom(b, start.Add(95*time.Hour), func(string, time.Time) float64 { return none })
		if !math.IsNaN(h[0].Days[5]) {
			t.Errorf("a limit of %v was reached by %v", none, h[0].Days[5])
		}
	}
}

func TestBounds(t *testing.T) {
	d := New(3)
	d.Know(idle(24), start)
	for i := range 5 {
		id := limiter.CellID{Bucket: fmt.Sprintf("s/b%d", i%2), Caller: fmt.Sprint(i)}
		for range 2 {
			d.Put(series(id, 24, 60, 0, 5), start, time.Time{})
		}
	}
	if kept, leftOut := d.Len(); kept != 3 || leftOut != 2 {
		t.Errorf("%d kept, %d left out; want 3 and 2", kept, leftOut)
	}
	d.Retain(func(bucket string) bool { return bucket == "s/b0" })
	if kept, leftOut := d.Len(); kept != 2 || leftOut != 1 {
		t.Errorf("of one bucket: %d kept, %d left out; want 2 and 1", kept, leftOut)
	}
	each := &limiter.Bucket{Service: "s", Name: "b0", PerCaller: true, LimitRPS: 10}
	if e := d.Evidence(each, start, start.Add(23*time.Hour)); len(e) != 2 || e[0].Cell.Caller != "0" || e[1].Cell.Caller != "2" {
		t.Errorf("evidence = %+v", e)
	}
	if e := d.Evidence(&limiter.Bucket{Service: "s", Name: "b0", LimitRPS: 10}, start, start.Add(23*time.Hour)); len(e) != 0 {
		t.Errorf("evidence of cells that the bucket has no more: %+v", e)
	}
	d.Forget(start.Add(23 * time.Hour)) // the day goes on
	if kept, _ := d.Len(); kept != 2 {
		t.Errorf("%d kept on the same day", kept)
	}
	d.Forget(start.Add(24 * time.Hour))
	if kept, _ := d.Len(); kept != 0 || len(d.buckets) != 0 || len(d.days) != 0 {
		t.Errorf("%d kept of what is over, %v", kept, d.buckets)
	}
}

// Callers share a limit: that all together would have lost little says nothing of
// one of them.
func TestOneCallerOfManyIsHurt(t *testing.T) {
	const hours = 8 * 24
	d := New(10)
	d.Know(idle(hours), start)
	large, small := limiter.CellID{Bucket: "s/b", Caller: "large"}, limiter.CellID{Bucket: "s/b", Caller: "small"}
	d.Put(series(large, hours, 1_000_000, 0, 20_000), start, start)
	d.Put(series(small, hours, 100, 10, 3), start, start)
	b := &limiter.Bucket{Service: "s", Name: "b", Share: limiter.MaxMin, LimitRPS: 20_000}
	e := d.Evidence(b, start, start.Add(hours*time.Hour-time.Minute))
	if len(e) != 1 || e[0].Kind != verdict.WouldHurt || e[0].HitCaller != "small" || e[0].HitShare != 1 || math.Abs(e[0].WorstShare-0.1) > 1e-6 {
		t.Errorf("evidence = %+v", e)
	}
}

// TestMemory bounds what 2,000 cells with five weeks of history take.
func TestMemory(t *testing.T) {
	const cells, hours = 2000, 35 * 24
	heap := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	s := series(limiter.CellID{}, hours, 60, 1, 5)
	for i := range s.CandidateDropped {
		s.CandidateDropped[i] = 1 // every column there is
	}
	before := heap()
	d := New(20_000)
	d.Know(idle(hours), start)
	for i := range cells {
		s.Cell = cellOf(fmt.Sprintf("s/b%d", i))
		d.Put(s, start, start)
	}
	if kept, _ := d.Len(); kept != cells {
		t.Fatalf("%d cells kept", kept)
	}
	took := heap() - before
	t.Logf("%d cells take %.1f MB", cells, float64(took)/1e6)
	if took > 60e6 {
		t.Errorf("%d cells take %d bytes, at most 60 MB", cells, took)
	}
	runtime.KeepAlive(d)
}

// BenchmarkFigures computes what 2,000 cells with five weeks of history say, of
// which half are judged: what is done each minute.
func BenchmarkFigures(b *testing.B) {
	const cells, hours = 2000, 35 * 24
	d := New(20_000)
	d.Know(idle(hours), start)
	s := series(limiter.CellID{}, hours, 60, 1, 5)
	for i := range cells {
		s.Cell = cellOf(fmt.Sprintf("s/b%d", i))
		d.Put(s, start, start)
	}
	now := start.Add(hours * time.Hour)
	for b.Loop() {
		for i := range cells {
			bucket := &limiter.Bucket{Service: "s", Name: fmt.Sprintf("b%d", i), LimitRPS: 10}
			if i%2 == 0 {
				d.Evidence(bucket, start, now)
			} else {
				d.Headroom(bucket, now, func(string, time.Time) float64 { return 10 })
			}
		}
	}
}
