package fleet

import "grl/limiter/law"

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
	empty := &orders{decider: v.decider, stamp: v.out}
	byService := v.forHosts(cells)
	for _, k := range kids {
		if k.closed {
			continue
		}
		if k.host < 0 {
			v.speakTo(k, cells)
			continue
		}
		m := byService[n.hosts[k.host].service]
		if m != nil && len(k.held) > 0 {
			m = v.forHeld(k, m)
		}
		if m == nil {
			last := k.told[v.decider]
			if !law.Renews(n.now-last.at, last.cells, len(cells) > 0) {
				continue
			}
			m = empty
		}
		v.tell(k, m)
	}
}

// tell sends a directive to a host.
func (v *voice) tell(k *kid, m *orders) {
	n := v.node
	k.told[v.decider] = telling{n.now, len(m.rows) > 0}
	contained := v.containedOf(k)
	n.bytes(k.host, false, n.ordersSize(&n.hosts[k.host], k, contained, m))
	n.send(n.o.Links.Host, event{
		kind: hostDirected, to: k.host, from: n.index, stream: k.stream, number: uint64(contained), orders: m,
	})
}

// containedOf returns the report of a child that the decider's sums contain.
func (v *voice) containedOf(k *kid) uint32 {
	if v.decides() {
		return k.sequence
	}
	return k.contained(v.contains)
}

// forHosts returns the directives for the hosts of each service that has some
// of the cells; nil at a node without hosts.
func (v *voice) forHosts(cells []int32) map[int32]*orders {
	n := v.node
	if int(n.index) >= n.aggs {
		return nil
	}
	byService := make(map[int32]*orders)
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
	return byService
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
