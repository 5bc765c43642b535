package fleet

import (
	"context"
	"time"
)

// engine runs a fleet: time, what is offered, and messages on their way.
type engine struct {
	o    Options
	plan Plan
	*layout
	law    lawful
	now    time.Duration
	queue  queue
	record *recorder

	arrivals, coins, chance *random

	came, lost []int // room: see draw
}

// lawful is a law: what hosts, and the nodes above them, know and do. Its state
// moves only by these calls, in the order of time.
type lawful interface {
	// start puts in the first events.
	start()
	// drop returns how many of n requests a host drops that came to its cell k
	// until now, since it was last asked.
	drop(h *host, k, n int, now time.Duration) int
	// timer is called for each interval of a host's timer, after what was
	// offered in it is drawn.
	timer(h *host)
	// happen is called for each event that is not the engine's own.
	happen(e *event)
	// renew is called when another host takes the place of one.
	renew(h *host)
	// fault is called when something breaks, and when it is whole again.
	fault(f Fault, broken bool)
	// estimate returns a host's rate of its cell k, and the ratio at which it
	// drops.
	estimate(h *host, k int) (rate, ratio float64)
}

func newEngine(o Options, p Plan) (*engine, error) {
	e := &engine{
		o:        o,
		plan:     p,
		arrivals: newRandom(o.Seed, 1),
		coins:    newRandom(o.Seed, 2),
		chance:   newRandom(o.Seed, 3),
	}
	var err error
	if e.layout, err = newLayout(&o, &p, newRandom(o.Seed, 4)); err != nil {
		return nil, err
	}
	e.record = newRecorder(&e.plan, e.layout)
	for i := range e.hosts {
		e.hosts[i].ended = e.hosts[i].phase - o.Delta
	}
	e.law = e.newLaw()
	e.schedule()
	return e, nil
}

// schedule puts in what the plan says will happen.
func (e *engine) schedule() {
	for i, f := range e.plan.Faults {
		e.queue.put(event{at: f.Span.From, kind: faultBegins, number: uint64(i)})
		e.queue.put(event{at: f.Span.To, kind: faultEnds, number: uint64(i)})
	}
	if e.plan.HostLife > 0 {
		for i := range e.hosts { // at any age when the run begins
			e.queue.put(event{at: e.chance.below(e.plan.HostLife), kind: hostEnds, to: int32(i)})
		}
	}
	e.queue.put(event{at: time.Second, kind: secondEnds})
	e.law.start()
}

// run goes on until the end of the plan: events and turns of timers, in the
// order of time.
func (e *engine) run(ctx context.Context) error {
	for turn := time.Duration(0); ; turn += e.o.Delta {
		for i := range e.hosts { // in the order of their phases
			if i%interruptEvery == 0 && ctx.Err() != nil {
				return ctx.Err()
			}
			h := &e.hosts[i]
			at := turn + h.phase
			e.until(min(at, e.plan.Length))
			if at >= e.plan.Length {
				e.finish()
				return nil
			}
			e.now = at
			e.turn(h)
		}
	}
}

// interruptEvery is after how many turns of timers a run looks whether it is to
// end: a second of a large fleet takes many.
const interruptEvery = 256

// until has all events happen that come before at, or at it.
func (e *engine) until(at time.Duration) {
	for e.queue.len() > 0 && e.queue.next() <= at {
		ev := e.queue.take()
		e.now = ev.at
		switch ev.kind {
		case faultBegins:
			e.law.fault(e.plan.Faults[ev.number], true)
		case faultEnds:
			e.law.fault(e.plan.Faults[ev.number], false)
		case hostEnds:
			e.replace(&e.hosts[ev.to])
		case secondEnds:
			if e.o.Watch.Second != nil {
				e.o.Watch.Second(e.now)
			}
			e.queue.put(event{at: e.now + time.Second, kind: secondEnds})
		default:
			e.law.happen(&ev)
		}
	}
}

