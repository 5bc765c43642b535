package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"grl/limiter"
	"grl/limiter/limitsfile"
	"grl/policy/verdict"
	"grl/store"
	"grl/store/ledger"
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

// TestEnacted reads the revision back: it holds the files as they are, since the
// history began, and history and limits together make each verdict.
func TestEnacted(t *testing.T) {
	o := options{db: t.TempDir(), limits: filepath.Join(t.TempDir(), "limits"), buckets: 20, history: 10, weeks: 2, seed: 1}
	now := time.Now()
	if err := o.run(t.Context(), now); err != nil {
		t.Fatal(err)
	}
	s, err := store.Open(t.Context(), o.db)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	l := ledger.New(s)
	head, err := l.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if want := now.Truncate(time.Hour).AddDate(0, 0, -14); head.Number != 1 || !head.At.Equal(want) {
		t.Errorf("r%d of %v, want r1 of %v", head.Number, head.At, want)
	}
	documents, err := l.Documents(t.Context(), head.Number)
	if err != nil {
		t.Fatal(err)
	}
	names, err := filepath.Glob(filepath.Join(o.limits, "*.yaml"))
	if err != nil || len(names) != len(documents) {
		t.Errorf("%d files and %d documents, %v", len(names), len(documents), err)
	}
	for _, want := range []struct {
		bucket string
		kind   verdict.Kind
	}{{"service-0/bucket-3", verdict.Safe}, {"service-0/bucket-8", verdict.WouldHurt}} {
		if got := judge(t, s, want.bucket, head.At, now); got != want.kind {
			t.Errorf("%s: %v, want %v", want.bucket, got, want.kind)
		}
	}
}

// judge returns the verdict of a bucket in shadow.
func judge(t *testing.T, s *store.Store, bucket string, from, to time.Time) verdict.Kind {
	t.Helper()
	minutes, err := s.Minutes(t.Context(), limiter.CellID{Bucket: bucket}, from, to)
	if err != nil {
		t.Fatal(err)
	}
	var hours []verdict.Hour
	for i, m := range minutes {
		if i%60 == 0 {
			hours = append(hours, verdict.Hour{Known: true})
		}
		h := &hours[len(hours)-1]
		h.Offered += float64(m.Offered)
		h.Dropped += float64(m.ShadowDropped)
	}
	return verdict.Judge(from, hours).Kind
}
