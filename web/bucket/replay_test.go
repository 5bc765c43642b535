package bucket

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"grl/limiter"
	"grl/web/page"
)

var monday = time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)

func enforced(rps float64) *limiter.Bucket {
	return &limiter.Bucket{Service: "payments", Name: "writes", LimitRPS: rps, Behavior: limiter.Deny}
}

// weekOf is a week of minutes around a mean, some of which are not known.
func weekOf(r *rand.Rand, mean float64) past {
	s := past{from: monday, offered: make([]float64, weekMinutes)}
	for i := range s.offered {
		if s.offered[i] = mean * (1 + 0.5*math.Sin(float64(i)/700) + 0.1*r.NormFloat64()); r.IntN(50) == 0 {
			s.offered[i] = math.NaN()
		}
	}
	return s
}

// TestReplayed recomputes what limits would have dropped in another way: from
// what would have been admitted.
func TestReplayed(t *testing.T) {
	const seed = 7
	r := rand.New(rand.NewPCG(seed, 0))
	week := weekOf(r, 1000)
	for _, limit := range []float64{1, 700, 1000, 1499, 1e9} {
		got := replayed([]past{week}, enforced(limit))
		var offered, admitted float64
		over, peak := 0, 0.0
		for _, v := range week.offered {
			if v != v {
				continue
			}
			offered += 60 * v
			admitted += 60 * math.Min(v, limit)
			peak = math.Max(peak, v)
			if v > limit {
				over++
			}
		}
		if want := 1 - admitted/offered; math.Abs(got.share()-want) > 1e-9 {
			t.Errorf("seed %d: a limit of %v would have dropped %v, want %v", seed, limit, got.share(), want)
		}
		if got.over != over || got.peak != peak || got.limit != limit {
			t.Errorf("seed %d: limit %v: %d minutes over, peak %v, want %d and %v", seed, limit, got.over, got.peak, over, peak)
		}
	}
}

// TestReplayedByTheHour: a limit by the hour counts at its hour, where the hours
// are.
func TestReplayedByTheHour(t *testing.T) {
	week := past{from: monday, offered: make([]float64, weekMinutes)}
	for i := range week.offered {
		week.offered[i] = 100
	}
	b := enforced(1000)
	b.TimeZone = "Europe/Berlin"
	b.Hourly = make([]float64, limiter.Hours)
	for h := range b.Hourly {
		b.Hourly[h] = 1000
	}
	b.Hourly[3] = 40
	got := replayed([]past{week}, b)
	if got.over != 7*60 || math.Abs(got.dropped-7*3600*60) > 1e-6 {
		t.Errorf("%d minutes over and %v dropped, want the third hour of 7 days and 60 of 100 in it", got.over, got.dropped)
	}
	at := limitsAt(b, "")
	if l := at(time.Date(2026, 3, 2, 2, 30, 0, 0, time.UTC)); l != 40 {
		t.Errorf("the limit at 3:30 in Berlin is %v, want 40", l)
	}
}

// TestFree: what is said to need no force does not drop more than may be, and is
// the least that does not.
func TestFree(t *testing.T) {
	const seed = 3
	r := rand.New(rand.NewPCG(seed, 0))
	for _, present := range []float64{5000, 1400, 900} {
		week := weekOf(r, 1000)
		was := replayed([]past{week}, enforced(present))
		limit := free(week.offered, &was)
		more := func(rps float64) float64 {
			is := replayed([]past{week}, enforced(rps))
			return is.share() - was.share()
		}
		if limit < leastOfPeak*was.peak || more(limit) > mostDropped {
			t.Errorf("seed %d, limit %v: %v needs no force, but drops %v more", seed, present, limit, more(limit))
		}
		if below := 0.99 * limit; below >= leastOfPeak*was.peak && more(below) <= mostDropped {
			t.Errorf("seed %d, limit %v: %v needs no force, and %v does not either", seed, present, limit, below)
		}
	}
}

func cellsOf(cells ...page.Cell) *sum {
	for i := range cells {
		cells[i].Service, cells[i].Name = "payments", "writes"
		cells[i].AdmittedRPS = cells[i].OfferedRPS - cells[i].DroppedRPS
	}
	s := newSum(cells)
	return &s
}

