package store

import (
	"testing"
	"time"

	"grl/limiter"
)

// What a candidate would have dropped is known of all zones together, so it has
// a row of its own that no view of a single zone shows.
func TestCandidateDropsAreOfAllZones(t *testing.T) {
	ctx := t.Context()
	s, err := Open(ctx, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	if err := s.AppendMinute(ctx, at, []Sample{
		{Cell: reads, Zone: "z1", Offered: 100, Admitted: 90, Dropped: 10, HighestSecond: 9},
		{Cell: reads, Zone: "", CandidateDropped: 40},
	}); err != nil {
		t.Fatal(err)
	}
	if err := s.AppendMinute(ctx, at, []Sample{{Cell: reads, Zone: "", CandidateDropped: 2}}); err != nil {
		t.Fatal(err)
	}
	minutes, err := s.Minutes(ctx, reads, at, at.Add(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	want := Minute{Start: at, Offered: 100, Admitted: 90, Dropped: 10, HighestSecond: 9, CandidateDropped: 42}
	if len(minutes) != 1 || !minutes[0].Start.Equal(at) {
		t.Fatalf("minutes %+v, want %+v", minutes, want)
	}
	if minutes[0].Start = at; minutes[0] != want {
		t.Errorf("minutes %+v, want %+v", minutes[0], want)
	}
	zones, err := s.MinutesByZone(ctx, reads, at, at.Add(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	if len(zones) != 1 || len(zones["z1"]) != 1 || zones["z1"][0].CandidateDropped != 0 {
		t.Errorf("by zone %+v, want z1 alone, without the candidate's", zones)
	}
	maxima, err := s.Maxima(ctx, reads, at, at.Add(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	if len(maxima) != 1 || maxima[0].Zone != "z1" {
		t.Errorf("maxima %+v, want those of z1 alone", maxima)
	}
}

func TestCellsOfABucket(t *testing.T) {
	ctx := t.Context()
	s, err := Open(ctx, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	one := limiter.CellID{Bucket: "pay/each", Caller: "web"}
	two := limiter.CellID{Bucket: "pay/each", Caller: "app"}
	for i, cell := range []limiter.CellID{one, {Bucket: "pay/each-other"}, two} {
		if err := s.AppendMinute(ctx, at, []Sample{{Cell: cell, Zone: "z1", Offered: 1, Admitted: 1, HighestSecond: 1}}); err != nil {
			t.Fatal(err)
		}
		if got, want := len(s.CellsOf("pay/each")), i/2+1; got != want {
			t.Errorf("after %d cells %d are of the bucket, want %d", i+1, got, want)
		}
	}
	if got := s.CellsOf("pay/each"); got[0] != two || got[1] != one {
		t.Errorf("CellsOf = %v, want app before web", got)
	}
}
