package law

import "time"

// MicroRPS is a rate in millionths of a request per second. Nodes add rates as
// integers, so a sum is exact and does not depend on the order of adding.
type MicroRPS uint64

// Micro returns rps in millionths; a rate no host can have counts as the
// nearest one that it can.
func Micro(rps float64) MicroRPS {
	if !(rps > 0) {
		return 0
	}
	return MicroRPS(min(rps, MaxRPS)*1e6 + 0.5)
}

// MaxRPS is the highest rate of a cell that a node believes a child, as high as
// a limit may be. Ten thousand such children still add up without overflow.
const MaxRPS = 1e9

// RPS returns the rate in requests per second.
func (m MicroRPS) RPS() float64 { return float64(m) / 1e6 }

// Rate is what is offered to one cell now.
type Rate struct {
	Offered MicroRPS // as far as it is plausible: what is decided on
	Excess  MicroRPS // what hosts claim beyond that, see Judge
	Hosts   uint32   // with traffic
}

// Counts are cumulative since the boot of the node that reports them.
type Counts struct {
	Offered       uint64
	Dropped       uint64
	ShadowDropped uint64
	// Late is the part of Offered that was counted over too long a span to say
	// in which second it came.
	Late uint64
}

// Sum holds, cell by cell, the sum of what its children said last, and counts
// each child's requests once. Cells are indices that the owner hands out; the
// zero value is empty. Not safe for concurrent use.
type Sum struct {
	rates  []Rate
	counts []Counts
	held   map[int32][]holder // cell → numbers with an excess
}

// Child is what one child of a node said last, by the numbers under which the
// child names its cells.
type Child struct {
	slots []slot
	bound map[int32]uint32 // cell → the one number that stands for it
	out   bool             // its rates are not in the sum now
}

// slot is one cell of a child.
type slot struct {
	cell   int32   // index in the sum; -1: the node has forgotten the cell
	usual  float32 // of a host, in millionths of a request per second; 0: not known
	rate   Rate
	counts Counts
}

// Grow makes room for cells below n.
func (s *Sum) Grow(n int) {
	if n <= len(s.rates) {
		return
	}
	s.rates = append(s.rates, make([]Rate, n-len(s.rates))...)
	s.counts = append(s.counts, make([]Counts, n-len(s.counts))...)
}

// Rate returns the sum of the rates of a cell.
func (s *Sum) Rate(cell int) Rate {
	if cell >= len(s.rates) {
		return Rate{}
	}
	return s.rates[cell]
}

// Counts returns what was counted in a cell since the node's boot.
func (s *Sum) Counts(cell int) Counts {
	if cell >= len(s.counts) {
		return Counts{}
	}
	return s.counts[cell]
}

// Forget empties a cell before its index is given to another one. Children
// that still name it must forget it too.
func (s *Sum) Forget(cell int) {
	if cell < len(s.rates) {
		s.rates[cell], s.counts[cell] = Rate{}, Counts{}
		delete(s.held, int32(cell))
	}
}

// Names returns how many cells the child has named.
func (c *Child) Names() int { return len(c.slots) }

// Name gives the child's next number to a cell, with what was counted for it
// before: only what comes on top is counted here. A cell that has a number
// already goes over to the new one.
func (c *Child) Name(cell int, before Counts) {
	c.slots = append(c.slots, slot{cell: -1, counts: before})
	c.bind(uint32(len(c.slots)-1), cell)
}

// Rename binds a number again whose cell was forgotten.
func (c *Child) Rename(number uint32, cell int) { c.bind(number, cell) }

// bind makes number the one that stands for a cell, -1 for none. The rate of
// the number that did goes over, so that a child which names a cell again and
// again is in the sum once; else one child could make the sum wrap.
func (c *Child) bind(number uint32, cell int) {
	if cell < 0 {
		return
	}
	at := &c.slots[number]
	if old, ok := c.bound[int32(cell)]; ok && old != number {
		was := &c.slots[old]
		at.rate, at.usual = was.rate, was.usual
		was.cell, was.rate = -1, Rate{}
	}
	at.cell = int32(cell)
	if c.bound == nil {
		c.bound = make(map[int32]uint32)
	}
	c.bound[int32(cell)] = number
}