func TestDroppedNow(t *testing.T) {
	each := enforced(100)
	each.PerCaller = true
	shared := enforced(100)
	shared.Share = limiter.MaxMin
	regional := enforced(100)
	regional.Scope, regional.Regions = limiter.Region, map[string]float64{"eu": 300}
	callers := cellsOf(page.Cell{Caller: "web", OfferedRPS: 150}, page.Cell{Caller: "app", OfferedRPS: 50})
	tests := []struct {
		name   string
		seen   *sum
		bucket *limiter.Bucket
		want   float64
	}{
		{"below the limit", cellsOf(page.Cell{OfferedRPS: 50}), enforced(100), 0},
		{"above it", cellsOf(page.Cell{OfferedRPS: 400}), enforced(100), 0.75},
		{"nothing is offered", cellsOf(page.Cell{}), enforced(100), 0},
		{"no cell", cellsOf(), enforced(100), 0},
		{"each caller has one", callers, each, 50.0 / 200},
		{"callers share one", callers, shared, 100.0 / 200},
		{"tiers share one", cellsOf(page.Cell{Class: "a", OfferedRPS: 80}, page.Cell{Class: "b", OfferedRPS: 80}), enforced(100), 60.0 / 160},
		{"regions", cellsOf(page.Cell{Instance: "eu", OfferedRPS: 400}, page.Cell{Instance: "us", OfferedRPS: 100}), regional, 100.0 / 500},
		{"a block", cellsOf(page.Cell{OfferedRPS: 3}), &limiter.Bucket{Block: true, Behavior: limiter.Deny}, 1},
		{"no bucket", cellsOf(page.Cell{OfferedRPS: 3}), nil, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := droppedNow(tt.seen, tt.bucket); math.Abs(got-tt.want) > 1e-12 {
				t.Errorf("would drop %v now, want %v", got, tt.want)
			}
		})
	}
}

func TestWhatTheEffectSays(t *testing.T) {
	shadow := *enforced(100)
	shadow.Behavior = limiter.Allow
	some := replay{known: weekMinutes, offered: 1000, dropped: 0.01, over: 4, peak: 1000, limit: 990}
	none := replay{known: weekMinutes, offered: 1000, peak: 1000, limit: 2000}
	tests := []struct {
		name string
		o    outcome
		want string
	}{
		{"nothing now, little in the week", outcome{before: enforced(9), after: enforced(10), changed: true, offeredNow: 5, predicted: -1, week: some}, "Would drop nothing now, and 0.001% of the last 7 days."},
		{"nothing at all", outcome{before: enforced(9), after: enforced(10), changed: true, offeredNow: 5, predicted: -1, week: none}, "Would drop nothing now, and nothing of the last 7 days."},
		{"both", outcome{before: enforced(9), after: enforced(10), changed: true, offeredNow: 5, now: 0.529, predicted: -1, week: replay{known: weekMinutes, offered: 1000, dropped: 121}}, "Would drop 52.9% now and 12.1% of the last 7 days."},
		{"one of just now", outcome{before: enforced(9), after: enforced(10), changed: true, offeredNow: 5, predicted: -1, week: replay{known: 1, offered: 1000}}, "Would drop nothing now, and nothing of the 1 min that is known."},
		{"a new bucket", outcome{before: enforced(9), after: enforced(10), changed: true, offeredNow: 5, predicted: -1, week: replay{known: 4, offered: 1000, dropped: 121}}, "Would drop nothing now, and 12.1% of the 4 min that are known."},
		{"no history", outcome{before: enforced(9), after: enforced(10), changed: true, offeredNow: 5, now: 0.5, predicted: -1}, "Would drop 50.0% now."},
		{"no requests", outcome{before: enforced(9), after: enforced(10), changed: true, predicted: -1}, "Cannot tell: no requests matched in the last 7 days."},
		{"as it is", outcome{before: enforced(9), after: enforced(9), offeredNow: 5, now: 0.153, predicted: -1}, "As it is, drops 15.3% now."},
		{"in shadow", outcome{before: enforced(9), after: &shadow, changed: true, offeredNow: 5, now: 0.153, predicted: -1, week: some}, "Drops nothing, in shadow. As a limit it would drop 15.3% now and 0.001% of the last 7 days."},
		{"many limits, by the guard rails", outcome{before: enforced(9), after: enforced(10), changed: true, offeredNow: 5, several: true, predicted: 0.02}, "Would drop nothing now, and 2.0% of the last 7 days."},
		{"new", outcome{after: enforced(10), changed: true, offeredNow: 5, now: 0.2, predicted: -1}, "Would drop 20.0% now."},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.o.lead(); got != tt.want {
				t.Errorf("the effect says %q, want %q", got, tt.want)
			}
		})
	}
}

func TestFactsOfAnEffect(t *testing.T) {
	o := outcome{
		before: enforced(9000), after: enforced(11_000), changed: true, offeredNow: 10_624, wasNow: 0.153, predicted: -1,
		was:  replay{known: weekMinutes, offered: 1e6, dropped: 6700, over: 413, peak: 11_121, limit: 9000},
		week: replay{known: weekMinutes, offered: 1e6, dropped: 10, over: 4, peak: 11_121, limit: 11_000},
	}
	var got []string
	for _, f := range o.facts() {
		got = append(got, fmt.Sprintf("%s: %s → %s", f.Name, f.Old, f.Value))
	}
	want := "Dropped now: 15.3% → 0; Dropped, last 7 days: 0.67% → 0.001%; Minutes over the limit: 413 → 4; Limit over 7-day peak: −19% → −1%"
	if text := strings.Join(got, "; "); text != want {
		t.Errorf("facts %s, want %s", text, want)
	}
	o.was.known, o.week.known = 150, 150
	if facts := o.facts(); facts[1].Name != "Dropped, 2 h that are known" || facts[3].Name != "Limit over peak of 2 h" {
		t.Errorf("of 150 minutes: %+v", facts)
	}
}
