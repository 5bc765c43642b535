package policy

import (
	"math"
	"testing"
	"time"
)

func TestSecondOverMinute(t *testing.T) {
	tests := []struct {
		name   string
		busy   int     // minutes of 10 rps
		second float64 // the highest of those
		want   float64
	}{
		{"twice the mean", 10, 20, 2},
		{"below the mean counts as even", 10, 5, 1},
		{"no seconds", 10, 0, 0},
		{"seconds are not known", 10, Unknown, 0},
		{"too few busy minutes", 9, 20, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := Series{Step: time.Minute, RPS: make([]float64, 100)}
			highest := make([]float64, len(s.RPS))
			for i := range s.RPS {
				switch {
				case i < tt.busy:
					s.RPS[i], highest[i] = 10, tt.second
				case i < 2*tt.busy:
					s.RPS[i], highest[i] = Unknown, 90 // does not teach
				default:
					s.RPS[i], highest[i] = 2, 50 // quiet
				}
			}
			if got := SecondOverMinute(s, highest); math.Abs(got-tt.want) > 1e-9 {
				t.Errorf("SecondOverMinute = %v, want %v", got, tt.want)
			}
		})
	}
}
