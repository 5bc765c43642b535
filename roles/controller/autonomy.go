package controller

import (
	"time"

	"grl/limiter"
	"grl/limiter/law"
)

// watch notices that the parent is silent. For some time the node then decides
// global cells alone, with the part of each limit that was its own; then nobody
// does, and those below go their own stages of silence.
func (n *node) watch(now time.Time) {
	r := n.region
	if r == nil || r.heard.IsZero() {
		return
	}
	silent := now.Sub(r.heard) - law.DeciderSilent
	alone := silent > 0 && silent <= r.autonomy && n.mayPublish(now)
	begins := alone && !r.alone
	r.alone, r.global.mute = alone, silent > 0 && !alone
	if begins {
		n.standIn()
	}
}

// alone reports whether the node decides global cells although it has a parent.
func (n *node) alone() bool { return n.region != nil && n.region.alone }

// standIn begins to decide global cells where the parent left off.
func (n *node) standIn() {
	n.region.strayed = true
	n.cells.Each(func(i int, id limiter.CellID) {
		if n.voice(i) != n.region.global {
			return
		}
		n.decider.Forget(i) // what was decided the last time is long past
		n.use(i, n.states[i].bucket, id)
		if admit := n.region.passed[i].said.Admit; admit > 0 {
			n.decider.Resume(i, admit)
		}
		n.dirty.Touch(i)
	})
}

// takePart takes as this region's part of a global limit its last share, or as
// much as its aggregators are among those of the fleet.
func (n *node) takePart(i int) {
	at := &n.region.passed[i]
	n.decider.Part(i, law.Part{Share: at.share, Admitted: at.said.Admitted(), Even: n.even()})
}

// part returns this region's part of a cell's limit.
func (n *node) part(at *passed) float64 {
	if at.share > 0 {
		return at.share
	}
	return n.even()
}

// even returns the part of a region of whose share nothing is known.
func (n *node) even() float64 {
	var own, all float64
	for _, z := range n.sizes.zones {
		all += float64(z.GetAggregators())
		if z.GetRegion() == n.region.name {
			own += float64(z.GetAggregators())
		}
	}
	if own == 0 {
		return 1 // nobody is below; there is nothing to admit
	}
	return own / all
}

// verdict returns what is published of a cell, and the child's share of what the
// cell's whole instance is offered.
func (n *node) verdict(v *voice, c *child, i int) (law.Verdict, float64) {
	s := &n.states[i]
	own := law.Verdict{Admit: s.published.Admit, Offered: s.rate.Offered.RPS(), Hosts: float64(s.rate.Hosts), Excess: s.rate.Excess.RPS(), Hot: s.published.Hot}
	switch {
	case n.region == nil || v != n.region.global:
		return own, c.share(i, own.Offered)
	case n.region.alone:
		// The sums are of this region; a share is of the fleet, so that one that
		// is left alone in turn takes no more than its part of this one's.
		return own, c.share(i, own.Offered) * n.part(&n.region.passed[i])
	default:
		said := n.region.passed[i].said
		return said, c.share(i, said.Offered)
	}
}

// voice returns who decides a cell.
func (n *node) voice(i int) *voice {
	if n.region != nil && n.states[i].bucket.Scope == limiter.Global {
		return n.region.global
	}
	return n.own
}

// decides reports whether this node is the one that decides a voice's cells now.
func (n *node) decides(v *voice) bool { return v == n.own || n.alone() }
