package fleet

import (
	"time"

	"grl/limiter"
	"grl/limiter/law"
)

// tree is the law of grl, and the minimal one: hosts, aggregators and
// controllers as the roles make them of limiter/law.
type tree struct {
	*engine
	minimal bool
	guard   float64
	leaves  []leaf  // by host
	nodes   []*node // children before their parents; the global controller is the last
	aggs    int     // the first so many nodes are aggregators, zone by zone
	epochs  []uint64
}

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

// report is what a host, or a node, says to the node above it.
type report struct {
	rows    []reportRow
	rates   bool // rates alone, counts stay as they were
	warming bool
}

type reportRow struct {
	number uint32 // index among the host's cells; of a node's report, the cell
	rate   law.Rate
	counts law.Counts
}

// orders is a directive on its way. Hosts of one service share it.
type orders struct {
	decider int8
	stamp   law.Stamp
	rows    []orderRow
}

type orderRow struct {
	number  uint32 // as in reports
	verdict law.Verdict
	share   float64 // the receiving node's, of what is offered
}

func newTree(e *engine, minimal bool) *tree {
	t := &tree{engine: e, minimal: minimal, guard: e.o.Guard, leaves: make([]leaf, len(e.hosts))}
	if minimal {
		t.guard = 0
	}
	t.plant()
	t.epochs = make([]uint64, 1+len(e.regions))
	for i := range t.leaves {
		t.leaves[i].node = e.hosts[i].aggregator
		t.sprout(&e.hosts[i])
	}
	return t
}

// plant makes the nodes.
func (t *tree) plant() {
	e := t.engine
	t.aggs = e.o.Zones * e.o.Aggregators
	regional := len(e.regions) > 1
	global := int32(t.aggs)
	if regional {
		global += int32(len(e.regions))
	}
	for i := range t.aggs {
		zone := int32(i / e.o.Aggregators)
		p := post{index: int32(i), name: e.zones[zone], zone: zone, region: e.region(zone), parent: global}
		if regional {
			p.parent = int32(t.aggs) + p.region
		}
		t.nodes = append(t.nodes, newNode(t, p))
	}
	if regional {
		for r := range e.regions {
			p := post{index: int32(len(t.nodes)), name: e.regions[r], region: int32(r), parent: global}
			t.nodes = append(t.nodes, newNode(t, p))
			t.nodes[p.index].voices[1+r].own = true
		}
	}
	t.nodes = append(t.nodes, newNode(t, post{index: global, name: "global", parent: -1}))
	t.nodes[global].voices[0].own = true
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

func (t *tree) start() {
	for _, n := range t.nodes {
		t.begin(n)
	}
	for i := range t.hosts {
		t.join(&t.hosts[i])
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

func (t *tree) drop(h *host, k, n int, _, _ time.Duration) int {
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

func (t *tree) happen(ev *event) {
	switch ev.kind {
	case hostDirected:
		t.direct(&t.hosts[ev.to], ev)
		return
	case hostLost:
		if l := &t.leaves[ev.to]; l.stream == ev.stream {
			t.lose(&t.hosts[ev.to])
		}
		return
	}
	n := t.nodes[ev.to]
	if !n.up {
		if ev.kind == hostJoins {
			t.sure(t.o.Links.Host, event{kind: hostLost, to: ev.from, stream: ev.stream})
		}
		return
	}
	switch ev.kind {
	case hostJoins, nodeJoins:
		n.join(ev)
	case hostReports, nodeReports:
		n.report(ev)
	case hostCloses, nodeLost:
		n.leave(ev)
	case nodeDirected:
		n.take(ev)
	case nodeTicks:
		n.tick(ev)
	case nodeWakes:
		n.wake(ev)
	case nodeListens:
		n.listen(ev)
	case nodeRejoins:
		n.rejoin(ev)
	}
}

// fault breaks something, or makes it whole.
func (t *tree) fault(f Fault, broken bool) {
	for _, n := range t.nodes {
		if !t.hit(f, n) {
			continue
		}
		switch {
		case f.Kind == ZoneCut || f.Kind == RegionCut:
			n.cut = broken
			if !broken {
				t.sure(t.chance.below(2*redial), event{kind: nodeRejoins, to: n.index, stream: n.life})
			}
		case broken:
			t.end(n)
		default:
			t.begin(n)
		}
	}
}

// hit reports whether a fault is of that node.
func (t *tree) hit(f Fault, n *node) bool {
	aggregator := int(n.index) < t.aggs
	switch f.Kind {
	case AllDown:
		return true
	case ControllerDown:
		return n.parent < 0
	case RegionDown, RegionCut:
		return !aggregator && n.parent >= 0 && int(n.region) == f.Index
	case AggregatorDown:
		return int(n.index) == f.Index
	default:
		return aggregator && int(n.zone) == f.Index
	}
}

// end stops the process of a node: its streams close.
func (t *tree) end(n *node) {
	n.up = false
	for _, k := range n.kids {
		if k.host >= 0 {
			t.sure(t.o.Links.Host, event{kind: hostLost, to: k.host, stream: k.stream})
		}
	}
	if n.parent >= 0 {
		t.sure(t.o.Links.Aggregator, event{kind: nodeLost, to: n.parent, from: n.index, stream: n.stream})
	}
}

// begin starts the process of a node, which knows nothing but the names of
// those that were there before.
func (t *tree) begin(n *node) {
	fresh := newNode(t, n.post)
	fresh.stream, fresh.life, fresh.cut = n.stream, n.life+1, n.cut
	fresh.up, fresh.began = true, t.now
	for d := range n.voices {
		if n.voices[d].own {
			t.epochs[d]++
			fresh.voices[d].own = true
			fresh.voices[d].prepare()
			fresh.voices[d].taken = law.Stamp{Epoch: t.epochs[d]}
		}
	}
	t.nodes[n.index] = fresh
	t.sure(t.chance.below(law.T), event{kind: nodeTicks, to: n.index, stream: fresh.life})
	if fresh.parent >= 0 {
		t.sure(0, event{kind: nodeRejoins, to: n.index, stream: fresh.life})
	}
	for _, other := range t.nodes {
		if other.parent == n.index && other.up && t.now > 0 {
			t.sure(t.chance.below(2*redial), event{kind: nodeRejoins, to: other.index, stream: other.life})
		}
	}
}
