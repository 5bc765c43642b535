package controller

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"grl/limiter"
	"grl/store"
	"grl/store/storetest"
	"grl/web/page"
)

// recordedView returns a view of an empty store whose process began to record at
// a time and wrote all up to another one.
func recordedView(t testing.TB, since, flushed time.Time) view {
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
	return view{Controller: &Controller{opts: Options{Store: s}, kept: kept{since: since, flushed: flushed}}}
}

var lineStart = time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)

// randomMinutes writes a history of five cells of one bucket and of another one
// in two zones, with idle minutes, over some hours.
func randomMinutes(t *testing.T, v view, r *rand.Rand, hours int) []limiter.CellID {
	t.Helper()
	cells := []limiter.CellID{
		{Bucket: "pay/each", Caller: "a"},
		{Bucket: "pay/each", Caller: "b"},
		{Bucket: "pay/each", Instance: "eu", Caller: "a"},
		{Bucket: "pay/zonal", Instance: "z1"},
		{Bucket: "pay/zonal", Instance: "z2"},
		fleetCell,
	}
	for m := range hours * 60 {
		var samples []store.Sample
		for _, cell := range cells {
			for _, zone := range []string{"z1", "z2"} {
				if r.IntN(3) == 0 && cell != fleetCell {
					continue
				}
				offered := 1 + r.Uint64N(1000)
				dropped := r.Uint64N(offered)
				samples = append(samples, store.Sample{
					Cell: cell, Zone: zone, Offered: offered, Admitted: offered - dropped, Dropped: dropped,
					ShadowDropped: r.Uint64N(offered - dropped + 1), HighestSecond: 1 + r.Uint64N(offered),
				})
			}
			samples = append(samples, store.Sample{Cell: cell, CandidateDropped: r.Uint64N(3)})
		}
		if err := v.opts.Store.AppendMinute(t.Context(), lineStart.Add(time.Duration(m)*time.Minute), samples); err != nil {
			t.Fatal(err)
		}
	}
	return cells
}

