package storetest_test

import (
	"os"
	"strconv"
	"testing"
	"time"

	"grl/store"
	"grl/store/storetest"
)

var until = time.Date(2025, 11, 3, 0, 0, 0, 0, time.UTC)

// BenchmarkReadSeries reads five weeks of as many cells as GRL_BENCH_CELLS says,
// 200 by default. rows/s are hours of cells.
func BenchmarkReadSeries(b *testing.B) {
	cells := 200
	if text := os.Getenv("GRL_BENCH_CELLS"); text != "" {
		var err error
		if cells, err = strconv.Atoi(text); err != nil {
			b.Fatal(err)
		}
	}
	const weeks = 5
	s, err := store.Open(b.Context(), b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
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
		if err := s.ReadSeries(b.Context(), q, func(c store.CellSeries) error { n++; return nil }); err != nil || n != cells {
			b.Fatalf("%d cells, %v, want %d", n, err, cells)
		}
		if _, err := s.Presence(b.Context(), q.From, q.To); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(rows*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
	b.ReportMetric(fill, "filled/s")
}
