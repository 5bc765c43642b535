package law

import (
	"math/rand/v2"
	"testing"
	"time"
)

func TestRampOut(t *testing.T) {
	tests := []struct {
		name  string
		ratio float64
		past  time.Duration
		want  float64
	}{
		{"in force", 0.75, -time.Millisecond, 0.75},
		{"blocks", 1, -time.Millisecond, 1},
		{"at the end", 0.75, 0, 0.75},
		{"doubles", 0.75, 15 * time.Second, 0.5},
		{"doubles again", 0.75, 30 * time.Second, 0},
		{"a block ends", 1, 0, 0.99},
		{"a block doubles", 1, 15 * time.Second, 0.98},
		{"a block after a minute", 1, time.Minute, 0.84},
		{"nothing to ramp", 0, time.Second, 0},
		{"over", 1, RampFor, 0},
	}
	for _, tt := range tests {
		if got := RampOut(tt.ratio, tt.past); !nearly(got, tt.want) {
			t.Errorf("%s: RampOut(%v, %v) = %v, want %v", tt.name, tt.ratio, tt.past, got, tt.want)
		}
	}
}

// Whatever a cap drops, ending it drops less and less, and what is admitted at
// most doubles in 15 s, but for what a block begins with.
func TestRampOutFallsSteadily(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for range 2000 {
		ratio := r.Float64()
		if r.IntN(10) == 0 {
			ratio = 1
		}
		past := time.Duration(r.Int64N(int64(RampFor + time.Second)))
		later := past + time.Duration(r.Int64N(int64(time.Minute)))
		a, b := RampOut(ratio, past), RampOut(ratio, later)
		if a < 0 || a > ratio || b > a {
			t.Fatalf("RampOut(%v) = %v after %v, %v after %v", ratio, a, past, b, later)
		}
		if past+rampDoubles < RampFor {
			if c := RampOut(ratio, past+rampDoubles); 1-c > 2*(1-a)+1e-12 {
				t.Fatalf("RampOut(%v) admits %v after %v and %v 15 s later", ratio, 1-a, past, 1-c)
			}
		}
	}
}

func nearly(a, b float64) bool { return a-b < 1e-9 && b-a < 1e-9 }
