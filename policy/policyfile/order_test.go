package policyfile

import (
	"strings"
	"testing"
	"time"

	"grl/limiter"
	"grl/policy"
)

func TestSort(t *testing.T) {
	specs := []policy.Spec{
		{Name: "a", Match: policy.Match{Service: "*"}},
		{Name: "b", Match: policy.Match{Service: "payments"}},
		{Name: "c", Match: policy.Match{Service: "pay*"}},
		{Name: "d", Match: policy.Match{Service: "payments", Caller: "web"}},
		{Name: "e", Match: policy.Match{Bucket: "x*"}},
		{Name: "f", Match: policy.Match{Bucket: "xy"}},
	}
	Sort(specs)
	bucket := limiter.Bucket{Service: "payments", Name: "xy", Match: limiter.Match{Caller: "web"}}
	var names []string
	for i, s := range specs {
		names = append(names, s.Name)
		if chosen := Choose(specs[i:], bucket); chosen != &specs[i] {
			t.Errorf("of those from %s on %s is chosen", s.Name, chosen.Name)
		}
	}
	if got := strings.Join(names, " "); got != "f e d b c a" {
		t.Errorf("order %s, want f e d b c a", got)
	}
}

func TestEvery(t *testing.T) {
	for cycle, want := range map[string]time.Duration{
		"0 2 * * *": day, "0 * * * *": time.Hour, "*/5 * * * *": 5 * time.Minute, "0 2 * * 1": week, "30 4 1 * *": 30 * day, "bad": 0,
	} {
		got, err := Every(&policy.Spec{Cycle: cycle, Location: time.UTC})
		if (err != nil) != (want == 0) || err == nil && got != want && want != 30*day || err == nil && want == 30*day && got < 28*day {
			t.Errorf("Every(%s) = %v, %v, want %v", cycle, got, err, want)
		}
	}
}
