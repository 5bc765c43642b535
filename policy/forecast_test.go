package policy

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// hourlySpec is the policy of the tests.
func hourlySpec() *Spec { return &Spec{Name: "f", Kind: "forecast", History: 4 * week, MaxStep: 0.2} }

// noon is when tests compute: four weeks of the series are known.
var noon = monday.Add(4*week + 12*time.Hour)

// steps returns a series with each step as f has it.
func steps(start time.Time, days int, step time.Duration, f func(at time.Time) float64) Series {
	s := Series{Start: start, Step: step}
	for i := range int(time.Duration(days) * day / step) {
		s.RPS = append(s.RPS, f(s.Time(i)))
	}
	return s
}

// office is open from 8 to 18, and records nothing at other times.
func office(at time.Time) float64 {
	if at.Hour() < 8 || at.Hour() >= 18 {
		return Unknown
	}
	return 100 + 20*float64(at.Hour()-8)
}

func TestForecast(t *testing.T) {
	tests := []struct {
		name     string
		series   Series
		now      time.Time
		limit    float64 // requests per second
		most     float64
		constant bool
		reason   string
	}{
		{
			// G is 999.9; the hour before was 600 and the shape says 800.
			name: "the hour before along the week",
			series: steps(monday, 29, time.Hour, func(at time.Time) float64 {
				return []float64{100, 200, 400, 600, 800, 1000}[min(5, max(0, at.Hour()-8))]
			}),
			now: noon, limit: 1.1 * 800, most: 1149.8,
			reason: "1.10 times the forecast of 800 rps by the hour before and the shape of the week; limits by the hour stood 65.7 % lower than one for all hours",
		},
		{
			name:   "a step of nothing but one level is constant",
			series: steps(monday, 29, time.Hour, func(time.Time) float64 { return 1000 }),
			now:    noon, limit: 1148.97, most: 1148.97, constant: true,
			reason: "115 % of the peak of the last 4 weeks, 1,000 rps; bursts at any hour are its nature: a schedule would gain nothing",
		},
		{
			name:   "few requests are sparse",
			series: steps(monday, 29, time.Minute, func(at time.Time) float64 { return float64(at.Minute()%2) / 60 }),
			now:    noon, limit: 4.0 / 60, most: 4.0 / 60, constant: true,
			reason: "two standard deviations above the peak of the last 4 weeks, 0.0167 rps, since it is rare; too few requests for a schedule",
		},
		{
			name:   "zeros give a request a step",
			series: steps(monday, 29, time.Minute, func(time.Time) float64 { return 0 }),
			now:    noon, limit: 1.0 / 60, most: 1.0 / 60, constant: true,
			reason: "two standard deviations above the peak of the last 4 weeks, 0 rps, since it is rare; too few requests for a schedule",
		},
		{
			name:   "an hour that is never known has the cap",
			series: steps(monday, 29, time.Hour, office),
			now:    noon.Add(-8 * time.Hour), limit: 1.15 * 280, most: 1.15 * 280,
			reason: "115 % of the peak of the last 4 weeks, 280 rps, since this hour cannot be foretold; limits by the hour stood 43.7 % lower than one for all hours",
		},
		{
			name:   "a day of history",
			series: steps(monday.Add(27*day), 2, time.Hour, office),
			now:    noon, limit: 1.15 * 280, most: 1.15 * 280, constant: true,
			reason: "115 % of the peak of the last 16 hours, 280 rps; too little is known of its hours for a schedule",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := NewForecast(hourlySpec()).Compute(Input{Now: tt.now, Series: tt.series})
			if got.Refused != "" || math.Abs(got.LimitRPS/tt.limit-1) > 1e-3 || math.Abs(got.MostRPS/tt.most-1) > 1e-3 {
				t.Errorf("limit %v of at most %v (%q), want %v of %v", got.LimitRPS, got.MostRPS, got.Refused, tt.limit, tt.most)
			}
			if tt.constant != (got.Hourly == nil) {
				t.Errorf("limits by the hour %v, want constant: %v", got.Hourly, tt.constant)
			}
			if tt.reason != "" && got.Reason != tt.reason {
				t.Errorf("reason\n%s, want\n%s", got.Reason, tt.reason)
			}
		})
	}
}

