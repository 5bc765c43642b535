package policy

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// steady is so many days of the same load until now.
func steady(now time.Time, days int, step time.Duration, rps float64) Series {
	s := Series{Start: now.Add(-time.Duration(days) * day), Step: step}
	for range int(time.Duration(days) * day / step) {
		s.RPS = append(s.RPS, rps)
	}
	return s
}

func TestBufferOfASteadyBucketGoesToTwoPercent(t *testing.T) {
	tests := []struct {
		name  string
		cycle time.Duration
	}{{"weekly", week}, {"nightly", day}}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			end := monday.Add(60 * week)
			series := steady(end, 60*7, time.Hour, 1000)
			var memory Memory
			var limits []float64
			for now := monday.Add(4 * week); now.Before(end); now = now.Add(tt.cycle) {
				r := newPeak(nightly()).Compute(Input{Now: now, Series: series, Memory: memory})
				memory = r.Memory
				limits = append(limits, r.LimitRPS)
			}
			if math.Abs(limits[0]-1100) > 1 || !slices.IsSortedFunc(limits, func(a, b float64) int { return int(b*1e6) - int(a*1e6) }) {
				t.Errorf("limits begin with %v", limits[:3])
			}
			perWeek := int(week / tt.cycle)
			if half := limits[26*perWeek]; math.Abs(half-1022.6) > 1 {
				t.Errorf("after half a year %v, want 1,022.6", half)
			}
			if len(memory.Cycles) != 26*perWeek {
				t.Errorf("%d cycles are kept, want half a year", len(memory.Cycles))
			}
		})
	}
}

func TestBufferLearnsFromAMissAndForgetsIt(t *testing.T) {
	const nightOfMiss = 100
	end := monday.Add(70 * week)
	series := steady(end, 70*7, time.Hour, 1000)
	for i := range 6 { // six hours at 1.5 times
		series.RPS[(28+nightOfMiss-1)*24+i] = 1500
	}
	spec := nightly()
	all := nights(spec, series, monday.Add(4*week), 60*7)
	before, after := figure(t, all[nightOfMiss-1], "buffer"), figure(t, all[nightOfMiss], "buffer")
	if after <= before {
		t.Errorf("the buffer went from %v to %v by a miss", before, after)
	}
	// A buffer of 1.14 would have been enough for half of the target in half a year.
	held := figure(t, all[nightOfMiss+170], "buffer")
	gone := figure(t, all[nightOfMiss+190], "buffer")
	if held < gone+0.05 || math.Abs(gone-1.0226) > 0.002 {
		t.Errorf("the buffer is %v half a year later and %v when the miss is forgotten", held, gone)
	}
	present := 0.0
	for i, r := range all {
		b := Bound(spec, BoundInput{At: monday, LimitRPS: r.LimitRPS, PresentRPS: present, PeakRPS: 1000})
		if present > 0 && b.LimitRPS < 0.8*present {
			t.Fatalf("night %d lowered %v to %v", i, present, b.LimitRPS)
		}
		present = b.LimitRPS
	}
}

func TestANightOfWhichNothingIsKnownTeachesNothing(t *testing.T) {
	end := monday.Add(8 * week)
	series := steady(end, 8*7, time.Hour, 1000)
	for i := range 5 * 24 {
		series.RPS[30*24+i] = Unknown
	}
	all := nights(nightly(), series, monday.Add(4*week), 10)
	if got := len(all[9].Memory.Cycles); got != 4 {
		t.Errorf("%d cycles are learnt from of 9, 5 of them unknown", got)
	}
	if all[9].Refused != "" || math.Abs(all[9].LimitRPS-1000*all[9].Memory.buffer().buffer) > 1 {
		t.Errorf("limit %v", all[9].LimitRPS)
	}
}

