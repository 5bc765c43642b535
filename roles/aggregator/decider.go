package aggregator

import (
	"time"

	"grl/limiter"
	"grl/limiter/law"
	grlv1 "grl/proto/grl/v1"
	"grl/proto/uplink"
	"grl/proto/wire"
)

// globalDecider is the name of the decider of the whole fleet; a region's is
// the name of the region.
const globalDecider = "global"

// decider is one controller, or region, whose directives the node takes. What
// was taken from it is kept apart from what the hosts were told: while it is
// silent, the node decides alone.
type decider struct {
	name string

	taken law.Stamp // of the parents; zero: none yet
	heard time.Time // when a parent spoke last; zero: too long ago to matter

	alone   bool // the node decides in its place
	strayed bool // and hosts were told so, since it was heard last

	stamp law.Stamp // of what the hosts are told
	turn  uint64    // counts the directives to hosts
	cells bool      // the last of them has some, be it of other hosts
	trail law.Trail // of them
	// Of the reports of hosts: how many the sums of the last directive
	// contained, 0 if that is not known, and how many of their counts have gone
	// up.
	rates, counts uint64
}

// cellState is what was decided of one cell.
type cellState struct {
	decider *decider    // nil: nothing yet
	given   law.Verdict // by a parent
	share   float64     // of this node in given.Offered, by a parent; 0: not known
	told    law.Verdict // to the hosts: given, or what this node decided alone
	version uint64      // of node.version when it was told; 0: never
	since   time.Time   // when a host first said a rate of it; zero: none did
	held    *law.Held   // the sum, while hosts claim too much of it; nil: none does
}

// tell makes v what the hosts are told of the cell.
func (s *cellState) tell(v law.Verdict, version uint64) { s.told, s.version = v, version }

// epochs has the highest epoch heard of each decider.
type epochs map[string]uint64

func (e epochs) raise(decider string, epoch uint64) {
	if epoch > e[decider] {
		e[decider] = epoch
	}
}

// decider returns the decider of a name.
func (n *node) decider(name string) *decider {
	d := n.deciders[name]
	if d == nil {
		d = &decider{name: name}
		n.deciders[name] = d
	}
	return d
}

// direct takes a directive of a parent. It returns false, and changes nothing,
// if a later one was taken from its decider before. A long directive comes in
// several messages with the same stamp.
func (n *node) direct(now time.Time, p *uplink.Parent, m *grlv1.Directive) bool {
	d, stamp := n.decider(m.GetDecider()), wire.Stamp(m)
	if d.taken.After(stamp) && !d.returnsAs(stamp) {
		return false
	}
	d.taken, d.heard, d.alone = stamp, now, false
	n.heard.raise(d.name, stamp.Epoch)
	d.rates, _ = p.Rates(m.GetReportSequence())
	if counts, ok := p.Counted(m.GetCountedSequence()); ok {
		d.counts = counts
	}
	if len(m.GetCell()) > 0 || d.strayed {
		n.version++
		n.kept++
	}
	n.follow(d)
	for row, v := range wire.Verdicts(m) {
		if i, ok := n.cell(p.Cell(m.GetCell()[row])); ok { // else of a configuration that is still on its way
			n.give(now, i, d, v, float64(wire.At(m.GetShare(), row)))
		}
	}
	d.publish(now, stamp, len(m.GetCell()) > 0)
	return true
}

// returnsAs reports whether a parent that was away may go on with that stamp
// although its step is lower: it counts the steps it took alone, and others may
// have taken more. Its word wins over what was decided here.
func (d *decider) returnsAs(s law.Stamp) bool {
	return d.strayed && s.Epoch == d.taken.Epoch && s.Sequence == d.taken.Sequence
}

// follow tells the hosts again what the parent said last, if they were told
// something else while it was away.
func (n *node) follow(d *decider) {
	if !d.strayed {
		return
	}
	d.strayed = false
	for i := range n.states {
		if s := &n.states[i]; s.decider == d && s.told != s.given {
			s.tell(s.given, n.version)
		}
	}
}

// give takes in what a parent decided of a cell.
func (n *node) give(now time.Time, i int, d *decider, v law.Verdict, share float64) {
	s := &n.states[i]
	s.decider, s.given, s.share = d, v, share
	s.tell(v, n.version)
	n.scopes[n.buckets[n.cells.ID(i).Bucket].Scope] = d
	if n.active[i].IsZero() {
		n.active[i] = now
	}
}

// publish makes what was decided the next directive to the hosts; cells says
// whether there are any in it.
func (d *decider) publish(now time.Time, s law.Stamp, cells bool) {
	d.stamp, d.cells = s, cells
	d.turn++
	d.trail.Note(now, s)
}

