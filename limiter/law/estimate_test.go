package law

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// source returns random numbers and prints the seed that gives them again.
func source(t testing.TB, seed uint64) *rand.Rand {
	t.Helper()
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// poisson draws a count whose mean is mean.
func poisson(r *rand.Rand, mean float64) float64 {
	if mean > 500 { // near enough to normal
		return max(0, math.Round(mean+math.Sqrt(mean)*r.NormFloat64()))
	}
	n, p := 0.0, r.Float64()
	for least := math.Exp(-mean); p > least; n++ {
		p *= r.Float64()
	}
	return n
}

// Property 13: the mean of what a host with little traffic reports is what it
// counted. Compared with the counts, so that nothing is left to luck.
func TestEstimateIsUnbiased(t *testing.T) {
	for _, rps := range []float64{1, 5, 15, 50} {
		for _, delta := range []time.Duration{20, 50, 100} {
			delta *= time.Millisecond
			t.Run(fmt.Sprintf("%v rps each %v", rps, delta), func(t *testing.T) {
				t.Parallel()
				random := source(t, uint64(rps)*1000+uint64(delta.Milliseconds()))
				var e Estimate
				var count, sum float64
				steps := int(30_000 * time.Second / delta)
				for range steps {
					n := poisson(random, rps*delta.Seconds())
					count += n
					sum += e.Step(n, delta, T)
				}
				counted := count / (float64(steps) * delta.Seconds())
				if got := sum / float64(steps); math.Abs(got-counted) > 0.005*counted {
					t.Errorf("mean estimate %.4f rps of %.4f counted (%+.2f %%), want within 0.5 %%", got, counted, 100*(got/counted-1))
				}
			})
		}
	}
}

func TestEstimateJumpsWithinTheWindow(t *testing.T) {
	tests := []struct {
		name     string
		from, to float64 // requests per interval
		want     float64 // intervals until within 10 %, at most
	}{
		{"from nothing", 0, 100, 6},
		{"published: 15 times", 110, 1650, 6},
		{"doubles", 200, 400, 6},
		{"falls to nothing", 100, 0, 8},
		{"a fifth more", 2000, 2400, 6},
		{"too few to tell in four", 5, 12, 12},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var e Estimate
			for range 200 {
				e.Step(tt.from, Delta, T)
			}
			took := 0.0
			for want := tt.to / Delta.Seconds(); ; {
				took++
				if got := e.Step(tt.to, Delta, T); math.Abs(got-want) <= 0.1*want {
					break
				}
			}
			if took > tt.want {
				t.Errorf("from %v to %v per interval took %v intervals, want at most %v", tt.from, tt.to, took, tt.want)
			}
		})
	}
}

// Trap 2: the windows begin anew after a jump, else counts from before it cause
// a jump back.
func TestEstimateDoesNotJumpBack(t *testing.T) {
	var e Estimate
	for range 100 {
		e.Step(100, Delta, T)
	}
	for _, n := range []float64{1000, 100} {
		last := e.rate
		for i := range 200 {
			got, want := e.Step(n, Delta, T), n/Delta.Seconds()
			if math.Abs(got-want) > math.Abs(last-want)+1e-6 {
				t.Fatalf("from %v to %v rps, away from %v, %d intervals after the change", last, got, want, i+1)
			}
			last = got
		}
		if want := n / Delta.Seconds(); math.Abs(last-want) > 0.01*want {
			t.Fatalf("%v rps at last, want %v", last, want)
		}
	}
}

func TestEstimateDecaysToNothing(t *testing.T) {
	for _, n := range []float64{1, 3, 1000} {
		var e Estimate
		e.Step(n, Delta, T)
		steps := 0
		for e.Step(0, Delta, T) != 0 {
			if steps++; steps > 500 {
				t.Fatalf("%v rps %d intervals after the last of %v requests, want exactly 0", e.rate, steps, n)
			}
		}
		if e.rate != 0 {
			t.Errorf("rate %v, want exactly 0", e.rate)
		}
	}
}

func TestEstimateOfUnequalIntervals(t *testing.T) {
	random := source(t, 7)
	var e Estimate
	var got float64
	for range 5000 { // a timer that is late
		elapsed := Delta + time.Duration(random.IntN(200))*time.Millisecond
		got = e.Step(1000*elapsed.Seconds(), elapsed, T)
	}
	if math.Abs(got-1000) > 1 {
		t.Errorf("estimate %v rps of a constant 1000", got)
	}
}

func FuzzEstimate(f *testing.F) {
	f.Add(uint64(1), uint32(50), uint64(1<<63), uint32(1))
	f.Fuzz(func(t *testing.T, n1 uint64, ms1 uint32, n2 uint64, us2 uint32) {
		var e Estimate
		for range 10 {
			a := e.Step(float64(n1), time.Duration(ms1)*time.Millisecond+1, T)
			b := e.Step(float64(n2), time.Duration(us2)*time.Microsecond+1, T)
			for _, r := range []float64{a, b} {
				if !(r >= 0) || math.IsInf(r, 0) {
					t.Fatalf("estimate %v of %d in %d ms and %d in %d us", r, n1, ms1, n2, us2)
				}
			}
		}
	})
}
