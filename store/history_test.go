package store

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"grl/limiter"
	"pgregory.net/rapid"
)

func mustAppend(t testing.TB, s *Store, minute time.Time, samples ...Sample) {
	t.Helper()
	if err := s.AppendMinute(t.Context(), minute, samples); err != nil {
		t.Fatal(err)
	}
}

func mustMinutes(t testing.TB, s *Store, cell limiter.CellID, from, to time.Time) []Minute {
	t.Helper()
	minutes, err := s.Minutes(t.Context(), cell, from, to)
	if err != nil {
		t.Fatal(err)
	}
	return minutes
}

var (
	reads  = limiter.CellID{Bucket: "search/reads"}
	writes = limiter.CellID{Bucket: "search/writes", Instance: "eu", Caller: "web"}
)

// at returns the minute that many minutes after an hour began.
func at(minutes int) time.Time {
	return time.UnixMilli(1_788_000_000_000).Truncate(time.Hour).Add(time.Duration(minutes) * time.Minute)
}

func TestMinutesAddUp(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir)
	mustAppend(t, s, at(3).Add(59*time.Second), Sample{reads, "z1", 100, 90, 10, 4, 9, 0}, Sample{reads, "z2", 7, 7, 0, 0, 2, 0})
	mustAppend(t, s, at(61), Sample{reads, "z1", 1, 1, 0, 0, 1, 0}, Sample{writes, "z1", 5, 5, 0, 0, 5, 0}, Sample{writes, "z2", 0, 0, 0, 0, 0, 0})
	closeStore(t, s)
	s = openStore(t, dir) // the controller restarts within the minute
	mustAppend(t, s, at(3), Sample{reads, "z1", 50, 50, 0, 0, 11, 0})

	want := []Minute{{at(3), 157, 147, 10, 4, 13, 0}, {at(61), 1, 1, 0, 0, 1, 0}} // 11 + 2 in the highest seconds
	if diff := cmp.Diff(want, mustMinutes(t, s, reads, at(0), at(120))); diff != "" {
		t.Errorf("Minutes (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want[1:], mustMinutes(t, s, reads, at(4), at(62))); diff != "" {
		t.Errorf("Minutes from the 4th (-want +got):\n%s", diff)
	}
	for _, empty := range [][2]time.Time{{at(4), at(61)}, {at(3), at(3)}, {at(5), at(3)}, {at(-900), at(0)}, {at(120), at(9000)}} {
		if got := mustMinutes(t, s, reads, empty[0], empty[1]); len(got) != 0 {
			t.Errorf("Minutes(%v, %v) = %v, want none", empty[0], empty[1], got)
		}
	}
	if got := mustMinutes(t, s, reads, time.Time{}, time.Unix(1<<40, 0)); len(got) != 2 {
		t.Errorf("Minutes of all times = %v, want 2", got)
	}
	zones, err := s.MinutesByZone(t.Context(), reads, at(0), at(60))
	wantZones := map[string][]Minute{"z1": {{at(3), 150, 140, 10, 4, 11, 0}}, "z2": {{at(3), 7, 7, 0, 0, 2, 0}}}
	if diff := cmp.Diff(wantZones, zones); err != nil || diff != "" {
		t.Errorf("MinutesByZone: %v (-want +got):\n%s", err, diff)
	}
	maxima, err := s.Maxima(t.Context(), reads, at(0), at(62))
	wantMaxima := []Maximum{{at(0), "z1", 150, 11}, {at(0), "z2", 7, 2}, {at(60), "z1", 1, 1}}
	if diff := cmp.Diff(wantMaxima, maxima); err != nil || diff != "" {
		t.Errorf("Maxima: %v (-want +got):\n%s", err, diff)
	}
}

func TestCells(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir)
	other := limiter.CellID{Bucket: "searching/reads"}
	mustAppend(t, s, at(0), Sample{Cell: other, Offered: 1}, Sample{Cell: writes, Offered: 1}, Sample{Cell: reads, Offered: 1}, Sample{Cell: limiter.CellID{Bucket: "idle/all"}})
	closeStore(t, s)
	s = openStore(t, dir)
	for prefix, want := range map[string][]limiter.CellID{"": {reads, writes, other}, "search/": {reads, writes}, "x": nil} {
		if got := s.Cells(prefix); !slices.Equal(got, want) {
			t.Errorf("Cells(%q) = %v, want %v", prefix, got, want)
		}
	}
}

// model is a dumb history: every minute of every cell and zone by itself.
type model map[string]counts

func key(cell limiter.CellID, zone string, minute time.Time) string {
	return fmt.Sprintf("%s %s %s %s %d", cell.Bucket, cell.Instance, cell.Caller, zone, minute.UnixMilli())
}

func (m model) append(minute time.Time, samples []Sample) {
	for _, s := range samples {
		k := key(s.Cell, s.Zone, minute)
		c := m[k]
		m[k] = counts{
			c[offered] + s.Offered, c[admitted] + s.Admitted, c[dropped] + s.Dropped,
			c[shadowDropped] + s.ShadowDropped, max(c[highestSecond], s.HighestSecond), c[candidateDropped] + s.CandidateDropped,
		}
	}
}

func (m model) minutes(cell limiter.CellID, zones []string, from, to time.Time) []Minute {
	var minutes []Minute
	for minute := from; minute.Before(to); minute = minute.Add(time.Minute) {
		var sum counts
		for _, zone := range zones {
			for i, v := range m[key(cell, zone, minute)] {
				sum[i] += v
			}
		}
		if sum != (counts{}) {
			minutes = append(minutes, newMinute(minute, sum))
		}
	}
	return minutes
}