// turn is one turn of a host's timer.
func (e *engine) turn(h *host) {
	e.advance(h, e.now)
	e.law.timer(h)
	if e.o.Watch.Interval != nil {
		for k := range h.cells {
			t := &h.cells[k]
			i := Interval{At: e.now, Host: int(h.index), Cell: int(t.cell), Offered: t.offered, Dropped: t.dropped}
			i.Rate, i.Ratio = e.law.estimate(h, k)
			e.o.Watch.Interval(i)
		}
	}
	h.turn(e.now)
}

// replace puts a new host in the place of one.
func (e *engine) replace(h *host) {
	e.advance(h, e.now)
	for k := range h.cells {
		t := &h.cells[k]
		t.ratio, t.coin, t.total = 0, 0, Counts{}
	}
	e.law.renew(h)
	e.queue.put(event{at: e.now + e.plan.HostLife, kind: hostEnds, to: h.index})
}

// finish draws what is offered until the end.
func (e *engine) finish() {
	e.now = e.plan.Length
	for i := range e.hosts {
		e.advance(&e.hosts[i], e.now)
	}
}

// send puts a message on a link of that delay, at least as far as chance lets
// it through.
func (e *engine) send(delay time.Duration, ev event) {
	loss, twice, late := e.o.Loss, e.o.Duplication, time.Duration(0)
	if ev.kind == hostReports {
		loss = 1 - (1-loss)*(1-e.plan.Loss)
		twice = 1 - (1-twice)*(1-e.plan.Duplication)
		late = e.plan.Late
	}
	if loss > 0 && e.chance.unit() < loss {
		return
	}
	copies := 1
	if twice > 0 && e.chance.unit() < twice {
		copies = 2
	}
	for range copies {
		ev.at = e.now + delay + e.chance.below(e.o.Links.Jitter) + e.chance.below(late)
		e.queue.put(ev)
	}
}

// sure puts in an event that chance does not touch.
func (e *engine) sure(delay time.Duration, ev event) {
	ev.at = e.now + delay
	e.queue.put(ev)
}

// clock returns the time that a law sees at t.
func clock(t time.Duration) time.Time { return time.Unix(1<<30, int64(t)) }

// bytes counts a message between a host and its aggregator.
func (e *engine) bytes(h int32, up bool, n int) {
	e.record.bytes(e.now, n)
	if e.o.Watch.Message != nil {
		e.o.Watch.Message(e.now, int(h), up, n)
	}
}

// cut returns the first edge of a steady span between a and b, b if there is
// none.
func (p *Plan) cut(a, b time.Duration) time.Duration {
	for _, s := range p.Steady {
		for _, at := range [...]time.Duration{s.From, s.To} {
			if at > a && at < b {
				b = at
			}
		}
	}
	return b
}

// steady reports whether t is in a steady span or, if there are none, whether
// the fleet has started.
func (p *Plan) steady(t time.Duration) bool {
	if len(p.Steady) == 0 {
		return t >= p.From
	}
	for _, s := range p.Steady {
		if t >= s.From && t < s.To {
			return true
		}
	}
	return false
}

// newLaw returns the law of the options.
func (e *engine) newLaw() lawful {
	switch e.o.Law {
	case Minimal:
		return newTree(e, true)
	case GRL:
		return newTree(e, false)
	case Published:
		return newTicks(e, false)
	default:
		return newTicks(e, true)
	}
}

// result returns what came of the run.
func (e *engine) result() *Result {
	r := &Result{
		Law:      e.o.Law,
		Length:   e.plan.Length,
		Cells:    e.record.cells,
		Requests: e.record.total,
		Buckets:  e.record.buckets(),
	}
	if e.o.Plan == nil {
		r.Scenario = e.o.Scenario
	}
	for i := range e.hosts {
		h := &e.hosts[i]
		r.Hosts = append(r.Hosts, HostInfo{Service: int(h.service), Zone: int(h.zone), Group: int(h.group), Counts: h.counts, Steady: h.steady})
	}
	r.Total = sumUp(r.Buckets)
	r.Metrics = e.record.metrics(r)
	return r
}
