package fleet

import (
	"math"
	"testing"
	"time"
)

func TestProfile(t *testing.T) {
	p := newProfile([]Knot{
		{2 * time.Second, 10}, {4 * time.Second, 30}, // rises
		{5 * time.Second, 30}, {5 * time.Second, 100}, // jumps
		{6 * time.Second, 0},
	})
	tests := []struct {
		name     string
		from, to time.Duration
		want     float64 // requests
	}{
		{"before the first", 0, time.Second, 10},
		{"across the first", time.Second, 3 * time.Second, 10 + 15},
		{"the rise", 2 * time.Second, 4 * time.Second, 40},
		{"before the jump", 4 * time.Second, 5 * time.Second, 30},
		{"after the jump", 5 * time.Second, 5500 * time.Millisecond, 37.5},
		{"after the last", 7 * time.Second, 9 * time.Second, 0},
		{"nothing", 3 * time.Second, 3 * time.Second, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := p.between(tt.from, tt.to); math.Abs(got-tt.want) > 1e-9 {
				t.Errorf("between(%v, %v) = %v, want %v", tt.from, tt.to, got, tt.want)
			}
		})
	}
	if got := p.cut(4*time.Second, 6*time.Second); got != 5*time.Second {
		t.Errorf("cut across the jump = %v, want 5s", got)
	}
	for _, from := range []time.Duration{5 * time.Second, 0} {
		to := from + time.Second
		if got := p.cut(from, to); got != to {
			t.Errorf("cut(%v, %v) = %v, want %v", from, to, got, to)
		}
	}
}

func TestProfileOfOneKnotIsConstant(t *testing.T) {
	p := newProfile([]Knot{{time.Minute, 8}})
	if got := p.between(time.Second, 3*time.Second); got != 16 {
		t.Errorf("between(1s, 3s) = %v, want 16", got)
	}
}
