package aggregator

import (
	"time"

	"grl/limiter/law"
	grlv1 "grl/proto/grl/v1"
	"grl/proto/wire"
)

// judge returns what counts of a host's claim, in a report of that weight.
func (n *node) judge(now time.Time, h *host, number uint32, claim law.MicroRPS, weight float32) law.Rate {
	if !h.child.Usually(number, claim, weight) {
		return n.judgeUnusual(now, h, number, claim, weight)
	}
	rate := law.Rate{Offered: claim}
	if claim > 0 {
		rate.Hosts = 1
	}
	return rate
}

// judgeUnusual is judge for a claim that is far above what is usual for the host.
func (n *node) judgeUnusual(now time.Time, h *host, number uint32, claim law.MicroRPS, weight float32) law.Rate {
	cell := h.child.Cell(number)
	s := &n.states[cell]
	if s.since.IsZero() {
		s.since = now
	}
	rate := n.sum.Judge(&h.child, number, law.Claim{
		Offered: claim,
		Weight:  weight,
		// The hosts of a new aggregator, or bucket, need so long to be there.
		First: now.Sub(s.since) <= law.Rejoin,
		Told:  &s.told,
	})
	if rate.Excess > 0 {
		n.hold(h, cell)
	}
	return rate
}

// hold notes that a host is told of a cell by what it claims itself.
func (n *node) hold(h *host, cell int) {
	if h.held == nil {
		h.held = make(map[int]law.Published)
	}
	if _, ok := h.held[cell]; !ok {
		h.held[cell] = law.Published{}
	}
}

// verdictFor returns what a host is to be told of a cell.
func (n *node) verdictFor(h *host, cell int) law.Verdict {
	b, id := n.bucketOf(cell)
	here := n.Rate(cell).Excess
	return n.states[cell].told.For(h.child.Rate(cell), here, b.Limit(id.Instance))
}

// heldMoved returns the cells of a decider of which a host is told by what it
// claims itself, and not yet what holds now.
func (n *node) heldMoved(d *decider, h *host) []int {
	var moved []int
	for cell, told := range h.held {
		if s := &n.states[cell]; s.decider != d || s.version == 0 {
			continue
		}
		v := n.verdictFor(h, cell)
		if told.Moved(v.Admit, v.Hot, 0) != law.Still {
			moved = append(moved, cell)
		} else if h.child.Rate(cell).Excess == 0 {
			delete(h.held, cell) // it was told what all are
		}
	}
	return moved
}

// tell adds what a host is told of a cell to a directive.
func (n *node) tell(m *grlv1.Directive, h *host, cell int) {
	v := n.states[cell].told
	v.Excess = 0
	if _, ok := h.held[cell]; ok {
		v = n.verdictFor(h, cell)
		h.held[cell] = law.Publish(v.Admit, v.Hot, 0)
	}
	wire.AppendVerdict(m, h.numbers.Number(cell, n.cells.ID(cell), &m.Names), v, 0)
}
