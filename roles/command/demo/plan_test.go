package demo

import (
	"math"
	"testing"
	"time"

	"grl/limiter/limitsfile"
)

func TestPlanPlaysTheTraceFasterInTheSurge(t *testing.T) {
	p := newPlan(readExcerpt(t), 60, 15)
	tests := []struct {
		name        string
		traced, due time.Duration
	}{
		{"start", 0, 0},
		{"before the surge", 30 * time.Second, 10 * time.Second},
		{"the surge begins", 60 * time.Second, 20 * time.Second},
		{"in the surge", 105 * time.Second, 21 * time.Second},
		{"the surge ends", 960 * time.Second, 40 * time.Second},
		{"after it", 963 * time.Second, 41 * time.Second},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := p.due(tt.traced); got != tt.due {
				t.Errorf("due(%v) = %v, want %v", tt.traced, got, tt.due)
			}
		})
	}
}

func TestPlanIsInOrderAndWithinItsLimits(t *testing.T) {
	for _, seconds := range []int{MinSeconds, 30, 60, 100} {
		p := newPlan(readExcerpt(t), seconds, 15)
		windows := make([]int, seconds)
		var last time.Duration
		for due := range p.schedule() {
			if due < last || due >= p.total {
				t.Fatalf("%d s: due %v after %v of %v", seconds, due, last, p.total)
			}
			last = due
			windows[due/time.Second]++
		}
		var sent [3]float64
		for i, n := range windows {
			phase := p.at(time.Duration(i) * time.Second)
			sent[phase] += float64(n)
			if phase == beforeSurge && float64(n) > 0.9*p.limits.all {
				t.Errorf("%d s: %d requests in second %d before the surge, want well below the limit of %v", seconds, n, i, p.limits.all)
			}
			if phase == inSurge && float64(n) < 6*p.limits.all {
				t.Errorf("%d s: %d requests in second %d of the surge, want about 7.5 times the limit of %v", seconds, n, i, p.limits.all)
			}
		}
		if mean := sent[beforeSurge] / p.third.Seconds(); math.Abs(p.limits.all-2*mean) > 0.5 {
			t.Errorf("%d s: limit %v, want twice the mean of %v before the surge", seconds, p.limits.all, mean)
		}
	}
}

func TestLimitsFileHolds(t *testing.T) {
	l := newPlan(readExcerpt(t), 60, 15).limits
	file, err := limitsfile.Parse("shop.yaml", []byte(l.file()))
	if err != nil {
		t.Fatal(err)
	}
	if got := len(file.Service.Buckets); got != 3 {
		t.Errorf("%d buckets, want 3", got)
	}
	if l.products <= 0 || l.products >= l.all || l.perCaller <= 0 || l.perCaller >= l.all {
		t.Errorf("limits %+v, want the shadow ones below the enforced one, so that the surge passes them", l)
	}
}
