package fleet

import (
	"time"

	"grl/limiter"
	"grl/limiter/law"
)

// leaf is what a host knows.
type leaf struct {
	cells    []law.Host // as of host.cells
	last     []int      // offered in the last interval, by cell
	since    []int      // offered since the last report, under the minimal law
	budget   law.Budget
	deciders []heard // by decider
	node     int32   // the aggregator it is joined to
	stream   uint32  // counts its streams
	sequence uint64  // of its last report on this stream
	joined   bool
	full     time.Duration // its last report of all cells
	hot      time.Duration // its last report of hot cells
}

// heard is what a host heard of one decider.
type heard struct {
	stamp     law.Stamp
	at        time.Duration
	contained uint64 // the host's report in its sums
}

// sprout makes a host one that has just started.
func (t *tree) sprout(h *host) {
	l := &t.leaves[h.index]
	*l = leaf{
		cells:    make([]law.Host, len(h.cells)),
		last:     make([]int, len(h.cells)),
		since:    make([]int, len(h.cells)),
		deciders: make([]heard, 1+len(t.regions)),
		node:     l.node,
		stream:   l.stream,
		full:     t.now - t.chance.below(law.T),
	}
}

// join opens a host's stream to its aggregator.
func (t *tree) join(h *host) {
	l := &t.leaves[h.index]
	l.stream++
	l.sequence, l.joined = 0, true
	for k := range l.cells {
		l.cells[k].Reopen()
	}
	t.sure(t.o.Links.Host, event{kind: hostJoins, to: l.node, from: h.index, stream: l.stream})
}

// renew puts a new host in the place of one, whose stream closes.
func (t *tree) renew(h *host) {
	l := &t.leaves[h.index]
	t.sure(t.o.Links.Host, event{kind: hostCloses, to: l.node, from: h.index, stream: l.stream})
	l.node = h.aggregator
	t.sprout(h)
	if !t.nodes[l.node].up {
		t.lose(h)
		return
	}
	t.join(h)
}

// lose takes in that a host's stream closed: it goes to another aggregator of
// its zone, or waits.
func (t *tree) lose(h *host) {
	l := &t.leaves[h.index]
	l.joined = false
	first := h.zone * int32(t.o.Aggregators)
	for i := range int32(t.o.Aggregators) {
		if n := first + (l.node-first+i)%int32(t.o.Aggregators); t.nodes[n].up {
			l.node = n
			t.join(h)
			return
		}
	}
	t.sure(redial+t.chance.below(redial), event{kind: hostLost, to: h.index, stream: l.stream})
}

// redial is how long a node waits, at least and for the half, before it opens
// its stream again.
const redial = 50 * time.Millisecond

func (t *tree) drop(h *host, k, n int, _ time.Duration) int {
	at := &h.cells[k]
	if at.ratio == 0 {
		return 0
	}
	dropped := 0
	coin, ratio := at.coin, at.ratio
	for range n {
		var drop bool
		if drop, coin = coin.Flip(ratio, t.coins.Uint64()); drop {
			dropped++
		}
	}
	at.coin = coin
	return dropped
}

func (t *tree) estimate(h *host, k int) (rate, ratio float64) {
	return t.leaves[h.index].cells[k].Rate(), float64(h.cells[k].ratio) / float64(limiter.One)
}

func (t *tree) timer(h *host) {
	l := &t.leaves[h.index]
	for k := range l.cells {
		l.last[k] = h.cells[k].offered
		t.measure(l, k)
	}
	if l.joined {
		t.say(h, l)
	}
	for k := range l.cells {
		t.apply(h, l, k)
	}
}

// measure takes in what was offered to a cell in the last interval. The minimal
// law does so for the whole time since the last report.
func (t *tree) measure(l *leaf, k int) {
	c := &l.cells[k]
	n, span := l.last[k], t.o.Delta
	if t.minimal {
		l.since[k] += n
		if !t.due(l) {
			return
		}
		n, span = l.since[k], t.now-l.full
		l.since[k] = 0
	}
	if n > 0 || c.Rate() > 0 {
		c.Step(float64(n), span)
	}
}

// due reports whether a report of all cells is due.
func (t *tree) due(l *leaf) bool { return t.now-l.full >= law.T-t.o.Delta/2 }

// say sends a report if one is due, or if something must be known at once.
func (t *tree) say(h *host, l *leaf) {
	full := t.due(l)
	hot := !full && t.now-l.hot >= law.HotT-t.o.Delta/2
	if full {
		l.full, l.hot = t.now, t.now
	}
	var rows []reportRow
	news, hots := false, false
	for k := range l.cells {
		c := &l.cells[k]
		switch {
		case full:
			if c.Rate() == c.Sent() && c.Rate() == 0 {
				continue
			}
		case hot && c.Verdict.Hot:
			hots = true
		case !t.minimal && c.Event():
			news = true
		default:
			continue
		}
		rows = append(rows, rowOf(h, c, k))
	}
	switch {
	case full:
	case hots:
		l.hot = t.now
	case !news || !l.budget.Take(clock(t.now)):
		return
	}
	l.sequence++
	for _, r := range rows {
		l.cells[r.number].Reported(l.sequence)
	}
	m := &report{rows: rows, rates: !full}
	t.bytes(h.index, true, t.reportSize(h, l, m))
	t.send(t.o.Links.Host, event{
		kind: hostReports, to: l.node, from: h.index, stream: l.stream, number: l.sequence, report: m,
	})
}

func rowOf(h *host, c *law.Host, k int) reportRow {
	r := reportRow{number: uint32(k), rate: law.Rate{Offered: law.Micro(c.Rate())}}
	if r.rate.Offered > 0 {
		r.rate.Hosts = 1
	}
	total := h.cells[k].total
	r.counts = law.Counts{Offered: total.Offered, Dropped: total.Dropped}
	return r
}

// apply sets the ratio of one cell for what comes next.
func (t *tree) apply(h *host, l *leaf, k int) {
	c := &l.cells[k]
	if c.Verdict.Admit == 0 {
		return
	}
	d := &l.deciders[t.cells[h.cells[k].cell].decider]
	ratio := law.Ratio(c.Verdict.Admit)
	if !t.minimal {
		ratio = c.Ratio(float64(l.last[k]), t.o.Delta, d.contained, t.guard)
	}
	if ratio > 0 && !t.cells[h.cells[k].cell].bucket.HoldOnSilence {
		ratio *= law.Fading(t.now-d.at, law.Hold, law.Decay)
	}
	h.cells[k].ratio = limiter.FixedRatio(ratio)
}

// direct takes a directive in at a host.
func (t *tree) direct(h *host, ev *event) {
	l := &t.leaves[h.index]
	m := ev.orders
	d := &l.deciders[m.decider]
	if ev.stream != l.stream || d.stamp.After(m.stamp) {
		return
	}
	*d = heard{m.stamp, t.now, ev.number}
	t.advance(h, t.now) // until now the old ratios held
	for _, r := range m.rows {
		l.cells[r.number].Verdict = r.verdict
	}
	for k := range l.cells {
		if t.cells[h.cells[k].cell].decider == m.decider {
			t.apply(h, l, k)
		}
	}
}