func TestForecastRefusesWhatIsNotKnown(t *testing.T) {
	tests := []struct {
		name   string
		series Series
	}{
		{"nothing", Series{}},
		{"no rows", Series{Start: monday, Step: time.Minute}},
		{"all unknown", steps(monday, 29, time.Hour, func(time.Time) float64 { return Unknown })},
		{"known since midnight only", steps(noon.Add(-12*time.Hour), 1, time.Hour, func(time.Time) float64 { return 1000 })},
		{"known before the window only", steps(monday.Add(-week), 7, time.Hour, func(time.Time) float64 { return 1000 })},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := NewForecast(hourlySpec()).Compute(Input{Now: noon, Series: tt.series})
			if got.Refused != "no_data" || got.LimitRPS != 0 {
				t.Errorf("limit %v, refused for %q", got.LimitRPS, got.Refused)
			}
		})
	}
}

// What sets the limit of an hour, one term after the other.
func TestLimitOfAnHour(t *testing.T) {
	c := Calibration{from: monday, at: monday.Add(4 * week), step: time.Second, peak: 1000, basis: highestOf, multiple: 1.5, share: 0.2}
	sale := Event{Name: "sale", From: noon, To: noon.Add(time.Minute), Factor: 2}
	tests := []struct {
		name     string
		forecast float64
		second   float64
		events   []Event
		limit    float64
		by       term
		reason   string
	}{
		{"the forecast", 400, 1, nil, 660, byForecast, "1.65 times the forecast of 400 rps by the hour before and the shape of the week, or the highest of the same hour in the weeks"},
		{"the share of the peak", 100, 1, nil, 220, byShare, "22 % of the peak of the last 4 weeks, 1,000 rps, more than 1.65 times the forecast of 100 rps"},
		{"the cap", 900, 1, nil, 1150, byCap, "115 % of the peak of the last 4 weeks, 1,000 rps, no more than that, though 1.65 times"},
		{"no forecast", Unknown, 1, nil, 1150, byCap, "115 % of the peak of the last 4 weeks, 1,000 rps, since this hour cannot be foretold"},
		{"the highest second", 400, 1.5, nil, 990, byForecast, "1.50 times for the highest second of a minute"},
		{"the highest second of the cap", 900, 1.5, nil, 1725, byCap, "1.50 times for"},
		{"an event in a part of the hour", 400, 1, []Event{sale}, 1320, byForecast, `times 2.00 for "sale"`},
		{"an event lifts the cap", 900, 1, []Event{sale}, 2300, byCap, `times 2.00 for "sale"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := hourly{spec: &Spec{Events: tt.events}, calibration: c, second: tt.second}
			l := h.limit(tt.forecast, noon, noon.Add(time.Hour))
			if math.Abs(l.rps-tt.limit) > 1e-6 || l.by != tt.by || l.rps > l.most {
				t.Errorf("limit %v of at most %v by %v, want %v by %v", l.rps, l.most, l.by, tt.limit, tt.by)
			}
			if got := h.reason(l); !strings.Contains(got, tt.reason) {
				t.Errorf("reason\n%s, want\n%s", got, tt.reason)
			}
		})
	}
	c.share, c.multiple = 0, 1
	h := hourly{spec: &Spec{}, calibration: c, second: 1}
	if l := h.limit(9, noon, noon.Add(time.Hour)); l.by != bySparse || l.rps != 16 {
		t.Errorf("9 requests a second give %v by %v, want 16, two standard deviations above", l.rps, l.by)
	}
}

func TestForecastSeesNothingOfWhatComes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		step := rapid.SampledFrom([]time.Duration{7 * time.Minute, time.Hour, day}).Draw(t, "step")
		series := load(monday.Add(5*week), 35, step, 1e4, rapid.Uint64().Draw(t, "seed"))
		now := monday.Add(4*week + time.Duration(rapid.IntRange(0, 3600*24).Draw(t, "seconds"))*time.Second)
		other := rapid.SampledFrom([]float64{0, Unknown, 1e9}).Draw(t, "other")
		changed := series
		changed.RPS = slices.Clone(series.RPS)
		for i := range changed.RPS {
			if changed.Time(i + 1).After(slotStart(now, step)) {
				changed.RPS[i] = other
			}
		}
		f := NewForecast(hourlySpec())
		before, after := f.Compute(Input{Now: now, Series: series}), f.Compute(Input{Now: now, Series: changed})
		if before.LimitRPS != after.LimitRPS || before.Reason != after.Reason || !slices.Equal(before.Hourly, after.Hourly) {
			t.Fatalf("limit %v became %v by what was offered later", before.LimitRPS, after.LimitRPS)
		}
	})
}

func TestForecastScales(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		series := load(noon, 29, 30*time.Minute, 1e6, rapid.Uint64().Draw(t, "seed"))
		times := rapid.Float64Range(1, 100).Draw(t, "times")
		more := Series{Start: series.Start, Step: series.Step}
		for _, rps := range series.RPS {
			more.RPS = append(more.RPS, rps*times)
		}
		f := NewForecast(hourlySpec())
		one, many := f.Compute(Input{Now: noon, Series: series}), f.Compute(Input{Now: noon, Series: more})
		second := f.Compute(Input{Now: noon, Series: series, SecondOverMinute: times})
		for hour := range one.Hourly {
			want := times * one.Hourly[hour]
			if math.Abs(many.Hourly[hour]/want-1) > 1e-9 || math.Abs(second.Hourly[hour]/want-1) > 1e-9 {
				t.Fatalf("hour %d: %v times the load gives %v, %v times in the highest second %v, want %v", hour, times, many.Hourly[hour], times, second.Hourly[hour], want)
			}
		}
		later := Series{Start: series.Start.Add(60 * week), Step: series.Step, RPS: series.RPS}
		if other := f.Compute(Input{Now: noon.Add(60 * week), Series: later}); !slices.Equal(other.Hourly, one.Hourly) || one.Hourly == nil {
			t.Fatalf("limits %v, 60 weeks later %v", one.Hourly, other.Hourly)
		}
	})
}

// Whatever the history is, there is a limit, and no hour passes the cap.
func TestForecastStaysWithinItsCap(t *testing.T) {
	zones := []*time.Location{time.UTC, zone(t, "Europe/Berlin"), zone(t, "Asia/Kolkata"), zone(t, "Australia/Lord_Howe")}
	rapid.Check(t, func(t *rapid.T) {
		spec := hourlySpec()
		spec.Location = rapid.SampledFrom(zones).Draw(t, "zone")
		step := rapid.SampledFrom([]time.Duration{20 * time.Minute, 45 * time.Minute, time.Hour, 3 * time.Hour, day, 36 * time.Hour}).Draw(t, "step")
		series := Series{Start: monday.Add(time.Duration(rapid.IntRange(0, 7200).Draw(t, "start")) * time.Second), Step: step}
		level := rapid.Float64Range(0, 1e6).Draw(t, "level")
		for range rapid.IntRange(1, 700).Draw(t, "rows") {
			series.RPS = append(series.RPS, rapid.SampledFrom([]float64{0, 0.1, 1, 1, 1, 1.1, 30, Unknown}).Draw(t, "row")*level)
		}
		in := Input{Now: monday.Add(time.Duration(rapid.Int64Range(0, int64(5*week)).Draw(t, "now"))), Series: series}
		r := NewForecast(spec).Compute(in)
		if r.Refused != "" {
			return
		}
		floor := SparseFloor(0, step)
		for _, rps := range append(slices.Clone(r.Hourly), r.LimitRPS) {
			if !(rps >= floor && rps <= r.MostRPS) || math.IsInf(rps, 0) {
				t.Fatalf("a limit of %v, want at least %v and at most %v", rps, floor, r.MostRPS)
			}
		}
		if g := figure(t, r, "peak"); math.Abs(r.MostRPS-max(1.15*g, SparseFloor(g, step))) > 1e-9*r.MostRPS {
			t.Fatalf("at most %v of a peak of %v", r.MostRPS, g)
		}
		if r.Hourly != nil && (len(r.Hourly) != 24 || r.Hourly[in.Now.In(spec.location()).Hour()] != r.LimitRPS) {
			t.Fatalf("limits by the hour %v, now %v", r.Hourly, r.LimitRPS)
		}
	})
}

func TestForecastIsConstantWhereAScheduleGainsNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		random := load(noon, 29, time.Hour, 1000, rapid.Uint64().Draw(t, "seed"))
		for i := range random.RPS {
			random.RPS[i] = 100
		}
		for range 40 { // bursts of an hour, at any time
			random.RPS[rapid.IntRange(0, len(random.RPS)-1).Draw(t, "hour")] = 5000
		}
		r := NewForecast(hourlySpec()).Compute(Input{Now: noon, Series: random})
		if r.Hourly != nil || r.LimitRPS != r.MostRPS || !strings.Contains(r.Reason, whyBursts) {
			t.Fatalf("limits by the hour %v: %s", r.Hourly, r.Reason)
		}
	})
}

func TestForecastOfAnAttack(t *testing.T) {
	series := load(noon, 29, 5*time.Minute, 1e5, 11)
	f := NewForecast(hourlySpec())
	before := f.Compute(Input{Now: noon, Series: series})
	attacked, marked := slices.Clone(series.RPS), slices.Clone(series.RPS)
	for i := range 12 { // an hour of the night
		attacked[20*288+i] *= 50
		marked[20*288+i] = Unknown
	}
	with := f.Compute(Input{Now: noon, Series: Series{Start: series.Start, Step: series.Step, RPS: attacked}})
	without := f.Compute(Input{Now: noon, Series: Series{Start: series.Start, Step: series.Step, RPS: marked}})
	grown := figure(t, with, "peak") / figure(t, before, "peak")
	if grown < 2 {
		t.Fatalf("the peak grew by %v only, so the test proves nothing", grown)
	}
	if got := with.MostRPS / before.MostRPS; got > grown*(1+1e-9) {
		t.Errorf("the cap grew %v times, and the peak %v times", got, grown)
	}
	if math.Abs(without.MostRPS/before.MostRPS-1) > 1e-3 || math.Abs(without.LimitRPS/before.LimitRPS-1) > 1e-3 {
		t.Errorf("a marked attack moved the limit from %v to %v, and the cap from %v to %v", before.LimitRPS, without.LimitRPS, before.MostRPS, without.MostRPS)
	}
}

func TestCalibrationHoldsForANight(t *testing.T) {
	spec := hourlySpec()
	spec.Location = zone(t, "Europe/Berlin")
	series := load(monday.Add(6*week), 42, 10*time.Minute, 1e4, 5)
	f := NewForecast(spec)
	first := time.Date(2026, 3, 29, 0, 0, 0, 0, spec.Location) // a day of 23 hours
	kept := f.Calibrate(Input{Now: first, Series: series})
	for hour := range 23 {
		in := Input{Now: first.Add(time.Duration(hour)*time.Hour + 20*time.Minute), Series: series}
		if !kept.Holds(in.Now) {
			t.Fatalf("the calibration does not hold at %v", in.Now)
		}
		one, other := f.Compute(in), f.ComputeWith(in, kept)
		if one.LimitRPS != other.LimitRPS || !slices.Equal(one.Hourly, other.Hourly) {
			t.Errorf("at %v %v, with the calibration kept %v", in.Now, one.LimitRPS, other.LimitRPS)
		}
	}
	if kept.Holds(first.Add(23 * time.Hour)) {
		t.Error("the calibration holds the next day")
	}
	if (&Calibration{}).Holds(first) {
		t.Error("none holds")
	}
}

// Where nothing surprises, the limits foretold of the next hours are those that
// the next cycles compute.
func TestForecastOfTheNextHours(t *testing.T) {
	shape := func(at time.Time) float64 {
		return 1000 * (1.2 + math.Sin(float64(at.Hour())/4)) * (1 + float64(at.Weekday())/10)
	}
	f := NewForecast(hourlySpec())
	series := steps(monday, 35, time.Hour, shape)
	now := noon.Add(-12 * time.Hour)
	first := f.Compute(Input{Now: now, Series: series})
	kept := f.Calibrate(Input{Now: now, Series: series})
	if len(first.Hourly) != 24 {
		t.Fatalf("limits by the hour %v: %s", first.Hourly, first.Reason)
	}
	for hour := range 24 {
		then := f.ComputeWith(Input{Now: now.Add(time.Duration(hour) * time.Hour), Series: series}, kept)
		if math.Abs(then.LimitRPS/first.Hourly[hour]-1) > 1e-9 {
			t.Errorf("%d:00 has %v, foretold was %v", hour, then.LimitRPS, first.Hourly[hour])
		}
	}
	spec := hourlySpec()
	spec.Events = []Event{{Name: "match", From: now.Add(20*time.Hour + 30*time.Minute), To: now.Add(21*time.Hour + 30*time.Minute), Factor: 3}}
	eve := NewForecast(spec).Compute(Input{Now: now, Series: series})
	for hour := range 24 {
		times := 1.0
		if hour == 20 || hour == 21 {
			times = 3
		}
		if got := eve.Hourly[hour] / first.Hourly[hour]; math.Abs(got-times) > 1e-9 {
			t.Errorf("%d:00 has %v times as much as without the event, want %v", hour, got, times)
		}
	}
	if eve.MostRPS != 3*first.MostRPS {
		t.Errorf("at most %v, want three times %v", eve.MostRPS, first.MostRPS)
	}
}

// A day of 23 hours leaves one out, and one of 25 has one twice.
func TestForecastOfADayThatTheClockIsSet(t *testing.T) {
	spec := hourlySpec()
	spec.Location = zone(t, "Europe/Berlin")
	for _, now := range []time.Time{time.Date(2026, 3, 28, 12, 0, 0, 0, spec.Location), time.Date(2026, 10, 24, 12, 0, 0, 0, spec.Location)} {
		series := steps(now.AddDate(0, 0, -35), 35, 30*time.Minute, func(at time.Time) float64 {
			return 100 + 50*float64(at.In(spec.Location).Hour())
		})
		series.RPS[len(series.RPS)-1] *= 1.3 // so that now is no hour like others
		r := NewForecast(spec).Compute(Input{Now: now, Series: series})
		if len(r.Hourly) != 24 || r.Hourly[12] != r.LimitRPS {
			t.Fatalf("limits by the hour %v, now %v", r.Hourly, r.LimitRPS)
		}
		for hour, rps := range r.Hourly {
			want := 1.1 * (100 + 50*float64(hour))
			switch {
			case hour == 12:
				want *= 1.3
			case hour == 2 && now.Month() == time.March:
				want = r.MostRPS // no cycle says better: there is no such hour
			}
			if want = min(want, r.MostRPS); rps < want*(1-1e-6) || hour > 6 && rps > want*1.02 {
				t.Errorf("%v, %d:00: %v, want %v", now, hour, rps, want)
			}
		}
	}
}

// A past event does not teach: what it multiplied is divided out.
func TestForecastOfAWeekAfterAnEvent(t *testing.T) {
	spec := hourlySpec()
	spec.Events = []Event{{Name: "sale", From: noon.Add(-8 * day), To: noon.Add(-6 * day), Factor: 10}}
	plain := load(noon, 29, 10*time.Minute, 1e5, 3)
	sold := Series{Start: plain.Start, Step: plain.Step, RPS: slices.Clone(plain.RPS)}
	for i := range sold.RPS {
		sold.RPS[i] *= spec.eventFactor(sold.Time(i))
	}
	want := NewForecast(hourlySpec()).Compute(Input{Now: noon, Series: plain})
	got := NewForecast(spec).Compute(Input{Now: noon, Series: sold})
	if math.Abs(got.LimitRPS/want.LimitRPS-1) > 1e-9 || math.Abs(got.MostRPS/want.MostRPS-1) > 1e-9 {
		t.Errorf("limit %v of at most %v, without the event %v of %v", got.LimitRPS, got.MostRPS, want.LimitRPS, want.MostRPS)
	}
}

func BenchmarkForecast(b *testing.B) {
	in := Input{Now: noon, Series: load(noon, 29, time.Minute, 1000, 1)}
	for b.Loop() {
		if NewForecast(hourlySpec()).Compute(in).Hourly == nil {
			b.Fatal("no schedule")
		}
	}
}

func BenchmarkForecastKept(b *testing.B) {
	in := Input{Now: noon, Series: load(noon, 29, time.Minute, 1000, 1)}
	f := NewForecast(hourlySpec())
	kept := f.Calibrate(in)
	for b.Loop() {
		f.ComputeWith(in, kept)
	}
}

// zone returns a time zone.
func zone(t testing.TB, name string) *time.Location {
	t.Helper()
	location, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return location
}