// Cell returns the cell behind one of the child's numbers, -1 if forgotten.
func (c *Child) Cell(number uint32) int { return int(c.slots[number].cell) }

// Said returns what the child said last of one of its numbers.
func (c *Child) Said(number uint32) (Rate, Counts) {
	return c.slots[number].rate, c.slots[number].counts
}

// Forget unbinds the child's numbers for the dead cells. It returns nothing to
// the sum: the owner forgets the cells there too.
func (c *Child) Forget(dead func(cell int) bool) {
	for i := range c.slots {
		if at := &c.slots[i]; at.cell >= 0 && dead(int(at.cell)) {
			delete(c.bound, at.cell)
			at.cell, at.rate = -1, Rate{}
		}
	}
}

// Fold takes in what a child now says of one cell, and returns what was counted
// since it last said so. The number must be named and its cell known. Late says
// that all of it came over too long a span. Saying the same again changes
// nothing; the caller refuses what is older.
func (s *Sum) Fold(c *Child, number uint32, r Rate, n Counts, late bool) Counts {
	s.FoldRate(c, number, r)
	at := &c.slots[number]
	more := n.since(at.counts)
	if late {
		more.Late = more.Offered
	}
	at.counts = n
	sum := &s.counts[at.cell]
	sum.Offered += more.Offered
	sum.Dropped += more.Dropped
	sum.ShadowDropped += more.ShadowDropped
	sum.Late += more.Late
	return more
}

// FoldRate is Fold for a report that says rates only: counts stay as they were.
func (s *Sum) FoldRate(c *Child, number uint32, r Rate) {
	at := &c.slots[number]
	if !c.out {
		sum := &s.rates[at.cell]
		sum.Offered += r.Offered - at.rate.Offered
		sum.Excess += r.Excess - at.rate.Excess
		sum.Hosts += r.Hosts - at.rate.Hosts
	}
	at.rate = r
}

// MostCounted returns the highest count that a node believes a host to have
// added over a span: MaxRPS over it, and a T for what was under way; over a span
// of 0, which is not known, over a week. More would make sums wrap, and with
// them what others counted.
func MostCounted(span time.Duration) uint64 {
	if span <= 0 {
		span = 7 * 24 * time.Hour
	}
	return uint64(MaxRPS * (span + T).Seconds())
}

// Exceeds reports whether the child has counted more than most since it last
// said what it counted of one of its numbers.
func (c *Child) Exceeds(number uint32, n Counts, most uint64) bool {
	if max(n.Offered, n.Dropped, n.ShadowDropped) <= most {
		return false
	}
	more := n.since(c.slots[number].counts)
	return max(more.Offered, more.Dropped, more.ShadowDropped) > most
}

// since returns what was counted since before.
func (c Counts) since(before Counts) Counts {
	if c.Offered < before.Offered || c.Dropped < before.Dropped || c.ShadowDropped < before.ShadowDropped || c.Late < before.Late {
		return c // the child had forgotten the cell and counts it anew
	}
	return c.less(before)
}

// Leave takes the child's rates out of the sum; its counts stay counted.
func (s *Sum) Leave(c *Child) {
	if c.out {
		return
	}
	c.out = true
	for _, at := range c.slots {
		if at.cell >= 0 {
			s.rates[at.cell].Offered -= at.rate.Offered
			s.rates[at.cell].Excess -= at.rate.Excess
			s.rates[at.cell].Hosts -= at.rate.Hosts
		}
	}
}

// Return puts back the rates of a child that had left.
func (s *Sum) Return(c *Child) {
	if !c.out {
		return
	}
	c.out = false
	for number, at := range c.slots {
		if at.cell >= 0 {
			s.rates[at.cell].Offered += at.rate.Offered
			s.rates[at.cell].Excess += at.rate.Excess
			s.rates[at.cell].Hosts += at.rate.Hosts
			if at.rate.Excess > 0 {
				s.hold(c, uint32(number))
			}
		}
	}
}

// Out reports whether the child's rates are not in the sum.
func (c *Child) Out() bool { return c.out }
