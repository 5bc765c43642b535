package fleet

import (
	"slices"

	"grl/limiter/law"
)

// judge returns what counts of what a host says of one of its cells; weight is
// law.Usual of its report.
func (n *node) judge(k *kid, r reportRow, weight float32) law.Rate {
	if n.minimal || k.child.Usually(r.number, r.rate.Offered, weight) {
		return r.rate
	}
	cell := int32(k.child.Cell(r.number))
	if n.since[cell] == 0 {
		n.since[cell] = max(1, n.now)
	}
	rate := n.groups[k.group].Judge(&k.child, r.number, law.Claim{
		Offered: r.rate.Offered,
		Weight:  weight,
		First:   n.now-n.since[cell] <= law.Rejoin,
		Told:    &n.verdicts[cell].Verdict,
	})
	if rate.Excess > 0 && !k.holds(cell) {
		told := &n.verdicts[cell]
		k.held = append(k.held, heldCell{cell, law.HoldAt(k.child.Rate(int(cell)).Offered), law.Publish(told.Admit, told.Hot, 0)})
		if n.held[cell] == nil {
			held := law.HoldAt(n.groups[k.group].Rate(clock(n.now), int(cell)).Offered)
			n.held[cell] = &held
		}
	}
	return rate
}

// heldCell is a cell of which a host is told by what it claims itself.
type heldCell struct {
	cell int32
	held law.Held
	told law.Published
}

func (k *kid) holds(cell int32) bool {
	return slices.ContainsFunc(k.held, func(h heldCell) bool { return h.cell == cell })
}

// contained returns how many reports of children the decider's sums have.
func (v *voice) contained() uint64 {
	if v.decides() {
		return uint64(v.node.received)
	}
	return uint64(v.contains)
}

// verdictFor returns what a host is to be told of a cell that it holds, and
// whether that is still by what it claims.
func (v *voice) verdictFor(k *kid, h *heldCell) (law.Verdict, bool) {
	n := v.node
	here := n.rate(h.cell)
	if sum := n.held[h.cell]; sum != nil {
		if here = sum.Known(here, uint64(n.received), v.contained()); here.Excess == 0 {
			n.held[h.cell] = nil
		}
	}
	rate := h.held.Known(k.child.Rate(int(h.cell)), uint64(n.received), v.contained())
	c := &n.cells[h.cell]
	return n.verdicts[h.cell].For(rate, here.Excess, c.bucket.Limit(c.id.Instance)), rate.Excess > 0
}

// forHeld returns a directive for a host with such cells: m, with what it is told
// of these.
func (v *voice) forHeld(k *kid, m *orders) *orders {
	n := v.node
	mine := &orders{decider: v.decider, stamp: v.out}
	for _, r := range m.rows {
		if !k.holds(n.hosts[k.host].cells[r.number].cell) {
			mine.rows = append(mine.rows, r)
		}
	}
	kept := k.held[:0]
	for _, h := range k.held {
		own := true
		if v.tells(h.cell) {
			var verdict law.Verdict
			verdict, own = v.verdictFor(k, &h)
			h.told = law.Publish(verdict.Admit, verdict.Hot, 0)
			mine.rows = append(mine.rows, orderRow{number: n.cells[h.cell].number, verdict: verdict})
		}
		if own {
			kept = append(kept, h)
		}
	}
	k.held = kept
	return mine
}

// tells reports whether hosts are told of a cell by the voice.
func (v *voice) tells(cell int32) bool {
	return v.node.cells[cell].decider == v.decider && v.node.verdicts[cell].Admit > 0
}

// tellHeld tells a host at once of the cells of which it is told by what it
// claims, if what it now claims moves that far.
func (n *node) tellHeld(k *kid) {
	for d := range n.voices {
		v := &n.voices[d]
		if v.out == (law.Stamp{}) || !v.live() {
			continue
		}
		for i := range k.held {
			h := &k.held[i]
			if !v.tells(h.cell) {
				continue
			}
			if verdict, _ := v.verdictFor(k, h); h.told.Moved(verdict.Admit, verdict.Hot, 0) == law.Jumps {
				v.tell(k, v.forHeld(k, &orders{}))
				break
			}
		}
	}
}
