package controller

import (
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"grl/limiter"
	"grl/limiter/law"
	grlv1 "grl/proto/grl/v1"
)

var recorderCell = limiter.CellID{Bucket: "pay/b0"}

// total adds up the minutes of one place.
func total(sum *minute, minutes map[place][]minute) {
	for _, list := range minutes {
		for _, m := range list {
			sum.offered += m.offered
			sum.dropped += m.dropped
			sum.shadowDropped += m.shadowDropped
			sum.highest = max(sum.highest, m.highest)
		}
	}
}

// Whatever is spread over seconds and cut at minutes adds up again, no minute
// has more drops than requests, and no second more than came in around it.
func TestRecorderTotalsAreExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var r recorder
		now := time.Unix(1_000_000_000, rapid.Int64Range(0, 1e9-1).Draw(t, "phase"))
		var got, want minute
		check := func(minutes map[place][]minute) {
			for _, list := range minutes {
				for _, m := range list {
					if m.dropped+m.shadowDropped > m.offered {
						t.Fatalf("minute %+v has more drops than requests", m)
					}
					if m.highest > m.offered {
						t.Fatalf("minute %+v has a second above all of it", m)
					}
				}
			}
			total(&got, minutes)
		}
		for range rapid.IntRange(1, 100).Draw(t, "reports") {
			span := time.Duration(rapid.Int64Range(0, int64(law.HostSilent)).Draw(t, "span"))
			now = now.Add(span)
			var more law.Counts
			more.Offered = rapid.Uint64Range(0, 1000).Draw(t, "offered")
			more.Dropped = rapid.Uint64Range(0, more.Offered).Draw(t, "dropped")
			more.ShadowDropped = rapid.Uint64Range(0, more.Offered-more.Dropped).Draw(t, "shadow")
			if rapid.IntRange(0, 3).Draw(t, "some late") == 0 {
				more.Late = rapid.Uint64Range(0, more.Offered).Draw(t, "late")
			}
			r.series(place{recorderCell, "z1"}).add(now, span, more)
			want.offered += more.Offered
			want.dropped += more.Dropped
			want.shadowDropped += more.ShadowDropped
			if rapid.Bool().Draw(t, "flush") {
				check(r.take(now, false))
			}
		}
		check(r.take(now, true))
		if got.offered != want.offered || got.dropped != want.dropped || got.shadowDropped != want.shadowDropped {
			t.Fatalf("recorded %+v, want %+v", got, want)
		}
		if len(r.open) != 0 {
			t.Fatalf("%d places are open after all was taken", len(r.open))
		}
	})
}

// A steady load has no second above it, however its reports fall on seconds.
func TestRecorderOfASteadyLoad(t *testing.T) {
	for _, phase := range []time.Duration{0, 1, 300 * time.Millisecond, 999 * time.Millisecond} {
		for _, every := range []time.Duration{law.T, law.T / 2, 20 * time.Millisecond} {
			var r recorder
			now := time.Unix(1_000_000_000, 0).Add(phase)
			var sum minute
			n := uint64(1000 * every / law.T)
			for range 3 * time.Minute / every {
				now = now.Add(every)
				r.series(place{recorderCell, "z1"}).add(now, every, law.Counts{Offered: n})
				total(&sum, r.take(now, false))
			}
			total(&sum, r.take(now, true))
			if sum.highest > 1001 || sum.highest < 999 || sum.offered != 180_000 {
				t.Errorf("phase %v, every %v: recorded %+v of 1000 a second for 3 minutes", phase, every, sum)
			}
		}
	}
}

func TestRecorderCutsAtMinutes(t *testing.T) {
	var r recorder
	edge := time.Unix(1_000_000_020, 0) // a whole minute
	r.series(place{recorderCell, "z1"}).add(edge.Add(time.Second), 2*time.Second, law.Counts{Offered: 100, Dropped: 50})
	if got := r.take(edge.Add(settled-1), false); len(got) != 0 {
		t.Fatalf("took %v before the minute is settled", got)
	}
	first := r.take(edge.Add(settled), false)[place{recorderCell, "z1"}]
	if len(first) != 1 || first[0].at != edge.Unix()/60-1 || first[0].offered != 50 || first[0].dropped != 25 || first[0].highest != 50 {
		t.Errorf("first minute %+v, want half", first)
	}
	second := r.take(edge.Add(time.Minute+settled), false)[place{recorderCell, "z1"}]
	if len(second) != 1 || second[0].offered != 50 || second[0].dropped != 25 {
		t.Errorf("second minute %+v, want the other half", second)
	}
	if len(r.open) != 0 {
		t.Errorf("%d places stay open", len(r.open))
	}
}

func TestRecorderOfTheHighestCounts(t *testing.T) {
	var r recorder
	now := time.Unix(1_000_000_000, 5e8)
	most := uint64(1<<64 - 1)
	r.series(place{recorderCell, "z1"}).add(now, law.T, law.Counts{Offered: most, Dropped: most})
	var sum minute
	total(&sum, r.take(now, true))
	if sum.offered != most || sum.dropped != most {
		t.Errorf("recorded %+v, want %d", sum, most)
	}
}

