package fleet

import (
	"time"

	"grl/limiter"
	"grl/limiter/law"
)

// ticks is the published design, in its present form and in the early one with
// token buckets: yardsticks. Hosts, aggregators and the controller each wait
// for their own tick of a second, add up what arrived in it, and say so to the
// next; what the controller computes goes down at once.
type ticks struct {
	*engine
	tokens bool
	leaves []ticked // by host
	sums   []adder  // by zone
	top    adder    // of the controller
	cut    []bool   // by zone
	down   bool
}

// ticked is what a host knows.
type ticked struct {
	cells  []tickedCell
	ticked time.Duration // last report
	heard  time.Duration // last directive; negative: none yet
}

type tickedCell struct {
	reported Counts
	rate     float64 // in its last tick, requests per second
	offered  float64 // of the whole fleet, as of the last directive
	purse    purse
}

// adder adds up what arrives, by cell.
type adder struct {
	sums []float64
}

// openAfter is how long a host of the published design keeps a ratio that
// nobody renews.
const openAfter = 3 * time.Second

func newTicks(e *engine, tokens bool) *ticks {
	t := &ticks{engine: e, tokens: tokens, leaves: make([]ticked, len(e.hosts)), cut: make([]bool, len(e.zones))}
	t.sums = make([]adder, len(e.zones))
	for z := range t.sums {
		t.sums[z].sums = make([]float64, len(e.cells))
	}
	t.top.sums = make([]float64, len(e.cells))
	for i := range t.leaves {
		t.leaves[i] = t.leaf(&e.hosts[i])
	}
	return t
}

func (t *ticks) leaf(h *host) ticked {
	return ticked{cells: make([]tickedCell, len(h.cells)), ticked: t.now - t.chance.below(time.Second), heard: -1}
}

func (t *ticks) start() {
	for z := range t.sums {
		t.sure(t.chance.below(time.Second), event{kind: nodeTicks, to: int32(z)})
	}
	t.sure(t.chance.below(time.Second), event{kind: nodeTicks, to: int32(len(t.sums))})
}

func (t *ticks) renew(h *host) { t.leaves[h.index] = t.leaf(h) }

func (t *ticks) drop(h *host, k, n int, now time.Duration) int {
	l := &t.leaves[h.index]
	if l.heard < 0 || now-l.heard > openAfter {
		return 0
	}
	if t.tokens {
		c := &l.cells[k]
		c.purse.fill(t.refill(h, k), now)
		return c.purse.spend(n)
	}
	ratio := h.cells[k].ratio
	if ratio == 0 {
		return 0
	}
	dropped := 0
	for range n {
		if t.coins.Uint64()>>32 < ratio {
			dropped++
		}
	}
	return dropped
}

// refill returns the tokens per second of a host: its share of the load, of the
// limit.
func (t *ticks) refill(h *host, k int) float64 {
	c := &t.leaves[h.index].cells[k]
	limit := t.gates[t.cells[h.cells[k].cell].gate].limit
	return limit * min(1, c.rate/max(c.offered, 1e-6))
}

func (t *ticks) estimate(h *host, k int) (rate, ratio float64) {
	return t.leaves[h.index].cells[k].rate, float64(h.cells[k].ratio) / float64(limiter.One)
}

func (t *ticks) timer(h *host) {
	l := &t.leaves[h.index]
	if t.now-l.ticked < time.Second-t.o.Delta/2 {
		return
	}
	span := t.now - l.ticked
	l.ticked = t.now
	m := &report{}
	for k := range l.cells {
		c, total := &l.cells[k], h.cells[k].total
		more := Counts{total.Offered - c.reported.Offered, total.Dropped - c.reported.Dropped}
		c.reported = total
		c.rate = float64(more.Offered) / span.Seconds()
		m.rows = append(m.rows, reportRow{
			number: uint32(h.cells[k].cell),
			counts: law.Counts{Offered: more.Offered, Dropped: more.Dropped},
		})
	}
	t.bytes(h.index, true, bytesOf(rowsSize(m)))
	t.send(t.o.Links.Host, event{kind: hostReports, to: h.zone, from: h.index, report: m})
}

