package wire

import (
	"errors"

	"grl/limiter"
	"grl/limiter/law"
	grlv1 "grl/proto/grl/v1"
)

// maxPending bounds the reports that wait for a directive to confirm them; the
// oldest two are merged, and then confirmed together.
const maxPending = 16

// Confirmed follows which counts a parent has confirmed with its directives, so
// that another parent can go on counting from there. The zero value has none.
// Not safe for concurrent use.
type Confirmed struct {
	before  map[limiter.CellID]law.Counts // confirmed on earlier streams
	names   []limiter.CellID              // of this stream
	counts  []law.Counts                  // by number: confirmed on this stream
	told    []bool                        // by number: counts holds something
	pending []pending                     // not confirmed yet, oldest first
}

// pending is a report that waits to be confirmed.
type pending struct {
	sequence uint64
	numbers  []uint32
	counts   []law.Counts
}

// Reopen begins a new stream: what was not confirmed on the last one is not.
func (c *Confirmed) Reopen() {
	before := make(map[limiter.CellID]law.Counts, len(c.before)+len(c.names))
	c.each(func(id limiter.CellID, n law.Counts) { before[id] = n })
	*c = Confirmed{before: before}
}

// Sent takes in a report that goes up.
func (c *Confirmed) Sent(m *grlv1.Report) {
	for _, name := range m.GetNames() {
		c.names = append(c.names, limiter.CellID{Bucket: name.GetBucket(), Instance: name.GetInstance(), Caller: name.GetCaller(), Class: name.GetClass()})
	}
	if len(m.GetCell()) == 0 || m.GetRatesOnly() {
		return
	}
	p := pending{m.GetSequence(), append([]uint32(nil), m.GetCell()...), make([]law.Counts, len(m.GetCell()))}
	for i := range p.counts {
		_, p.counts[i] = Row(m, i)
	}
	if len(c.pending) == maxPending {
		c.pending[1] = c.merge(c.pending[0], c.pending[1])
		c.pending = c.pending[1:]
	}
	c.pending = append(c.pending, p)
}

// merge returns a report that says all of two, the later one last.
func (c *Confirmed) merge(older, newer pending) pending {
	again := make([]bool, len(c.names))
	for _, number := range newer.numbers {
		again[number] = true
	}
	for i, number := range older.numbers {
		if !again[number] {
			newer.numbers = append(newer.numbers, number)
			newer.counts = append(newer.counts, older.counts[i])
		}
	}
	return newer
}

// Confirm says that the counts of the reports up to sequence have all gone up:
// Directive.counted_sequence.
func (c *Confirmed) Confirm(sequence uint64) {
	for len(c.pending) > 0 && c.pending[0].sequence <= sequence {
		if more := len(c.names) - len(c.counts); more > 0 {
			c.counts = append(c.counts, make([]law.Counts, more)...)
			c.told = append(c.told, make([]bool, more)...)
		}
		p := c.pending[0]
		for i, number := range p.numbers {
			c.counts[number], c.told[number] = p.counts[i], true
		}
		c.pending = c.pending[1:]
	}
}

// Forget drops the counts of cells that are no more, what waits for them too: a
// cell that comes back begins at 0, under another number.
func (c *Confirmed) Forget(dead func(limiter.CellID) bool) {
	for id := range c.before {
		if dead(id) {
			delete(c.before, id)
		}
	}
	for number, id := range c.names {
		if id != (limiter.CellID{}) && dead(id) {
			c.names[number] = limiter.CellID{}
		}
	}
}

// each calls f with what is confirmed, of earlier streams first.
func (c *Confirmed) each(f func(limiter.CellID, law.Counts)) {
	for id, n := range c.before {
		f(id, n)
	}
	for number, n := range c.counts {
		if c.told[number] && c.names[number] != (limiter.CellID{}) {
			f(c.names[number], n)
		}
	}
}

// Message returns the confirmed counts for a hello, of as many cells as fit
// into a message down, or only into one up if few is true.
func (c *Confirmed) Message(few bool) *grlv1.Report {
	const (
		columns = 48       // bytes of a cell, at most, with what its name needs besides
		rest    = 64 << 10 // of a hello
	)
	bytes := MaxDown - rest
	if few {
		bytes = MaxReport - rest
	}
	counts := make(map[limiter.CellID]law.Counts)
	c.each(func(id limiter.CellID, n law.Counts) { counts[id] = n })
	m := &grlv1.Report{}
	for id, n := range counts {
		bytes -= len(id.Bucket) + len(id.Instance) + len(id.Caller) + len(id.Class) + columns
		if bytes < 0 {
			break
		}
		AppendRow(m, uint32(len(m.Cell)), law.Rate{}, n)
		m.Names = append(m.Names, FromCellID(id))
	}
	return m
}

// ConfirmedCounts returns the counts of a hello's confirmed report, which may
// be nil. It returns an error if a name is too long, or missing.
func ConfirmedCounts(m *grlv1.Report) (map[limiter.CellID]law.Counts, error) {
	if len(m.GetCell()) != len(m.GetNames()) {
		return nil, errors.New("confirmed report with a name too few or too many")
	}
	counts := make(map[limiter.CellID]law.Counts, len(m.GetCell()))
	for i, name := range m.GetNames() {
		id, err := ToCellID(name)
		if err != nil {
			return nil, err
		}
		_, counts[id] = Row(m, i)
	}
	return counts, nil
}
