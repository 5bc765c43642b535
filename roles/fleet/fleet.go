// Package fleet runs a whole fleet in virtual time: hosts, aggregators and
// controllers, the links between them and what may go wrong, from the same law
// and the same coin that the roles use. It stands behind `grl simulate`, the
// previews and the properties that the law must have.
//
// A run is pure: the same options give the same result, bit for bit. Requests
// are not simulated one by one: how many come in an interval is drawn, and the
// coin is flipped for each.
package fleet

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"grl/limiter"
	"grl/limiter/law"
)

// Options say what to run. Zero values stand for the defaults.
type Options struct {
	Law      string // a name of Laws; "": grl
	Scenario string // a name of Scenarios; "": step. Ignored with Plan
	Plan     *Plan  // instead of a scenario

	Hosts       int // of all services together; 0: 200
	Zones       int // 0: 4
	Regions     int // zones are dealt out to them; 0: 1, without regional controllers
	Aggregators int // of each zone; 0: 1
	Services    int // with one bucket each; 0: 1. Ignored with Configuration

	LimitRPS float64 // of each bucket, requests per second; 0: 44,000
	BaseRPS  float64 // of each bucket, before a surge; 0: half of the limit

	// Configuration is used instead of Services and LimitRPS: the load of each
	// bucket is that of the scenario, scaled to the bucket's limit, and enters
	// no other bucket. All are enforced, whatever their behavior; those that
	// block are left out.
	Configuration []limiter.Service
	// Demands says how the load of a bucket divides into the cells that share
	// its limit; nil: evenly over DefaultCallers and the bucket's classes, but
	// for those of retries, to which come retries alone.
	Demands []Demand
	// Trace is what the scenario "trace" replays; each bucket is offered what it
	// matches.
	Trace *Trace

	Length time.Duration // 0: the scenario's own
	Seed   uint64

	Delta time.Duration // the hosts' timer; 0: law.Delta
	Guard float64       // 0: law.Guard; negative: none
	Links Links

	// Loss and Duplication are the shares of messages that are lost, and that
	// arrive twice, in [0, 1), on top of the scenario's own.
	Loss        float64
	Duplication float64

	Watch Watch
}

// Links are the delays of messages, one way.
type Links struct {
	Host       time.Duration // between a host and its aggregator; 0: 10 ms
	Aggregator time.Duration // between nodes above hosts; 0: 40 ms
	Jitter     time.Duration // at most so much longer, evenly; it may reorder messages
}

// Demand is the part of a bucket's load that one caller, and one class of its
// requests, has.
type Demand struct {
	Caller string  // ignored by buckets that do not tell callers apart
	Class  string  // one of limiter.Bucket.Classes; ignored by buckets without
	Share  float64 // positive, of the sum of all
}

// Watch has functions that are called while a fleet runs, in the order of
// virtual time; nil ones are not.
type Watch struct {
	// Second is called after each second of virtual time.
	Second func(at time.Duration)
	// Interval is called for each cell of each host after each interval of its
	// timer.
	Interval func(Interval)
	// Directive is called for each directive that a node publishes on its own
	// account, before it is on its way.
	Directive func(Directive)
	// Message is called for each message that a host sends or receives.
	Message func(at time.Duration, host int, up bool, bytes int)
}

// Interval is what one host's timer found of one cell.
type Interval struct {
	At      time.Duration // when it ended
	Host    int
	Cell    int // index in Result.Cells
	Offered int
	Dropped int
	Rate    float64 // estimated, requests per second; 0 under laws without an estimate
	Ratio   float64 // drop ratio of the next interval; 0 under laws without one
}

// Directive is what one node published.
type Directive struct {
	At      time.Duration
	Node    string
	Stamp   law.Stamp
	Zones   int // children in the sums that it was decided on
	Present int // children that are joined to the node
	Rows    []DirectiveRow
}

// DirectiveRow is what a directive said of one cell.
type DirectiveRow struct {
	Cell    int // index in Result.Cells
	Verdict law.Verdict
}

// Entry is a line of a table of names.
type Entry struct {
	Name string
	Line string // what it is, in one line
}

// Names of the laws.
const (
	GRL         = "grl"
	Minimal     = "minimal"
	Published   = "published"
	TokenBucket = "token-bucket"
)

