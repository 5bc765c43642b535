package backtest

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"grl/policy"
)

var nan = math.NaN()

// monday is the start of the series that are made up here.
var monday = time.Date(2024, time.January, 1, 0, 0, 0, 0, time.UTC)

// constant is a policy of one limit.
type constant float64

func (c constant) Compute(policy.Input) policy.Result { return policy.Result{LimitRPS: float64(c)} }

// days returns a series of days of so many hours each, of a load by hour.
func days(n int, load func(day, hour int) float64) policy.Series {
	s := policy.Series{Start: monday, Step: time.Hour}
	for i := range 24 * n {
		s.RPS = append(s.RPS, load(i/24, i%24))
	}
	return s
}

// ofConstant are options of a limit of 100, a week of training and days of test.
func ofConstant(s policy.Series) Options {
	return Options{
		Name: "made", Series: s, Spec: &policy.Spec{Kind: "constant", Location: time.UTC}, Policy: constant(100),
		Train: week, Test: day, Bounds: Unbound,
	}
}

func ran(t *testing.T, o Options) *Result {
	t.Helper()
	r, err := Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-12 || math.IsNaN(a) && math.IsNaN(b) }

// TestFiguresByHand counts what can be counted by hand: 10 days at 50, but for an
// hour of 150 on the 8th, one of 200 that is labelled on the 9th, and a night of
// the 10th that is an outage.
func TestFiguresByHand(t *testing.T) {
	s := days(10, func(day, hour int) float64 {
		switch {
		case day == 7 && hour == 12:
			return 150
		case day == 8 && hour == 12:
			return 200
		case day == 9 && hour < 6:
			return 0
		}
		return 50
	})
	o := ofConstant(s)
	o.Anomalies = []Window{
		{monday.Add(8*day + 12*time.Hour), monday.Add(8*day + 13*time.Hour), "labelled"},
		{monday.Add(9 * day), monday.Add(9*day + 6*time.Hour), Outage},
		{monday.Add(9 * day), monday.Add(8 * day), Missing}, // empty
	}
	r := ran(t, o)
	volume := 23.0*50 + 150 + 23*50 + 18*50
	want := Result{Periods: 3, FD: 50 / volume, FDWorst: 50.0 / (23*50 + 150), H: 2, HLowest: 100.0 / 150, T: 2, AnomalyDrop: 0.5}
	if r.Periods != want.Periods || !near(r.FD, want.FD) || !near(r.FDWorst, want.FDWorst) || !near(r.H, want.H) ||
		!near(r.HLowest, want.HLowest) || !near(r.T, want.T) || !near(r.AnomalyDrop, want.AnomalyDrop) {
		t.Errorf("%+v, want %+v", r, want)
	}
	if !r.Worst.From.Equal(monday.Add(7 * day)) {
		t.Errorf("the worst period begins at %v, want the 8th day", r.Worst.From)
	}
	if policy.Known(r.Series.RPS[9*24]) || !policy.Known(s.RPS[9*24]) {
		t.Error("an hour of the outage is known, or the series of the caller was changed")
	}
	if policy.Known(r.Limits[7*24-1]) || r.Limits[7*24] != 100 {
		t.Errorf("limits %v, then %v; want unknown, then 100", r.Limits[7*24-1], r.Limits[7*24])
	}
}

func TestNothingToTellFrom(t *testing.T) {
	r := ran(t, ofConstant(days(10, func(int, int) float64 { return 0 })))
	for name, v := range map[string]float64{"FD": r.FD, "FDWorst": r.FDWorst, "H": r.H, "HLowest": r.HLowest, "T": r.T, "AnomalyDrop": r.AnomalyDrop} {
		if !math.IsNaN(v) {
			t.Errorf("%s of no load = %v, want NaN", name, v)
		}
	}
	if r.Periods != 0 {
		t.Errorf("%d periods of no load", r.Periods)
	}
}

// TestPeriods leaves out what tells little: a period that is mostly unknown, and
// the rest of the last one.
func TestPeriods(t *testing.T) {
	tests := []struct {
		name string
		load func(day, hour int) float64
		days int
		want int
	}{
		{"all", func(int, int) float64 { return 1 }, 12, 5},
		{"office hours", func(_, hour int) float64 {
			if hour < 8 || hour > 16 {
				return nan
			}
			return 1
		}, 12, 5},
		{"half of a day", func(day, hour int) float64 {
			if day == 9 && hour < 12 {
				return nan
			}
			return 1
		}, 12, 5},
		{"less than half of a day", func(day, hour int) float64 {
			if day == 9 && hour < 13 {
				return nan
			}
			return 1
		}, 12, 4},
		{"a day without load", func(day, _ int) float64 {
			if day == 9 {
				return 0
			}
			return 1
		}, 12, 4},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if r := ran(t, ofConstant(days(tt.days, tt.load))); r.Periods != tt.want {
				t.Errorf("%d periods, want %d", r.Periods, tt.want)
			}
		})
	}
}

