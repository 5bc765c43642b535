package controller

import (
	"math"
	"time"

	"grl/limiter"
	"grl/limiter/law"
	grlv1 "grl/proto/grl/v1"
	"grl/proto/wire"
)

// voice is one decider as the children hear it.
type voice struct {
	name    string
	stamp   law.Stamp // of the last directive; zero: none yet
	trail   law.Trail // of the directives
	version uint64    // of node.version when it last had cells
	rates   uint64    // of node.received: reports whose rates its sums contain
	counts  uint64    // the same: reports whose counts need not be kept below
	mute    bool      // nobody decides now: children are told nothing
	// looks counts the times at which children are told shares that moved
	// although what was decided did not.
	looks uint64
}

const (
	// lookEvery is how many T are between two looks at the shares.
	lookEvery = 5
	// shareBand is how far a child's share moves before it is told anew. It
	// matters only once the child is cut off.
	shareBand = 0.02
)

// say makes a directive with that stamp, whose sums contain the rates and counts
// of so many reports.
func (v *voice) say(now time.Time, s law.Stamp, rates, counts uint64) {
	v.stamp, v.rates, v.counts = s, rates, counts
	v.trail.Note(now, s)
}

// over returns the stamp under which a directive of the decider itself is passed
// on: its own, or one after those that were said in its place.
func (v *voice) over(s law.Stamp) law.Stamp {
	if v.stamp.After(s) {
		return law.Stamp{Epoch: v.stamp.Epoch, Sequence: v.stamp.Sequence, Step: v.stamp.Step + 1}
	}
	return s
}

// telling is what a child was told by a voice last.
type telling struct {
	stamp   law.Stamp
	version uint64 // of the cells
	looks   uint64 // at the shares
}

// directives returns what a child has not been told yet.
func (n *node) directives(c *child) []*grlv1.Directive {
	if !n.leads {
		return nil
	}
	var out []*grlv1.Directive
	for _, v := range n.voices {
		told := c.told[v]
		now := telling{v.stamp, v.version, v.looks}
		if v.mute || v.stamp == (law.Stamp{}) || now == told {
			continue
		}
		m := &grlv1.Directive{
			Decider:         v.name,
			Epoch:           v.stamp.Epoch,
			Sequence:        v.stamp.Sequence,
			Step:            v.stamp.Step,
			ReportSequence:  c.rates.Contained(v.rates),
			CountedSequence: c.counts.Contained(v.counts),
		}
		if v.version != told.version || v.looks != told.looks {
			n.fill(m, v, c, told)
		}
		c.told[v] = now
		if v.stamp == told.stamp && len(m.Cell) == 0 {
			continue // it renews nothing that was not renewed
		}
		out = append(out, wire.SplitDirective(m)...)
	}
	return out
}

// fill adds the cells of a directive that were published since the child was
// told, and those of which its share moved.
func (n *node) fill(m *grlv1.Directive, v *voice, c *child, told telling) {
	n.cells.Each(func(i int, id limiter.CellID) {
		s := &n.states[i]
		fresh := s.version > told.version
		if !fresh && (s.version == 0 || v.looks == told.looks) || n.voice(i) != v || !c.hears(s.bucket, id) {
			return
		}
		id, tells := n.tells(c, i, id)
		if !tells {
			return
		}
		verdict, share := n.verdict(v, c, i)
		was := c.toldShare(i)
		if !fresh && math.Abs(share-float64(*was)) <= shareBand {
			return
		}
		*was = float32(share)
		wire.AppendVerdict(m, c.numbers.Number(i, id, &m.Names), verdict, share)
	})
}
