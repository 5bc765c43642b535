package store

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"grl/limiter"
)

// mustSeries returns copies of all that is read.
func mustSeries(t testing.TB, s *Store, q SeriesQuery) []CellSeries {
	t.Helper()
	var list []CellSeries
	err := s.ReadSeries(t.Context(), q, func(c CellSeries) error {
		c.Offered, c.Dropped = slices.Clone(c.Offered), slices.Clone(c.Dropped)
		c.ShadowDropped, c.HighestSecond, c.CandidateDropped = slices.Clone(c.ShadowDropped), slices.Clone(c.HighestSecond), slices.Clone(c.CandidateDropped)
		c.Damaged, c.Zones = slices.Clone(c.Damaged), slices.Clone(c.Zones)
		for i := range c.Zones {
			c.Zones[i] = bytes.Clone(c.Zones[i])
		}
		list = append(list, c)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func hasBit(bitmap []byte, i int) bool { return bitmap[i/8]>>(i%8)&1 == 1 }

// TestSeriesEqualMinutes compares what is read in bulk with what is read cell by
// cell, of random history.
func TestSeriesEqualMinutes(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	s := openStore(t, t.TempDir())
	var cells []limiter.CellID
	for i := range 60 { // buckets of several cells, which come to be one by one
		cells = append(cells, limiter.CellID{Bucket: fmt.Sprintf("s%d/b%d", r.IntN(4), r.IntN(6)), Instance: []string{"", "eu"}[i%2], Caller: fmt.Sprint(i)})
	}
	for range 200 {
		var samples []Sample
		for range r.IntN(20) {
			offered := r.Uint64N(1000)
			dropped := r.Uint64N(offered + 1)
			samples = append(samples, Sample{
				Cell: cells[r.IntN(len(cells))], Zone: []string{"z1", "z2", "a"}[r.IntN(3)],
				Offered: offered, Admitted: offered - dropped, Dropped: dropped,
				ShadowDropped: r.Uint64N(offered - dropped + 1), HighestSecond: r.Uint64N(50),
			}, Sample{Cell: cells[r.IntN(len(cells))], CandidateDropped: r.Uint64N(3)})
		}
		mustAppend(t, s, at(r.IntN(30*60)), samples...)
	}
	from, to := at(2*60+7), at(20*60+1) // of 19 hours
	for _, q := range []SeriesQuery{
		{Prefixes: []string{""}},
		{Prefixes: []string{"s2/b", "s1/", "s1/b3", "s2/b0", "s1", "s9", "s2/b5"}, Buckets: []string{"s1/b1", "s3/b0", "unknown"}},
		{Buckets: []string{"s0/b2"}},
	} {
		q.From, q.To = from, to
		p, err := s.Presence(t.Context(), from, to)
		if err != nil || p.Hours != 19 || !p.From.Equal(at(120)) {
			t.Fatalf("Presence from %v, %d hours, %v", p.From, p.Hours, err)
		}
		compareSeries(t, s, q, p)
	}
	compareZone(t, s, cells, from, to)
}

// compareZone compares what one zone counted of single cells.
func compareZone(t *testing.T, s *Store, cells []limiter.CellID, from, to time.Time) {
	t.Helper()
	chosen := append([]limiter.CellID{{Bucket: "unknown"}, cells[0]}, cells[:7]...)
	for _, zone := range []string{"z1", "a", "unknown"} {
		got := make(map[limiter.CellID]uint64)
		for _, series := range mustSeries(t, s, SeriesQuery{Cells: chosen, Zone: zone, From: from, To: to}) {
			if _, again := got[series.Cell]; again {
				t.Errorf("%v comes twice", series.Cell)
			}
			for i := range series.Offered {
				got[series.Cell] += series.Offered[i] + 7*series.Dropped[i]
				if series.CandidateDropped[i] != 0 {
					t.Errorf("%v in %q has what is known of all zones only", series.Cell, zone)
				}
			}
		}
		want := make(map[limiter.CellID]uint64)
		for _, cell := range chosen {
			minutes, err := s.MinutesByZone(t.Context(), cell, at(120), at(21*60))
			if err != nil {
				t.Fatal(err)
			}
			sum := uint64(0)
			for _, m := range minutes[zone] {
				sum += m.Offered + 7*m.Dropped
			}
			if sum > 0 {
				want[cell] = sum
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("from zone %q (-want +got):\n%s", zone, diff)
		}
	}
}

func TestRecorded(t *testing.T) {
	s := openStore(t, t.TempDir())
	for _, minute := range []int{0, 59, 120, 600} {
		mustAppend(t, s, at(minute), Sample{Cell: reads, Zone: "z1", Offered: 1, Admitted: 1}, Sample{Cell: writes, Zone: "z1", Offered: 1, Admitted: 1})
	}
	for _, test := range []struct {
		name     string
		from, to int // minutes
		want     []time.Time
	}{
		{"all", 0, 700, []time.Time{at(0), at(120), at(600)}},
		{"hours that are touched", 59, 121, []time.Time{at(0), at(120)}},
		{"none", 180, 599, nil},
		{"the last one", 601, 602, []time.Time{at(600)}},
	} {
		got, err := s.Recorded(t.Context(), at(test.from), at(test.to))
		if err != nil || !slices.EqualFunc(got, test.want, time.Time.Equal) {
			t.Errorf("%s: %v, %v, want %v", test.name, got, err, test.want)
		}
	}
	if _, err := s.Recorded(t.Context(), at(1), at(1)); err == nil {
		t.Error("no time: no error")
	}
}

func compareSeries(t *testing.T, s *Store, q SeriesQuery, p Presence) {
	t.Helper()
	end := p.From.Add(time.Duration(p.Hours) * time.Hour)
	got := make(map[limiter.CellID]bool)
	last, seen := "", make(map[string]bool)
	for _, series := range mustSeries(t, s, q) {
		if b := series.Cell.Bucket; b != last {
			if seen[b] {
				t.Errorf("bucket %q comes twice", b)
			}
			last, seen[b] = b, true
		}
		got[series.Cell] = true
		want := make([]Minute, p.Hours*60)
		for _, m := range mustMinutes(t, s, series.Cell, p.From, end) {
			want[int(m.Start.Sub(p.From)/time.Minute)] = m
		}
		for i, m := range want {
			have := [...]uint64{series.Offered[i], series.Dropped[i], series.ShadowDropped[i], series.HighestSecond[i], series.CandidateDropped[i]}
			if have != [...]uint64{m.Offered, m.Dropped, m.ShadowDropped, m.HighestSecond, m.CandidateDropped} {
				t.Fatalf("%v, minute %d = %v, want %+v", series.Cell, i, have, m)
			}
		}
		zones, err := s.MinutesByZone(t.Context(), series.Cell, p.From, end)
		if err != nil {
			t.Fatal(err)
		}
		for z, zone := range p.Zones {
			for h := range min(p.Hours, 30) {
				busy := slices.ContainsFunc(zones[zone], func(m Minute) bool { return int(m.Start.Sub(p.From)/time.Hour) == h })
				if hasBit(series.Zones[z], h) != busy {
					t.Errorf("%v in %q, hour %d: has a row %v, want %v", series.Cell, zone, h, !busy, busy)
				}
				if busy && !hasBit(p.Present[z], h) {
					t.Errorf("%q, hour %d: no history, but %v has", zone, h, series.Cell)
				}
			}
		}
	}
	for _, cell := range s.Cells("") {
		wanted := slices.Contains(q.Buckets, cell.Bucket) || slices.ContainsFunc(q.Prefixes, func(p string) bool { return cell.Bucket[:min(len(p), len(cell.Bucket))] == p })
		has := len(mustMinutes(t, s, cell, p.From, end)) > 0 || cell.Bucket == "many/0" // which is damaged
		if got[cell] != (wanted && has) {
			t.Errorf("%v: read %v, selected %v, has history %v", cell, got[cell], wanted, has)
		}
	}
}

func TestPresence(t *testing.T) {
	s := openStore(t, t.TempDir())
	empty, err := s.Presence(t.Context(), at(0), at(1))
	if err != nil || empty.Hours != 1 || len(empty.Zones) != 0 || len(empty.Present) != 0 {
		t.Errorf("Presence of an empty store = %+v, %v", empty, err)
	}
	one := func(zone string) Sample { return Sample{Cell: reads, Zone: zone, Offered: 1, Admitted: 1} }
	mustAppend(t, s, at(0), one("z2"))
	mustAppend(t, s, at(60), one("a"), Sample{Cell: writes, CandidateDropped: 1}, Sample{Cell: writes, Zone: "z2", Offered: 1})
	mustAppend(t, s, at(9*60), one("a"))
	p, err := s.Presence(t.Context(), at(59), at(600))
	want := Presence{From: at(0), Hours: 10, Zones: []string{"z2", "a"}, Present: [][]byte{{0b11, 0}, {0b10, 0b10}}}
	if diff := cmp.Diff(want, p); err != nil || diff != "" {
		t.Errorf("Presence: %v (-want +got):\n%s", err, diff)
	}
	mustAppend(t, s, at(0), one("0")) // comes last
	if p, err := s.Presence(t.Context(), at(59), at(60)); err != nil || !slices.Equal(p.Zones, []string{"z2", "a", "0"}) {
		t.Errorf("zones %q, %v, want the new one last", p.Zones, err)
	}
}

func TestSeriesOfOddTimes(t *testing.T) {
	s := openStore(t, t.TempDir())
	mustAppend(t, s, at(0), Sample{Cell: reads, Zone: "z1", Offered: 1, Admitted: 1})
	for _, tt := range []struct {
		name     string
		from, to time.Time
	}{
		{"no time", at(5), at(5)},
		{"backwards", at(5), at(0)},
		{"all times", time.Time{}, time.Unix(1<<40, 0)},
		{"a minute too long", at(0), at(MaxHours*60 + 1)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := s.Presence(t.Context(), tt.from, tt.to); err == nil {
				t.Error("Presence: no error")
			}
			q := SeriesQuery{Prefixes: []string{""}, From: tt.from, To: tt.to}
			if err := s.ReadSeries(t.Context(), q, func(CellSeries) error { return nil }); err == nil {
				t.Error("ReadSeries: no error")
			}
		})
	}
	long := SeriesQuery{Buckets: []string{reads.Bucket}, From: at(0), To: at(MaxHours * 60)}
	if list := mustSeries(t, s, long); len(list) != 1 || len(list[0].Offered) != MaxHours*60 || list[0].Offered[0] != 1 {
		t.Errorf("%d series of MaxHours, want 1", len(list))
	}
	odd := errors.New("odd")
	if err := s.ReadSeries(t.Context(), long, func(CellSeries) error { return odd }); !errors.Is(err, odd) {
		t.Errorf("ReadSeries: %v, want the error of the function", err)
	}
	if list := mustSeries(t, s, SeriesQuery{From: at(0), To: at(60)}); len(list) != 0 {
		t.Errorf("%d series of no buckets", len(list))
	}
}

func TestDamagedHourIsLeftOutOfSeries(t *testing.T) {
	s := openStore(t, t.TempDir())
	for h := range 5 {
		for _, zone := range []string{"z1", "z2", "z3"} {
			mustAppend(t, s, at(60*h), Sample{Cell: reads, Zone: zone, Offered: 5, Admitted: 4, Dropped: 1, HighestSecond: 2})
		}
	}
	mustAppend(t, s, at(0), Sample{Cell: writes, Zone: "z1", Offered: 5})
	// A row before, between and after those that are whole.
	for h, zone := range []int64{1, 2, 3} {
		if _, err := s.history.write.Exec("UPDATE hours SET max_minute = 99 WHERE zone = ? AND hour = ? AND cell = 1", zone, at(60*h).UnixMilli()); err != nil {
			t.Fatal(err)
		}
	}
	// What no hour is packed as, with the right sum.
	odd := hourRow{minutes: []byte{hourFormat, 1, 0, 0, 0, 0, 0, 0, 0, 1, 5, 5}}
	if _, err := s.history.write.Exec("UPDATE hours SET minutes = ?, max_minute = 0, max_second = 0, sum = ? WHERE zone = 1 AND hour = ? AND cell = 1",
		odd.minutes, odd.crc(at(240).UnixMilli(), rowKey{1, 1}), at(240).UnixMilli()); err != nil {
		t.Fatal(err)
	}
	list := mustSeries(t, s, SeriesQuery{Buckets: []string{reads.Bucket}, From: at(0), To: at(300)})
	if len(list) != 1 || !slices.Equal(list[0].Damaged, []int{0, 1, 2, 4}) {
		t.Fatalf("series %+v, want one with the hours 0 to 2 and 4 damaged", list)
	}
	for m, offered := range list[0].Offered {
		want := uint64(0)
		if m == 180 {
			want = 15
		}
		if offered != want {
			t.Errorf("minute %d offered %d, want %d", m, offered, want)
		}
	}
	if len(s.Warnings()) == 0 {
		t.Error("no warning")
	}
}

func TestSeriesCountsStopAtTheHighest(t *testing.T) {
	s := openStore(t, t.TempDir())
	most := Sample{Cell: reads, Offered: 1 << 63, Admitted: 1 << 63, HighestSecond: 1 << 63}
	for _, zone := range []string{"z1", "z2"} {
		most.Zone = zone
		mustAppend(t, s, at(0), most)
	}
	list := mustSeries(t, s, SeriesQuery{Buckets: []string{reads.Bucket}, From: at(0), To: at(60)})
	if len(list) != 1 || list[0].Offered[0] != maxCount || list[0].HighestSecond[0] != maxCount {
		t.Errorf("series %+v, want the highest count", list)
	}
}

func TestPutHoursEqualsAppendMinute(t *testing.T) {
	bulk, single := openStore(t, t.TempDir()), openStore(t, t.TempDir())
	r := newRand(4)
	zones := []string{"z1", "z2"}
	for h := range 3 {
		rows := make([]CellHour, 0, 4)
		for _, cell := range []limiter.CellID{reads, writes} {
			for _, zone := range zones {
				rows = append(rows, CellHour{Cell: cell, Zone: zone})
			}
		}
		for m := range 60 {
			var samples []Sample
			for i := range rows {
				n := r.Uint64N(3)
				rows[i].Minutes[m] = Minute{Offered: n, Admitted: n, HighestSecond: n, ShadowDropped: n / 2}
				samples = append(samples, Sample{Cell: rows[i].Cell, Zone: rows[i].Zone, Offered: n, Admitted: n, HighestSecond: n, ShadowDropped: n / 2})
			}
			mustAppend(t, single, at(60*h+m), samples...)
		}
		each := func(yield func(*CellHour) bool) {
			for i := range rows {
				if !yield(&rows[i]) {
					return
				}
			}
		}
		for range 2 { // the second time in place of the first
			if err := bulk.PutHours(t.Context(), at(60*h), each); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, cell := range single.Cells("") {
		if diff := cmp.Diff(mustMinutes(t, single, cell, at(0), at(180)), mustMinutes(t, bulk, cell, at(0), at(180))); diff != "" {
			t.Errorf("%v (-want +got):\n%s", cell, diff)
		}
	}
	none := func(yield func(*CellHour) bool) {
		yield(&CellHour{Cell: limiter.CellID{Bucket: "idle/idle"}, Zone: "z9"})
	}
	if err := bulk.PutHours(t.Context(), at(0), none); err != nil {
		t.Fatal(err)
	}
	if cells := bulk.Cells("idle"); len(cells) != 0 {
		t.Errorf("an idle hour names %v", cells)
	}
	if err := bulk.PutHours(t.Context(), at(1), none); err == nil {
		t.Error("PutHours within an hour: no error")
	}
}

// TestSeriesOfManyBatches reads more cells than fit into memory at once.
func TestSeriesOfManyBatches(t *testing.T) {
	s := openStore(t, t.TempDir())
	h, err := hoursOf(at(0), at(MaxHours*60))
	if err != nil {
		t.Fatal(err)
	}
	cells := 2*newSeriesReader(h, 1000, 1, nil).size + 1
	for i := range cells {
		cell := limiter.CellID{Bucket: fmt.Sprint("many/", i)}
		mustAppend(t, s, at(61*(i%25)), Sample{Cell: cell, Zone: fmt.Sprint("z", i%2), Offered: uint64(i + 1), Admitted: uint64(i + 1)})
	}
	mustAppend(t, s, at(MaxHours*60), Sample{Cell: limiter.CellID{Bucket: "many/later"}, Zone: "z0", Offered: 1, Admitted: 1})
	if _, err := s.history.write.Exec("UPDATE hours SET max_minute = 0 WHERE cell = 1"); err != nil {
		t.Fatal(err)
	}
	q := SeriesQuery{Prefixes: []string{"many/"}, From: at(0), To: at(MaxHours * 60)}
	p, err := s.Presence(t.Context(), q.From, q.To)
	if err != nil {
		t.Fatal(err)
	}
	compareSeries(t, s, q, p)
}

// FuzzAddHour compares it with decodeHour.
func FuzzAddHour(f *testing.F) {
	busy := hour{}
	for m := range busy {
		busy[m] = counts{offered: 1200, admitted: 900, dropped: 300, highestSecond: 31, candidateDropped: uint64(m)}
	}
	f.Add(busy.encode(nil))
	f.Add([]byte{1, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})
	f.Fuzz(func(t *testing.T, buf []byte) {
		var got [columns][minutesPerHour]uint64
		var target [columns]*[minutesPerHour]uint64
		for column, to := range seriesColumn {
			if to >= 0 {
				target[column] = &got[column]
			}
		}
		err := addHour(buf, &target)
		h, wrong := decodeHour(buf)
		if wrong != nil {
			return // decodeHour looks closer
		}
		if err != nil {
			t.Fatalf("% x: %v, but it is an hour", buf, err)
		}
		for m := range h {
			for column, to := range seriesColumn {
				if to >= 0 && got[column][m] != h[m][column] {
					t.Errorf("% x: minute %d, column %d = %d, want %d", buf, m, column, got[column][m], h[m][column])
				}
			}
		}
	})
}
