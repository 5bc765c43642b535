package fleet

import (
	"errors"
	"fmt"
	"time"

	"grl/limiter/law"
)

// Plan is what happens to a fleet. Times count from the start of the run.
type Plan struct {
	Length time.Duration
	// Loads divides the load of each bucket among groups of hosts.
	Loads []Load
	// Retries is how often each dropped request comes back, one interval of the
	// hosts' timer later.
	Retries int
	// HostLife is how long a host lives before another one takes its place, in
	// the mean; 0: as long as the run.
	HostLife time.Duration
	// Loss, Duplication: shares of messages between nodes that are lost, and
	// that arrive twice, in [0, 1). Late: at most so much later, evenly.
	Loss        float64
	Duplication float64
	Late        time.Duration
	Faults      []Fault

	// What the metrics look at.
	From    time.Duration // before it nothing counts: the fleet is starting
	Change  time.Duration // the change from which settling counts; 0: none
	Settled time.Duration // until here it must stay settled
	Steady  []Span        // of overload that should be held
	Release time.Duration // the fall below the limit from which release counts; 0: none
}

// Load is what a group of hosts is offered.
type Load struct {
	// Hosts is the group's share of the hosts, in [0, 1]; at least one host. The
	// last group has all that are left.
	Hosts float64
	// Knots has the rate over time, in requests per second where a bucket has
	// the limit of Options: between two of them it is linear, and two at the
	// same time are a jump. Before the first and after the last it is constant.
	Knots []Knot
}

// Knot is the rate at one time.
type Knot struct {
	At  time.Duration
	RPS float64
}

// Span is a part of a run.
type Span struct{ From, To time.Duration }

// Fault is something that is broken for a while.
type Fault struct {
	Kind FaultKind
	Span Span
	// Index says which: the zone, the region, or the aggregator (zone by zone).
	Index int
}

// FaultKind says what is broken.
type FaultKind uint8

// The kinds of faults.
const (
	ControllerDown FaultKind = iota // the global one; it comes back with a new epoch
	RegionDown                      // the regional controller of region Index
	AggregatorDown                  // the aggregator Index
	ZoneCut                         // messages between the aggregators of zone Index and above are lost
	RegionCut                       // messages between the controller of region Index and above are lost
	AllDown                         // all control processes
)

// check returns what is wrong with the plan of a fleet.
func (p *Plan) check(o *Options) error {
	var errs []error
	bad := func(is bool, format string, args ...any) {
		if is {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	bad(p.Length <= 0, "length %v is not positive", p.Length)
	bad(p.Retries < 0 || p.Retries > mostRetries, "%d retries are not between 0 and %d", p.Retries, mostRetries)
	bad(p.HostLife < 0 || p.Late < 0, "a duration is negative")
	bad(!(p.Loss >= 0 && p.Loss < 1), "loss %v is not in [0, 1)", p.Loss)
	bad(!(p.Duplication >= 0 && p.Duplication < 1), "duplication %v is not in [0, 1)", p.Duplication)
	bad(len(p.Loads) == 0 && o.Trace == nil, "no load")
	for _, l := range p.Loads {
		bad(len(l.Knots) == 0, "a load has no knots")
		bad(!(l.Hosts >= 0 && l.Hosts <= 1), "a share of the hosts, %v, is not in [0, 1]", l.Hosts)
		for i, k := range l.Knots {
			bad(!(k.RPS >= 0 && k.RPS <= law.MaxRPS), "knot %d: %v is not between 0 and 1e9", i, k.RPS)
			bad(i > 0 && k.At < l.Knots[i-1].At, "knot %d: %v is before the last one", i, k.At)
		}
	}
	for _, f := range p.Faults {
		bad(f.Index < 0 || f.Index >= f.Kind.count(o), "fault: there is no index %d", f.Index)
		bad(f.Span.From < 0 || f.Span.To < f.Span.From, "fault: from %v to %v is no span", f.Span.From, f.Span.To)
	}
	if len(errs) > 0 {
		return fmt.Errorf("%w: plan: %w", ErrOptions, errors.Join(errs...))
	}
	return nil
}

// mostRetries bounds how often a request comes back.
const mostRetries = 10

// count returns how many there are of what a kind of fault breaks.
func (k FaultKind) count(o *Options) int {
	switch k {
	case AggregatorDown:
		return o.Zones * o.Aggregators
	case ZoneCut:
		return o.Zones
	case RegionDown, RegionCut:
		return o.Regions
	default:
		return 1
	}
}
