package law

import (
	"time"

	"grl/limiter"
)

// Decider decides the cells of one node, a controller or whoever stands in for
// one: for each, from the rate offered and the limit, the share admitted. Cells
// are indices that the owner hands out. The zero value has none. Not safe for
// concurrent use.
type Decider struct {
	cells   []decided
	shared  map[limiter.CellID]*shared
	open    []*shared // offered to since the last Settle
	admits  []float64 // room
	demands []Demand  // room
}

// decided is one cell.
type decided struct {
	bucket  *limiter.Bucket
	limit   float64 // of the cell, or of what it shares; 0: it blocks
	part    Part    // of the limit that this node may admit
	gate    Gate    // of a cell that is alone
	shared  *shared // nil: alone
	mean    Mean    // of a cell that shares a limit
	offered float64 // to it, last
	rank    int
	weight  float64
	admit   float64
	hot     bool
}

// shared is a limit that several cells share.
type shared struct {
	id    limiter.CellID
	gate  Gate
	cells []int
	open  bool // in Decider.open
}

// Use says which bucket a cell belongs to. What is known of the cell stays if
// it was alone, or shared its limit with others, before and after.
func (d *Decider) Use(i int, b *limiter.Bucket, id limiter.CellID) {
	for len(d.cells) <= i {
		d.cells = append(d.cells, decided{})
	}
	at := &d.cells[i]
	if at.bucket == nil {
		at.admit, at.part = 1, Part{Even: 1}
	}
	at.bucket, at.limit = b, b.Limit(id.Instance)
	if b.Block {
		at.limit = 0
	}
	d.join(i, b, id)
}

// join puts a cell among those that share its limit.
func (d *Decider) join(i int, b *limiter.Bucket, id limiter.CellID) {
	at := &d.cells[i]
	at.rank, at.weight = b.Rank(id.Class), b.Weight(id.Caller)
	if at.shared != nil && (!b.Divides() || at.shared.id != b.Gate(id)) {
		d.leave(i)
	}
	if at.shared != nil || !b.Divides() {
		return
	}
	if d.shared == nil {
		d.shared = make(map[limiter.CellID]*shared)
	}
	s := d.shared[b.Gate(id)]
	if s == nil {
		s = &shared{id: b.Gate(id)}
		d.shared[s.id] = s
	}
	s.cells = append(s.cells, i)
	at.shared = s
}

// leave takes a cell out of those that share its limit.
func (d *Decider) leave(i int) {
	s := d.cells[i].shared
	d.cells[i].shared, d.cells[i].mean = nil, Mean{}
	kept := s.cells[:0]
	for _, c := range s.cells {
		if c != i {
			kept = append(kept, c)
		}
	}
	if s.cells = kept; len(kept) == 0 {
		delete(d.shared, s.id)
	}
}

// Forget empties a cell before its index is given to another one.
func (d *Decider) Forget(i int) {
	if i >= len(d.cells) || d.cells[i].bucket == nil {
		return
	}
	if d.cells[i].shared != nil {
		d.leave(i)
	}
	d.cells[i] = decided{}
}

// Part is what a node knows of its part of a cell's limit when it goes on alone.
type Part struct {
	// Share is what of the cell's load came from the node, in [0, 1]; 0: nothing,
	// or it is not known.
	Share float64
	// Admitted is the rate that the whole cell admitted, in requests per second.
	// Of a limit that cells share, the part is what of all their admitted rates
	// came from the node.
	Admitted float64
	// Even is the part, in (0, 1], of a node of whose share nothing is known.
	Even float64
}

// Part says that this node may admit only a part of the cell's limit. The
// default is all of it.
func (d *Decider) Part(i int, p Part) { d.cells[i].part = p }

// of returns the part of a limit that no other cell shares.
func (p Part) of() float64 {
	if p.Share > 0 {
		return min(p.Share, 1)
	}
	return p.Even
}

// Admitted returns the rate that what a verdict speaks of admits.
func (v *Verdict) Admitted() float64 { return v.Offered * min(v.Admit, 1) }

// Resume takes in what another decider had decided of the cell until now.
func (d *Decider) Resume(i int, admit float64) {
	at := &d.cells[i]
	at.admit = admit
	if at.shared != nil {
		at.shared.gate.Resume(at.shared.gate.Active() || admit < 1)
		return
	}
	at.gate.Resume(admit < 1)
}

// Reset forgets all rates and decisions, not the buckets.
func (d *Decider) Reset() {
	for i := range d.cells {
		at := &d.cells[i]
		at.gate, at.mean, at.hot, at.admit = Gate{}, Mean{}, false, 1
		if at.shared != nil {
			at.shared.gate = Gate{}
		}
	}
}

// Offer takes in the rate offered to a cell, in requests per second. A cell
// that is alone is decided with it, one that shares a limit by Settle.
func (d *Decider) Offer(now time.Time, i int, rps float64) {
	at := &d.cells[i]
	switch {
	case at.limit == 0:
		return // hosts block by the configuration, whatever is offered
	case at.shared == nil:
		at.admit, at.hot = 1, false
		if limit := at.limit * at.part.of(); limit > 0 {
			at.admit = at.gate.Step(now, rps, limit)
			at.hot = at.gate.Hot()
		}
		return
	}
	at.mean.Step(now, rps, at.limit, period(at.shared.gate.Hot()))
	at.offered = rps
	if !at.shared.open {
		at.shared.open = true
		d.open = append(d.open, at.shared)
	}
}

// Settle decides the cells that share limits of which one was offered to, and
// calls f for each of them.
func (d *Decider) Settle(now time.Time, f func(i int)) {
	for _, s := range d.open {
		s.open = false
		d.settle(now, s)
		for _, i := range s.cells {
			f(i)
		}
	}
	d.open = d.open[:0]
}

func (d *Decider) settle(now time.Time, s *shared) {
	if len(s.cells) == 0 {
		return // all forgotten since
	}
	var offered, mine, whole float64
	d.demands = d.demands[:0]
	for _, i := range s.cells {
		at := &d.cells[i]
		offered += at.offered
		mine += at.part.Share * at.part.Admitted
		whole += at.part.Admitted
		rate := at.mean.Rate()
		if at.offered == 0 {
			rate = 0 // a caller that is gone keeps nothing from the others
		}
		d.demands = append(d.demands, Demand{Rate: rate, Weight: at.weight, Rank: at.rank})
	}
	first := &d.cells[s.cells[0]]
	limit := first.limit * first.part.Even
	if mine > 0 {
		limit = first.limit * min(1, mine/whole)
	}
	s.gate.Step(now, offered, limit)
	d.admits = Divide(d.admits[:0], limit, first.bucket.Share, d.demands)
	for n, i := range s.cells {
		at := &d.cells[i]
		at.admit, at.hot = d.admits[n], s.gate.Hot()
		if !s.gate.Active() {
			at.admit = max(at.admit, 1)
		}
	}
}

// Admit returns what was decided of a cell: limit / offered where it is alone.
func (d *Decider) Admit(i int) float64 { return d.cells[i].admit }

// Hot reports whether reports of a cell are wanted sooner.
func (d *Decider) Hot(i int) bool { return d.cells[i].hot }

// Limit returns the limit of a cell, or of what it shares, in requests per
// second; 0: it blocks.
func (d *Decider) Limit(i int) float64 { return d.cells[i].limit }
