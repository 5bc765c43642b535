package fleet

import (
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
	Steady  []Span        // of overload in which nothing changes
	Release time.Duration // the fall below the limit from which release counts; 0: none
}

// Load is what a group of hosts is offered.
type Load struct {
	Hosts float64 // the group's share of the hosts, in (0, 1]; at least one host
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

// check returns what is wrong with a plan.
func (p *Plan) check() error {
	if p.Length <= 0 {
		return fmt.Errorf("%w: plan: length %v is not positive", ErrOptions, p.Length)
	}
	for _, l := range p.Loads {
		if len(l.Knots) == 0 {
			return fmt.Errorf("%w: plan: a load has no knots", ErrOptions)
		}
		for i, k := range l.Knots {
			if !(k.RPS >= 0 && k.RPS <= law.MaxRPS) || i > 0 && k.At < l.Knots[i-1].At {
				return fmt.Errorf("%w: plan: knot %d (%v rps at %v) is out of range or of order", ErrOptions, i, k.RPS, k.At)
			}
		}
	}
	return nil
}