func TestHistoryEqualsAModel(t *testing.T) {
	zones := []string{"z1", "z2", "z3"}
	cells := []limiter.CellID{reads, writes, {Bucket: "search/reads", Caller: "web"}}
	root := t.TempDir()
	run := 0
	rapid.Check(t, func(rt *rapid.T) {
		run++
		dir := filepath.Join(root, fmt.Sprint(run))
		defer os.RemoveAll(dir)
		s := openStore(t, dir)
		want := make(model)
		for range rapid.IntRange(1, 12).Draw(rt, "steps") {
			if rapid.IntRange(0, 3).Draw(rt, "reopen") == 0 {
				closeStore(t, s)
				s = openStore(t, dir)
			}
			minute := at(rapid.IntRange(0, 150).Draw(rt, "minute"))
			samples := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) Sample {
				c := drawSmall(rt)
				return Sample{rapid.SampledFrom(cells).Draw(rt, "cell"), rapid.SampledFrom(zones).Draw(rt, "zone"), c[0], c[1], c[2], c[3], c[4], c[5]}
			}), 0, 6).Draw(rt, "samples")
			mustAppend(t, s, minute, samples...)
			want.append(minute, samples)
		}
		from := at(rapid.IntRange(-10, 160).Draw(rt, "from"))
		to := at(rapid.IntRange(-10, 160).Draw(rt, "to"))
		for _, cell := range cells {
			if diff := cmp.Diff(want.minutes(cell, zones, from, to), mustMinutes(t, s, cell, from, to)); diff != "" {
				rt.Fatalf("Minutes of %v (-want +got):\n%s", cell, diff)
			}
		}
		closeStore(t, s)
	})
}

func drawSmall(t *rapid.T) counts {
	var c counts
	for i := range c {
		c[i] = rapid.Uint64Range(0, 300).Draw(t, "count")
	}
	return c
}

func TestPruneKeepsFiveWeeks(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir)
	now := at(0).Add(Keep)
	var samples []Sample
	for i := range 3000 { // several batches, several pages
		samples = append(samples, Sample{Cell: limiter.CellID{Bucket: fmt.Sprintf("old/%d", i)}, Zone: "z", Offered: uint64(i + 1)})
	}
	mustAppend(t, s, at(-61), samples...) // its hour ended five weeks ago
	mustAppend(t, s, at(-61), Sample{Cell: reads, Zone: "z", Offered: 2})
	mustAppend(t, s, at(-1), Sample{Cell: reads, Zone: "z", Offered: 3})
	mustAppend(t, s, at(-1), Sample{Cell: writes, Zone: "z", Offered: 4})
	if err := s.history.checkpoint(t.Context()); err != nil {
		t.Fatal(err)
	}
	before := size(t, filepath.Join(dir, "history.db"))

	for range 2 { // a second time finds nothing to do
		if err := s.Prune(t.Context(), now); err != nil {
			t.Fatal(err)
		}
	}
	if got := s.Cells(""); !slices.Equal(got, []limiter.CellID{reads, writes}) {
		t.Errorf("Cells = %v, want the two that have hours", got)
	}
	if got := mustMinutes(t, s, reads, time.Time{}, now); len(got) != 1 || got[0].Offered != 3 {
		t.Errorf("Minutes = %v, want the one within five weeks", got)
	}
	mustAppend(t, s, now, Sample{Cell: limiter.CellID{Bucket: "new/one"}, Zone: "z", Offered: 9})
	closeStore(t, s)
	if after := size(t, filepath.Join(dir, "history.db")); after*4 > before {
		t.Errorf("history.db has %d bytes after the prune, %d before; want less than a quarter", after, before)
	}

	s = openStore(t, dir)
	if got := mustMinutes(t, s, limiter.CellID{Bucket: "new/one"}, at(0), now.Add(time.Hour)); len(got) != 1 || got[0].Offered != 9 {
		t.Errorf("Minutes of a cell named after the prune = %v, want one minute of 9", got)
	}
}

func size(t testing.TB, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

func TestAppendMinuteIsAllOrNothing(t *testing.T) {
	s := openStore(t, t.TempDir())
	mustAppend(t, s, at(0), Sample{Cell: reads, Zone: "z", Offered: 1})
	mustExec(t, s.history.write, "CREATE TRIGGER no BEFORE INSERT ON hours WHEN new.cell > 1 BEGIN SELECT raise(ABORT, 'no'); END")
	samples := []Sample{{Cell: reads, Zone: "z", Offered: 10}, {Cell: writes, Zone: "z2", Offered: 10}}
	if err := s.AppendMinute(t.Context(), at(0), samples); err == nil {
		t.Fatal("AppendMinute over a trigger that forbids it: no error")
	}
	if got := s.Cells(""); !slices.Equal(got, []limiter.CellID{reads}) {
		t.Errorf("Cells = %v, want only the first", got)
	}
	mustExec(t, s.history.write, "DROP TRIGGER no")
	mustAppend(t, s, at(0), samples...)
	for cell, want := range map[limiter.CellID]uint64{reads: 11, writes: 10} {
		if got := mustMinutes(t, s, cell, at(0), at(1)); len(got) != 1 || got[0].Offered != want {
			t.Errorf("Minutes of %v = %v, want %d offered", cell, got, want)
		}
	}
	if zones := slices.Sorted(maps.Keys(s.names.zones)); !slices.Equal(zones, []string{"z", "z2"}) {
		t.Errorf("zones are %v, want z and z2", zones)
	}
}
