package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"grl/limiter"
	"grl/limiter/law"
)

// ran runs a fleet to its end.
func ran(t *testing.T, o Options) *Result {
	t.Helper()
	r, err := Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestSameOptionsSameResult(t *testing.T) {
	for _, l := range Laws() {
		t.Run(l.Name, func(t *testing.T) {
			o := Options{
				Law: l.Name, Scenario: Churn, Regions: 2, Hosts: 60, Configuration: divided(), Seed: 5,
				Length: 20 * time.Second, Loss: 0.01, Duplication: 0.01, Links: Links{Jitter: 30 * time.Millisecond},
			}
			// As text, since NaN is never the same.
			first, again := asText(t, ran(t, o)), asText(t, ran(t, o))
			if first != again {
				t.Error("two runs of the same options differ")
			}
			o.Seed++
			if first == asText(t, ran(t, o)) {
				t.Error("another seed gives the same result")
			}
		})
	}
}

func asText(t *testing.T, r *Result) string {
	t.Helper()
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestNothingIsLost: what is offered is admitted or dropped, and the views of it
// agree, whatever happens.
func TestNothingIsLost(t *testing.T) {
	trace, err := ReadTrace(strings.NewReader("t_seconds,caller,procedure,status\n0,a,P/Q,-\n30.5,b,P/Q,-\n"))
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range Laws() {
		for _, s := range Scenarios() {
			t.Run(l.Name+"/"+s.Name, func(t *testing.T) {
				watched := make(map[int]Counts)
				r := ran(t, Options{
					Law: l.Name, Scenario: s.Name, Hosts: 40, LimitRPS: 2000, Length: 40 * time.Second, Trace: trace, Seed: 3,
					Watch: Watch{Interval: func(i Interval) {
						c := watched[i.Host]
						c.add(Counts{uint64(i.Offered), uint64(i.Dropped)})
						watched[i.Host] = c
					}},
				})
				checkTotals(t, r)
				for i, h := range r.Hosts {
					// The last interval has not ended.
					if c := watched[i]; c.Offered > h.Counts.Offered || c.Dropped > h.Counts.Dropped {
						t.Errorf("host %d: watched %v, counted %v", i, c, h.Counts)
					}
				}
			})
		}
	}
}

func checkTotals(t *testing.T, r *Result) {
	t.Helper()
	var hosts, cells Counts
	for _, h := range r.Hosts {
		hosts.add(h.Counts)
		if h.Counts.Dropped > h.Counts.Offered || h.Steady.Offered > h.Counts.Offered {
			t.Errorf("host counts %+v", h)
		}
	}
	for _, c := range r.Cells {
		cells.add(c.Counts)
	}
	if hosts != r.Requests || cells != r.Requests {
		t.Errorf("hosts counted %v, cells %v, the fleet %v", hosts, cells, r.Requests)
	}
	var offered, admitted float64
	for i := range r.Total.Offered {
		offered += r.Total.Offered[i] * r.Total.Slot.Seconds()
		admitted += r.Total.Admitted[i] * r.Total.Slot.Seconds()
		if ratio := r.Total.Ratio[i]; ratio < 0 || ratio > 1 {
			t.Errorf("slot %d: ratio %v is not in [0, 1]", i, ratio)
		}
	}
	if want := float64(r.Requests.Offered); math.Abs(offered-want) > 1e-6*want {
		t.Errorf("series have %v requests, counts %v", offered, want)
	}
	if want := float64(r.Requests.Admitted()); math.Abs(admitted-want) > 1e-6*(1+want) {
		t.Errorf("series have %v admitted, counts %v", admitted, want)
	}
}

// TestLawsHoldTheLimit: in steady overload the mean is the limit.
func TestLawsHoldTheLimit(t *testing.T) {
	for _, l := range Laws() {
		t.Run(l.Name, func(t *testing.T) {
			r := ran(t, Options{Law: l.Name, Seed: 4})
			if e := r.Metrics.MeanErrorPercent; math.Abs(e) > 0.5 {
				t.Errorf("mean error %v %%, want at most 0.5", e)
			}
			if s := r.Metrics.SettleSeconds; !(s <= 4.5) {
				t.Errorf("settles in %v s, want 4.5 at most", s)
			}
		})
	}
}

// TestLawsDiffer: what sets the laws apart shows.
func TestLawsDiffer(t *testing.T) {
	over := make(map[string]float64)
	shares := make(map[string]float64)
	for _, l := range Laws() {
		over[l.Name] = ran(t, Options{Law: l.Name}).Metrics.OvershootSeconds
		shares[l.Name] = ran(t, Options{Law: l.Name, Scenario: Shift}).Metrics.JainHosts
	}
	if !(over[GRL] < over[Minimal]/5 && over[Minimal] < over[Published]/1.5 && over[Published] < over[TokenBucket]*1.5) {
		t.Errorf("overshoot %v, want grl far below minimal, minimal below published and token-bucket", over)
	}
	if !(shares[TokenBucket] < 0.995 && shares[GRL] > 0.999 && shares[Published] > 0.999) {
		t.Errorf("fairness to hosts %v, want that of token-bucket alone below 0.995", shares)
	}
	alone := func(name string) float64 {
		return ran(t, Options{Law: name, Scenario: LoneHost}).Metrics.FalseDropsSeconds
	}
	if tokens, grl := alone(TokenBucket), alone(GRL); !(tokens > 2*grl) {
		t.Errorf("drops below the limit: token-bucket %v s, grl %v s; want more of token-bucket", tokens, grl)
	}
}

func TestRetriesComeBackSoOften(t *testing.T) {
	for _, retries := range []int{0, 1, 3} {
		const load = 200_000 // a hundred times the limit
		r := ran(t, Options{Law: Published, LimitRPS: load / 100, Plan: &Plan{
			Length: 30 * time.Second, Loads: all(Knot{0, load}), Retries: retries, Steady: []Span{{10 * time.Second, 30 * time.Second}},
		}})
		var steady Counts
		for _, h := range r.Hosts {
			steady.add(h.Steady)
		}
		// Of F offered at first, F * (1 + p + ... + p^r) come in all.
		p := float64(steady.Dropped) / float64(steady.Offered)
		want := 0.0
		for i := range retries + 1 {
			want += math.Pow(p, float64(i))
		}
		if got := float64(steady.Offered) / (20 * load); math.Abs(got-want) > 0.005*want {
			t.Errorf("%d retries: amplified %.4f times, want %.4f", retries, got, want)
		}
	}
}

func TestRegionsAndAggregatorsHoldOneLimit(t *testing.T) {
	r := ran(t, Options{Regions: 2, Aggregators: 3, Hosts: 120, Configuration: divided(), Plan: &Plan{
		Length: 40 * time.Second, Loads: all(Knot{0, 2 * 44_000}), From: 20 * time.Second,
		Steady: []Span{{10 * time.Second, 40 * time.Second}},
	}})
	admitted := make([]float64, len(r.Buckets))
	for _, c := range r.Cells {
		admitted[c.Bucket] += float64(c.Steady.Admitted()) / 30
	}
	for i, b := range r.Buckets {
		// Chance alone: the deviation of a count over 30 s.
		slack := 0.02*b.LimitRPS + 4*math.Sqrt(b.LimitRPS/30)
		if math.Abs(admitted[i]-b.LimitRPS) > slack {
			t.Errorf("%s %s %s admits %.1f rps, want %v ± %.1f", b.Name, b.Instance, b.Caller, admitted[i], b.LimitRPS, slack)
		}
	}
}

// TestFaultsPass: whatever breaks at twice the limit, it holds again later, and
// nothing is dropped for nothing.
func TestFaultsPass(t *testing.T) {
	faults := map[string]Fault{
		"controller": {Kind: ControllerDown}, "region": {Kind: RegionDown, Index: 1}, "aggregator": {Kind: AggregatorDown, Index: 1},
		"zone": {Kind: ZoneCut, Index: 1}, "region cut": {Kind: RegionCut, Index: 1}, "all": {Kind: AllDown},
	}
	for name, fault := range faults {
		fault.Span = Span{15 * time.Second, 30 * time.Second}
		for _, l := range []string{GRL, Minimal, Published} {
			t.Run(name+"/"+l, func(t *testing.T) {
				r := ran(t, Options{Law: l, Regions: 2, Aggregators: 2, Plan: &Plan{
					Length: 60 * time.Second, Loads: all(jump(50*time.Second, 2*44_000, 20_000)...),
					Faults: []Fault{fault},
					Steady: []Span{{40 * time.Second, 50 * time.Second}}, From: 40 * time.Second, Release: 50 * time.Second,
				}})
				if e := r.Metrics.MeanErrorPercent; math.Abs(e) > 1 {
					t.Errorf("mean error %v %% after the fault, want at most 1", e)
				}
				if s := r.Metrics.ReleaseSeconds; !(s <= 4.5) {
					t.Errorf("drops end in %v s, want at most 4.5", s)
				}
			})
		}
	}
}

func TestDirectivesAreWatched(t *testing.T) {
	last := make(map[string]law.Stamp)
	alone := 0
	ran(t, Options{Scenario: Partition, Watch: Watch{Directive: func(d Directive) {
		if !d.Stamp.After(last[d.Node]) {
			t.Errorf("%s published %+v after %+v", d.Node, d.Stamp, last[d.Node])
		}
		last[d.Node] = d.Stamp
		if d.Node == "global" && (d.Zones != 4 || d.Present != 4) {
			t.Errorf("a directive of %d zones of %d, want 4 of 4", d.Zones, d.Present)
		}
		if d.Node == "zone-1" {
			alone++
			if d.At < 22*time.Second || d.At > 41*time.Second || d.Stamp.Step == 0 {
				t.Errorf("zone-1 published %+v at %v: it is alone from 22s to 40s", d.Stamp, d.At)
			}
		}
	}}})
	if alone < 15 {
		t.Errorf("zone-1 published %d times while it was alone, want one a second", alone)
	}
}

func TestSecondsAreWatchedAndRunsEnd(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var seconds []time.Duration
	_, err := Run(ctx, Options{Watch: Watch{Second: func(at time.Duration) {
		if seconds = append(seconds, at); len(seconds) == 3 {
			cancel()
		}
	}}})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("Run with a context that ended: %v, want %v", err, context.Canceled)
	}
	if want := []time.Duration{time.Second, 2 * time.Second, 3 * time.Second}; !reflect.DeepEqual(seconds, want) {
		t.Errorf("seconds %v, want %v", seconds, want)
	}
}

// A fleet need not come to the end of a second to be interrupted.
func TestInterruptedWithinASecond(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	turns := 0
	_, err := Run(ctx, Options{Hosts: 2000, Watch: Watch{Interval: func(Interval) {
		cancel()
		turns++
	}}})
	if !errors.Is(err, context.Canceled) || turns > interruptEvery {
		t.Errorf("Run ended %d turns after its context with %v, want at most %d and %v", turns, err, interruptEvery, context.Canceled)
	}
}

func TestOptionsAreChecked(t *testing.T) {
	plan := func(change func(*Plan)) Options {
		p := Plan{Length: time.Second, Loads: all(Knot{0, 1})}
		change(&p)
		return Options{Plan: &p}
	}
	tests := []struct {
		name string
		o    Options
		want string // part of the error
	}{
		{"law", Options{Law: "pi"}, `no law "pi"`},
		{"scenario", Options{Scenario: "storm"}, `no scenario "storm"`},
		{"trace", Options{Scenario: Replay}, "needs a trace"},
		{"few hosts", Options{Hosts: 3}, "3 hosts are fewer"},
		{"many regions", Options{Regions: 5}, "5 is not between 1 and the 4 zones"},
		{"limit", Options{LimitRPS: -1}, "limit: -1"},
		{"delta", Options{Delta: time.Millisecond}, "delta: 1ms"},
		{"loss", Options{Loss: 1}, "loss: 1"},
		{"two faults at once", Options{Loss: -1, Duplication: 2}, "duplication: 2"},
		{"demand", Options{Demands: []Demand{{Caller: "a"}}}, `demand of "a"`},
		{"nothing limited", Options{Configuration: []limiter.Service{{Name: "open"}}}, "no bucket has a limit"},
		{"plan without length", plan(func(p *Plan) { p.Length = 0 }), "length 0s"},
		{"plan without load", plan(func(p *Plan) { p.Loads = nil }), "no load"},
		{"knots out of order", plan(func(p *Plan) { p.Loads = all(Knot{2, 1}, Knot{1, 1}) }), "is before the last one"},
		{"rate", plan(func(p *Plan) { p.Loads = all(Knot{0, math.NaN()}) }), "NaN"},
		{"fault of no zone", plan(func(p *Plan) { p.Faults = []Fault{{Kind: ZoneCut, Index: 4}} }), "no index 4"},
		{"fault that ends first", plan(func(p *Plan) { p.Faults = []Fault{{Span: Span{2, 1}}} }), "is no span"},
		{"retries", plan(func(p *Plan) { p.Retries = 11 }), "11 retries"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Run(t.Context(), tt.o)
			if !errors.Is(err, ErrOptions) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Run: %v, want an error of options with %q", err, tt.want)
			}
		})
	}
}