// asked records when a policy is asked.
type asked struct{ at *[]time.Time }

func (a asked) Compute(in policy.Input) policy.Result {
	*a.at = append(*a.at, in.Now)
	for i := range in.Series.RPS {
		if end := in.Series.Time(i + 1); end.After(in.Now) && in.Series.Time(i).After(in.Now) {
			return policy.Result{LimitRPS: 1e9} // it sees what is to come
		}
	}
	return policy.Result{LimitRPS: 1}
}

func TestCycles(t *testing.T) {
	zone := func(name string) *time.Location {
		l, err := time.LoadLocation(name)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	tests := []struct {
		name  string
		start time.Time
		every time.Duration
		in    *time.Location
		want  []string // the first cycles, in UTC
	}{
		{"each period", monday.Add(30 * time.Minute), 0, time.UTC, []string{"08 00:30", "09 00:30", "10 00:30"}},
		{"each midnight", monday.Add(30 * time.Minute), day, time.UTC, []string{"08 00:30", "09 00:00", "10 00:00"}},
		{"each midnight of Berlin", monday, day, zone("Europe/Berlin"), []string{"08 00:00", "08 23:00", "09 23:00"}},
		{"each hour", monday.Add(30 * time.Minute), time.Hour, time.UTC, []string{"08 00:30", "08 01:00", "08 02:00"}},
		{"each hour of Kolkata", monday, time.Hour, zone("Asia/Kolkata"), []string{"08 00:00", "08 00:30", "08 01:30"}},
		{"each minute is each step", monday, time.Minute, time.UTC, []string{"08 00:00", "08 00:15", "08 00:30"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := policy.Series{Start: tt.start, Step: 15 * time.Minute, RPS: make([]float64, 4*24*11)}
			var at []time.Time
			o := ofConstant(s)
			o.Policy, o.Every, o.Spec = asked{&at}, tt.every, &policy.Spec{Location: tt.in}
			r := ran(t, o)
			var got []string
			for _, a := range at[:len(tt.want)] {
				got = append(got, a.UTC().Format("02 15:04"))
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("cycles at %v, want %v", got, tt.want)
			}
			if slices.Contains(r.Limits, 1e9) {
				t.Error("a cycle was given what comes after it")
			}
		})
	}
}

// TestNoLookAhead changes the load from some hour on: no limit of that hour, or of
// one before, changes.
func TestNoLookAhead(t *testing.T) {
	const seed = 5
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	api := read(t, "api_1h")
	api.Series.RPS = api.Series.RPS[:24*60]
	for _, kind := range []string{"peak", "forecast"} {
		every := map[string]time.Duration{"peak": day, "forecast": time.Hour}[kind]
		before := ran(t, options(api, kind, every, Live))
		for range 4 {
			changed := *api
			changed.Series.RPS = slices.Clone(api.Series.RPS)
			at := 24*28 + random.IntN(24*30)
			for i := at; i < len(changed.Series.RPS); i++ {
				changed.Series.RPS[i] = 1000 * random.Float64()
			}
			after := ran(t, options(&changed, kind, every, Live))
			for i := range at + 1 {
				if a, b := before.Limits[i], after.Limits[i]; a != b && (policy.Known(a) || policy.Known(b)) {
					t.Fatalf("%s: a change from step %d on makes the limit of step %d %v instead of %v", kind, at, i, b, a)
				}
			}
		}
	}
}

// stepping has a limit for the first day and another one from then on.
type stepping struct{ first, then float64 }

func (s stepping) Compute(in policy.Input) policy.Result {
	if in.Now.Before(monday.Add(8 * day)) {
		return policy.Result{LimitRPS: s.first}
	}
	return policy.Result{LimitRPS: s.then}
}

func TestBounds(t *testing.T) {
	tests := []struct {
		name   string
		bounds Bounds
		policy stepping
		want   []float64 // on the first days
	}{
		{"none", Unbound, stepping{1000, 111.1}, []float64{1000, 111.1, 111.1}},
		{"down a fifth a night", Rails, stepping{1000, 600}, []float64{1000, 800, 640, 600}},
		{"up to three times", Rails, stepping{100, 1000}, []float64{100, 300, 900, 1000}},
		{"a small move", Rails, stepping{100, 101.5}, []float64{100, 101.5}},
		{"a small move is none live", Live, stepping{100, 101.5}, []float64{100, 100}},
		{"two digits live", Live, stepping{1000, 911}, []float64{1000, 910}},
		{"half of the peak", Rails, stepping{100, 10}, []float64{100, 80, 64, 51.2, 45, 45}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o := ofConstant(days(14, func(int, int) float64 { return 90 }))
			o.Spec = &policy.Spec{Kind: "stepping", Location: time.UTC, MaxStep: 0.2, Digits: 2}
			o.Policy, o.Every, o.Bounds = tt.policy, day, tt.bounds
			r := ran(t, o)
			for i, want := range tt.want {
				if got := r.Limits[24*(7+i)]; math.Abs(got-want) > 1e-9 {
					t.Errorf("limit %v on day %d, want %v", got, i, want)
				}
			}
		})
	}
}

