package fleet_test

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"
	"time"

	"grl/limiter/law"
	"grl/roles/fleet"
)

func TestProperty13UnbiasedReports(t *testing.T) {
	for _, tt := range []struct {
		rps     float64 // of a mean host
		most    float64 // percent
		hosts   int
		seconds float64
	}{
		{1, 0.5, 100, 400},
		{5, 0.5, 100, 300},
		{15, 0.5, 40, 300},
		{50, 0.5, 40, 300},
	} {
		for _, delta := range []time.Duration{20, 50, 100} {
			delta *= time.Millisecond
			t.Run(fmt.Sprintf("%v rps each %v", tt.rps, delta), func(t *testing.T) {
				t.Parallel()
				const k = 1.2
				load := tt.rps * float64(tt.hosts)
				var bias, hot figures
				for _, seed := range seeds(t) {
					plan := steady(load, tt.seconds)
					var said journal
					r := run(t, fleet.Options{
						Hosts: tt.hosts, LimitRPS: load / k, Delta: delta, Plan: plan,
						Watch: fleet.Watch{Directive: said.note},
					}, seed)
					counted := means(&r.Total, r.Total.Offered, plan.From, plan.Length, plan.Length-plan.From, time.Second)[0]
					measured := said.mean(plan.From, plan.Length, func(v law.Verdict) float64 { return load / k / v.Admit })
					bias = append(bias, 100*(measured/counted-1))
					hot = append(hot, 100*said.mean(plan.From, plan.Length, isHot))
				}
				bias.atMost(t, "percent of bias of what is decided on", math.Abs(bias.mean()), tt.most)
				hot.average(t, "percent of the time hot", 1)
			})
		}
	}
}

func TestProperty14Bytes(t *testing.T) {
	for _, limit := range []float64{1000, limit} {
		for _, k := range []float64{0.5, 0.95, 1.5, 8.3} {
			t.Run(fmt.Sprintf("%v times %v", k, limit), func(t *testing.T) {
				t.Parallel()
				var reports, directives figures
				for _, seed := range seeds(t) {
					plan := steady(k*limit, 30)
					var up, down int
					r := run(t, fleet.Options{LimitRPS: limit, Plan: plan, Watch: fleet.Watch{
						Message: func(at time.Duration, _ int, isUp bool, _ int) {
							switch {
							case at < plan.From:
							case isUp:
								up++
							default:
								down++
							}
						},
					}}, seed)
					seconds := (plan.Length - plan.From).Seconds() * float64(len(r.Hosts))
					reports = append(reports, float64(up)/seconds)
					directives = append(directives, float64(down)/seconds)
				}
				// A false jump makes a cell hot for some seconds, once in many minutes.
				reports.average(t, "reports of a host a second", 1.3)
				directives.average(t, "directives to a host a second", 1.5)
			})
		}
	}
}

func TestProperty14WorstSecond(t *testing.T) {
	tests := []struct {
		scenario string
		host     float64 // messages of any one
		mean     float64
	}{
		{fleet.Step, 20, 20},
		{fleet.FailoverSurge, 20, 20},
		{fleet.Pulse, 25, 20}, // a rise and a fall in one second
		// A ramp moves admit by 2 % each time that one may be published: that
		// alone is 20 directives in a second, and a hot host reports 5 times.
		{fleet.Ramp, 32, 28},
	}
	for _, tt := range tests {
		t.Run(tt.scenario, func(t *testing.T) {
			t.Parallel()
			var worst, mean figures
			for _, seed := range seeds(t) {
				type second struct {
					host int
					at   time.Duration
				}
				byHost := make(map[second]int)
				all := make(map[time.Duration]int)
				r := run(t, fleet.Options{Scenario: tt.scenario, Watch: fleet.Watch{
					Message: func(at time.Duration, host int, _ bool, _ int) {
						at = at.Truncate(time.Second)
						byHost[second{host, at}]++
						all[at]++
					},
				}}, seed)
				worst = append(worst, float64(slices.Max(slices.Collect(maps.Values(byHost)))))
				mean = append(mean, float64(slices.Max(slices.Collect(maps.Values(all))))/float64(len(r.Hosts)))
			}
			worst.each(t, "messages of any host in any second", tt.host)
			mean.each(t, "messages of a mean host in the worst second", tt.mean)
		})
	}
}
