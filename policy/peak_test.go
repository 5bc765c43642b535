package policy

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var monday = time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)

// nightly is the policy that tests use where they do not say otherwise.
func nightly() *Spec {
	return &Spec{Name: "p", Kind: "peak", History: 4 * week, Digits: 2, MaxStep: 0.2}
}

// load makes a series of so many days that ends at now: rps with a daily shape, a
// quieter weekend and the noise of a seed.
func load(now time.Time, days int, step time.Duration, rps float64, seed uint64) Series {
	rng := rand.New(rand.NewPCG(seed, 1))
	s := Series{Start: now.Add(-time.Duration(days) * day), Step: step, RPS: make([]float64, int(time.Duration(days)*day/step))}
	for i := range s.RPS {
		at := s.Time(i)
		hour := float64(at.Hour()) + float64(at.Minute())/60
		shape := 0.6 + 0.4*math.Sin((hour-9)/24*2*math.Pi)
		if d := at.Weekday(); d == time.Saturday || d == time.Sunday {
			shape *= 0.7
		}
		s.RPS[i] = rps * shape * (1 + 0.05*rng.NormFloat64())
		s.RPS[i] = max(0, s.RPS[i])
	}
	return s
}

// figure returns a number of a result.
func figure(t rapid.TB, r Result, name string) float64 {
	t.Helper()
	for _, n := range r.Numbers {
		if n.Name == name {
			return n.Value
		}
	}
	t.Fatalf("no %q in %v", name, r.Numbers)
	return 0
}

// nights runs a policy night by night over a series, and returns what each night
// said.
func nights(s *Spec, series Series, first time.Time, n int) []Result {
	results := make([]Result, n)
	memory := Memory{}
	for i := range results {
		results[i] = newPeak(s).Compute(Input{Now: first.Add(time.Duration(i) * day), Series: series, Memory: memory})
		memory = results[i].Memory
	}
	return results
}

func TestPeak(t *testing.T) {
	flat := func(rps float64) Series {
		s := Series{Start: monday, Step: time.Hour, RPS: make([]float64, 28*24)}
		for i := range s.RPS {
			s.RPS[i] = rps
		}
		return s
	}
	grown := flat(1000)
	for i := range 7 * 24 {
		grown.RPS[21*24+i] = 1200
	}
	fallen := flat(1000)
	for i := range 7 * 24 {
		fallen.RPS[21*24+i] = 500
	}
	short := flat(1000)
	short.RPS = grown.RPS[14*24:]
	short.Start = monday.Add(2 * week)
	gone := flat(1000)
	for i := range 7 * 24 {
		gone.RPS[21*24+i] = Unknown
	}
	gone.RPS[28*24-1] = 1200 // all that is known of the newest week
	unknown := flat(Unknown)
	sale := flat(1000)
	for i := range 24 {
		sale.RPS[10*24+i] = 3000
	}
	now := monday.Add(4 * week)
	tests := []struct {
		name   string
		series Series
		spec   func(*Spec)
		second float64
		want   float64
		reason string
	}{
		{
			"steady", flat(1000), nil, 0, 999.9 * 1.1,
			"the peak of the last 4 weeks, 1,000 rps on Mon 2 Mar 00:00, buffer 1.10 (nothing is learnt yet)",
		},
		{
			"half of the growth goes on", grown, nil, 0, 1199.58 * math.Sqrt(1.2) * 1.1,
			"the peak of the last 4 weeks, 1,200 rps on Mon 23 Mar 00:00, half of 20 % growth, buffer 1.10 (nothing is learnt yet)",
		},
		{"a fall is no growth", fallen, nil, 0, 999.8 * 1.1, ""},
		{
			"two weeks know no growth", short, nil, 0, 1199.78 * 1.1,
			"the peak of the last 2 weeks, 1,200 rps on Mon 23 Mar 00:00, buffer 1.10 (nothing is learnt yet)",
		},
		{"an hour of a week tells of no growth", gone, nil, 0, 1149.48 * 1.1, ""},
		{
			"rare", flat(1.0 / 3600), nil, 0, 4.0 / 3600,
			"the peak of the last 4 weeks, 0.000278 rps on Mon 2 Mar 00:00, two standard deviations above it, since it is rare",
		},
		{"idle", flat(0), nil, 0, 1.0 / 3600, "nothing was offered in the last 4 weeks, so one request in an hour"},
		{"unknown", unknown, nil, 0, 0, ""},
		{"empty", Series{}, nil, 0, 0, ""},
		{"seconds over minutes", flat(1000), nil, 1.5, 1499.85 * 1.1, ""},
		{"that of the policy outranks", flat(1000), func(s *Spec) { s.SecondOverMinute = 2 }, 1.5, 1999.8 * 1.1, ""},
		{"an event tomorrow afternoon", flat(1000), func(s *Spec) {
			s.Events = []Event{{"sale", now.Add(14 * time.Hour), now.Add(20 * time.Hour), 3}}
		}, 0, 3299.67, `the peak of the last 4 weeks, 1,000 rps on Mon 2 Mar 00:00, buffer 1.10 (nothing is learnt yet), times 3.00 for "sale"`},
		{"events that overlap", flat(1000), func(s *Spec) {
			s.Events = []Event{{"sale", now, now.Add(day), 3}, {"launch", now.Add(time.Hour), now.Add(2 * day), 2}}
		}, 0, 6599.34, ""},
		{"a quiet half day leaves the other half", flat(1000), func(s *Spec) {
			s.Events = []Event{{"works", now, now.Add(12 * time.Hour), 0.5}}
		}, 0, 1099.89, ""},
		{"quiet days", flat(1000), func(s *Spec) {
			s.Events = []Event{{"holiday", now, now.Add(3 * day), 0.5}}
		}, 0, 549.945, ""},
		{"a past event is no baseline", sale, func(s *Spec) {
			s.Events = []Event{{"sale", monday.Add(10 * day), monday.Add(11 * day), 3}}
		}, 0, 1099.89, ""},
		{"nor does a quiet one make a peak", flat(1000), func(s *Spec) {
			s.Events = []Event{{"works", monday.Add(10 * day), monday.Add(11 * day), 0.1}, {"sale", monday, monday.Add(1), 1.01}}
		}, 0, 1099.89, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := nightly()
			if tt.spec != nil {
				tt.spec(s)
			}
			got := newPeak(s).Compute(Input{Now: now, Series: tt.series, SecondOverMinute: tt.second})
			if math.Abs(got.LimitRPS-tt.want) > 1e-4*tt.want+1e-12 {
				t.Errorf("limit %v, want %v (%s)", got.LimitRPS, tt.want, got.Reason)
			}
			if (got.LimitRPS == 0) != (got.Refused != "") {
				t.Errorf("limit %v with refusal %q", got.LimitRPS, got.Refused)
			}
			if tt.reason != "" && got.Reason != tt.reason {
				t.Errorf("reason\n%s, want\n%s", got.Reason, tt.reason)
			}
		})
	}
}

