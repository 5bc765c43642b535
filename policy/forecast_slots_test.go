package policy

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Each row lies in one slot, that of its start.
func TestCutTakesEachRowOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		step := time.Duration(rapid.IntRange(1, 100).Draw(t, "minutes")) * time.Minute
		series := Series{Start: monday.Add(time.Duration(rapid.IntRange(0, 86400).Draw(t, "start")) * time.Second), Step: step}
		for i := range rapid.IntRange(0, 300).Draw(t, "rows") {
			series.RPS = append(series.RPS, float64(i))
		}
		s := cut(series, series.Start, monday.Add(30*day))
		n := 0
		for i := range s.starts {
			for _, x := range s.of(i) {
				at := series.Time(int(x))
				if at.Before(s.starts[i]) || !at.Before(s.end(i)) || int(x) != n {
					t.Fatalf("row %d of %v is number %v, in the slot of %v", n, at, x, s.starts[i])
				}
				n++
			}
			if most := s.most[i]; Known(most) != (len(s.of(i)) > 0) || Known(most) && most != float64(n-1) {
				t.Fatalf("the highest row of slot %d is %v, of %v", i, most, s.of(i))
			}
		}
		if n != len(series.RPS) {
			t.Fatalf("%d rows of %d are in a slot", n, len(series.RPS))
		}
	})
}

// The same hour of an earlier day is that of the clock on the wall.
func TestEarlierIsTheSameHourOfTheClock(t *testing.T) {
	for _, name := range []string{"UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata"} {
		location := zone(t, name)
		t.Run(name, func(t *testing.T) {
			start := time.Date(2026, 2, 20, 0, 0, 0, 0, location)
			series := Series{Start: start, Step: 30 * time.Minute}
			for i := range 48 * 300 {
				series.RPS = append(series.RPS, float64(series.Time(i).Unix()))
			}
			s := cut(series, start, start.AddDate(0, 0, 290))
			for i, at := range s.starts {
				for _, days := range []int{1, 2, 7, 28} {
					found := s.earlier(i, days)
					if !Known(found) {
						if at.AddDate(0, 0, -days).Hour() == at.Hour() && at.AddDate(0, 0, -days).After(start) {
							t.Fatalf("nothing is found %d days before %v", days, at)
						}
						continue
					}
					want := at.AddDate(0, 0, -days)
					if want.Hour() != at.Hour() {
						continue // the clock left that hour out
					}
					then := time.Unix(int64(found), 0).In(location)
					if then.Format("2 15") != want.Format("2 15") {
						t.Fatalf("%d days before %v is %v, want %v", days, at, then, want)
					}
				}
			}
		})
	}
}

// No slot is forecast from itself or from what comes after it.
func TestForecastOfASlotIsFromThoseBefore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		series := load(monday.Add(4*week), 28, time.Hour, 1000, rapid.Uint64().Draw(t, "seed"))
		s := cut(series, monday, monday.Add(4*week))
		i := rapid.IntRange(0, len(s.most)-1).Draw(t, "slot")
		before := [...]float64{s.forecast(carried, i), s.forecast(highestOf, i), s.schedule(carried, i), s.schedule(highestOf, i)}
		for j := i; j < len(s.most); j++ {
			s.most[j] = rapid.SampledFrom([]float64{0, 1e9, Unknown}).Draw(t, "other")
		}
		after := [...]float64{s.forecast(carried, i), s.forecast(highestOf, i), s.schedule(carried, i), s.schedule(highestOf, i)}
		for k := range before {
			if before[k] != after[k] && (Known(before[k]) || Known(after[k])) {
				t.Fatalf("slot %d: %v became %v", i, before, after)
			}
		}
	})
}

// More load in an earlier hour never lowers a forecast, but for the hours that
// the one before is measured by.
func TestForecastOfASlotRisesWithLoad(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		series := load(monday.Add(4*week), 28, time.Hour, 1000, rapid.Uint64().Draw(t, "seed"))
		for range rapid.IntRange(0, 200).Draw(t, "unknown") {
			series.RPS[rapid.IntRange(0, len(series.RPS)-1).Draw(t, "row")] = Unknown
		}
		s := cut(series, monday, monday.Add(4*week))
		i := rapid.IntRange(1, len(s.most)-1).Draw(t, "slot")
		j := rapid.IntRange(0, i-1).Draw(t, "earlier")
		if back := i - 1 - j; back > 0 && (back%168 == 0 || back%24 == 0 && back <= 168) {
			return
		}
		b := rapid.SampledFrom([]basis{carried, highestOf}).Draw(t, "basis")
		before := s.forecast(b, i)
		s.most[j] *= rapid.Float64Range(1, 1000).Draw(t, "times")
		if after := s.forecast(b, i); after < before*(1-1e-12) || Known(after) != Known(before) {
			t.Fatalf("%v became %v as slot %d of %d rose", before, after, j, i)
		}
	})
}

func TestProfile(t *testing.T) {
	tests := []struct {
		name        string
		n           int
		weeks, days past
		want        float64
	}{
		{"nothing is known", 0, past{}, past{}, Unknown},
		{"days alone", 0, past{}, past{n: 3, mean: 10}, 10},
		{"a week that only one of two hours has", 0, past{n: 1, mean: 90}, past{n: 7, mean: 10}, 10},
		{"one week counts half", 1, past{n: 1, mean: 90}, past{n: 7, mean: 10}, 50},
		{"three weeks count three quarters", 3, past{n: 3, mean: 90}, past{n: 7, mean: 10}, 70},
		{"weeks alone", 2, past{n: 2, mean: 90}, past{}, 90},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := profile(tt.n, tt.weeks, tt.days); got != tt.want && (Known(got) || Known(tt.want)) {
				t.Errorf("profile = %v, want %v", got, tt.want)
			}
		})
	}
}

func TestCarried(t *testing.T) {
	// Four weeks of an hour of 100 and one of the next load, then 200.
	after := func(next float64) float64 {
		series := steps(monday, 28, time.Hour, func(at time.Time) float64 {
			if at.Hour() == 1 {
				return next
			}
			return 100
		})
		series.RPS = append(series.RPS, 200)
		s := cut(series, monday, monday.Add(4*week+2*time.Hour))
		return s.forecast(carried, 4*168+1)
	}
	tests := []struct {
		name       string
		next, want float64
	}{
		{"the same", 100, 200},
		{"more", 250, 500},
		{"four times at most", 1000, 800},
		{"less", 60, 120},
		{"half at least", 0, 100},
		{"unknown", Unknown, Unknown},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := after(tt.next); math.Abs(got-tt.want) > 1e-9 || Known(got) != Known(tt.want) {
				t.Errorf("carried = %v, want %v", got, tt.want)
			}
		})
	}
}

// Where the hour before is not known, the weeks are; where no week is, the days.
func TestHighestOf(t *testing.T) {
	series := steps(monday, 28, time.Hour, office)
	s := cut(series, monday, monday.Add(4*week))
	opening := 3*168 + 8
	if got := s.forecast(carried, opening); Known(got) {
		t.Errorf("the hour of opening is forecast by the closed one before as %v", got)
	}
	if got := s.forecast(highestOf, opening); got != 100 {
		t.Errorf("the hour of opening is forecast as %v, want 100 as in the weeks before", got)
	}
	if got := s.forecast(highestOf, 3*24+10); got != 140 {
		t.Errorf("an hour of the first week is forecast as %v, want 140 as on the days before", got)
	}
}
