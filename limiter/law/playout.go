package law

import "time"

// Playout lets counts that arrive in lumps go on evenly. What a child counted
// over a span is released, from its arrival on, over as long a time; so a node
// that reports at each T neither misses a child's report nor has two in one T,
// and nobody takes a lump for a peak. Totals stay exact. The zero value is
// empty. Not safe for concurrent use.
type Playout struct {
	next  time.Time // end of the current T
	cells []played
}

// played is one cell: what has been released, what will be at the end of the
// current T, and what at the end of the next one.
type played struct {
	released, due, later Counts
}

// Grow makes room for cells below n.
func (p *Playout) Grow(n int) {
	if n > len(p.cells) {
		p.cells = append(p.cells, make([]played, n-len(p.cells))...)
	}
}

// Share returns which share, in [0, 1], of what a child counted over the span
// that ends now is due in this T.
func (p *Playout) Share(now time.Time, span time.Duration) float64 {
	left := p.next.Sub(now)
	if left >= span {
		return 1
	}
	return max(0, left.Seconds()/span.Seconds())
}

// Add takes in what a child counted of a cell, of which that share is due in
// this T. Counts that are late are due at once, since when they came is not
// known.
func (p *Playout) Add(cell int, more Counts, share float64) {
	at := &p.cells[cell]
	if share == 1 || more.Late != 0 {
		at.due.add(more)
		return
	}
	part := more.part(share)
	at.due.add(part)
	at.later.add(more.less(part))
}

// Tick ends the current T: what is due is released. Call it at each T.
func (p *Playout) Tick(now time.Time) {
	p.next = now.Add(T)
	for i := range p.cells {
		at := &p.cells[i]
		if at.due == (Counts{}) && at.later == (Counts{}) {
			continue
		}
		at.released.add(at.due)
		at.due, at.later = at.later, Counts{}
	}
}

// Counts returns what was released of a cell.
func (p *Playout) Counts(cell int) Counts {
	if cell >= len(p.cells) {
		return Counts{}
	}
	return p.cells[cell].released
}

// Forget empties a cell before its index is given to another one.
func (p *Playout) Forget(cell int) {
	if cell < len(p.cells) {
		p.cells[cell] = played{}
	}
}

func (c *Counts) add(more Counts) {
	c.Offered += more.Offered
	c.Dropped += more.Dropped
	c.ShadowDropped += more.ShadowDropped
	c.Late += more.Late
}

func (c Counts) less(part Counts) Counts {
	return Counts{c.Offered - part.Offered, c.Dropped - part.Dropped, c.ShadowDropped - part.ShadowDropped, c.Late - part.Late}
}

// part returns a share of counts that are not late, in [0, 1], rounded down:
// of what is dropped no more than of what is offered.
func (c Counts) part(share float64) Counts {
	return Counts{
		Offered:       min(c.Offered, uint64(share*float64(c.Offered))),
		Dropped:       min(c.Dropped, uint64(share*float64(c.Dropped))),
		ShadowDropped: min(c.ShadowDropped, uint64(share*float64(c.ShadowDropped))),
	}
}
