package policy

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// bestByTrying tries every basis, multiple and share as docs/rlc.md words it, and
// returns the highest gain of those that drop little enough.
func bestByTrying(window Series, from, at time.Time) float64 {
	g := RobustPeak(window.RPS)
	most := max(1.15*g, SparseFloor(g, window.Step))
	s := cut(window, from, at)
	first := (len(s.most) + 3) / 4
	volume := 0.0
	for i := first; i < len(s.most); i++ {
		for _, x := range s.of(i) {
			if Known(x) {
				volume += x
			}
		}
	}
	best := 0.0
	for _, b := range []basis{carried, highestOf} {
		var f []float64
		for i := range s.most {
			f = append(f, s.forecast(b, i))
		}
		for _, k := range shares {
			for n := range 11 {
				dropped, logs, known := 0.0, 0.0, 0
				for i := first; i < len(s.most); i++ {
					limit := most
					if Known(f[i]) {
						limit = min(most, max(math.Pow(1.07, float64(n))*f[i], k*g, SparseFloor(f[i], window.Step)))
					}
					any := false
					for _, x := range s.of(i) {
						if Known(x) {
							dropped += max(0, x-limit)
							any = true
						}
					}
					if any {
						logs += math.Log(limit)
						known++
					}
				}
				if dropped <= 0.00025*volume {
					best = max(best, math.Log(1.15*g)-logs/float64(known))
				}
			}
		}
	}
	return best
}

func TestCalibrationIsTheBestOfAll(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	chosen := 0
	for n := range 12 {
		series := load(monday.Add(4*week), 28, 30*time.Minute, math.Pow(10, 1+3*rng.Float64()), rng.Uint64())
		for range 2 * n { // bursts, gaps
			i, times := rng.IntN(len(series.RPS)), []float64{2, 4, Unknown}[rng.IntN(3)]
			for j := range rng.IntN(40) {
				series.RPS[(i+j)%len(series.RPS)] *= times
			}
		}
		at := monday.Add(4 * week)
		c := calibrate(series, at)
		want := bestByTrying(series, c.from, at)
		if math.Abs(c.gain-want) > 1e-9 || (c.basis != constant) != (want >= 0.5) {
			t.Errorf("gain %v of basis %v, the best of all is %v", c.gain, c.basis, want)
		}
		if c.basis != constant {
			chosen++
		}
	}
	if chosen == 0 {
		t.Error("no schedule was chosen, so the test proves little")
	}
}

func TestCalibrationWordsItsConstants(t *testing.T) {
	at := monday.Add(4 * week)
	tests := []struct {
		name   string
		series Series
		why    string
	}{
		{"sparse", steps(monday, 28, time.Minute, func(time.Time) float64 { return 9.9 / 60 }), whySparse},
		{"not sparse", steps(monday, 28, time.Minute, func(time.Time) float64 { return 10.1 / 60 }), whyBursts},
		{"flat", steps(monday, 28, time.Minute, func(time.Time) float64 { return 1000 }), whyBursts},
		{"short", steps(at.Add(-12*time.Hour), 1, time.Minute, func(time.Time) float64 { return 1000 }), whyUnknown},
		{"shaped", load(at, 28, time.Minute, 1000, 1), ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := calibrate(tt.series.Between(monday, at), at)
			if c.why != tt.why || (c.basis == constant) != (tt.why != "") {
				t.Errorf("basis %v because of %q, want %q", c.basis, c.why, tt.why)
			}
		})
	}
}

func BenchmarkCalibrate(b *testing.B) {
	series := load(monday.Add(4*week), 28, time.Minute, 1000, 1)
	for b.Loop() {
		calibrate(series, monday.Add(4*week))
	}
}
