package fleet

import (
	"time"

	"grl/limiter"
)

// host is a workload with what is offered to it. What it knows of limits is
// kept by the law.
type host struct {
	index      int32
	service    int32
	zone       int32
	aggregator int32 // its first choice
	group      int32 // of the plan's loads
	weight     float64
	phase      time.Duration // of its timer
	drawn      time.Duration // what was offered until here is known
	ended      time.Duration // its last interval
	cells      []traffic
	counts     Counts
	steady     Counts
}

// traffic is what is offered to one cell of one host.
type traffic struct {
	cell  int32
	load  *profile
	scale float64 // of load

	ratio uint64 // to drop, in the fixed point of limiter.Coin
	coin  limiter.Coin

	offered, dropped int    // since the last turn of the timer
	total            Counts // since the host's boot

	retryTo int // the host's cell that retries go to: this one, or that of their class
	// Requests that come back in this interval, and in the next one, by how
	// often they were sent before, less 1; nil without retries.
	back, next []int
}

// advance draws what is offered to a host until now.
func (e *engine) advance(h *host, now time.Duration) {
	for h.drawn < now {
		from, to := h.drawn, now
		for k := range h.cells {
			to = h.cells[k].load.cut(from, to)
		}
		to = e.plan.cut(from, to)
		steady := e.plan.steady(from)
		for k := range h.cells {
			e.draw(h, k, from, to, steady)
		}
		h.drawn = to
	}
}

// draw draws what is offered to one cell.
func (e *engine) draw(h *host, k int, from, to time.Duration, steady bool) {
	t := &h.cells[k]
	came := append(e.came[:0], e.arrivals.poisson(t.scale*t.load.between(from, to)))
	share := float64(to-from) / float64(h.ended+e.o.Delta-from)
	for tries := range t.back {
		back := int(share * float64(t.back[tries]))
		t.back[tries] -= back
		came = append(came, back)
	}
	n := 0
	for _, c := range came {
		n += c
	}
	e.came = came
	if n == 0 {
		return
	}
	dropped := e.law.drop(h, k, n, to)
	e.comeBack(&h.cells[t.retryTo], dropped)
	t.offered += n
	t.dropped += dropped
	c := Counts{uint64(n), uint64(dropped)}
	t.total.add(c)
	h.counts.add(c)
	if steady {
		h.steady.add(c)
	}
	e.record.add(t.cell, from, to, c, n-came[0], steady)
}

// comeBack has dropped requests, of those that came, sent again in the next
// interval.
func (e *engine) comeBack(t *traffic, dropped int) {
	if t.next == nil || dropped == 0 {
		return
	}
	e.lost = append(e.lost[:0], e.came...)
	e.arrivals.spread(dropped, e.came, e.lost)
	for tries := range t.next {
		t.next[tries] += e.lost[tries]
	}
}

// turn begins the next interval of a host's timer.
func (h *host) turn(now time.Duration) {
	h.ended = now
	for k := range h.cells {
		t := &h.cells[k]
		t.offered, t.dropped = 0, 0
		for tries := range t.back {
			t.back[tries] += t.next[tries]
			t.next[tries] = 0
		}
	}
}

func (c *Counts) add(more Counts) {
	c.Offered += more.Offered
	c.Dropped += more.Dropped
}