// TestSeriesFromMinutes recomputes points from what the store says minute by
// minute, cell by cell.
func TestSeriesFromMinutes(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	const hours = 5
	end := lineStart.Add(hours * time.Hour)
	v := recordedView(t, end, end)
	cells := randomMinutes(t, v, r, hours)
	for _, q := range []page.SeriesQuery{
		{Bucket: "pay/each", Step: time.Minute},
		{Bucket: "pay/each", Step: 7 * time.Minute, Caller: "a"},
		{Bucket: "pay/each", Step: 20 * time.Minute, Caller: "a", Instance: "eu"},
		{Bucket: "pay/each", Step: 13 * time.Minute, Zone: "z2"},
		{Bucket: "pay/zonal", Step: time.Hour},
		{Bucket: "pay/zonal", Step: 5 * time.Minute, Instance: "z1"},
		{Bucket: "", Step: 30 * time.Minute},
		{Bucket: "", Step: 30 * time.Minute, Zone: "z1"},
	} {
		q.From = lineStart.Add(time.Duration(r.IntN(100)) * time.Minute).Add(17 * time.Second)
		q.To = q.From.Add(time.Duration(1+r.IntN(150)) * time.Minute)
		got, err := v.Series(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		if from := q.From.Truncate(q.Step); !got.From.Equal(from) || got.Step != q.Step || len(got.Offered) != int((q.To.Sub(from)+q.Step-1)/q.Step) {
			t.Errorf("%+v: %d points from %v by %v", q, len(got.Offered), got.From, got.Step)
		}
		if again, err := v.Series(t.Context(), q); err != nil || &again.Offered[0] != &got.Offered[0] {
			t.Errorf("%+v: read again although nothing was written, or %v", q, err)
		}
		for i := range got.Offered {
			from := got.From.Add(time.Duration(i) * q.Step)
			to := from.Add(q.Step)
			if last := q.To.Add(time.Minute - 1).Truncate(time.Minute); to.After(last) {
				to = last
			}
			compareSeriesPoint(t, v, q, cells, &got, i, from, to)
		}
	}
}

// compareSeriesPoint compares one point with the sums over minutes.
func compareSeriesPoint(t *testing.T, v view, q page.SeriesQuery, cells []limiter.CellID, got *page.Series, i int, from, to time.Time) {
	t.Helper()
	var sum store.Minute
	seconds := make(map[time.Time]uint64)
	for _, cell := range cells {
		want := q.Bucket
		if want == "" {
			want = store.FleetBucket
		}
		if cell.Bucket != want || q.Caller != "" && q.Caller != cell.Caller || q.Instance != "" && q.Instance != cell.Instance {
			continue
		}
		list, err := v.opts.Store.Minutes(t.Context(), cell, from, to)
		if q.Zone != "" {
			var zones map[string][]store.Minute
			zones, err = v.opts.Store.MinutesByZone(t.Context(), cell, from, to)
			list = zones[q.Zone]
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range list {
			sum.Offered += m.Offered
			sum.Admitted += m.Admitted
			sum.Dropped += m.Dropped
			sum.ShadowDropped += m.ShadowDropped
			sum.CandidateDropped += m.CandidateDropped
			seconds[m.Start] += m.HighestSecond
		}
	}
	highest := uint64(0)
	for _, s := range seconds {
		highest = max(highest, s)
	}
	span := to.Sub(from).Seconds()
	for _, c := range []struct {
		what      string
		got, want float64
	}{
		{"offered", got.Offered[i], float64(sum.Offered) / span},
		{"admitted", got.Admitted[i], float64(sum.Admitted) / span},
		{"dropped", got.Dropped[i], float64(sum.Dropped) / span},
		{"shadow drops", got.ShadowDropped[i], float64(sum.ShadowDropped) / span},
		{"drops of the candidate", got.CandidateDropped[i], float64(sum.CandidateDropped) / span},
		{"highest second", got.HighestSecond[i], float64(highest)},
	} {
		none := c.what == "drops of the candidate" && q.Zone != "" || c.what == "highest second" && q.Bucket == ""
		if none != math.IsNaN(c.got) || !none && math.Abs(c.got-c.want) > 1e-9*max(1, c.want) {
			t.Fatalf("%+v: %s of point %d, %v to %v = %v, want %v (none: %v)", q, c.what, i, from, to, c.got, c.want, none)
		}
	}
}

// known lists the points that are known, as 1, and those that are not.
func known(line []float64) string {
	text := ""
	for _, p := range line {
		if math.IsNaN(p) {
			text += "-"
		} else if p == 0 {
			text += "0"
		} else {
			text += "1"
		}
	}
	return text
}

// TestSeriesWhereNothingIsKnown has hours without a controller, one in which it
// began anew, an idle cell, a minute that was lost and what is not written yet.
func TestSeriesWhereNothingIsKnown(t *testing.T) {
	at := func(hour, minute int) time.Time {
		return lineStart.Add(time.Duration(hour)*time.Hour + time.Duration(minute)*time.Minute)
	}
	v := recordedView(t, at(3, 40).Add(30*time.Second), at(5, 20))
	v.kept.lose(at(4, 30))
	each := uint64(60)
	record := func(from, to time.Time, cells ...limiter.CellID) {
		for ; from.Before(to); from = from.Add(time.Minute) {
			var samples []store.Sample
			for _, cell := range cells {
				samples = append(samples, store.Sample{Cell: cell, Zone: "z1", Offered: each, Admitted: each})
			}
			if err := v.opts.Store.AppendMinute(t.Context(), from, samples); err != nil {
				t.Fatal(err)
			}
		}
	}
	busy, idle := limiter.CellID{Bucket: "pay/busy"}, limiter.CellID{Bucket: "pay/idle"}
	record(at(0, 0), at(1, 0), busy, idle, fleetCell) // then nothing for an hour
	record(at(2, 0), at(3, 10), busy, fleetCell)
	each = 30
	record(at(3, 40), at(3, 41), busy, fleetCell) // half of the minute
	each = 60
	record(at(3, 41), at(5, 20), busy, fleetCell)
	tests := []struct {
		name string
		q    page.SeriesQuery
		want string // each ten minutes, from hour to hour
	}{
		{"busy", page.SeriesQuery{Bucket: "pay/busy"}, "111111 ------ 111111 1---11 111111 11----"},
		{"idle", page.SeriesQuery{Bucket: "pay/idle"}, "111111 ------ 000000 0---00 000000 00----"},
		{"nobody", page.SeriesQuery{Bucket: "pay/none"}, "000000 ------ 000000 0---00 000000 00----"},
		{"the fleet", page.SeriesQuery{}, "111111 ------ 111111 1---11 111111 11----"},
		{"a zone", page.SeriesQuery{Bucket: "pay/idle", Zone: "z1"}, "111111 ------ 000000 0---00 000000 00----"},
		{"a zone of which there is nothing", page.SeriesQuery{Bucket: "pay/busy", Zone: "z2"}, "------ ------ ------ ------ ------ ------"},
	}
	for _, tt := range tests {
		tt.q.From, tt.q.To, tt.q.Step = at(0, 0), at(6, 0), 10*time.Minute
		got, err := v.Series(t.Context(), tt.q)
		if err != nil {
			t.Fatal(err)
		}
		text := known(got.Offered)
		for i := 30; i > 0; i -= 6 {
			text = text[:i] + " " + text[i:]
		}
		if text != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, text, tt.want)
		}
		if tt.name == "busy" && (got.Offered[0] != 1 || got.Offered[22] != 1 || got.Offered[27] != 1) {
			t.Errorf("busy: %v, want 1 a second also where a part is known", got.Offered)
		}
	}
}

