package uplink

import (
	"context"
	"maps"
	"time"

	"grl/limiter"
	"grl/limiter/law"
	grlv1 "grl/proto/grl/v1"
	"grl/proto/wire"
)

// Parent is a node's side of its streams to one parent, one after the other:
// what the parent was told of each cell, which reports contained what, what it
// confirmed, and how it names cells. Create it with NewParent. Not safe for
// concurrent use, but for Wake, Beat and Feed.
type Parent struct {
	wake chan struct{} // something moved; capacity 1
	beat chan struct{} // T has passed; capacity 1

	// Up: what was sent.
	said      map[string]uint64 // decider → highest epoch heard, in the hello
	numbers   wire.Numbers
	sent      []sent // by cell
	dirty     Dirty  // cells whose rate may have moved since the last report
	begun     bool   // sums were sent
	sequence  uint64
	contains  Contains // of the last report
	rates     Receipts // report → reports of children whose rates it contains
	counts    Receipts // report → reports of children whose counts it contains
	confirmed wire.Confirmed
	details   []*grlv1.Detail // to be sent
	roster    uint64          // version of the nodes sent
	rosterAt  time.Time

	// Down: what was received.
	ids []limiter.CellID // number → cell the parent named
}

// sent is what a parent was told of a cell last.
type sent struct {
	rate   law.Rate
	counts law.Counts
}

// NewParent returns a parent that was told nothing.
func NewParent() *Parent {
	return &Parent{wake: make(chan struct{}, 1), beat: make(chan struct{}, 1)}
}

// Reopen begins a new stream, with new numbers and sequences; heard has the
// highest epoch of each decider, as the hello says it. It returns the counts
// that the parents before confirmed, for the same hello.
func (p *Parent) Reopen(heard map[string]uint64) *grlv1.Report {
	p.confirmed.Reopen()
	*p = Parent{wake: p.wake, beat: p.beat, confirmed: p.confirmed, said: maps.Clone(heard)}
	return p.confirmed.Message(false)
}

// Said returns the highest epoch of a decider that the hello of this stream
// said.
func (p *Parent) Said(decider string) uint64 { return p.said[decider] }

// Touch marks a cell whose rate may have moved.
func (p *Parent) Touch(cell int) { p.dirty.Touch(cell) }

// Forget frees the indices of dead cells on this stream. Should one of the
// cells come back, its counts begin at 0.
func (p *Parent) Forget(dead map[int]limiter.CellID) {
	gone := make(map[limiter.CellID]bool, len(dead))
	for i, id := range dead {
		gone[id] = true
		p.numbers.Forget(i)
		if i < len(p.sent) {
			p.sent[i] = sent{}
		}
	}
	p.confirmed.Forget(func(id limiter.CellID) bool { return gone[id] })
}

// Named takes in the cells that a directive names, and checks its columns.
func (p *Parent) Named(m *grlv1.Directive) error {
	var err error
	if p.ids, err = wire.Named(p.ids, m.GetNames()); err != nil {
		return err
	}
	return wire.CheckDirective(m, len(p.ids))
}

// Cell returns the cell that the parent gave a number, which must be one of a
// directive that Named took.
func (p *Parent) Cell(number uint32) limiter.CellID { return p.ids[number] }

// Rates returns how many of the reports that this node received are in the
// rates of its report of that sequence, false if that is not remembered.
func (p *Parent) Rates(sequence uint64) (uint64, bool) { return p.rates.Received(sequence) }

// Counted takes in that all counts up to the report of that sequence have gone
// up, and returns how many of the reports that this node received they contain,
// false if that is not remembered.
func (p *Parent) Counted(sequence uint64) (uint64, bool) {
	p.confirmed.Confirm(sequence)
	return p.counts.Received(sequence)
}

// Add takes in a detail that goes up with the next messages.
func (p *Parent) Add(m *grlv1.Detail) { p.details = append(p.details, m) }

// Wake says that something moved.
func (p *Parent) Wake() { signal(p.wake) }

// Beat says that T has passed.
func (p *Parent) Beat() { signal(p.beat) }

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default: // it has been told
	}
}

// Feed sends the messages that next returns until ctx ends or send returns an
// error: at each Beat, for which full is true, and soon after each Wake.
func (p *Parent) Feed(ctx context.Context, send func(*grlv1.JoinRequest) error, next func(full bool) []*grlv1.JoinRequest) error {
	for {
		full := false
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-p.beat:
			full = true
		case <-p.wake:
			select { // more of the same surge is under way
			case <-ctx.Done():
			case <-p.beat:
				full = true
			case <-time.After(law.Coalesce):
			}
		}
		if ctx.Err() != nil {
			return ctx.Err() // the children of a node that stops leave: do not tell
		}
		for _, m := range next(full) {
			if err := send(m); err != nil {
				return err
			}
		}
	}
}