func TestAClockSetBackForgetsWhatIsToCome(t *testing.T) {
	series := load(monday.Add(8*week), 8*7, time.Hour, 1000, 2)
	all := nights(nightly(), series, monday.Add(4*week), 20)
	now := monday.Add(4*week + 5*day)
	got := newPeak(nightly()).Compute(Input{Now: now, Series: series, Memory: all[19].Memory})
	if n := len(got.Memory.Cycles); n != 5 || !got.Memory.Open.From.Equal(now) {
		t.Errorf("%d cycles, open %v", n, got.Memory.Open)
	}
}

// spiral runs 60 nights on what was admitted instead of what was offered, at the
// same demand, and returns the first limit and the last one. Buffer, if not 0, is
// forced.
func spiral(seed uint64, buffer float64) (first, last float64) {
	const lead, cycles = 28, 60
	spec := nightly()
	spec.Digits = 0
	end := monday.Add((lead + cycles) * day)
	series := load(end, lead+cycles, 15*time.Minute, 1000, seed)
	steps := int(day / series.Step)
	var memory Memory
	for night := range cycles {
		now := monday.Add(time.Duration(lead+night) * day)
		r := newPeak(spec).Compute(Input{Now: now, Series: series, Memory: memory})
		memory = r.Memory
		limit := r.LimitRPS
		if buffer > 0 {
			for _, n := range r.Numbers {
				if n.Name == "buffer" {
					limit *= buffer / n.Value
				}
			}
		}
		last = Bound(spec, BoundInput{At: now, LimitRPS: limit, PresentRPS: last}).LimitRPS
		if night == 0 {
			first = last
		}
		for i := range steps {
			at := (lead+night)*steps + i
			series.RPS[at] = min(series.RPS[at], last)
		}
	}
	return first, last
}

func TestLimitsDoNotSpiral(t *testing.T) {
	for seed := range uint64(5) {
		if first, last := spiral(seed, 0); math.Abs(last/first-1) > 0.1 {
			t.Errorf("seed %d: %v became %v in 60 nights of the same demand", seed, first, last)
		}
		// What holds them is that the buffer is at least 1.
		if first, last := spiral(seed, 0.9); last/first > 0.9 {
			t.Errorf("seed %d: with a buffer of 0.9 %v only became %v, so the test proves nothing", seed, first, last)
		}
	}
}

func TestLimitsFollowGrowth(t *testing.T) {
	for seed := range uint64(5) {
		const lead, cycles = 28, 20 * 7
		spec := nightly()
		series := load(monday.Add((lead+cycles)*day), lead+cycles, 15*time.Minute, 1000, seed)
		for i := range series.RPS {
			series.RPS[i] *= math.Pow(1.05, float64(i)/float64(week/series.Step)) // 5 % a week
		}
		steps := int(day / series.Step)
		var memory Memory
		present, dropped, volume, ratio := 0.0, 0.0, 0.0, 0.0
		for night := range cycles {
			now := monday.Add(time.Duration(lead+night) * day)
			r := newPeak(spec).Compute(Input{Now: now, Series: series, Memory: memory})
			memory = r.Memory
			present = Bound(spec, BoundInput{At: now, LimitRPS: r.LimitRPS, PresentRPS: present}).LimitRPS
			today := series.RPS[(lead+night)*steps : (lead+night+1)*steps]
			d, v := above(today, present)
			dropped, volume = dropped+d, volume+v
			ratio = present / slices.Max(series.RPS[(lead+night-6)*steps:(lead+night+1)*steps])
		}
		if dropped > 0.001*volume || ratio > 1.3 {
			t.Errorf("seed %d: %.3g of what grew was dropped, with a limit of %v peaks at the end", seed, dropped/volume, ratio)
		}
	}
}

