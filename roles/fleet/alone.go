package fleet

import "grl/limiter/law"

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
		v.law.Part(int(c), law.Part{Share: at.share, Admitted: at.Admitted(), Even: n.partOf(c)})
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
