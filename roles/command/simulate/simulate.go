// Package simulate asks "what if": it runs fleets in virtual time, one for each
// law and scenario, and writes what came of them as tables, documents and
// pictures. It stands behind `grl simulate`.
//
// The same options give the same bytes.
package simulate

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"grl/limiter"
	"grl/limiter/limitsfile"
	"grl/roles/fleet"
)

// Defaults of what Options leave open.
const (
	DefaultHosts    = 200
	DefaultZones    = 4
	DefaultLimitRPS = 44_000
	// LowLimitRPS is the default limit of the scenario "low".
	LowLimitRPS = 5
)

// Options say what to run.
type Options struct {
	// Scenarios and Laws are names of fleet.Scenarios and fleet.Laws, or All;
	// empty: the scenario "step", or "trace" if there is a trace; the law "grl".
	Scenarios, Laws []string

	Hosts    int // 0: 200, or as many as there are services or zones
	Zones    int // 0: 4
	Regions  int // 0: 1
	Services int // 0: 1. Must be 0 with Limits

	// LimitRPS is the limit of each bucket, in requests per second. 0: 44,000;
	// in the scenario "low" 5, in "trace" the mean of the trace. Must be 0 with
	// Limits.
	LimitRPS float64
	BaseRPS  float64 // before a surge; 0: half of the limit. Must be 0 with Limits

	Length time.Duration // 0: the scenario's own
	Seed   uint64
	Delta  time.Duration // the hosts' timer; 0: that of the law
	Guard  float64       // 0: that of the law; negative: none
	Links  fleet.Links

	// Loss and Duplication are shares of messages, in [0, 1), on top of the
	// scenario's own.
	Loss        float64
	Duplication float64

	// Limits are what limits files say, LimitsPath where they are; nil: none.
	Limits     []limiter.Service
	LimitsPath string
	// Trace is what the scenario "trace" replays, TracePath where it is; nil:
	// none.
	Trace     *fleet.Trace
	TracePath string
}

// Section is one scenario under the laws that were asked for.
type Section struct {
	// Command runs the section again.
	Command string
	Laws    []string
	// Options are those of its fleets, but for the law.
	Options fleet.Options
	// Results has one for each law, after Run.
	Results []*fleet.Result
}

// Plan returns the sections that o asks for, in the order in which it does. The
// error is about o.
func Plan(o Options) ([]*Section, error) {
	scenarios, err := chooseScenarios(o.Scenarios, o.Trace != nil)
	laws, badLaw := choose("law", o.Laws, fleet.GRL, fleet.Laws())
	if err := errors.Join(err, badLaw); err != nil {
		return nil, err
	}
	if err := o.checkLimits(); err != nil {
		return nil, err
	}
	sections := make([]*Section, len(scenarios))
	for i, scenario := range scenarios {
		f := o.fleet(scenario)
		sections[i] = &Section{Command: o.command(f, laws), Laws: laws, Options: f}
	}
	return sections, nil
}

// checkLimits returns what does not go together with limits files.
func (o *Options) checkLimits() error {
	switch {
	case o.Limits == nil:
		return nil
	case o.LimitRPS != 0 || o.BaseRPS != 0 || o.Services != 0:
		return errors.New("limits and services come from --limits: leave out --limit, --base and --services")
	case limitsfile.CountBuckets(o.Limits) == blocked(o.Limits):
		return fmt.Errorf("%s: no bucket with a limit", o.LimitsPath)
	default:
		return nil
	}
}

// blocked returns the number of buckets that block.
func blocked(services []limiter.Service) int {
	n := 0
	for i := range services {
		for j := range services[i].Buckets {
			if services[i].Buckets[j].Block {
				n++
			}
		}
	}
	return n
}

// fleet returns the options of a fleet in a scenario.
func (o *Options) fleet(scenario string) fleet.Options {
	f := fleet.Options{
		Scenario: scenario,
		Hosts:    o.Hosts, Zones: o.Zones, Regions: o.Regions, Services: o.Services,
		LimitRPS: o.LimitRPS, BaseRPS: o.BaseRPS,
		Configuration: o.Limits,
		Length:        o.Length, Seed: o.Seed,
		Delta: o.Delta, Guard: o.Guard, Links: o.Links,
		Loss: o.Loss, Duplication: o.Duplication,
	}
	if scenario == fleet.Replay {
		f.Trace = o.Trace
	}
	if f.Zones == 0 {
		f.Zones = DefaultZones
	}
	if f.Hosts == 0 {
		f.Hosts = max(DefaultHosts, len(o.Limits), f.Services, f.Zones)
	}
	if f.LimitRPS == 0 {
		f.LimitRPS = o.defaultLimit(scenario)
	}
	if f.BaseRPS == 0 {
		f.BaseRPS = f.LimitRPS / 2
	}
	return f
}

func (o *Options) defaultLimit(scenario string) float64 {
	switch {
	case o.Limits != nil: // loads are scaled to the limit of each bucket
		return DefaultLimitRPS
	case scenario == fleet.Low:
		return LowLimitRPS
	case scenario == fleet.Replay:
		return meanRPS(o.Trace)
	default:
		return DefaultLimitRPS
	}
}

// meanRPS returns the mean rate of a trace, to three digits.
func meanRPS(t *fleet.Trace) float64 {
	var sum float64
	for _, n := range t.Offered(limiter.Match{}) {
		sum += n
	}
	mean := sum / float64(t.Seconds())
	unit := math.Pow10(int(math.Floor(math.Log10(mean))) - 2)
	return math.Max(math.Round(mean/unit)*unit, limitsfile.MinRPS)
}

// Run runs the fleets of s, one law after the other, until ctx ends. second is
// called after each second of virtual time; nil: not. An error that wraps
// fleet.ErrOptions is about the options.
func (s *Section) Run(ctx context.Context, second func(law string, at time.Duration)) error {
	s.Results = nil
	for _, law := range s.Laws {
		o := s.Options
		o.Law = law
		if second != nil {
			o.Watch.Second = func(at time.Duration) { second(law, at) }
		}
		r, err := fleet.Run(ctx, o)
		if err != nil {
			return fmt.Errorf("simulate %s under %s: %w", o.Scenario, law, err)
		}
		s.Results = append(s.Results, r)
	}
	return nil
}
