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
	if rate.Excess > 0 && h.held[cell] == nil {
		if h.held == nil {
			h.held = make(map[int]*heldCell)
		}
		h.held[cell] = &heldCell{
			held:  law.HoldAt(h.child.Rate(cell).Offered),
			told:  law.Publish(s.told.Admit, s.told.Hot, 0),
			since: now,
		}
		if s.held == nil {
			held := law.HoldAt(n.sum.Rate(cell).Offered)
			s.held = &held
		}
	}
	return rate
}

// heldCell is a cell of which a host is told by what it claims itself.
type heldCell struct {
	held  law.Held
	told  law.Published
	since time.Time
	shown bool // by outliers
}

// outlierAfter is how long a host claims more than is plausible before that is
// more than a surge which others have not told yet.
const outlierAfter = 10 * law.T

// outliers returns the hosts that have for so long claimed too much of some cell,
// each once, and with what.
func (n *node) outliers(now time.Time) []outlier {
	var out []outlier
	for h := range n.hosts {
		for cell, held := range h.held {
			if rate := h.child.Rate(cell); rate.Excess > 0 && !held.shown && now.Sub(held.since) >= outlierAfter {
				held.shown = true
				out = append(out, outlier{h.hello.GetNode(), n.cells.ID(cell).Bucket, rate})
			}
		}
	}
	return out
}

// outlier is a host that claims too much of a bucket.
type outlier struct {
	node, bucket string
	rate         law.Rate
}

// countOutliers returns how many hosts claim too much of some cell now.
func (n *node) countOutliers() int {
	count := 0
	for h := range n.hosts {
		for cell := range h.held {
			if h.child.Rate(cell).Excess > 0 {
				count++
				break
			}
		}
	}
	return count
}

// verdictFor returns what a host is to be told of a cell that it holds, and
// whether that is still by what it claims.
func (n *node) verdictFor(h *host, cell int, held *heldCell) (v law.Verdict, own bool) {
	b, id := n.bucketOf(cell)
	s := &n.states[cell]
	here := n.Rate(cell)
	if s.held != nil {
		if here = s.held.Known(here, n.received, s.decider.rates); here.Excess == 0 {
			s.held = nil
		}
	}
	rate := held.held.Known(h.child.Rate(cell), n.received, s.decider.rates)
	return s.told.For(rate, here.Excess, b.Limit(id.Instance)), rate.Excess > 0
}

// heldMoved returns the cells of a decider of which a host is told by what it
// claims itself, and what holds now has moved since; between two directives only
// those that jumped.
func (n *node) heldMoved(d *decider, h *host) []int {
	var moved []int
	least := law.Drifts
	if d.turn == h.told[d].turn {
		least = law.Jumps
	}
	for cell, held := range h.held {
		if s := &n.states[cell]; s.decider != d || s.version == 0 {
			continue
		}
		v, own := n.verdictFor(h, cell, held)
		if held.told.Moved(v.Admit, v.Hot, 0) >= least {
			moved = append(moved, cell)
		} else if !own && least == law.Drifts {
			delete(h.held, cell) // it was told what all are
		}
	}
	return moved
}

// tell adds what a host is told of a cell to a directive.
func (n *node) tell(m *grlv1.Directive, h *host, cell int) {
	v := n.states[cell].told
	v.Excess = 0
	if held := h.held[cell]; held != nil {
		v, _ = n.verdictFor(h, cell, held)
		held.told = law.Publish(v.Admit, v.Hot, 0)
	}
	wire.AppendVerdict(m, h.numbers.Number(cell, n.cells.ID(cell), &m.Names), v, 0)
}
