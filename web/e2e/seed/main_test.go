package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"grl/limiter"
	"grl/limiter/limitsfile"
	"grl/store"
)

// TestSeed reads what was written: limits files that load, and a history of each
// bucket that shall have one, of which the fleet is the sum.
func TestSeed(t *testing.T) {
	o := options{db: t.TempDir(), limits: filepath.Join(t.TempDir(), "limits"), buckets: 250, history: 20, weeks: 1, seed: 3, hostile: true}
	now := time.Now()
	if err := o.run(t.Context(), now); err != nil {
		t.Fatal(err)
	}
	names, err := filepath.Glob(filepath.Join(o.limits, "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var sources []limitsfile.Source
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		sources = append(sources, limitsfile.Source{Name: name, Data: text})
	}
	services, err := limitsfile.Load(sources)
	if err != nil {
		t.Fatal(err)
	}
	c := limiter.Configuration{Services: services}
	buckets := c.ByName()
	if len(buckets) != o.buckets {
		t.Errorf("%d buckets, want %d", len(buckets), o.buckets)
	}
	s, err := store.Open(t.Context(), o.db)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	cells := s.Cells("")
	if len(cells) != o.history+200 {
		t.Errorf("%d cells with history, want %d and 200 hostile callers", len(cells), o.history)
	}
	count := func(id limiter.CellID) (sum store.Minute) {
		minutes, err := s.Minutes(t.Context(), id, now.AddDate(0, -1, 0), now)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range minutes {
			sum.Offered += m.Offered
			sum.Dropped += m.Dropped
			sum.ShadowDropped += m.ShadowDropped
			sum.CandidateDropped += m.CandidateDropped
		}
		return sum
	}
	var sum store.Minute
	for _, id := range cells {
		if buckets[id.Bucket] == nil {
			t.Errorf("history of %q, which has no limit", id.Bucket)
		}
		own := count(id)
		sum.Offered += own.Offered
		sum.Dropped += own.Dropped
		sum.ShadowDropped += own.ShadowDropped
		sum.CandidateDropped += own.CandidateDropped
	}
	if fleet := count(limiter.CellID{Bucket: store.FleetBucket}); fleet != sum || sum.Dropped == 0 || sum.ShadowDropped == 0 || sum.CandidateDropped == 0 {
		t.Errorf("the fleet counted %+v, its cells %+v", fleet, sum)
	}
}
