package chart

import (
	"fmt"
	"math"
	"testing"
)

func TestAxisHasRoundTicks(t *testing.T) {
	for most, want := range map[float64]string{
		1: "[0 0.2 0.4 0.6 0.8 1]", 44_000: "[0 10000 20000 30000 40000]", 367_000: "[0 100000 200000 300000]", 0.006: "[0 0.002 0.004 0.006]",
	} {
		a := NewAxis(most, 5, 0, 100)
		for i := range a.Ticks {
			a.Ticks[i] = math.Round(a.Ticks[i]*1e6) / 1e6
		}
		if got := fmt.Sprint(a.Ticks); got != want {
			t.Errorf("axis to %v has ticks %s, want %s", most, got, want)
		}
		if a.Pixel(0) != 0 || a.Pixel(most) != 100 {
			t.Errorf("axis to %v goes from %v to %v, want 0 to 100", most, a.Pixel(0), a.Pixel(most))
		}
	}
}