// refusing computes nothing on every other day.
type refusing struct{}

func (refusing) Compute(in policy.Input) policy.Result {
	if in.Now.Day()%2 == 0 {
		return policy.Result{Refused: "no_data"}
	}
	return policy.Result{LimitRPS: float64(in.Now.Day())}
}

func TestRefusedLimitStays(t *testing.T) {
	o := ofConstant(days(12, func(int, int) float64 { return 1 }))
	o.Policy, o.Every = refusing{}, day
	r := ran(t, o)
	for d, want := range map[int]float64{7: nan, 8: 9, 9: 9, 10: 11, 11: 11} { // the 8th day is the first
		if got := r.Limits[24*d]; !near(got, want) {
			t.Errorf("limit %v on day %d, want %v", got, d, want)
		}
	}
	if r.Periods != 4 {
		t.Errorf("%d periods, want the 4 that have limits", r.Periods)
	}
}

// byHour has a limit for each hour of the day.
type byHour struct{}

func (byHour) Compute(in policy.Input) policy.Result {
	r := policy.Result{Hourly: make([]float64, 24)}
	for h := range r.Hourly {
		r.Hourly[h] = float64(h + 1)
	}
	r.LimitRPS = r.Hourly[in.Now.Hour()]
	return r
}

// TestHoursOfTheDay holds hourly limits that are computed once a night.
func TestHoursOfTheDay(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	o := ofConstant(days(9, func(int, int) float64 { return 1 }))
	o.Policy, o.Every, o.Spec = byHour{}, day, &policy.Spec{Location: berlin}
	r := ran(t, o)
	for i := 7 * 24; i < len(r.Limits); i++ {
		if want := float64(r.Series.Time(i).In(berlin).Hour() + 1); r.Limits[i] != want {
			t.Errorf("limit %v at %v, want %v", r.Limits[i], r.Series.Time(i).In(berlin), want)
		}
	}
}

func TestWrongOptions(t *testing.T) {
	s := days(10, func(int, int) float64 { return 1 })
	tests := []struct {
		name   string
		change func(*Options)
	}{
		{"no series", func(o *Options) { o.Series = policy.Series{} }},
		{"nothing to test", func(o *Options) { o.Train = 10 * day }},
		{"less than a step", func(o *Options) { o.Test = time.Minute }},
		{"negative training", func(o *Options) { o.Train = -day }},
		{"negative cycles", func(o *Options) { o.Every = -day }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o := ofConstant(s)
			tt.change(&o)
			if _, err := Run(t.Context(), o); !errors.Is(err, ErrOptions) {
				t.Errorf("Run = %v, want ErrOptions", err)
			}
		})
	}
}

func TestLengths(t *testing.T) {
	tests := []struct {
		name        string
		step        time.Duration
		steps       int
		train, test time.Duration
	}{
		{"nine weeks", time.Hour, 9 * 168, 4 * week, week},
		{"less", time.Hour, 9*168 - 1, 3 * week, week},
		{"five weeks", time.Hour, 5 * 168, 3 * week, week},
		{"less than five", time.Hour, 5*168 - 1, week, day},
		{"days", day, 90, 8 * week, week},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			train, test := Lengths(policy.Series{Step: tt.step, RPS: make([]float64, tt.steps)})
			if train != tt.train || test != tt.test {
				t.Errorf("Lengths = %v, %v, want %v, %v", train, test, tt.train, tt.test)
			}
		})
	}
}

func TestAll(t *testing.T) {
	var all []Options
	for i := range 5 {
		o := ofConstant(days(10, func(int, int) float64 { return 50 }))
		o.Policy = constant(100 * (i + 1))
		all = append(all, o)
	}
	var shares []float64
	all[4].Progress = func(done float64) { shares = append(shares, done) }
	results, err := All(t.Context(), all)
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range results {
		if want := 2 * float64(i+1); r.H != want {
			t.Errorf("result %d has H %v, want %v", i, r.H, want)
		}
	}
	if !slices.IsSorted(shares) || len(shares) != 3 || shares[2] != 1 {
		t.Errorf("progress %v, want three shares up to 1", shares)
	}
	if s := Summarize(results); s.Within != 5 || s.Series != 5 || s.H != 6 || s.T != 6 {
		t.Errorf("summary %+v", s)
	}

	all[2].Train = -1
	if _, err := All(t.Context(), all); !errors.Is(err, ErrOptions) {
		t.Errorf("All = %v with wrong options, want ErrOptions", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := All(ctx, all[:2]); !errors.Is(err, context.Canceled) {
		t.Errorf("All = %v, cancelled", err)
	}
}
