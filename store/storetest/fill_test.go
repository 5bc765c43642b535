package storetest_test

import (
	"flag"
	"math"
	"slices"
	"testing"
	"time"
	"unicode/utf8"

	"grl/limiter"
	"grl/store"
	"grl/store/storetest"
)

var until = time.Date(2025, 11, 3, 0, 0, 0, 0, time.UTC)

func open(t testing.TB) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func minutes(t testing.TB, s *store.Store, cell limiter.CellID) []store.Minute {
	t.Helper()
	list, err := s.Minutes(t.Context(), cell, until.AddDate(-1, 0, 0), until.AddDate(1, 0, 0))
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// TestFill compares sums with the load that was asked for: by their law they are
// nearly always within five standard deviations.
func TestFill(t *testing.T) {
	const seed = 7
	cells := storetest.Cells(3)
	loads := []float64{0, 0.2, 50} // requests per second
	o := storetest.FillOptions{
		Seed: seed, Cells: cells, Zones: []string{"z1", "z2"}, Weeks: 1, Until: until.Add(59 * time.Minute),
		Shape: func(cell int, _ time.Time) float64 { return loads[cell] },
	}
	s, again := open(t), open(t)
	for _, s := range []*store.Store{s, again} {
		if err := storetest.Fill(t.Context(), s, o); err != nil {
			t.Fatal(err)
		}
	}
	for i, cell := range cells {
		list := minutes(t, s, cell)
		if !slices.Equal(list, minutes(t, again, cell)) {
			t.Errorf("%v: another history of the same seed", cell)
		}
		sum := 0.0
		for _, m := range list {
			sum += float64(m.Offered)
			if m.HighestSecond > m.Offered || 60*m.HighestSecond < m.Offered || m.Admitted != m.Offered {
				t.Fatalf("%+v of %v", m, cell)
			}
			if m.Start.Before(until.AddDate(0, 0, -7)) || !m.Start.Before(until) {
				t.Fatalf("a minute at %v", m.Start)
			}
		}
		if want := loads[i] * 7 * 24 * 3600; math.Abs(sum-want) > 5*math.Sqrt(want) {
			t.Errorf("seed %d, %v: %v requests, want about %v", seed, cell, sum, want)
		}
	}
}

func TestDefaultShape(t *testing.T) {
	shape := storetest.DefaultShape(1)
	monday := until
	for cell := range 20 {
		least, most := math.Inf(1), 0.0
		for h := range 24 {
			rps := shape(cell, monday.Add(time.Duration(h)*time.Hour))
			least, most = min(least, rps), max(most, rps)
		}
		if least <= 0 || most < 1.5*least {
			t.Errorf("cell %d goes from %v to %v rps in a day", cell, least, most)
		}
		noon := monday.Add(12 * time.Hour)
		if sunday := shape(cell, noon.AddDate(0, 0, -1)); sunday > 0.75*shape(cell, noon) {
			t.Errorf("cell %d has %v rps on a Sunday, %v on a Monday", cell, sunday, shape(cell, noon))
		}
	}
}

func TestAppend(t *testing.T) {
	s := open(t)
	cell := limiter.CellID{Bucket: "payments/all"}
	offered := make([]uint64, 130)
	for i := range offered {
		offered[i] = uint64(i)
	}
	start := until.Add(-3 * time.Hour)
	if err := storetest.Append(t.Context(), s, cell, "z1", start, offered, nil); err != nil {
		t.Fatal(err)
	}
	list := minutes(t, s, cell)
	if len(list) != 129 { // the first one is idle
		t.Fatalf("%d minutes, want 129", len(list))
	}
	for i, m := range list {
		if n := offered[i+1]; m.Offered != n || m.HighestSecond != (n+59)/60 || !m.Start.Equal(start.Add(time.Duration(i+1)*time.Minute)) {
			t.Errorf("minute %d = %+v, want %d requests", i+1, m, n)
		}
	}
	if err := storetest.Append(t.Context(), s, cell, "z1", start.Add(time.Minute), offered, offered); err == nil {
		t.Error("Append from within an hour on: no error")
	}
}

var benchCells = flag.Int("cells", 200, "cells of BenchmarkReadSeries")

// BenchmarkReadSeries reads five weeks of benchCells. rows/s are hours of cells.
func BenchmarkReadSeries(b *testing.B) {
	cells := *benchCells
	const weeks = 5
	s := open(b)
	o := storetest.FillOptions{Seed: 1, Cells: storetest.Cells(cells), Weeks: weeks, Until: until}
	begun := time.Now()
	if err := storetest.Fill(b.Context(), s, o); err != nil {
		b.Fatal(err)
	}
	rows := float64(cells * weeks * 7 * 24)
	fill := rows / time.Since(begun).Seconds()
	q := store.SeriesQuery{Prefixes: []string{""}, From: until.AddDate(0, 0, -7*weeks), To: until}
	b.ReportAllocs()
	for b.Loop() {
		n := 0
		if err := s.ReadSeries(b.Context(), q, func(store.CellSeries) error { n++; return nil }); err != nil || n != cells {
			b.Fatalf("%d cells, %v, want %d", n, err, cells)
		}
		if _, err := s.Presence(b.Context(), q.From, q.To); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(rows*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
	b.ReportMetric(fill, "filled/s")
}

// TestFillWithLimits has a third of what a bucket is offered lie above its limit,
// and compares the fleet with the sum of its cells.
func TestFillWithLimits(t *testing.T) {
	buckets := []*limiter.Bucket{
		{LimitRPS: 100, Behavior: limiter.Deny},
		{LimitRPS: 100, Behavior: limiter.Allow},
		{LimitRPS: 200, CandidateRPS: 100, Behavior: limiter.Deny},
	}
	cells, zones := storetest.Cells(3), []string{"z1", "z2"}
	s := open(t)
	if err := storetest.Fill(t.Context(), s, storetest.FillOptions{
		Seed: 7, Cells: cells, Zones: zones, Weeks: 1, Until: until, Fleet: true,
		Shape:  func(int, time.Time) float64 { return 150 },
		Bucket: func(cell int) *limiter.Bucket { return buckets[cell] },
	}); err != nil {
		t.Fatal(err)
	}
	fleet := make(map[time.Time]store.Minute)
	for _, m := range minutes(t, s, limiter.CellID{Bucket: store.FleetBucket}) {
		fleet[m.Start] = m
	}
	sums := make([]store.Minute, 3)
	for i, cell := range cells {
		for _, m := range minutes(t, s, cell) {
			sum := &sums[i]
			sum.Offered += m.Offered
			sum.Dropped += m.Dropped
			sum.ShadowDropped += m.ShadowDropped
			sum.CandidateDropped += m.CandidateDropped
			f := fleet[m.Start]
			f.Offered -= m.Offered
			f.Admitted -= m.Admitted
			f.Dropped -= m.Dropped
			f.ShadowDropped -= m.ShadowDropped
			f.CandidateDropped -= m.CandidateDropped
			fleet[m.Start] = f
		}
	}
	for at, m := range fleet {
		if m != (store.Minute{Start: at}) {
			t.Fatalf("the fleet has more than its cells, or less: %+v", m)
		}
	}
	for i, part := range []struct{ dropped, shadow, candidate float64 }{{1. / 3, 0, 0}, {0, 1. / 3, 0}, {0, 0, 1. / 3}} {
		offered := float64(sums[i].Offered)
		for j, pair := range [][2]float64{{float64(sums[i].Dropped), part.dropped}, {float64(sums[i].ShadowDropped), part.shadow}, {float64(sums[i].CandidateDropped), part.candidate}} {
			if math.Abs(pair[0]/offered-pair[1]) > 0.01 {
				t.Errorf("bucket %d: kind %d of drops is %v of what is offered, want %v", i, j, pair[0]/offered, pair[1])
			}
		}
	}
}

func TestHostile(t *testing.T) {
	seen := make(map[string]bool)
	for _, name := range storetest.Hostile() {
		if seen[name] || name == "" || len(name) > 256 || !utf8.ValidString(name) {
			t.Errorf("%q: seen before %v, %d bytes", name, seen[name], len(name))
		}
		seen[name] = true
	}
	if len(seen) != 200 {
		t.Errorf("%d names, want 200", len(seen))
	}
}
