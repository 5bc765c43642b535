package controller

import (
	"time"

	"grl/limiter"
	"grl/limiter/law"
	grlv1 "grl/proto/grl/v1"
	"grl/proto/uplink"
	"grl/proto/wire"
)

// region is what the node of a regional controller has beside what all have:
// what it tells the parent group, and what that decides of global cells.
type region struct {
	name    string
	parents map[*uplink.Parent]bool // streams up that live

	// Down: global cells, as the parent decides them and as the children hear
	// of them. The two differ while this node decides them alone.
	global   *voice
	taken    law.Stamp // of the parent's last directive
	heard    time.Time // when it came; zero: never
	passed   []passed  // by cell
	autonomy time.Duration
	alone    bool // this node decides them
	strayed  bool // children were told otherwise than the parent said

	// Up: what the children counted goes on evenly.
	played   law.Playout
	arrived  uint64 // of node.received: until the last T
	released uint64 // the same: those whose counts may all have gone up
	counts   uint64 // the same: those whose counts the parent has

	epoch   uint64            // highest of the parent's decider that was heard
	below   uint64            // the highest that a child has heard
	sizes   []*grlv1.ZoneSize // the parent's
	roster  uint64            // counts changes of which nodes there are, and which zones are silent
	refused refusal
}

// passed is what the parent said of one cell.
type passed struct {
	said  law.Verdict // its Admit is 0 if nothing
	share float64     // this region's of what the whole fleet is offered
}

// refusal is a configuration that the node could not take.
type refusal struct {
	revision uint64
	reason   string
}

// regional makes the node that of a region whose parent decides global cells. Call
// it before anything else.
func (n *node) regional(name string, autonomy time.Duration) {
	n.own.name = name
	n.region = &region{
		name:     name,
		autonomy: autonomy,
		parents:  make(map[*uplink.Parent]bool),
		global:   &voice{name: globalDecider},
	}
	n.voices = append(n.voices, n.region.global)
}

// direct takes in a directive of the parent group. It returns false, and changes
// nothing, if a later one was taken before, or it is of a decider that is not
// above. A long directive comes in several messages with the same stamp.
func (n *node) direct(now time.Time, p *uplink.Parent, m *grlv1.Directive) bool {
	r, stamp := n.region, wire.Stamp(m)
	if m.GetDecider() != globalDecider || r.taken.After(stamp) {
		return false
	}
	r.taken, r.heard = stamp, now
	r.epoch = max(r.epoch, stamp.Epoch)
	r.alone, r.global.mute = false, false
	if counts, ok := p.Counted(m.GetCountedSequence()); ok {
		r.counts = counts
	}
	rates, _ := p.Rates(m.GetReportSequence()) // 0: hosts take a mean one's
	n.version++
	for row, said := range wire.Verdicts(m) {
		share := float64(wire.At(m.GetShare(), row))
		if !(share >= 0 && share <= 1) {
			share = 0 // not known
		}
		n.pass(now, p.Cell(m.GetCell()[row]), passed{said, share})
	}
	if r.strayed {
		n.restore()
	}
	r.global.say(now, r.global.over(stamp), rates, r.counts)
	return true
}

// outdated reports whether children would refuse a directive for its epoch
// without the parent knowing: only they remember the epochs before.
func (n *node) outdated(p *uplink.Parent, m *grlv1.Directive) bool {
	return m.GetDecider() == globalDecider && n.region.below > max(m.GetEpoch(), p.Said(globalDecider))
}

// pass publishes under the present version what the parent said of a cell.
func (n *node) pass(now time.Time, id limiter.CellID, at passed) {
	b := n.buckets[id.Bucket]
	if b == nil || b.Scope != limiter.Global || !b.Is(id) {
		return // of a configuration that is still on its way
	}
	i, ok := n.index(id)
	if !ok {
		return
	}
	n.region.passed[i] = at
	n.retell(i)
	if s := &n.states[i]; s.active == 0 {
		s.active = n.running(now)
	}
}

// retell publishes under the present version what the parent said last of a
// cell.
func (n *node) retell(i int) {
	said := n.region.passed[i].said
	s := &n.states[i]
	s.published, s.version = law.Publish(said.Admit, said.Hot, said.Excess), n.version
	n.region.global.version = n.version
}

// restore publishes under the present version the parent's last word of the
// cells of which the children were told another since.
func (n *node) restore() {
	for i := range n.region.passed {
		said := n.region.passed[i].said
		if said.Admit > 0 && n.states[i].published != law.Publish(said.Admit, said.Hot, said.Excess) {
			n.retell(i)
		}
	}
	n.region.strayed = false
}

// takeConfiguration takes in a configuration that the parent group sent.
func (n *node) takeConfiguration(c *limiter.Configuration, zones []*grlv1.ZoneSize) {
	r := n.region
	r.epoch = max(r.epoch, c.Epoch)
	r.refused = refusal{}
	if c.Version().After(n.config.Version()) {
		n.install(c, nil, nil)
	}
	if len(zones) > 0 {
		r.sizes = zones
	}
	n.resize()
}

// touch marks a cell whose sum may have moved.
func (n *node) touch(i int) {
	n.dirty.Touch(i)
	if n.region != nil {
		for p := range n.region.parents {
			p.Touch(i)
		}
	}
}

// tick ends a T of what goes up.
func (r *region) tick(now time.Time, received uint64) {
	r.played.Tick(now)
	// What arrived before the last tick is all released with this one.
	r.released, r.arrived = r.arrived, received
}

// grow makes room for cells below count.
func (r *region) grow(count int) {
	r.played.Grow(count)
	for len(r.passed) < count {
		r.passed = append(r.passed, passed{})
	}
}

// forget empties cells before their indices are given to others.
func (r *region) forget(dead map[int]limiter.CellID) {
	for i := range dead {
		r.played.Forget(i)
		r.passed[i] = passed{}
	}
	for p := range r.parents {
		p.Forget(dead)
	}
}
