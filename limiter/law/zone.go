package law

import "time"

// Zone is a controller's sum over the aggregators of one zone. When an
// aggregator is lost, its hosts move: until they had time to, the zone counts
// what it counted before, or more if more is there.
type Zone struct {
	Sum
	before []Rate // the sums before the loss
	until  time.Time
}

// Lose takes a lost aggregator out of the zone's sum, whose hosts come to
// another one of the zone within that time: Handover if that one was there all
// along, else Rejoin.
func (z *Zone) Lose(now time.Time, c *Child, within time.Duration) {
	if c.Out() {
		return
	}
	before := make([]Rate, len(z.rates))
	for cell := range before {
		before[cell] = z.Rate(now, cell)
	}
	z.before, z.until = before, now.Add(within)
	z.Leave(c)
}

// Rate returns what is offered to a cell in the zone.
func (z *Zone) Rate(now time.Time, cell int) Rate {
	r := z.Sum.Rate(cell)
	if cell < len(z.before) {
		if !now.Before(z.until) {
			z.before = nil
		} else if b := z.before[cell]; b.Offered > r.Offered {
			return b
		}
	}
	return r
}

// AddRates adds what is offered to each cell in the zone; to must have room for
// all of them.
func (z *Zone) AddRates(now time.Time, to []Rate) {
	if !now.Before(z.until) {
		z.before = nil
	}
	for cell, r := range z.rates {
		if cell < len(z.before) && z.before[cell].Offered > r.Offered {
			r = z.before[cell]
		}
		to[cell].Offered += r.Offered
		to[cell].Excess += r.Excess
		to[cell].Hosts += r.Hosts
	}
}

// Forget empties a cell before its index is given to another one.
func (z *Zone) Forget(cell int) {
	z.Sum.Forget(cell)
	if cell < len(z.before) {
		z.before[cell] = Rate{}
	}
}

// WarmedUp reports whether a controller that began so long ago may publish,
// while it misses that many of the zones that were there before: a sum without
// them would let too much in.
func WarmedUp(since time.Duration, missing int) bool {
	return since >= WarmUpMost || since >= Handover && missing == 0
}
