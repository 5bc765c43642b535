package wire

import (
	"errors"

	"grl/limiter"
	"grl/limiter/law"
	grlv1 "grl/proto/grl/v1"
)

// maxPending bounds the reports that wait for a directive to confirm them;
// older ones are merged.
const maxPending = 64

// Confirmed follows which counts a parent has confirmed with its directives, so
// that another parent can go on counting from there. The zero value has none.
// Not safe for concurrent use.
type Confirmed struct {
	counts  map[limiter.CellID]law.Counts
	names   []limiter.CellID // of this stream
	pending []pending        // not confirmed yet, oldest first
}

type pending struct {
	sequence uint64
	counts   map[limiter.CellID]law.Counts
}

// Reopen begins a new stream: what was not confirmed on the last one is not.
func (c *Confirmed) Reopen() { c.names, c.pending = nil, nil }

// Sent takes in a report that goes up.
func (c *Confirmed) Sent(m *grlv1.Report) {
	for _, name := range m.GetNames() {
		c.names = append(c.names, limiter.CellID{Bucket: name.GetBucket(), Instance: name.GetInstance(), Caller: name.GetCaller()})
	}
	if len(m.GetCell()) == 0 {
		return
	}
	if len(c.pending) == maxPending {
		for id, n := range c.pending[1].counts {
			c.pending[0].counts[id] = n
		}
		c.pending[1].counts = c.pending[0].counts
		c.pending = c.pending[1:]
	}
	p := pending{m.GetSequence(), make(map[limiter.CellID]law.Counts, len(m.GetCell()))}
	for i, number := range m.GetCell() {
		_, p.counts[c.names[number]] = Row(m, i)
	}
	c.pending = append(c.pending, p)
}

// Confirm says that the parent's sums contain the reports up to sequence.
func (c *Confirmed) Confirm(sequence uint64) {
	for len(c.pending) > 0 && c.pending[0].sequence <= sequence {
		if c.counts == nil {
			c.counts = make(map[limiter.CellID]law.Counts)
		}
		for id, n := range c.pending[0].counts {
			c.counts[id] = n
		}
		c.pending = c.pending[1:]
	}
}

// Forget drops the counts of cells that are no more.
func (c *Confirmed) Forget(dead func(limiter.CellID) bool) {
	for id := range c.counts {
		if dead(id) {
			delete(c.counts, id)
		}
	}
}

// Message returns the confirmed counts for a hello, of at most MaxCells cells
// if few is true.
func (c *Confirmed) Message(few bool) *grlv1.Report {
	m := &grlv1.Report{}
	for id, n := range c.counts {
		if few && len(m.Cell) == MaxCells {
			break
		}
		AppendRow(m, uint32(len(m.Cell)), law.Rate{}, n)
		m.Names = append(m.Names, FromCellID(id))
	}
	Trim(m)
	return m
}

// ConfirmedCounts returns the counts of a hello's confirmed report; nil for
// none.
func ConfirmedCounts(m *grlv1.Report) (map[limiter.CellID]law.Counts, error) {
	counts := make(map[limiter.CellID]law.Counts, len(m.GetCell()))
	if len(m.GetCell()) != len(m.GetNames()) {
		return nil, errors.New("confirmed report with a name too few or too many")
	}
	for i, name := range m.GetNames() {
		id, err := ToCellID(name)
		if err != nil {
			return nil, err
		}
		_, counts[id] = Row(m, i)
	}
	return counts, nil
}