// speaks reports whether hosts are told of a decider: it was heard lately, or
// the node stands in for it. Else nothing is published, and the hosts hold,
// then decay, then open.
func (d *decider) speaks(now time.Time) bool {
	return d.alone || d.turn > 0 && now.Sub(d.heard) <= law.DeciderSilent
}

// farAhead is how many directives a host that comes from another aggregator may
// know of that have not come here yet.
const farAhead = 100

// noticeUsedUp takes in which directives a host has taken. One far ahead of what
// the parents say under the same epoch is of a controller that lost its store
// since: that epoch is used up.
func (n *node) noticeUsedUp(m *grlv1.Report) {
	for _, t := range m.GetTaken() {
		d := n.deciders[t.GetDecider()]
		if d != nil && t.GetEpoch() == d.taken.Epoch && t.GetEpoch() < wire.MaxEpoch && t.GetSequence() > d.taken.Sequence+farAhead {
			n.hostsHeard.raise(d.name, t.GetEpoch()+1)
			n.heard.raise(d.name, t.GetEpoch()+1)
		}
	}
}

// outdated reports whether hosts would refuse a directive for its epoch without
// the parent knowing. It happens when this node is as new as the parent's
// store: only hosts remember the epochs before.
func (n *node) outdated(p *uplink.Parent, m *grlv1.Directive) bool {
	name := m.GetDecider()
	return n.hostsHeard[name] > max(m.GetEpoch(), p.Said(name))
}

// telling is what a host was told of a decider last on its stream.
type telling struct {
	stamp   law.Stamp
	turn    uint64
	version uint64 // of the cells
	at      time.Time
	cells   bool // it carried some
}

// directives returns what a host has not been told yet. One that is passed over
// is looked at again with the next directive, so it hears of each decider about
// every 2 T at least.
func (n *node) directives(now time.Time, h *host) []*grlv1.Directive {
	var out []*grlv1.Directive
	for _, d := range n.deciders {
		told := h.told[d]
		held := n.heldMoved(d, h)
		if !d.speaks(now) || d.turn == told.turn && len(held) == 0 {
			continue
		}
		m := &grlv1.Directive{Decider: d.name}
		n.fill(m, d, h, told.version)
		for _, cell := range held {
			if n.states[cell].version <= told.version { // else it is there
				n.tell(m, h, cell)
			}
		}
		cells := len(m.GetCell()) > 0
		if !cells && !d.renews(now, told) {
			continue
		}
		stamp := d.stampFor(h, told.stamp)
		m.Epoch, m.Sequence, m.Step = stamp.Epoch, stamp.Sequence, stamp.Step
		m.ReportSequence = h.rates.Contained(d.rates)
		m.CountedSequence = h.counts.Contained(d.counts)
		h.told[d] = telling{stamp, d.turn, n.version, now, cells}
		out = append(out, wire.SplitDirective(m)...)
	}
	return out
}

// renews reports whether a directive without cells is passed on to a host.
func (d *decider) renews(now time.Time, told telling) bool {
	if d.stamp.Salt() != told.stamp.Salt() {
		return true // it turns for all hosts at once
	}
	return law.Renews(now.Sub(told.at), told.cells, d.cells)
}

// stampFor returns the stamp of the directive to a host that was told another
// one before. The host refuses one that is older; so where what is told now
// comes after what it knows, but its stamp does not, it gets the next step.
func (d *decider) stampFor(h *host, told law.Stamp) law.Stamp {
	for _, t := range h.last.GetTaken() {
		s := wire.Stamp(t)
		if t.GetDecider() != d.name || s.Epoch != d.stamp.Epoch || !s.After(told) {
			continue // of another epoch, it waits for its controller
		}
		// It comes from another aggregator that was alone and took more steps,
		// or, if this one is alone too, had heard more before.
		if d.alone || s.Sequence == d.stamp.Sequence {
			told = s
		}
	}
	if told.After(d.stamp) {
		told.Step++
		return told
	}
	return d.stamp
}

// fill adds the cells of a directive that moved since a version.
func (n *node) fill(m *grlv1.Directive, d *decider, h *host, since uint64) {
	if since == n.version || h.config == nil {
		return
	}
	for service := range h.config.Limited() {
		for _, cell := range n.services[service] {
			s := &n.states[cell]
			if s.version <= since || s.decider != d {
				continue
			}
			n.tell(m, h, cell)
		}
	}
}

// bucketOf returns the bucket of a cell.
func (n *node) bucketOf(cell int) (*limiter.Bucket, limiter.CellID) {
	id := n.cells.ID(cell)
	return n.buckets[id.Bucket], id
}
