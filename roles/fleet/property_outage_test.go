package fleet_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"grl/limiter/law"
	"grl/roles/fleet"
)

func TestProperty9Idempotence(t *testing.T) {
	const lost = 0.2
	// A host of which two reports in a row are lost has gone, for all its
	// aggregator knows, from 2.2 T on until the next one comes: this is the share
	// of the time that it is so. It counts as churn.
	const gone = 100 * lost * lost * (0.8*(1-lost) + lost)
	late := fleet.Links{Jitter: 300 * time.Millisecond}
	tests := []struct {
		name    string
		options fleet.Options
		most    float64 // percent of the limit
	}{
		{"twice", fleet.Options{Duplication: 0.2}, 1},
		{"reordered", fleet.Options{Links: late}, 1},
		{"lost", fleet.Options{Loss: lost}, 1 + gone},
		{"all", fleet.Options{Loss: lost, Duplication: 0.2, Links: late}, 1 + gone},
		{"churn", fleet.Options{Scenario: fleet.Churn}, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if tt.options.Scenario == "" {
				tt.options.Plan = steady(2*limit, 40)
			}
			var off figures
			for _, seed := range seeds(t) {
				off = append(off, math.Abs(run(t, tt.options, seed).Metrics.MeanErrorPercent))
			}
			off.each(t, "percent of error", tt.most)
		})
	}
}

func TestProperty10Outages(t *testing.T) {
	away := 20 * time.Second
	plan := func(kind fleet.FaultKind, seconds int, knots ...fleet.Knot) *fleet.Plan {
		back := away + time.Duration(seconds)*time.Second
		return &fleet.Plan{
			Length: back + 10*time.Second,
			Loads:  []fleet.Load{{Hosts: 1, Knots: knots}},
			Faults: []fleet.Fault{{Kind: kind, Span: fleet.Span{From: away, To: back}}},
			From:   away,
		}
	}
	over := func(m fleet.Metrics) float64 { return m.OvershootSeconds }
	falsely := func(m fleet.Metrics) float64 { return m.FalseDropsSeconds }
	tests := []struct {
		name   string
		plan   *fleet.Plan
		figure func(fleet.Metrics) float64
		most   float64 // seconds of the limit
	}{
		{"S8, a zone is cut off at twice the limit", plan(fleet.ZoneCut, 20, fleet.Knot{RPS: 2 * limit}), over, 0.3},
		{"S9a, the controller is away for 5 s at twice the limit", plan(fleet.ControllerDown, 5, fleet.Knot{RPS: 2 * limit}), over, 0.2},
		{"S9b, it is away while the load falls", plan(fleet.ControllerDown, 20, jump(away+5*time.Second, 2*limit, 0.5*limit)...), falsely, 0.2},
		{"S9c, it is away in the surge", plan(fleet.ControllerDown, 20, jump(away+4*time.Second, base, surge)...), over, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var got figures
			for _, seed := range seeds(t) {
				got = append(got, tt.figure(run(t, fleet.Options{Plan: tt.plan}, seed).Metrics))
			}
			got.each(t, "seconds of the limit", tt.most)
		})
	}
}

// The last part of property 10: a new controller does not decide on fewer zones
// than are connected to it.
func TestProperty10NewControllerWaitsForItsZones(t *testing.T) {
	t.Parallel()
	for _, seed := range seeds(t) {
		const zones, restarts = 6, 8
		plan := steady(2*limit, 60)
		for i := range restarts { // in all phases of T, for longer each time
			from := settled + time.Duration(i)*(7*time.Second+law.T/8)
			plan.Faults = append(plan.Faults, fleet.Fault{
				Kind: fleet.ControllerDown,
				Span: fleet.Span{From: from, To: from + time.Duration(i+1)*300*time.Millisecond},
			})
		}
		// One zone is away while the controller comes back twice.
		plan.Faults = append(plan.Faults, fleet.Fault{
			Kind: fleet.ZoneCut, Index: 2, Span: fleet.Span{From: 15 * time.Second, To: 33 * time.Second},
		})
		epochs := make(map[uint64]bool)
		fewer := 0
		run(t, fleet.Options{Hosts: 60, Zones: zones, Plan: plan, Watch: fleet.Watch{Directive: func(d fleet.Directive) {
			if d.Node != "global" {
				return
			}
			epochs[d.Stamp.Epoch] = true
			if d.Zones < d.Present || d.Present < zones-1 {
				fewer++
			}
		}}}, seed)
		if len(epochs) != 1+restarts || fewer > 0 {
			t.Errorf("seed %d: %d epochs published, %d directives from fewer zones than connected; want %d and none", seed, len(epochs), fewer, 1+restarts)
		}
	}
}

func TestProperty11FailOpen(t *testing.T) {
	for _, k := range []float64{1.5, 8.3} {
		t.Run(fmt.Sprintf("%v times the limit", k), func(t *testing.T) {
			t.Parallel()
			for _, seed := range seeds(t) {
				failsOpen(t, k, seed)
			}
		})
	}
}

// failsOpen kills all control processes at k times the limit.
func failsOpen(t *testing.T, k float64, seed uint64) {
	t.Helper()
	const hosts = 40 // of which chance doubles no interval, which the guard would trim
	killed := 15 * time.Second
	plan := steady(k*limit, 30)
	plan.Faults = []fleet.Fault{{Kind: fleet.AllDown, Span: fleet.Span{From: killed, To: plan.Length + time.Second}}}
	var heard [hosts]time.Duration // the last directive
	var last [hosts]float64        // ratio
	var at, open, rose time.Duration
	watch := fleet.Watch{
		Message: func(at time.Duration, host int, up bool, _ int) {
			if !up {
				heard[host] = at + 10*time.Millisecond // the link
			}
		},
		Interval: func(i fleet.Interval) {
			at = i.At - heard[i.Host]
			if i.At < killed+100*time.Millisecond { // what is on its way comes
				last[i.Host] = i.Ratio
				return
			}
			if i.Ratio > last[i.Host] {
				rose = at
			}
			if i.Ratio > 0 {
				open = max(open, at)
			}
			last[i.Host] = i.Ratio
		},
	}
	run(t, fleet.Options{Hosts: hosts, Plan: plan, Watch: watch}, seed)
	if rose > 0 {
		t.Errorf("seed %d: a ratio rose %v after the last directive", seed, rose)
	}
	if whole := law.Hold + law.Decay; open > whole || open < whole-law.T {
		t.Errorf("seed %d: the last ratio was %v after the last directive, want just below %v", seed, open, whole)
	}
}
