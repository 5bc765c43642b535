package aggregator

import (
	"time"

	"grl/limiter"
	"grl/limiter/law"
)

// watch has the node stand in for each decider that was not heard for too long,
// until autonomy is over. It reports whether it stands in for any.
func (n *node) watch(now time.Time) bool {
	n.standing = false
	// A partial sum would let too much in.
	complete := n.mayReport(now) && now.Sub(n.emptied) >= law.Handover
	for _, d := range n.deciders {
		before := d.alone
		if d.alone = complete && n.silent(now, d); d.alone && !before {
			n.standIn(d)
		}
		n.standing = n.standing || d.alone
	}
	return n.standing
}

// silent reports whether a decider is one to stand in for now.
func (n *node) silent(now time.Time, d *decider) bool {
	age := now.Sub(d.heard) - law.DeciderSilent
	return d.taken != law.Stamp{} && age > 0 && age <= n.autonomy
}

// anySilent reports whether there is a decider to stand in for now.
func (n *node) anySilent(now time.Time) bool {
	for _, d := range n.deciders {
		if n.silent(now, d) {
			return true
		}
	}
	return false
}

// standIn takes over the cells of a decider.
func (n *node) standIn(d *decider) {
	n.cells.Each(func(i int, _ limiter.CellID) {
		if n.decides(d, i) {
			n.stand.Forget(i) // what was decided the last time is long past
			n.adopt(d, i)
		}
	})
}

// decides reports whether a cell is one of a decider's: it decided it, or
// decides the others of that scope.
func (n *node) decides(d *decider, i int) bool {
	if by := n.states[i].decider; by != nil {
		return by == d
	}
	b, _ := n.bucketOf(i)
	return n.scopes[b.Scope] == d
}

// adopt takes over one cell of a decider that is silent.
func (n *node) adopt(d *decider, i int) {
	s := &n.states[i]
	s.decider = d
	b, id := n.bucketOf(i)
	n.stand.Use(i, b, id)
	n.stand.Part(i, n.part(b, s))
	if s.version != 0 {
		n.stand.Resume(i, s.told.Admit)
	}
	n.moved.Touch(i)
}

// part returns the part of a cell's limit that this node may admit alone.
func (n *node) part(b *limiter.Bucket, s *cellState) law.Part {
	aggregators := max(1, n.aggregators(b.Scope))
	p := law.Part{Share: s.share, Admitted: s.given.Admitted(), Even: 1 / float64(aggregators)}
	if b.Scope == limiter.Zone && aggregators == 1 {
		p.Share = 1 // there is nobody else
	}
	return p
}

// aggregators returns how many there are in this node's instance of a scope, 0
// if it was not told.
func (n *node) aggregators(s limiter.Scope) int {
	sum := 0
	for _, z := range n.zones {
		if s == limiter.Global || z.GetRegion() == n.region && (s == limiter.Region || z.GetZone() == n.zone) {
			sum += int(z.GetAggregators())
		}
	}
	return sum
}

// decideAlone decides in place of the deciders that are silent, as a controller
// does: at each T, when full is true, all of their cells, and publishes what
// drifted; else those whose sums moved, and publishes what jumped. It reports
// whether there is a directive to pass on.
func (n *node) decideAlone(now time.Time, full bool) bool {
	if !n.watch(now) {
		return false
	}
	cells, least := n.moved.Look(), law.Jumps
	if full {
		cells, least = n.all(), law.Drifts
	}
	n.version++
	told := make(map[*decider]bool)
	consider := func(i int) {
		if s := &n.states[i]; n.moves(i, least) {
			s.tell(n.verdict(i), n.version)
			told[s.decider] = true
		}
	}
	for _, i := range cells {
		if d := n.states[i].decider; d != nil && d.alone {
			n.stand.Offer(now, i, n.Rate(i).Offered.RPS())
			consider(i)
		}
	}
	n.stand.Settle(now, consider)
	for _, d := range n.deciders {
		if d.alone && (full || told[d]) {
			d.strayed, d.rates = true, n.received
			next := d.stamp
			next.Step++
			d.publish(now, next, told[d])
			told[d] = true
		}
	}
	return len(told) > 0
}

// all returns the indices of all cells.
func (n *node) all() []int {
	all := make([]int, n.cells.Len())
	for i := range all {
		all[i] = i
	}
	return all
}

// moves reports whether what was decided alone of a cell has moved at least so
// far from what the hosts were told.
func (n *node) moves(i int, least law.Moved) bool {
	var told law.Published
	if s := &n.states[i]; s.version != 0 {
		told = law.Publish(s.told.Admit, s.told.Hot, s.told.Excess)
	}
	return told.Moved(n.stand.Admit(i), n.stand.Hot(i), n.Rate(i).Excess.RPS()) >= least
}

// verdict returns what was decided alone of a cell. The rate is the zone's own:
// a host compares itself with those that were summed up.
func (n *node) verdict(i int) law.Verdict {
	rate := n.Rate(i)
	return law.Verdict{
		Admit:   n.stand.Admit(i),
		Offered: rate.Offered.RPS(),
		Hosts:   float64(rate.Hosts),
		Excess:  rate.Excess.RPS(),
		Hot:     n.stand.Hot(i),
	}
}
