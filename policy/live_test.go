package policy

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// minutes returns four weeks of 1,000 rps up to noon, but for an hour of each week
// of 2,000, which is G, and what f says of the last two days; f may return 0 for
// nothing special.
func minutes(f func(before time.Duration) float64) Series {
	return steps(noon.Add(-28*day), 28, time.Minute, func(at time.Time) float64 {
		if special := f(noon.Sub(at)); special != 0 {
			return special
		}
		if noon.Sub(at)%week >= week-time.Hour {
			return 2000
		}
		return 1000
	})
}

// within reports whether d is in [from, to) before now.
func within(d, from, to time.Duration) bool { return d > from && d <= to }

func TestLive(t *testing.T) {
	lull := func(rps float64, from, to time.Duration) func(time.Duration) float64 {
		return func(d time.Duration) float64 {
			if within(d, from, to) {
				return rps
			}
			return 0
		}
	}
	tests := []struct {
		name   string
		series Series
		spec   Spec
		second float64
		limit  float64
		reason string
	}{
		{
			name: "a fifth above the last two hours", series: minutes(lull(1000, 0, 2*time.Hour)), limit: 1200,
			reason: "1.20 times the highest step of the last 2 hours, 1,000 rps on Mon 30 Mar 10:00",
		},
		{
			name: "a minute of them counts", series: minutes(lull(1500, 30*time.Minute, 31*time.Minute)), limit: 1800,
			reason: "1.20 times the highest step of the last 2 hours, 1,500 rps on Mon 30 Mar 11:29",
		},
		{
			name: "what was before does not", series: minutes(lull(1500, 2*time.Hour, 3*time.Hour)), limit: 1200,
		},
		{
			name: "the same two hours yesterday, if that was more", series: minutes(lull(1400, 25*time.Hour, 26*time.Hour)), limit: 1680,
			reason: "1.20 times the highest step of the same 2 hours yesterday, 1,400 rps on Sun 29 Mar 10:00",
		},
		{
			name: "half of the peak at least", series: minutes(lull(10, 0, 30*time.Hour)), limit: 992,
			reason: "half of the peak of the last 4 weeks, 1,984 rps, more than 1.20 times the highest step of the last 2 hours, 10 rps",
		},
		{
			name: "1.3 times the peak at most", series: minutes(lull(2000, 0, 2*time.Hour)), limit: 2400,
		},
		{
			name: "a surge opens no more than that", series: minutes(lull(6000, 0, time.Minute)), limit: 2600,
			reason: "130 % of the peak of the last 4 weeks, 2,000 rps, no more than that, though 1.20 times the highest step of the last 2 hours, 6,000 rps",
		},
		{
			name: "an event multiplies", series: minutes(lull(1000, 0, 2*time.Hour)), limit: 3600,
			spec:   Spec{Events: []Event{{Name: "match", From: noon.Add(5 * time.Minute), To: noon.Add(time.Hour), Factor: 3}}},
			reason: `times 3.00 for "match"`,
		},
		{
			name: "a past event does not teach", series: minutes(lull(1500, 24*time.Hour, 26*time.Hour)), limit: 1200,
			spec: Spec{Events: []Event{{Name: "match", From: noon.Add(-26 * time.Hour), To: noon.Add(-24 * time.Hour), Factor: 3}}},
		},
		{
			name: "the highest second", series: minutes(lull(1000, 0, 2*time.Hour)), limit: 2400, second: 2,
			reason: "2.00 times for the highest second of a minute",
		},
		{
			name:   "few requests",
			series: steps(noon.Add(-28*day), 28, time.Minute, func(at time.Time) float64 { return float64(at.Minute()%2) / 60 }), limit: 4.0 / 60,
			reason: "two standard deviations above the peak of the last 4 weeks, 0.0167 rps, since it is rare",
		},
		{
			name: "none", series: steps(noon.Add(-28*day), 28, time.Minute, func(time.Time) float64 { return 0 }), limit: 1.0 / 60,
		},
		{
			name: "hours", series: steps(noon.Add(-28*day), 28, time.Hour, func(time.Time) float64 { return 50 }), limit: 60,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.spec.History = 4 * week
			got := newLive(&tt.spec).Compute(Input{Now: noon, Series: tt.series, SecondOverMinute: tt.second})
			if got.Refused != "" || math.Abs(got.LimitRPS/tt.limit-1) > 5e-3 || got.MostRPS != got.LimitRPS || got.Hourly != nil {
				t.Errorf("limit %v of at most %v (%q), want %v", got.LimitRPS, got.MostRPS, got.Refused, tt.limit)
			}
			if !strings.Contains(got.Reason, tt.reason) {
				t.Errorf("reason\n%s, want\n%s", got.Reason, tt.reason)
			}
		})
	}
}

func TestLiveRefusesSilence(t *testing.T) {
	tests := []struct {
		name   string
		series Series
		want   string
	}{
		{"nothing", Series{}, "no_data"},
		{"nothing of the last two hours", minutes(func(d time.Duration) float64 {
			if within(d, 0, 2*time.Hour) {
				return Unknown
			}
			return 0
		}), "no_data"},
		{"less than four fifths of them", minutes(func(d time.Duration) float64 {
			if within(d, 0, 25*time.Minute) {
				return Unknown
			}
			return 0
		}), "coverage"},
		{"the newest minutes are late", minutes(func(d time.Duration) float64 {
			if within(d, 0, 24*time.Minute) {
				return Unknown
			}
			return 0
		}), ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := newLive(&Spec{History: 4 * week}).Compute(Input{Now: noon, Series: tt.series})
			if got.Refused != tt.want || (got.LimitRPS > 0) != (tt.want == "") {
				t.Errorf("limit %v, refused for %q, want %q", got.LimitRPS, got.Refused, tt.want)
			}
		})
	}
}

// A limit lies between half of the peak and 1.3 times it, follows its load, and
// sees nothing of what comes.
func TestLiveStaysWithinItsBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		series := load(monday.Add(5*week), 35, 10*time.Minute, rapid.Float64Range(10, 1e6).Draw(t, "level"), rapid.Uint64().Draw(t, "seed"))
		now := monday.Add(4*week + time.Duration(rapid.IntRange(0, 6*86400).Draw(t, "now"))*time.Second)
		for range rapid.IntRange(0, 20).Draw(t, "bursts") {
			series.RPS[rapid.IntRange(0, len(series.RPS)-1).Draw(t, "row")] *= rapid.Float64Range(0, 100).Draw(t, "times")
		}
		p := newLive(&Spec{History: 4 * week})
		got := p.Compute(Input{Now: now, Series: series})
		g := figure(t, got, "peak")
		if most := max(1.3*g, SparseFloor(g, series.Step)); got.LimitRPS < 0.5*g || got.LimitRPS > most*(1+1e-12) {
			t.Fatalf("limit %v of a peak of %v", got.LimitRPS, g)
		}
		changed := Series{Start: series.Start, Step: series.Step, RPS: slices.Clone(series.RPS)}
		for i := range changed.RPS {
			if changed.Time(i + 1).After(now) {
				changed.RPS[i] = 1e9
			}
		}
		if after := p.Compute(Input{Now: now, Series: changed}); after.LimitRPS != got.LimitRPS {
			t.Fatalf("limit %v became %v by what was offered later", got.LimitRPS, after.LimitRPS)
		}
	})
}
