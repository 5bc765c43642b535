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
		if v.told[c].Moved(v.law.Admit(int(c)), v.hot(c), v.rates[c].Excess.RPS()) == law.Jumps {
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
		if v.told[c].Moved(admit, hot, v.rates[c].Excess.RPS()) < least {
			continue
		}
		v.told[c] = law.Publish(admit, hot, v.rates[c].Excess.RPS())
		n.verdicts[c].Verdict = law.Verdict{
			Admit:   float64(float32(admit)), // as on the wire
			Offered: v.rates[c].Offered.RPS(),
			Hosts:   float64(v.rates[c].Hosts),
			Excess:  v.rates[c].Excess.RPS(),
			Hot:     hot,
		}
		rows = append(rows, c)
	}
	if n.o.Watch.Directive != nil {
		n.o.Watch.Directive(v.directive(rows))
	}
	v.speak(rows, n.kids...)
}