// Laws returns the laws a fleet can run under.
func Laws() []Entry {
	return []Entry{
		{GRL, "the law of grl: events, hot ticks, local ceiling, gated mean, autonomy"},
		{Minimal, "the same without events, hot ticks, ceiling and rescaling: reports once a second, forwarded on receipt"},
		{Published, "three ticks of a second, the plain formula, independent coins; open after three seconds of silence"},
		{TokenBucket, "each host refills its share of the load times the limit, and keeps unused tokens for ten seconds"},
	}
}

// ErrOptions marks errors of Run that are about its options.
var ErrOptions = errors.New("options")

// withDefaults returns o with the defaults instead of zero values.
func (o Options) withDefaults() Options {
	def(&o.Law, GRL)
	def(&o.Scenario, Step)
	def(&o.Hosts, 200)
	def(&o.Zones, 4)
	def(&o.Regions, 1)
	def(&o.Aggregators, 1)
	def(&o.Services, 1)
	def(&o.LimitRPS, 44_000)
	def(&o.BaseRPS, o.LimitRPS/2)
	def(&o.Delta, law.Delta)
	def(&o.Guard, law.Guard)
	o.Guard = max(0, o.Guard)
	def(&o.Links.Host, 10*time.Millisecond)
	def(&o.Links.Aggregator, 40*time.Millisecond)
	return o
}

func def[T comparable](to *T, value T) {
	var zero T
	if *to == zero {
		*to = value
	}
}

// check returns what is wrong with options that have their defaults.
func (o *Options) check() error {
	services := len(o.services())
	var errs []error
	bad := func(is bool, format string, args ...any) {
		if is {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	bad(o.Zones < 1 || o.Aggregators < 1 || o.Services < 1, "zones, aggregators and services must be positive")
	bad(o.Hosts < max(services, o.Zones), "%d hosts are fewer than the %d services or the %d zones", o.Hosts, services, o.Zones)
	bad(o.Regions < 1 || o.Regions > o.Zones, "regions: %d is not between 1 and the %d zones", o.Regions, o.Zones)
	bad(!(o.LimitRPS >= 0.001 && o.LimitRPS <= law.MaxRPS), "limit: %v is not between 0.001 and 1e9", o.LimitRPS)
	bad(!(o.BaseRPS > 0 && o.BaseRPS <= law.MaxRPS), "base: %v is not between 0 and 1e9", o.BaseRPS)
	bad(o.Length < 0, "length: %v is negative", o.Length)
	bad(o.Delta < 5*time.Millisecond || o.Delta > time.Second, "delta: %v is not between 5ms and 1s", o.Delta)
	bad(o.Links.Host < 0 || o.Links.Aggregator < 0 || o.Links.Jitter < 0, "links: a delay is negative")
	bad(!(o.Loss >= 0 && o.Loss < 1), "loss: %v is not in [0, 1)", o.Loss)
	bad(!(o.Duplication >= 0 && o.Duplication < 1), "duplication: %v is not in [0, 1)", o.Duplication)
	bad(!slices.ContainsFunc(Laws(), func(e Entry) bool { return e.Name == o.Law }), "no law %q", o.Law)
	for _, d := range o.Demands {
		bad(!(d.Share > 0) || math.IsInf(d.Share, 1), "demand of %q: share %v is not positive", d.Caller, d.Share)
	}
	if len(errs) > 0 {
		return fmt.Errorf("%w: %w", ErrOptions, errors.Join(errs...))
	}
	return nil
}

// Run runs a fleet to its end, or until ctx ends. An error that wraps
// ErrOptions says what is wrong with the options.
func Run(ctx context.Context, o Options) (*Result, error) {
	o = o.withDefaults()
	if err := o.check(); err != nil {
		return nil, fmt.Errorf("run fleet: %w", err)
	}
	p, err := planFor(&o)
	if err != nil {
		return nil, fmt.Errorf("run fleet: %w", err)
	}
	if o.Length > 0 {
		p.Length = o.Length
	}
	if err := p.check(&o); err != nil {
		return nil, fmt.Errorf("run fleet: %w", err)
	}
	e, err := newEngine(o, p)
	if err != nil {
		return nil, fmt.Errorf("run fleet: %w", err)
	}
	if err := e.run(ctx); err != nil {
		return nil, err
	}
	return e.result(), nil
}