func TestPeakSeesNothingOfWhatComes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		step := rapid.SampledFrom([]time.Duration{time.Minute * 7, time.Hour, day}).Draw(t, "step")
		series := load(monday.Add(5*week), 35, step, 100, rapid.Uint64().Draw(t, "seed"))
		now := monday.Add(4*week + time.Duration(rapid.IntRange(0, 3600*24).Draw(t, "seconds"))*time.Second)
		past := newPeak(nightly()).Compute(Input{Now: now.Add(-25 * time.Hour), Series: series}).Memory
		before := newPeak(nightly()).Compute(Input{Now: now, Series: series, Memory: past})

		other := rapid.SampledFrom([]float64{0, Unknown, 1e9}).Draw(t, "other")
		changed := series
		changed.RPS = slices.Clone(series.RPS)
		for i := range changed.RPS {
			if changed.Time(i + 1).After(now) {
				changed.RPS[i] = other
			}
		}
		after := newPeak(nightly()).Compute(Input{Now: now, Series: changed, Memory: past})
		if before.LimitRPS != after.LimitRPS || before.Reason != after.Reason {
			t.Fatalf("limit %v became %v by what was offered later", before.LimitRPS, after.LimitRPS)
		}
		if len(after.Memory.Cycles) != len(before.Memory.Cycles) ||
			len(after.Memory.Cycles) > 0 && after.Memory.Cycles[0].Volume != before.Memory.Cycles[0].Volume {
			t.Fatal("what was offered later was learnt")
		}
	})
}

func TestPeakScales(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		series := load(monday.Add(4*week), 28, 30*time.Minute, 1e5, rapid.Uint64().Draw(t, "seed"))
		times := rapid.Float64Range(1, 1000).Draw(t, "times")
		more := Series{Start: series.Start, Step: series.Step}
		for _, rps := range series.RPS {
			more.RPS = append(more.RPS, rps*times)
		}
		one, many := nights(nightly(), series, monday.Add(3*week), 7), nights(nightly(), more, monday.Add(3*week), 7)
		for i := range one {
			if got, want := many[i].LimitRPS, times*one[i].LimitRPS; math.Abs(got-want) > 1e-9*want {
				t.Fatalf("night %d: %v times the load gives %v, want %v", i, times, got, want)
			}
		}
	})
}

func TestPeakIsTheSameInAnyWeek(t *testing.T) {
	series := load(monday.Add(4*week), 28, time.Hour, 100, 7)
	later := Series{Start: series.Start.Add(60 * week), Step: series.Step, RPS: series.RPS}
	one, other := nights(nightly(), series, monday.Add(3*week), 7), nights(nightly(), later, monday.Add(63*week), 7)
	for i := range one {
		if one[i].LimitRPS != other[i].LimitRPS {
			t.Fatalf("night %d: %v, 60 weeks later %v", i, one[i].LimitRPS, other[i].LimitRPS)
		}
	}
}

func TestPeakStaysWithinItsBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		series := Series{Start: monday, Step: 6 * time.Hour}
		for range 8 * 28 {
			series.RPS = append(series.RPS, rapid.OneOf(
				rapid.Float64Range(0, 100), rapid.Float64Range(0, 1e6), rapid.SampledFrom([]float64{0, Unknown}),
			).Draw(t, "rps"))
		}
		for _, r := range nights(nightly(), series, monday.Add(4*week), 28) {
			if r.Refused != "" {
				continue
			}
			if r.LimitRPS < figure(t, r, "sparse_floor") || !(r.LimitRPS > 0) {
				t.Fatalf("limit %v below the floor %v", r.LimitRPS, figure(t, r, "sparse_floor"))
			}
			if b := figure(t, r, "buffer"); b < 1 || b > 1.3 {
				t.Fatalf("buffer %v", b)
			}
			if g := figure(t, r, "growth"); g < 1 || g > math.Sqrt(1.3) {
				t.Fatalf("growth %v", g)
			}
			if r.LimitRPS < figure(t, r, "peak") {
				t.Fatalf("limit %v below the peak %v", r.LimitRPS, figure(t, r, "peak"))
			}
		}
	})
}