func TestWhoTeachesABufferGainsThirtyPercentAtMost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		nightsOfAttack := rapid.IntRange(1, 120).Draw(t, "nights")
		series := steady(monday.Add(44*week), 44*7, time.Hour, 1000)
		for night := range nightsOfAttack {
			for range rng.IntN(5) {
				series.RPS[(28+night)*24+rng.IntN(24)] = 1000 * (1 + 2*rng.Float64())
			}
		}
		all := nights(nightly(), series, monday.Add(4*week), nightsOfAttack+1)
		for i, r := range all {
			window := series.RPS[i*24 : (28+i)*24]
			if most := mostBuffer * math.Sqrt(mostGrowth) * RobustPeak(window); r.LimitRPS > most*(1+1e-9) {
				t.Fatalf("night %d: limit %v, at most %v", i, r.LimitRPS, most)
			}
		}
	})
}

func TestAMarkedAttackChangesNothing(t *testing.T) {
	series := load(monday.Add(4*week), 28, 5*time.Minute, 1000, 11)
	before := newPeak(nightly()).Compute(Input{Now: monday.Add(4 * week), Series: series})
	attacked, marked := slices.Clone(series.RPS), slices.Clone(series.RPS)
	for i := range 12 {
		attacked[20*288+i] *= 50 // an hour around midnight, when little is offered
		marked[20*288+i] = Unknown
	}
	series.RPS = attacked
	with := newPeak(nightly()).Compute(Input{Now: monday.Add(4 * week), Series: series})
	series.RPS = marked
	without := newPeak(nightly()).Compute(Input{Now: monday.Add(4 * week), Series: series})
	if math.Abs(without.LimitRPS/before.LimitRPS-1) > 1e-3 {
		t.Errorf("a marked attack moved the limit from %v to %v", before.LimitRPS, without.LimitRPS)
	}
	if with.LimitRPS < 3*before.LimitRPS {
		t.Errorf("an attack that is not marked moved the limit from %v to %v, so the test proves nothing", before.LimitRPS, with.LimitRPS)
	}
	present := before.LimitRPS
	if b := Bound(nightly(), BoundInput{LimitRPS: with.LimitRPS, PresentRPS: present}); b.LimitRPS > 3*present || b.Rule != "triple" {
		t.Errorf("the rails let %v become %v by %q", present, b.LimitRPS, b.Rule)
	}
}

func BenchmarkPeak(b *testing.B) {
	series := load(monday.Add(4*week), 28, time.Minute, 1000, 1)
	memory := halfYear(b)
	for i := range memory.Cycles { // as if they were of the last half year
		memory.Cycles[i].From = monday.Add(4*week - time.Duration(182-i)*day)
		memory.Cycles[i].To = memory.Cycles[i].From.Add(day)
	}
	memory.Open.From = monday.Add(27 * day)
	in := Input{Now: monday.Add(4 * week), Series: series, Memory: memory}
	for b.Loop() {
		if newPeak(nightly()).Compute(in).LimitRPS < 1000 {
			b.Fatal("no limit")
		}
	}
}

func BenchmarkRobustPeak(b *testing.B) {
	series := load(monday.Add(4*week), 28, time.Minute, 1000, 1)
	for b.Loop() {
		RobustPeak(series.RPS)
	}
}

func TestACycleIsJudgedByWhatEachBufferDrops(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		period := Series{Start: monday, Step: time.Minute, RPS: rapid.SliceOf(rapid.OneOf(
			rapid.Float64Range(90, 150), rapid.SampledFrom([]float64{0, 100, Unknown}),
		)).Draw(t, "rps")}
		got, known := judge(Cycle{From: monday, BaseRPS: 100}, period, monday.Add(day))
		for i := range buffers {
			dropped, volume := above(period.RPS, 100*(1+0.02*float64(i)))
			if math.Abs(got.Dropped[i]-60*dropped) > 1e-9*got.Volume || math.Abs(got.Volume-60*volume) > 1e-9*got.Volume {
				t.Fatalf("buffer %d dropped %v of %v, want %v of %v", i, got.Dropped[i], got.Volume, 60*dropped, 60*volume)
			}
		}
		if known != slices.ContainsFunc(period.RPS, Known) || !got.To.Equal(monday.Add(day)) {
			t.Fatalf("known %v until %v", known, got.To)
		}
	})
}
