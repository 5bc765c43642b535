package fleet_test

import (
	"math"
	"testing"

	"grl/limiter"
	"grl/roles/fleet"
)

func TestProperty15Proportional(t *testing.T) {
	t.Parallel()
	var overload, pulses figures
	for _, seed := range seeds(t) {
		overload = append(overload, 1-run(t, fleet.Options{Plan: steady(1.5*limit, 30)}, seed).Metrics.JainHosts)
		r := run(t, fleet.Options{Scenario: fleet.Pulse}, seed)
		pulses = append(pulses, 1-jain(r.Hosts))
	}
	overload.each(t, "below Jain's index of 1 in steady overload", 0.001)
	pulses.each(t, "below Jain's index of 1 in pulses", 0.01)
}

// jain returns Jain's index of what part of its load each host admitted.
func jain(hosts []fleet.HostInfo) float64 {
	var sum, squares float64
	for _, h := range hosts {
		share := float64(h.Counts.Admitted()) / float64(h.Counts.Offered)
		sum += share
		squares += share * share
	}
	return sum * sum / (float64(len(hosts)) * squares)
}

func TestProperty15MaxMin(t *testing.T) {
	t.Parallel()
	// The example of the design: of 1,000, in tens; the fair share is 300.
	const limit, fair = 10_000, 3000.0
	callers := map[string]float64{"a": 1000, "b": 1000, "c": 2000, "d": 4000, "e": 50_000}
	var demands []fleet.Demand
	sum := 0.0
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		demands = append(demands, fleet.Demand{Caller: name, Share: callers[name]})
		sum += callers[name]
	}
	const name = "payments"
	var short, over figures
	for _, seed := range seeds(t) {
		plan := steady(sum, 60)
		r := run(t, fleet.Options{
			Plan:     plan,
			LimitRPS: limit,
			Demands:  demands,
			Configuration: []limiter.Service{{Name: name, Buckets: []limiter.Bucket{{
				Service: name, Name: "each", Match: limiter.Match{Caller: "*"},
				LimitRPS: limit, Behavior: limiter.Deny, Share: limiter.MaxMin,
			}}}},
		}, seed)
		seconds := (plan.Length - plan.From).Seconds()
		for _, c := range r.Cells {
			due := min(float64(c.Steady.Offered)/seconds, fair)
			short = append(short, 100*(1-float64(c.Steady.Admitted())/seconds/due))
		}
		over = append(over, math.Abs(r.Metrics.MeanErrorPercent))
		if len(r.Cells) != len(demands) {
			t.Fatalf("%d cells, want %d", len(r.Cells), len(demands))
		}
	}
	short.each(t, "percent that a caller is below its fair share", 2)
	over.each(t, "percent of error of all together", 1)
}
