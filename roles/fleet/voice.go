package fleet

import (
	"time"

	"grl/limiter/law"
)

// voice is what a node publishes for one decider: what it decides itself, what
// its parent said, or, while that is silent, what it decides alone.
type voice struct {
	node    *node
	decider int8
	cells   []int32 // that the decider decides and the node's hosts have

	own   bool // the node is the decider
	alone bool // it stands in for it
	since time.Duration

	taken    law.Stamp // of the decider
	out      law.Stamp // published last
	heard    time.Duration
	contains uint32 // reports of children that the decider's sums contain
	watched  bool   // a nodeListens is on its way

	law       law.Decider
	rates     []law.Rate      // by cell, as of the decision
	told      []law.Published // by cell
	moved     marks
	published time.Duration
	changed   []int32 // room
}

func (v *voice) init(n *node, decider int8) {
	*v = voice{node: n, decider: decider, published: -law.T}
	for i := range n.cells {
		if n.cells[i].decider == decider && n.has(int32(i)) {
			v.cells = append(v.cells, int32(i))
		}
	}
}

// decides reports whether the node itself decides.
func (v *voice) decides() bool { return v.own || v.alone }

// live reports whether what is known may be told to a child that comes.
func (v *voice) live() bool {
	return v.decides() || v.node.now-v.heard <= law.DeciderSilent
}

// prepare makes room for deciding, which most voices never do.
func (v *voice) prepare() {
	n := v.node
	v.law = law.Decider{}
	v.rates = make([]law.Rate, len(n.cells))
	v.told = make([]law.Published, len(n.cells))
	v.moved = marks{in: make([]bool, len(n.cells))}
	for _, c := range v.cells {
		v.law.Use(int(c), n.cells[c].bucket, n.cells[c].id)
	}
}

// decide decides the cells that moved, and publishes what jumped.
func (v *voice) decide() {
	cells := v.weigh(v.moved.list)
	v.moved.clear()
	if !v.node.mayPublish() {
		return
	}
	for _, c := range cells {
		if v.told[c].Moved(v.law.Admit(int(c)), v.hot(c)) == law.Jumps {
			v.publish(cells, law.Jumps)
			return
		}
	}
}

// renew decides all cells and publishes what drifted, as at each T.
func (v *voice) renew() {
	n := v.node
	if v.alone && n.now-v.since > law.Autonomy {
		v.alone = false
	}
	if !v.decides() || len(v.cells) == 0 {
		return
	}
	v.weigh(v.cells)
	v.moved.clear()
	if !n.mayPublish() {
		return
	}
	least := law.Drifts
	if n.o.Loss > 0 {
		least = law.Still // streams repeat what is lost, here this does
	}
	v.publish(v.cells, least)
}

// weigh decides cells, and returns them and those that share limits with them.
func (v *voice) weigh(cells []int32) []int32 {
	n := v.node
	now := clock(n.now)
	v.changed = v.changed[:0]
	for _, c := range cells {
		v.rates[c] = n.rate(c)
		v.law.Offer(now, int(c), v.rates[c].Offered.RPS())
		if !n.cells[c].bucket.Divides() {
			v.changed = append(v.changed, c)
		}
	}
	v.law.Settle(now, func(i int) { v.changed = append(v.changed, int32(i)) })
	return v.changed
}

func (v *voice) hot(c int32) bool { return !v.node.minimal && v.law.Hot(int(c)) }

// publish makes a directive of those cells that moved at least so far.
func (v *voice) publish(cells []int32, least law.Moved) {
	n := v.node
	v.published = n.now
	if v.own {
		v.taken.Sequence++
		v.out = v.taken
	} else {
		v.out.Step++
	}
	var rows []int32
	for _, c := range cells {
		admit, hot := v.law.Admit(int(c)), v.hot(c)
		if v.told[c].Moved(admit, hot) < least {
			continue
		}
		v.told[c] = law.Publish(admit, hot)
		n.verdicts[c].Verdict = law.Verdict{
			Admit:   float64(float32(admit)), // as on the wire
			Offered: v.rates[c].Offered.RPS(),
			Hosts:   float64(v.rates[c].Hosts),
			Hot:     hot,
		}
		rows = append(rows, c)
	}
	if n.o.Watch.Directive != nil {
		n.o.Watch.Directive(v.directive(rows))
	}
	v.speak(rows, n.kids...)
}

// directive returns what is published, for who watches.
func (v *voice) directive(rows []int32) Directive {
	n := v.node
	d := Directive{At: n.now, Node: n.name, Stamp: v.out}
	for _, k := range n.kids {
		if !k.closed {
			d.Present++
		}
		if k.begun && !k.child.Out() {
			d.Zones++
		}
	}
	for _, c := range rows {
		d.Rows = append(d.Rows, DirectiveRow{int(c), n.verdicts[c].Verdict})
	}
	return d
}

