package controller

import (
	"fmt"
	"log/slog"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/prometheus/client_golang/prometheus"

	"grl/limiter"
	"grl/limiter/limitsfile"
	"grl/policy/verdict"
	"grl/proto/access"
	grlv1 "grl/proto/grl/v1"
	"grl/roles/controller/desk"
	"grl/roles/controller/digest"
	"grl/store"
	"grl/web/page"
)

// town is a controller whose history and changes are written by the test.
type town struct {
	*Controller
	t     *testing.T
	r     *rand.Rand
	files map[string]string // bucket → what its limits file says of it
	said  []saying
}

// saying is what the limits files said from a time on.
type saying struct {
	at    time.Time
	files map[string]string
}

func newTown(t *testing.T, seed uint64) *town {
	t.Helper()
	config := Default()
	config.Limits = t.TempDir()
	if err := os.WriteFile(filepath.Join(config.Limits, "shop.yaml"), []byte("service: shop\nbuckets: []\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	st, err := store.Open(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	c, err := New(t.Context(), Options{Config: config, Log: slog.New(slog.DiscardHandler), Registry: prometheus.NewRegistry(), Store: st})
	if err != nil {
		t.Fatal(err)
	}
	return &town{Controller: c, t: t, r: rand.New(rand.NewPCG(seed, 0)), files: make(map[string]string)}
}

// say changes limits files; "" takes a bucket away.
func (w *town) say(changes map[string]string) {
	w.t.Helper()
	for name, text := range changes {
		w.files[name] = text
		if text == "" {
			delete(w.files, name)
		}
	}
	var b strings.Builder
	b.WriteString("service: shop\nbuckets:\n")
	for _, name := range slices.Sorted(maps.Keys(w.files)) {
		fmt.Fprintf(&b, "  - {name: %s, %s}\n", name, w.files[name])
	}
	_, err := w.desk.Apply(w.t.Context(), desk.ApplyRequest{
		By:    desk.By{Person: access.Person{Name: "ada", Level: access.Admin}},
		Files: []limitsfile.Source{{Name: "shop", Data: []byte(b.String())}}, Force: true, Now: true, Reason: "test",
	})
	if err != nil {
		w.t.Fatal(err)
	}
	w.said = append(w.said, saying{time.Now(), maps.Clone(w.files)})
}

// bucketAt returns what a bucket was at a time, nil if it was not there.
func (w *town) bucketAt(name string, at time.Time) *limiter.Bucket {
	w.t.Helper()
	text := ""
	for _, s := range w.said {
		if !s.at.After(at) {
			text = s.files[name]
		}
	}
	if text == "" {
		return nil
	}
	services, err := limitsfile.Load([]limitsfile.Source{{Name: "x", Data: []byte("service: shop\nbuckets:\n  - {name: " + name + ", " + text + "}\n")}})
	if err != nil {
		w.t.Fatal(err)
	}
	return &services[0].Buckets[0]
}

// since returns from when on a bucket's file said what it says last.
func (w *town) since(name string, same func(a, b string) bool) time.Time {
	last := w.said[len(w.said)-1].files[name]
	at := time.Time{}
	for i := len(w.said) - 1; i >= 0 && same(w.said[i].files[name], last); i-- {
		at = w.said[i].at
	}
	return at
}

// minutes appends random minutes of random cells from one time to another.
func (w *town) minutes(from, to time.Time, cells []limiter.CellID) {
	w.t.Helper()
	for at := from.Truncate(time.Minute); at.Before(to); at = at.Add(time.Minute) {
		if hour := at.Unix() / 3600; hour%31 == 7 || at.Minute()%7 != 0 { // an hour that was missed; most minutes are idle
			continue
		}
		var samples []store.Sample
		for _, id := range cells {
			for _, zone := range []string{"z1", "z2"} {
				if w.r.IntN(3) == 0 {
					continue
				}
				s := store.Sample{Cell: id, Zone: zone, Offered: w.r.Uint64N(5000)}
				s.HighestSecond = s.Offered / uint64(10+w.r.IntN(20))
				s.Dropped = s.Offered / 100
				s.Admitted = s.Offered - s.Dropped
				if w.r.IntN(50) == 0 {
					s.ShadowDropped = w.r.Uint64N(s.Admitted + 1)
				}
				samples = append(samples, s)
			}
			if w.r.IntN(80) == 0 {
				samples = append(samples, store.Sample{Cell: id, CandidateDropped: w.r.Uint64N(500)})
			}
		}
		if err := w.opts.Store.AppendMinute(w.t.Context(), at, samples); err != nil {
			w.t.Fatal(err)
		}
	}
}

func (w *town) newPast() *past {
	return &past{Controller: w.Controller, digest: digest.New(pastCells), limits: newPastLimits(), loaded: make(map[string]bool)}
}

// history is all that a bucket's cells counted, read minute by minute.
type history map[limiter.CellID]map[int64]store.Minute // by unix minute

func (w *town) read(now time.Time) (all history, known map[int64]bool) {
	w.t.Helper()
	all, known = make(history), make(map[int64]bool)
	for _, id := range w.opts.Store.Cells("") {
		list, err := w.opts.Store.Minutes(w.t.Context(), id, now.Add(-store.Keep), now.Add(time.Hour))
		if err != nil {
			w.t.Fatal(err)
		}
		all[id] = make(map[int64]store.Minute)
		for _, m := range list {
			all[id][m.Start.Unix()/60] = m
			known[m.Start.Unix()/3600] = true
		}
	}
	return all, known
}

// evidence computes what the hours of cells say, minute by minute.
func (h history) evidence(known map[int64]bool, cells []limiter.CellID, since, now time.Time, candidate bool) (time.Time, []verdict.Hour) {
	first := since.Truncate(time.Hour)
	var hours []verdict.Hour
	for at := first; !at.After(now); at = at.Add(time.Hour) {
		one := verdict.Hour{Known: known[at.Unix()/3600]}
		for _, id := range cells {
			highest := 0.0
			for m := range int64(60) {
				start := at.Add(time.Duration(m) * time.Minute)
				if start.Before(since) {
					continue
				}
				c := h[id][start.Unix()/60]
				one.Offered += float64(c.Offered)
				highest = math.Max(highest, float64(c.HighestSecond))
				if candidate {
					one.Dropped += float64(c.CandidateDropped)
				} else {
					one.Dropped += float64(c.ShadowDropped)
				}
			}
			one.Highest += highest
		}
		hours = append(hours, one)
	}
	return first, hours
}

// check recomputes all figures.
func (w *town) check(past *page.Past, now time.Time) {
	w.t.Helper()
	all, known := w.read(now)
	w.checkHeadroom(past, all, known, now)
	judged := make(map[string]int)
	for _, e := range past.Evidence {
		_, name, _ := strings.Cut(e.Cell.Bucket, "/")
		judged[name]++
		same := func(a, b string) bool { return a == b }
		if e.Candidate { // whatever is enforced beside
			_, candidate, _ := strings.Cut(w.files[name], "candidate")
			same = func(a, _ string) bool { return strings.Contains(a, "deny") && strings.HasSuffix(a, candidate) }
		}
		if since := w.since(name, same); since.Sub(e.Since).Abs() > time.Second {
			w.t.Errorf("%v is judged since %v, want %v", e.Cell, e.Since, since)
		}
		cells := []limiter.CellID{e.Cell}
		if name == "fair" { // its callers share one limit
			cells = w.opts.Store.CellsOf("shop/fair")
		}
		want := verdict.Judge(all.evidence(known, cells, e.Since, now, e.Candidate))
		want.Days = min(want.Days, now.Sub(e.Since).Hours()/24) // the first hour and the last are not whole
		got := e.Verdict
		if name == "fair" {
			w.checkCallers(&got, &want, all, known, cells, e, now)
		}
		if diff := cmp.Diff(want, got, cmpopts.EquateApprox(1e-6, 0), cmpopts.EquateNaNs(), cmpopts.EquateApproxTime(0)); diff != "" {
			w.t.Errorf("%v, candidate %v: %s", e.Cell, e.Candidate, diff)
		}
		top := float32(0)
		for _, v := range e.Curve {
			if v > top {
				top = v
			}
		}
		if math.Abs(float64(top)-got.Highest) > 1e-6*got.Highest {
			w.t.Errorf("%v: the curve reaches %v, the highest second is %v", e.Cell, top, got.Highest)
		}
	}
	if want := map[string]int{"shadow": 1, "each": 3, "fair": 1, "cand": 1, "region": 2}; !maps.Equal(judged, want) {
		w.t.Errorf("judged %v, want %v", judged, want)
	}
}

// checkCallers judges each caller of a shared limit.
func (w *town) checkCallers(got, want *verdict.Verdict, all history, known map[int64]bool, cells []limiter.CellID, e page.Evidence, now time.Time) {
	w.t.Helper()
	lost, most, who := 0.0, 0.0, ""
	for _, id := range cells {
		v := verdict.Judge(all.evidence(known, []limiter.CellID{id}, e.Since, now, false))
		if v.WorstShare > want.WorstShare {
			want.WorstShare, want.WorstDay = v.WorstShare, v.WorstDay
		}
		last := verdict.Judge(all.evidence(known, []limiter.CellID{id}, now.Truncate(time.Hour).Add(-23*time.Hour), now, false)).Dropped
		if lost += last; last > most {
			most, who = last, id.Caller
		}
	}
	if want.Kind == verdict.Safe && want.WorstShare > verdict.Hurts {
		want.Kind = verdict.WouldHurt
	}
	if e.HitCaller != who || lost > 0 && math.Abs(e.HitShare-most/lost) > 1e-6 {
		w.t.Errorf("hit %s, %v of it; want %s, %v", e.HitCaller, e.HitShare, who, most/lost)
	}
}

func (w *town) checkHeadroom(past *page.Past, all history, known map[int64]bool, now time.Time) {
	w.t.Helper()
	seen := make(map[string]int)
	last := math.Inf(1)
	for _, h := range past.Headroom {
		_, name, _ := strings.Cut(h.Cell.Bucket, "/")
		seen[name]++
		top := -1.0
		for i, got := range h.Days {
			day := now.UTC().Truncate(24*time.Hour).AddDate(0, 0, i-6)
			want := math.NaN()
			for hour := day; hour.Before(day.AddDate(0, 0, 1)); hour = hour.Add(time.Hour) {
				if !known[hour.Unix()/3600] {
					continue
				}
				b := w.bucketAt(name, hour)
				for m := 1; b == nil && m < 60; m++ {
					b = w.bucketAt(name, hour.Add(time.Duration(m)*time.Minute))
				}
				if b == nil || b.Block {
					continue
				}
				highest := 0.0
				for m := range int64(60) {
					highest = math.Max(highest, float64(all[h.Cell][hour.Unix()/60+m].HighestSecond))
				}
				held := b.At(hour)
				if share := highest / held.Limit(h.Cell.Instance); !(want >= share) {
					want = share
				}
			}
			if math.Abs(got-want) > 1e-6*want || math.IsNaN(got) != math.IsNaN(want) {
				w.t.Errorf("%v came to %v of its limit on %v, want %v", h.Cell, got, day, want)
			}
			if got > top {
				top = got
			}
		}
		if top > last {
			w.t.Errorf("%v, which came to %v, is after one of %v", h.Cell, top, last)
		}
		last = top
	}
	if want := map[string]int{"web": 1, "cand": 1, "hourly": 1}; !maps.Equal(seen, want) {
		w.t.Errorf("headroom of %v, want %v", seen, want)
	}
}

// TestPastFromHistory recomputes headroom and evidence from the stored minutes,
// through changes of limits, hours that were missed, and a step of minutes.
func TestPastFromHistory(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	synctest.Test(t, func(t *testing.T) {
		w := newTown(t, seed)
		hours := strings.TrimSuffix(strings.Repeat("100, 150, 200, ", 8), ", ")
		w.say(map[string]string{
			"web":    "match: {procedure: web}, limit: {rps: 100}, behavior: deny",
			"shadow": "match: {procedure: shadow}, limit: {rps: 50}, behavior: allow",
			"each":   "match: {caller: '*', procedure: each}, per: caller, limit: {rps: 10}, behavior: allow",
			"fair":   "match: {procedure: fair}, share: max-min, limit: {rps: 30}, behavior: allow",
			"cand":   "match: {procedure: cand}, limit: {rps: 100}, behavior: deny, candidate: {rps: 60}",
			"hourly": "match: {procedure: hourly}, limit: {rps: 200, hourly: [" + hours + "], time_zone: Asia/Kolkata}, behavior: deny",
			"region": "match: {procedure: region}, scope: region, limit: {rps: 70, regions: {eu: 90}}, behavior: allow",
			"gone":   "match: {procedure: gone}, limit: {rps: 5}, behavior: allow",
		})
		id := func(name, instance, caller string) limiter.CellID {
			return limiter.CellID{Bucket: "shop/" + name, Instance: instance, Caller: caller}
		}
		cells := []limiter.CellID{
			id("web", "", ""), id("shadow", "", ""), id("each", "", "a"), id("each", "", "b"), id("each", "", "c"),
			id("fair", "", "a"), id("fair", "", "b"), id("cand", "", ""), id("hourly", "", ""), id("region", "eu", ""), id("region", "us", ""),
			id("region", "", ""), // of another scope, before
			id("gone", "", ""), id("_cap-1", "", ""), id("other", "", ""),
		}
		live := func(d time.Duration) {
			from := time.Now()
			time.Sleep(d)
			w.minutes(from, time.Now(), cells)
		}
		p := w.newPast()
		live(26*time.Hour + 14*time.Minute + 20*time.Second)
		w.say(map[string]string{"shadow": "match: {procedure: shadow}, limit: {rps: 55}, behavior: allow", "web": "match: {procedure: web}, limit: {rps: 120}, behavior: deny"})
		live(20*time.Hour - 40*time.Second)
		w.say(map[string]string{"gone": "", "cand": "match: {procedure: cand}, limit: {rps: 110}, behavior: deny, candidate: {rps: 60}"})
		live(24*time.Hour*6 + 5*time.Hour)
		if err := p.refresh(t.Context(), time.Now()); err != nil {
			t.Fatal(err)
		}
		w.check(w.figures.Load(), time.Now())
		for range 4 {
			live(23 * time.Minute)
			if err := p.refresh(t.Context(), time.Now()); err != nil {
				t.Fatal(err)
			}
		}
		w.say(map[string]string{"shadow": "match: {procedure: shadow}, limit: {rps: 60}, behavior: allow", "each": "match: {caller: '*', procedure: each}, per: caller, limit: {rps: 11}, behavior: allow"})
		live(5 * time.Minute)
		if err := p.refresh(t.Context(), time.Now()); err != nil {
			t.Fatal(err)
		}
		live(70 * time.Minute)
		if err := p.refresh(t.Context(), time.Now()); err != nil {
			t.Fatal(err)
		}
		followed := w.figures.Load()
		w.check(followed, time.Now())
		if err := w.newPast().refresh(t.Context(), time.Now()); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(w.figures.Load(), followed, cmpopts.EquateNaNs()); diff != "" {
			t.Errorf("what was followed minute by minute is not what is read anew: %s", diff)
		}
	})
}

// TestHitByTraffic names who would have lost most, from the details of hosts.
func TestHitByTraffic(t *testing.T) {
	now := time.Date(2026, 3, 2, 12, 30, 0, 0, time.UTC)
	var tr traffic
	add := func(at time.Time, caller string, offered, lost uint64) {
		tr.add(at, &grlv1.Detail{Buckets: []*grlv1.BucketCallers{{
			Bucket: "shop/all", Callers: []*grlv1.CallerCounts{{Caller: caller, Offered: offered, ShadowDropped: lost}}, Rest: &grlv1.CallerCounts{Offered: 10, ShadowDropped: 1},
		}}})
	}
	add(now.Add(-3*time.Hour), "search", 1000, 500)
	add(now.Add(-time.Hour), "web", 50, 10)
	add(now, "checkout", 40, 30)
	add(now, "web", 50, 8)
	tests := []struct {
		name    string
		bucket  string
		since   time.Time
		offered bool
		want    string
		share   float64
	}{
		{"of all", "shop/all", time.Time{}, false, "search", 500.0 / 552},
		{"since the limit is judged, in whole hours", "shop/all", now.Add(-2 * time.Hour), false, "checkout", 30.0 / 51},
		{"of a candidate, by what was offered", "shop/all", now.Add(-2 * time.Hour), true, "web", 100.0 / 170},
		{"of a bucket that nobody tells of", "shop/none", time.Time{}, false, "", 0},
		{"since now", "shop/all", now, false, "", 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got, share := tr.hit(tt.bucket, tt.since, tt.offered); got != tt.want || math.Abs(share-tt.share) > 1e-12 {
				t.Errorf("hit = %s, %v; want %s, %v", got, share, tt.want, tt.share)
			}
		})
	}
}

// TestUsual compares the median with the stored minutes.
func TestUsual(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTown(t, 1)
		w.say(map[string]string{
			"web":  "match: {caller: web, procedure: p}, scope: region, limit: {rps: 100}, behavior: deny",
			"each": "match: {caller: '*', procedure: q}, per: caller, limit: {rps: 10}, behavior: allow",
		})
		cells := []limiter.CellID{{Bucket: "shop/web", Instance: "eu"}, {Bucket: "shop/web", Instance: "us"}, {Bucket: "shop/each", Caller: "a"}, {Bucket: "shop/each", Caller: "b"}}
		time.Sleep(26*24*time.Hour + 10*time.Hour + 40*time.Minute)
		hour := time.Now().Truncate(time.Hour)
		for day := range 27 {
			from := hour.AddDate(0, 0, -day).Add(-30 * time.Minute)
			w.minutes(from, from.Add(2*time.Hour), cells)
		}
		ask := func(caller, procedure limiter.Pattern) (float64, bool) {
			rps, known, err := view{Controller: w.Controller}.Usual(t.Context(), "shop", limiter.Match{Caller: caller, Procedure: procedure})
			if err != nil {
				t.Fatal(err)
			}
			return rps, known
		}
		want := func(cells ...limiter.CellID) float64 {
			all, _ := w.read(time.Now())
			var peaks []float64
			for day := 1; day <= 28; day++ {
				peak := 0.0
				for m := range int64(60) {
					sum := 0.0
					for _, id := range cells {
						sum += float64(all[id][hour.AddDate(0, 0, -day).Unix()/60+m].Offered)
					}
					peak = math.Max(peak, sum/60)
				}
				if peak > 0 {
					peaks = append(peaks, peak)
				}
			}
			slices.Sort(peaks)
			if len(peaks) < 10 {
				t.Fatalf("%d peaks", len(peaks))
			}
			return (peaks[(len(peaks)-1)/2] + peaks[len(peaks)/2]) / 2
		}
		if got, known := ask("web", "p"); !known || math.Abs(got-want(cells[0], cells[1])) > 1e-9 {
			t.Errorf("usual of the bucket = %v, %v; want %v", got, known, want(cells[0], cells[1]))
		}
		if got, known := ask("b", "q"); !known || math.Abs(got-want(cells[3])) > 1e-9 {
			t.Errorf("usual of a caller = %v, %v; want %v", got, known, want(cells[3]))
		}
		for _, m := range []limiter.Match{{Caller: "web"}, {Caller: "other", Procedure: "p"}, {Caller: "b*", Procedure: "q"}, {Procedure: "p"}} {
			if got, known := ask(m.Caller, m.Procedure); known {
				t.Errorf("usual of %v = %v, want not known: no bucket counts just these", m, got)
			}
		}
	})
}
