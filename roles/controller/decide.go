package controller

import (
	"slices"
	"time"

	"grl/limiter"
	"grl/limiter/law"
)

// offered returns the sum of a cell over the zones.
func (n *node) offered(now time.Time, i int) law.Rate {
	var sum law.Rate
	for _, z := range n.order {
		r := z.sum.Rate(now, i)
		sum.Offered += r.Offered
		sum.Excess += r.Excess
		sum.Hosts += r.Hosts
	}
	return sum
}

// sumUp forms the sums of all cells over the zones: zone by zone, since memory
// is read fastest in its order.
func (n *node) sumUp(now time.Time) {
	n.sums = append(n.sums[:0], make([]law.Rate, n.cells.Len())...)
	for _, z := range n.order {
		z.sum.AddRates(now, n.sums)
	}
}

// decide decides the cells whose sums may have moved, and publishes at once
// what jumped. It reports whether there is a directive to send.
func (n *node) decide(now time.Time) bool {
	n.watch(now)
	moved := n.withTwins(n.dirty.Look())
	if len(moved) > n.cells.Len()/8 {
		n.sumUp(now)
		for _, i := range moved {
			n.offer(now, i, n.sums[n.original(i)])
		}
	} else {
		for _, i := range moved {
			n.offer(now, i, n.offered(now, n.original(i)))
		}
	}
	decided := n.settle(now, moved)
	said := false
	for _, v := range n.voices {
		jumps := func(i int) bool { return n.moved(v, i) == law.Jumps }
		if n.mayPublish(now) && n.decides(v) && slices.ContainsFunc(decided, jumps) {
			n.publish(now, v, decided, law.Jumps)
			said = true
		}
	}
	return said
}

// renew decides all cells and publishes what drifted, as at each T. It reports
// whether there is a directive to send.
func (n *node) renew(now time.Time) bool {
	n.ticks++
	n.recorder.judge(now)
	n.noteSilence(now)
	n.age(now)
	if n.stage != nil && n.stage.watch.since.IsZero() {
		n.stage.watch.step(now)
	}
	n.watch(now)
	n.sumUp(now)
	n.dirty.Look()
	n.offerAll(now)
	n.decider.Settle(now, func(i int) { n.moving = append(n.moving, i) })
	if n.region != nil {
		n.region.tick(now, n.received)
	}
	if n.ticks%lookEvery == 0 {
		for _, v := range n.voices {
			v.looks++
		}
	}
	if !n.mayPublish(now) {
		return false
	}
	for _, v := range n.voices {
		if n.decides(v) {
			n.publish(now, v, n.moving, law.Drifts)
		}
	}
	return true
}

// offerAll takes in what all cells are offered, notes in moving which of them
// moved by that, and forgets the idle ones. It looks at each cell once, while
// it is at hand.
func (n *node) offerAll(now time.Time) {
	n.moving = n.moving[:0]
	dead := make(map[int]limiter.CellID)
	for i := range n.states {
		s := &n.states[i]
		if s.bucket == nil {
			continue
		}
		n.offer(now, i, n.sums[n.original(i)])
		if s.rate.Offered == 0 && n.running(now)-s.active > idleCell {
			dead[i] = n.cells.ID(i)
			continue
		}
		if v := n.voice(i); n.decides(v) && n.moved(v, i) >= law.Drifts {
			n.moving = append(n.moving, i)
		}
	}
	n.forget(dead)
}

// offer takes in what a cell is offered now.
func (n *node) offer(now time.Time, i int, rate law.Rate) {
	s := &n.states[i]
	if s.bucket == nil {
		return // forgotten since it was touched
	}
	s.rate = rate
	if rate.Offered > 0 || s.active == 0 {
		s.active = n.running(now)
	}
	if n.decides(n.voice(i)) {
		n.decider.Offer(now, i, rate.Offered.RPS())
	}
}

// running returns how long the node has been running, above 0.
func (n *node) running(now time.Time) time.Duration { return max(1, now.Sub(n.began)) }

// settle decides the cells that share limits with those that were offered to,
// and returns all that were decided.
func (n *node) settle(now time.Time, offered []int) []int {
	decided := offered
	n.decider.Settle(now, func(i int) { decided = append(decided, i) })
	return decided
}

// moved says how far what was decided of one of the voice's cells is from what
// was published.
func (n *node) moved(v *voice, i int) law.Moved {
	if n.states[i].bucket == nil || n.voice(i) != v {
		return law.Still
	}
	return n.states[i].published.Moved(n.decider.Admit(i), n.decider.Hot(i), n.states[i].rate.Excess.RPS())
}

// publish makes a directive of those of the voice's cells that moved at least so
// far.
func (n *node) publish(now time.Time, v *voice, cells []int, least law.Moved) {
	n.version++
	for _, i := range cells {
		if n.moved(v, i) >= least {
			s := &n.states[i]
			s.published, s.version = law.Publish(n.decider.Admit(i), n.decider.Hot(i), s.rate.Excess.RPS()), n.version
			v.version = n.version
		}
	}
	v.say(now, n.stamp(v), n.received, n.confirmed())
}

// stamp returns that of the next directive of a voice: a step further where this
// node stands in for the decider.
func (n *node) stamp(v *voice) law.Stamp {
	switch {
	case v != n.own:
		return law.Stamp{Epoch: v.stamp.Epoch, Sequence: v.stamp.Sequence, Step: v.stamp.Step + 1}
	case v.stamp.Epoch != n.epoch:
		return law.Stamp{Epoch: n.epoch, Sequence: 1}
	default:
		return law.Stamp{Epoch: n.epoch, Sequence: v.stamp.Sequence + 1}
	}
}

// confirmed returns of how many of the reports received the children need not
// keep the counts any more.
func (n *node) confirmed() uint64 {
	if n.region != nil {
		return n.region.counts
	}
	return n.received
}