// speak tells children what is known of cells. A host that has none of them
// hears of it when its turn has come.
func (v *voice) speak(cells []int32, kids ...*kid) {
	n := v.node
	byService := make(map[int32]*orders)
	empty := &orders{decider: v.decider, stamp: v.out}
	for _, k := range kids {
		if k.closed {
			continue
		}
		if k.host < 0 {
			v.speakTo(k, cells)
			continue
		}
		service := n.hosts[k.host].service
		m := byService[service]
		if m == nil {
			if len(byService) == 0 {
				v.forHosts(cells, byService)
			}
			if m = byService[service]; m == nil {
				m = empty
			}
		}
		if m == empty && n.now-k.told[v.decider] < law.T-2*law.PublishGap {
			continue
		}
		k.told[v.decider] = n.now
		contained := v.containedOf(k)
		n.bytes(k.host, false, n.ordersSize(&n.hosts[k.host], k, contained, m))
		n.send(n.o.Links.Host, event{
			kind: hostDirected, to: k.host, from: n.index, stream: k.stream, number: uint64(contained), orders: m,
		})
	}
}

// containedOf returns the report of a child that the decider's sums contain.
func (v *voice) containedOf(k *kid) uint32 {
	if v.decides() {
		return k.sequence
	}
	return k.contained(v.contains)
}

// forHosts makes the directives for the hosts of each service.
func (v *voice) forHosts(cells []int32, byService map[int32]*orders) {
	n := v.node
	for _, i := range cells {
		c := &n.cells[i]
		if n.verdicts[i].Admit == 0 {
			continue
		}
		m := byService[c.service]
		if m == nil {
			m = &orders{decider: v.decider, stamp: v.out}
			byService[c.service] = m
		}
		m.rows = append(m.rows, orderRow{number: c.number, verdict: n.verdicts[i].Verdict})
	}
}

// speakTo tells a node.
func (v *voice) speakTo(k *kid, cells []int32) {
	n := v.node
	to := n.nodes[k.node]
	m := &orders{decider: v.decider, stamp: v.out}
	for _, i := range cells {
		at := &n.verdicts[i]
		if at.Admit == 0 || !to.has(i) {
			continue
		}
		r := orderRow{number: uint32(i), verdict: at.Verdict}
		if at.Offered > 0 {
			said, _ := k.child.Said(uint32(i))
			r.share = min(1, said.Offered.RPS()/at.Offered)
		}
		m.rows = append(m.rows, r)
	}
	if to.cut {
		return
	}
	n.send(n.o.Links.Aggregator, event{
		kind: nodeDirected, to: k.node, from: n.index, stream: k.stream, number: uint64(v.containedOf(k)), orders: m,
	})
}

// take takes in a directive of the parent, and passes it on.
func (n *node) take(ev *event) {
	m := ev.orders
	v := &n.voices[m.decider]
	if ev.stream != n.stream || v.own || v.taken.After(m.stamp) {
		return
	}
	v.taken, v.heard, v.alone = m.stamp, n.now, false
	if r := n.receipts[ev.number%uint64(len(n.receipts))]; ev.number != 0 && uint64(r.sequence) == ev.number {
		v.contains = r.received
	}
	cells := make([]int32, 0, len(m.rows))
	for _, r := range m.rows {
		n.verdicts[r.number] = verdict{r.verdict, r.share}
		cells = append(cells, int32(r.number))
	}
	if m.stamp.After(v.out) {
		v.out = m.stamp
	} else {
		v.out.Step++ // while it was alone it published later ones
	}
	v.speak(cells, n.kids...)
	v.watch()
}

// watch has the node notice when the decider falls silent.
func (v *voice) watch() {
	if n := v.node; !v.watched {
		v.watched = true
		n.sure(v.heard+law.DeciderSilent-n.now, event{
			kind: nodeListens, to: n.index, stream: n.life, number: uint64(v.decider),
		})
	}
}

// listen goes on alone if the decider has been silent for long.
func (n *node) listen(ev *event) {
	if ev.stream != n.life {
		return
	}
	v := &n.voices[ev.number]
	v.watched = false
	if n.now-v.heard < law.DeciderSilent {
		v.watch()
		return
	}
	v.alone, v.since = true, n.now
	v.prepare()
	for _, c := range v.cells {
		at := &n.verdicts[c]
		part := at.share
		if part == 0 {
			part = n.partOf(c)
		}
		v.law.Part(int(c), part, at.Offered)
		if at.Admit != 0 {
			v.law.Resume(int(c), at.Admit)
		}
	}
	v.renew()
}

// partOf returns the part of the aggregators in a cell's instance that are
// below the node.
func (n *node) partOf(cell int32) float64 {
	mine, all := 0, 0
	for _, a := range n.nodes[:n.aggs] {
		if !a.has(cell) {
			continue
		}
		all++
		if a.index == n.index || a.parent == n.index {
			mine++
		}
	}
	return float64(mine) / float64(all)
}

// has reports whether hosts below the node may have a cell.
func (n *node) has(cell int32) bool {
	c := &n.cells[cell]
	switch {
	case n.parent < 0:
		return true
	case int(n.index) >= n.aggs:
		return c.region < 0 || c.region == n.region
	default:
		return (c.region < 0 || c.region == n.region) && (c.zone < 0 || c.zone == n.zone)
	}
}
