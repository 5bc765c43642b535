package store

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"grl/limiter"
)

// load returns a minute of n cells in one zone, about 600 requests each.
func load(n int, r *rand.Rand) []Sample {
	samples := make([]Sample, n)
	for i := range samples {
		offered := 300 + r.Uint64N(600)
		dropped := uint64(0)
		if i%10 == 0 {
			dropped = r.Uint64N(100)
		}
		samples[i] = Sample{
			Cell: limiter.CellID{Bucket: fmt.Sprintf("service-%d/bucket-%d", i%1100, i)}, Zone: "zone-a",
			Offered: offered, Admitted: offered - dropped, Dropped: dropped, HighestSecond: 10 + r.Uint64N(30),
		}
	}
	return samples
}

// BenchmarkAppendMinute appends minutes of 10,000 cells: 600,000 minutes of
// cells an hour. bytes/cell-hour is what the file takes in the end.
func BenchmarkAppendMinute(b *testing.B) {
	dir := b.TempDir()
	s := openStore(b, dir)
	r := newRand(1)
	samples := load(10_000, r)
	minute := at(0)
	b.ReportAllocs()
	for b.Loop() {
		mustAppend(b, s, minute, samples...)
		minute = minute.Add(time.Minute)
	}
	b.StopTimer()
	if err := s.history.checkpoint(b.Context()); err != nil {
		b.Fatal(err)
	}
	hours := (b.N + 59) / 60
	b.ReportMetric(float64(size(b, dir+"/history.db"))/float64(10_000*hours), "bytes/cell-hour")
}

// BenchmarkMinutes reads a week of one cell of 200.
func BenchmarkMinutes(b *testing.B) {
	s := openStore(b, b.TempDir())
	r := newRand(3)
	samples := load(200, r)
	const hours = 7 * 24
	for h := range hours {
		for m := range 3 {
			mustAppend(b, s, at(60*h+m), samples...)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		if got := mustMinutes(b, s, samples[77].Cell, at(0), at(60*hours)); len(got) != 3*hours {
			b.Fatalf("%d minutes, want %d", len(got), 3*hours)
		}
	}
}

func newRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0)) }