func TestSeriesRefuses(t *testing.T) {
	v := recordedView(t, lineStart, lineStart)
	for _, q := range []page.SeriesQuery{
		{From: lineStart, To: lineStart.Add(time.Hour)},
		{From: lineStart, To: lineStart.Add(time.Hour), Step: 90 * time.Second},
		{From: lineStart, To: lineStart.Add(-time.Hour), Step: time.Minute},
		{From: lineStart.AddDate(-1, 0, 0), To: lineStart, Step: time.Hour},
		{From: lineStart.AddDate(0, 0, -20), To: lineStart, Step: time.Minute},
		{From: time.Time{}, To: lineStart, Step: time.Hour},
	} {
		if got, err := v.Series(t.Context(), q); err == nil {
			t.Errorf("%+v: %d points, want an error", q, len(got.Offered))
		}
	}
}

// TestSparksFromMinutes recomputes the day of several cells.
func TestSparksFromMinutes(t *testing.T) {
	now := time.Now()
	v := recordedView(t, now, now)
	cells := storetest.Cells(3)
	if err := storetest.Fill(t.Context(), v.opts.Store, storetest.FillOptions{Seed: 1, Cells: cells[:2], Weeks: 1, Until: now, Zones: []string{"z1", "z2"}, Fleet: true}); err != nil {
		t.Fatal(err)
	}
	asked := []limiter.CellID{cells[1], cells[2], cells[0], cells[1]}
	got, err := v.Sparks(t.Context(), asked)
	if err != nil {
		t.Fatal(err)
	}
	first := now.UTC().Truncate(20 * time.Minute).Add(-71 * 20 * time.Minute)
	hour := now.Truncate(time.Hour) // nothing is known of it
	for i, cell := range asked {
		if len(got[i]) != 72 {
			t.Fatalf("%d points of %v", len(got[i]), cell)
		}
		for p, mean := range got[i] {
			from := first.Add(time.Duration(p) * 20 * time.Minute)
			minutes, err := v.opts.Store.Minutes(t.Context(), cell, from, from.Add(20*time.Minute))
			if err != nil {
				t.Fatal(err)
			}
			sum := 0.0
			for _, m := range minutes {
				sum += float64(m.Offered)
			}
			if want := sum / 1200; math.IsNaN(mean) != !from.Before(hour) || from.Before(hour) && math.Abs(mean-want) > 1e-9*want {
				t.Fatalf("%v at %v: %v, want %v", cell, from, mean, want)
			}
		}
	}
	if again, err := v.Sparks(t.Context(), asked); err != nil || &again[0][0] != &got[0][0] {
		t.Errorf("read again within a minute, or %v", err)
	}
	many := make(map[limiter.CellID][]float64)
	for i := range mostSparks {
		many[limiter.CellID{Bucket: fmt.Sprint(i)}] = nil
	}
	v.sparks.keep(now, many)
	if v.sparks.keep(now, map[limiter.CellID][]float64{cells[0]: nil}); len(v.sparks.kept) != 1 {
		t.Errorf("%d lines are kept, at most %d", len(v.sparks.kept), mostSparks)
	}
}

// BenchmarkSeries reads lines of one bucket of 2,000 with five weeks, and
// sparklines.
func BenchmarkSeries(b *testing.B) {
	now := time.Now().Truncate(time.Hour)
	v := recordedView(b, now, now)
	cells := storetest.Cells(2000)
	if err := storetest.Fill(b.Context(), v.opts.Store, storetest.FillOptions{Seed: 1, Cells: cells, Weeks: 5, Until: now, Fleet: true}); err != nil {
		b.Fatal(err)
	}
	for _, span := range []struct {
		name       string
		long, step time.Duration
	}{{"an hour", time.Hour, time.Minute}, {"a day", 24 * time.Hour, 5 * time.Minute}, {"5 weeks", store.Keep, 3 * time.Hour}} {
		b.Run(span.name, func(b *testing.B) {
			b.ReportAllocs()
			var took []time.Duration
			for b.Loop() {
				v.lines.kept = nil
				start := time.Now()
				line, err := v.Series(b.Context(), page.SeriesQuery{Bucket: cells[rand.IntN(len(cells))].Bucket, From: now.Add(-span.long), To: now, Step: span.step})
				if err != nil || math.IsNaN(line.Offered[1]) {
					b.Fatal(err, line.Offered)
				}
				took = append(took, time.Since(start))
			}
			slices.Sort(took)
			b.ReportMetric(took[len(took)/2].Seconds()*1000, "ms-median")
			b.ReportMetric(took[0].Seconds()*1000, "ms-best")
		})
	}
	b.Run("sparks of 50 cells", func(b *testing.B) {
		b.ReportAllocs()
		var took []time.Duration
		for b.Loop() {
			v.sparks.kept = nil
			start := time.Now()
			first := rand.IntN(len(cells) - 50)
			if _, err := v.Sparks(b.Context(), cells[first:first+50]); err != nil {
				b.Fatal(err)
			}
			took = append(took, time.Since(start))
		}
		slices.Sort(took)
		b.ReportMetric(took[len(took)/2].Seconds()*1000, "ms-median")
		b.ReportMetric(took[0].Seconds()*1000, "ms-best")
	})
}
