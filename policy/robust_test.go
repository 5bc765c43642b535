package policy

import (
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// peakBySorting is G as docs/rlc.md words it: walk down from the top, add rows
// above times the gap to the next value until the sum passes the share.
func peakBySorting(rps []float64) float64 {
	var sorted []float64
	sum := 0.0
	for _, x := range rps {
		if Known(x) {
			sorted = append(sorted, x)
			sum += x
		}
	}
	slices.Sort(sorted)
	slices.Reverse(sorted)
	allowed, dropped := volumeShare*sum, 0.0
	for i, x := range sorted {
		next := 0.0
		if i+1 < len(sorted) {
			next = sorted[i+1]
		}
		rows := float64(i + 1)
		if dropped+rows*(x-next) >= allowed {
			return x - (allowed-dropped)/rows
		}
		dropped += rows * (x - next)
	}
	return 0
}

// above returns the volume above limit, and all of it.
func above(rps []float64, limit float64) (dropped, volume float64) {
	for _, x := range rps {
		if Known(x) {
			volume += x
			dropped += max(0, x-limit)
		}
	}
	return dropped, volume
}

func TestRobustPeak(t *testing.T) {
	lone := make([]float64, 10_000)
	for i := range lone {
		lone[i] = 100
	}
	lone[5000] = 5000 // 0.49 % of the volume, of which 0.01 % may go
	tests := []struct {
		name string
		rps  []float64
		want float64
	}{
		{"none", nil, 0},
		{"all unknown", []float64{Unknown, Unknown}, 0},
		{"zeros", []float64{0, 0, 0}, 0},
		{"one step", []float64{10}, 9.999},
		{"unknown steps are left out", []float64{Unknown, 10, Unknown}, 9.999},
		{"all equal", []float64{10, 10, 10, 10}, 9.999},
		{"between the highest and the next", []float64{100, 50, 50}, 99.98},
		{"a lone step gives its share only", lone, 5000 - 0.0001*(9999*100+5000)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			before := slices.Clone(tt.rps)
			got := RobustPeak(tt.rps)
			if math.Abs(got-tt.want) > 1e-9*max(1, tt.want) {
				t.Errorf("RobustPeak = %v, want %v", got, tt.want)
			}
			if !slices.EqualFunc(before, tt.rps, func(a, b float64) bool { return a == b || !Known(a) && !Known(b) }) {
				t.Error("RobustPeak changed the steps")
			}
		})
	}
}

// rpsGen draws loads: empty ones, quiet ones, and such with bursts.
func rpsGen() *rapid.Generator[[]float64] {
	return rapid.SliceOfN(rapid.OneOf(
		rapid.Float64Range(0, 1000),
		rapid.Float64Range(0, 1e7),
		rapid.SampledFrom([]float64{0, 0, 1, 1, 100, Unknown}),
	), 0, 300)
}

func TestRobustPeakIsThatOfTheSortedWalk(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rps := rpsGen().Draw(t, "rps")
		got, want := RobustPeak(rps), peakBySorting(rps)
		if math.Abs(got-want) > 1e-10*want {
			t.Fatalf("RobustPeak = %v, by sorting %v", got, want)
		}
	})
}

func TestRobustPeakDropsItsShareAndNoMore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rps := rpsGen().Draw(t, "rps")
		g := RobustPeak(rps)
		highest := 0.0
		for _, x := range rps {
			if Known(x) {
				highest = max(highest, x)
			}
		}
		if g > highest || g < 0 {
			t.Fatalf("G = %v with a highest step of %v", g, highest)
		}
		dropped, volume := above(rps, g*(1+1e-10))
		if dropped > volumeShare*volume {
			t.Fatalf("G = %v drops %v of %v", g, dropped, volume)
		}
		if less, _ := above(rps, g*(1-1e-6)); volume > 0 && less <= volumeShare*volume {
			t.Fatalf("a millionth below G = %v drops %v of %v, so G is not the smallest", g, less, volume)
		}
	})
}

func TestRobustPeakNeverFallsWhereMoreWasOffered(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rps := rpsGen().Draw(t, "rps")
		if len(rps) == 0 {
			return
		}
		before := RobustPeak(rps)
		i := rapid.IntRange(0, len(rps)-1).Draw(t, "step")
		if !Known(rps[i]) || rps[i] < before {
			return // below G, more volume allows more to be dropped
		}
		rps[i] *= rapid.Float64Range(1, 100).Draw(t, "times")
		if after := RobustPeak(rps); after < before*(1-1e-10) {
			t.Fatalf("G fell from %v to %v", before, after)
		}
	})
}

func TestSparseFloor(t *testing.T) {
	tests := []struct {
		name  string
		count float64 // of a step
		want  float64
	}{
		{"nothing seen", 0, 1},
		{"one", 1, 4},
		{"ten", 10, 17.32},
		{"a hundred", 100, 121},
		{"ten thousand", 10_000, 10_201},
	}
	for _, step := range []time.Duration{time.Second, time.Minute, day} {
		for _, tt := range tests {
			t.Run(step.String()+" "+tt.name, func(t *testing.T) {
				got := SparseFloor(tt.count/step.Seconds(), step) * step.Seconds()
				if math.Abs(got-tt.want) > 0.01 {
					t.Errorf("floor of %v a step is %v, want %v", tt.count, got, tt.want)
				}
			})
		}
	}
	if got := SparseFloor(-5, time.Minute); got != 1.0/60 {
		t.Errorf("floor of a negative load is %v, want that of none", got)
	}
}
