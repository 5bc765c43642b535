package law

import (
	"math"
	"testing"
	"time"
)

// burst draws a count whose mean is mean and whose variance is factor times
// that: requests come in groups.
func burst(t *testing.T, seed uint64, mean, factor float64) func() float64 {
	random := source(t, seed)
	return func() float64 { return factor * poisson(random, mean/factor) }
}

// A host learns how much its traffic varies, and takes no burst for a change.
func TestEstimateLearnsTheNoise(t *testing.T) {
	for _, factor := range []float64{1, 2, 4} {
		var e Estimate
		draw := burst(t, uint64(factor), 50, factor)
		var learnt, jumps float64
		const steps = 20_000
		for step := range steps {
			e.Step(draw(), Delta, T)
			if step < steps/2 {
				continue
			}
			learnt += e.noise.factor() / (steps / 2)
			if e.since == 0 {
				jumps++
			}
		}
		// What one observation teaches is bounded, and the factor is at least 1.
		if learnt < 0.7*factor || learnt > 1.2*factor {
			t.Errorf("variance %v times Poisson's: learnt %.2f", factor, learnt)
		}
		if jumps > 5 {
			t.Errorf("variance %v times Poisson's: %v jumps in 500 s of constant load, want next to none", factor, jumps)
		}
	}
}

// A surge is no noise: it is seen as soon, and does not blind the host.
func TestASurgeIsNotTakenForNoise(t *testing.T) {
	var e Estimate
	for range 200 {
		e.Step(50, Delta, T)
	}
	if e.Step(750, Delta, T); math.Abs(e.rate-15_000) > 1 {
		t.Errorf("rate %v after an interval of a surge, want 15000", e.rate)
	}
	for range 20 {
		e.Step(750, Delta, T)
	}
	if got := e.noise.factor(); got > 1.2 {
		t.Errorf("a surge taught a variance of %.2f times Poisson's", got)
	}
	if e.Step(50, Delta, T); e.rate > 1000+1 {
		t.Errorf("rate %v after an interval without it, want 1000", e.rate)
	}
}

// Of sums: noise is learnt, a steady rise is none.
func TestMeanLearnsTheNoise(t *testing.T) {
	tests := []struct {
		name   string
		factor float64 // variance, in Poisson's
		slope  float64 // of the rate, a second
		want   float64
	}{
		{"Poisson", 1, 0, 1},
		{"bursts", 5, 0, 4},
		{"a steady rise of 5 % of 4,400 a second", 1, 220, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			random := source(t, 3)
			var m Mean
			now, sum, learnt := time.Unix(1e9, 0), 0.0, 0.0
			const steps = 1000
			for step := range steps {
				now = now.Add(T)
				rate := 4400 + tt.slope*float64(step)
				// Exponential means over T, as hosts report them.
				fresh := rate + math.Sqrt(tt.factor*rate*(1-math.Exp(-2))/2)*random.NormFloat64()/(1-math.Exp(-1))
				sum += (1 - math.Exp(-1)) * (fresh - sum)
				m.Step(now, sum, 1e6, T)
				learnt += m.noise.factor() / steps
			}
			if math.Abs(learnt-tt.want) > 0.35*tt.want {
				t.Errorf("learnt %.2f times Poisson's variance, want %v", learnt, tt.want)
			}
		})
	}
}