func TestFlow(t *testing.T) {
	var f flow
	if d, s := f.shares(0); d != 0 || s != 0 {
		t.Errorf("shares %v and %v of nothing", d, s)
	}
	for tick := range uint64(10) {
		f.add(tick, law.Counts{Offered: 50, Dropped: 15, ShadowDropped: 10})
		f.add(tick, law.Counts{Offered: 50, Dropped: 15, ShadowDropped: 10})
	}
	if d, s := f.shares(9); d != 0.3 || s != 0.2 {
		t.Errorf("shares %v and %v, want 0.3 and 0.2", d, s)
	}
	if got := f.sum(11); got.Offered != 300 {
		t.Errorf("%d requests in the last five ticks, want those of three", got.Offered)
	}
	if d, s := f.shares(14); d != 0 || s != 0 {
		t.Errorf("shares %v and %v of a cell that is quiet", d, s)
	}
}

func TestTrafficByTheHour(t *testing.T) {
	var tr traffic
	now := time.Unix(1_000_000_000, 0).Truncate(time.Hour)
	for hour := range 30 {
		for range 2 {
			tr.add(now.Add(time.Duration(hour)*time.Hour), &grlv1.Detail{
				Buckets: []*grlv1.BucketCallers{
					{Bucket: "pay/b0", Callers: []*grlv1.CallerCounts{{Caller: "web", Offered: 5, Dropped: 1}}, Rest: &grlv1.CallerCounts{Offered: 2}},
					{Bucket: "payments/b0", Callers: []*grlv1.CallerCounts{{Caller: "web", Offered: 9}}},
				},
				Services: []*grlv1.ServicePairs{{Service: "pay", Pairs: []*grlv1.PairCounts{{Caller: "web", Procedure: "p", Offered: 4}}, RestOffered: 1}},
			})
		}
	}
	hours := tr.of("pay")
	if len(hours) != trafficHours {
		t.Fatalf("%d hours, want %d", len(hours), trafficHours)
	}
	for i, h := range hours {
		if want := now.Add(time.Duration(29-i) * time.Hour).UnixMilli(); h.GetStartMs() != want {
			t.Errorf("hour %d begins at %d, want %d", i, h.GetStartMs(), want)
		}
		b := h.GetBuckets()
		if len(b) != 1 || b[0].GetBucket() != "pay/b0" || b[0].GetCallers()[0].GetOffered() != 10 || b[0].GetCallers()[0].GetDropped() != 2 || b[0].GetRest().GetOffered() != 4 {
			t.Errorf("hour %d: %v", i, b)
		}
		if p := h.GetPairs(); p.GetPairs()[0].GetOffered() != 8 || p.GetRestOffered() != 2 {
			t.Errorf("hour %d: %v", i, p)
		}
	}
	if got := tr.of("nobody"); got != nil {
		t.Errorf("traffic %v of a service nobody sent to", got)
	}
}

func TestTrafficIsBounded(t *testing.T) {
	var tr traffic
	now := time.Unix(1_000_000_000, 0)
	const buckets, callers = 100, 1500
	for b := range buckets {
		m := &grlv1.BucketCallers{Bucket: cellOf(b).Bucket}
		for c := range callers {
			m.Callers = append(m.Callers, &grlv1.CallerCounts{Caller: cellOf(c).Bucket, Offered: 1})
		}
		tr.add(now, &grlv1.Detail{Buckets: []*grlv1.BucketCallers{m}})
	}
	kept := 0
	for _, m := range tr.hours[0].buckets {
		kept += len(m)
	}
	if kept > trafficMost+buckets {
		t.Errorf("%d names kept, want at most %d and a rest for each bucket", kept, trafficMost)
	}
	for _, b := range tr.of("pay")[0].GetBuckets() {
		sum := b.GetRest().GetOffered()
		for _, c := range b.GetCallers() {
			sum += c.GetOffered()
		}
		if sum != callers {
			t.Fatalf("%s: %d in all, want %d", b.GetBucket(), sum, callers)
		}
	}
}

// What the fleet counted is dropped anywhere, or let through where the way of
// requests ended at that time; each zone by itself.
func TestFleetMinutes(t *testing.T) {
	var r recorder
	now := time.Unix(1_000_000_050, 0)
	add := func(cell, zone string, last bool, more law.Counts) {
		s := r.series(place{limiter.CellID{Bucket: cell}, zone})
		s.last = last
		s.add(now, time.Second, more)
	}
	add("pay/first", "z1", false, law.Counts{Offered: 100, Dropped: 30})
	add("pay/all", "z1", true, law.Counts{Offered: 70, Dropped: 20, ShadowDropped: 10, Late: 5})
	add("pay/all", "z2", true, law.Counts{Offered: 40, ShadowDropped: 40})
	add("pay/shadow", "z2", false, law.Counts{Offered: 40, ShadowDropped: 40})
	// From now on it is the first one that ends the way.
	add("pay/first", "z1", true, law.Counts{Offered: 10, Dropped: 1})
	add("pay/all", "z1", false, law.Counts{Offered: 9})
	r.series(place{cell: limiter.CellID{Bucket: "pay/all"}}).minute(now.Unix() / 60).candidate = 7
	at := now.Unix() / 60
	want := map[place][]minute{
		{fleetCell, "z1"}: {{at: at, offered: 110, dropped: 51, shadowDropped: 10, through: 59}},
		{fleetCell, "z2"}: {{at: at, offered: 40, shadowDropped: 40, through: 40}},
		{fleetCell, ""}:   {{at: at, candidate: 7}},
	}
	if got := fleetMinutes(r.take(now, true)); !reflect.DeepEqual(got, want) {
		t.Errorf("fleetMinutes = %+v, want %+v", got, want)
	}
}