func (t *ticks) happen(ev *event) {
	switch ev.kind {
	case hostReports:
		for _, r := range ev.report.rows {
			t.sums[ev.to].sums[r.number] += float64(r.counts.Offered)
		}
	case nodeReports:
		if !t.down {
			for c, n := range ev.report.rows {
				t.top.sums[c] += float64(n.counts.Offered)
			}
		}
	case nodeTicks:
		t.sure(time.Second, *ev)
		if int(ev.to) < len(t.sums) {
			t.tickZone(ev.to)
		} else if !t.down {
			t.tickTop()
		}
	case nodeDirected:
		t.pass(ev)
	case hostDirected:
		t.direct(&t.hosts[ev.to], ev.orders)
	}
}

// tickZone ends a tick of an aggregator.
func (t *ticks) tickZone(zone int32) {
	m := &report{rows: make([]reportRow, len(t.cells))}
	for c, sum := range t.sums[zone].sums {
		m.rows[c].counts.Offered = uint64(sum + 0.5)
	}
	clear(t.sums[zone].sums)
	if !t.cut[zone] {
		t.send(t.o.Links.Aggregator, event{kind: nodeReports, from: zone, report: m})
	}
}

// tickTop ends a tick of the controller. All cells of a gate have one ratio.
func (t *ticks) tickTop() {
	m := &orders{rows: make([]orderRow, len(t.cells))}
	for i := range t.gates {
		g, sum := &t.gates[i], 0.0
		for _, c := range g.cells {
			sum += t.top.sums[c]
		}
		for _, c := range g.cells {
			m.rows[c] = orderRow{number: uint32(c), verdict: law.Verdict{Admit: law.Admit(sum, g.limit), Offered: sum}}
		}
	}
	clear(t.top.sums)
	if t.now < openAfter {
		return // not all have begun to report
	}
	for z := range t.sums {
		if !t.cut[z] {
			t.send(t.o.Links.Aggregator, event{kind: nodeDirected, to: int32(z), orders: m})
		}
	}
}

// pass passes a directive on to the hosts of a zone.
func (t *ticks) pass(ev *event) {
	for i := range t.hosts {
		h := &t.hosts[i]
		if h.zone != ev.to {
			continue
		}
		mine := &orders{rows: make([]orderRow, len(h.cells))}
		for k := range h.cells {
			mine.rows[k] = ev.orders.rows[h.cells[k].cell]
		}
		t.bytes(h.index, false, t.orderBytes(len(h.cells)))
		t.send(t.o.Links.Host, event{kind: hostDirected, to: h.index, orders: mine})
	}
}

// orderBytes is the size of a directive of the published design: for each cell
// its number and a ratio.
func (t *ticks) orderBytes(cells int) int { return bytesOf(bytesOf(cells) + bytesOf(8*cells)) }

// direct takes a directive in at a host.
func (t *ticks) direct(h *host, m *orders) {
	t.advance(h, t.now)
	l := &t.leaves[h.index]
	l.heard = t.now
	for k := range l.cells {
		l.cells[k].offered = m.rows[k].verdict.Offered
		if !t.tokens {
			h.cells[k].ratio = limiter.FixedRatio(law.Ratio(m.rows[k].verdict.Admit))
		}
	}
}

func (t *ticks) fault(f Fault, broken bool) {
	switch f.Kind {
	case ControllerDown, AllDown:
		t.down = broken
		clear(t.top.sums)
	case AggregatorDown: // here each zone has one
		t.cut[f.Index/t.o.Aggregators] = broken
	case ZoneCut:
		t.cut[f.Index] = broken
	case RegionCut, RegionDown:
		for z := range t.cut {
			if int(t.region(int32(z))) == f.Index {
				t.cut[z] = broken
			}
		}
	}
}
