package aggregator

import (
	"time"

	"grl/limiter"
	"grl/limiter/law"
	grlv1 "grl/proto/grl/v1"
	"grl/proto/uplink"
	"grl/proto/wire"
)

const (
	idleCell  = 10 * time.Minute // a cell that nobody reports is forgotten after
	keepBoots = 10 * time.Minute // counts of a host that left are remembered for
	maxBoots  = 1 << 20          // cells whose counts are remembered, of all hosts that left
	maxCells  = 1 << 18          // callers are what they say they are: there is an end to it
)

// node is the aggregator's state: what its hosts said last, their sums, and
// what the controllers decided. All of it moves only through the methods, each
// with the time as an argument, under the lock of Aggregator.
type node struct {
	zone, region string

	config  *limiter.Configuration
	buckets map[string]*limiter.Bucket // full name → bucket of config

	cells    law.Cells
	sum      law.Sum
	played   law.Playout // of what the hosts counted
	active   []time.Time // by cell: when it was last offered anything
	admits   []admit     // by cell: what was decided
	version  uint64      // counts changes of admits
	deciders map[string]*decider

	parents   map[*uplink.Parent]bool // streams up that live
	hosts     map[*host]bool
	firstHost time.Time
	received  uint64 // counts reports of hosts
	arrived   uint64 // of them, until the last tick
	released  uint64 // of them, those whose counts are all in the sums sent
	boots     map[bootKey]boot
	// remembered is the number of cells in boots.
	remembered int
	epoch      uint64 // highest heard
	hostsEpoch uint64 // highest that a host has heard
	roster     uint64 // counts changes of what the fleet's view shows
	refused    refusal
}

// refusal is a configuration that the node could not take.
type refusal struct {
	revision uint64
	reason   string
}

// admit is what a decider said of one cell.
type admit struct {
	decider string
	version uint64 // of node.version when it was said; 0: never
	admit   float32
	offered law.MicroRPS
	hosts   uint32
}

// decider is one controller, or region, whose directives the node takes.
type decider struct {
	taken   law.Stamp
	heard   time.Time
	trail   law.Trail // of what was passed on to the hosts
	version uint64    // of node.version when its last directive had cells
	// Of the reports of hosts: how many its last sums contained, 0 if that is
	// not known, and how many of their counts have gone up.
	rates, counts uint64
}

// bootKey names one start of a host. A boot id alone would let a host that
// draws, or says, the id of another one take its place.
type bootKey struct {
	node string
	id   uint64
}

func keyOf(m *grlv1.Hello) bootKey { return bootKey{m.GetNode(), m.GetBootId()} }

// boot is what was counted of a host that left, in case it comes back.
type boot struct {
	left   time.Time
	counts map[limiter.CellID]law.Counts
}

func newNode(zone, region string) *node {
	return &node{
		zone:     zone,
		region:   region,
		config:   &limiter.Configuration{},
		deciders: make(map[string]*decider),
		parents:  make(map[*uplink.Parent]bool),
		hosts:    make(map[*host]bool),
		boots:    make(map[bootKey]boot),
	}
}

// cell returns the index of a cell, false if the configuration has no such one.
func (n *node) cell(id limiter.CellID) (int, bool) {
	b := n.buckets[id.Bucket]
	if b == nil || !b.HasCell(id, n.zone, n.region) {
		return -1, false
	}
	if _, ok := n.cells.Find(id); !ok && n.cells.Count() >= maxCells {
		return -1, false
	}
	i := n.cells.Index(id)
	n.sum.Grow(n.cells.Len())
	n.played.Grow(n.cells.Len())
	for len(n.admits) < n.cells.Len() {
		n.admits = append(n.admits, admit{})
		n.active = append(n.active, time.Time{})
	}
	return i, true
}

// install takes a configuration and forgets the cells it does not have.
func (n *node) install(c *limiter.Configuration) {
	n.config = c
	n.buckets = c.ByName()
	n.epoch = max(n.epoch, c.Epoch)
	dead := make(map[int]limiter.CellID)
	n.cells.Each(func(i int, id limiter.CellID) {
		if b := n.buckets[id.Bucket]; b == nil || !b.HasCell(id, n.zone, n.region) {
			dead[i] = id
		}
	})
	n.forget(dead)
}

// sweep forgets cells that had no traffic for a while, silent hosts' rates, and
// old boots.
func (n *node) sweep(now time.Time) {
	for key, b := range n.boots {
		if now.Sub(b.left) > keepBoots {
			n.forgetBoot(key)
		}
	}
	dead := make(map[int]limiter.CellID)
	n.cells.Each(func(i int, id limiter.CellID) {
		if n.sum.Rate(i).Offered > 0 || n.active[i].IsZero() {
			n.active[i] = now
		} else if now.Sub(n.active[i]) > idleCell {
			dead[i] = id
		}
	})
	n.forget(dead)
}

func (n *node) forget(dead map[int]limiter.CellID) {
	if len(dead) == 0 {
		return
	}
	for h := range n.hosts {
		h.child.Forget(func(cell int) bool { return dead[cell] != limiter.CellID{} })
	}
	for p := range n.parents {
		p.Forget(dead)
	}
	for i := range dead {
		n.cells.Forget(i)
		n.sum.Forget(i)
		n.played.Forget(i)
		n.admits[i] = admit{}
		n.active[i] = time.Time{}
		for h := range n.hosts {
			h.numbers.Forget(i)
		}
	}
}

// tick ends a T: what its hosts counted goes on evenly.
func (n *node) tick(now time.Time) {
	n.played.Tick(now)
	// What arrived before the last tick is all released with this one.
	n.released, n.arrived = n.arrived, n.received
}

// silence takes the rates of hosts out of the sum that were not heard lately.
func (n *node) silence(now time.Time) {
	for h := range n.hosts {
		if !h.child.Out() && now.Sub(h.heard) > law.HostSilent {
			n.leaveSum(h)
			n.roster++
		}
	}
}

func (n *node) leaveSum(h *host) {
	n.sum.Leave(&h.child)
	n.touch(h)
}

func (n *node) returnSum(h *host) {
	n.sum.Return(&h.child)
	n.touch(h)
	n.roster++
}

// touch tells the streams up that the sums of a host's cells may have moved.
func (n *node) touch(h *host) {
	for p := range n.parents {
		for number := range h.child.Names() {
			if i := h.child.Cell(uint32(number)); i >= 0 {
				p.Touch(i)
			}
		}
	}
}

// mayReport reports whether the sums are complete enough to be sent: a new
// aggregator waits until its hosts had time to find it.
func (n *node) mayReport(now time.Time) bool {
	return !n.firstHost.IsZero() && now.Sub(n.firstHost) >= law.Handover
}

// direct takes a directive of a controller. It returns false, and changes
// nothing, if a later one was taken from its decider before. A long directive
// comes in several messages with the same stamp.
func (n *node) direct(now time.Time, p *uplink.Parent, m *grlv1.Directive) bool {
	d := n.deciders[m.GetDecider()]
	if d == nil {
		d = &decider{}
		n.deciders[m.GetDecider()] = d
	}
	stamp := wire.Stamp(m)
	if d.taken.After(stamp) {
		return false
	}
	d.taken, d.heard = stamp, now
	d.trail.Note(now, stamp)
	n.epoch = max(n.epoch, stamp.Epoch)
	d.rates, _ = p.Rates(m.GetReportSequence())
	if counts, ok := p.Counted(m.GetCountedSequence()); ok {
		d.counts = counts
	}
	if len(m.GetCell()) == 0 {
		return true
	}
	n.version++
	d.version = n.version
	for row, number := range m.GetCell() {
		i, ok := n.cell(p.Cell(number))
		if !ok {
			continue // of a configuration that is still on its way
		}
		n.admits[i] = admit{
			decider: m.GetDecider(),
			version: n.version,
			admit:   m.GetAdmit()[row],
			offered: law.MicroRPS(wire.At(m.GetOfferedMicroRps(), row)),
			hosts:   wire.At(m.GetHosts(), row),
		}
		if n.active[i].IsZero() {
			n.active[i] = now
		}
	}
	return true
}

// outdated reports whether hosts would refuse a directive for its epoch without
// the controller knowing. It happens when this node is as new as the
// controller's store: only hosts remember the epochs before.
func (n *node) outdated(p *uplink.Parent, m *grlv1.Directive) bool {
	return n.hostsEpoch > max(m.GetEpoch(), p.Said(m.GetDecider()))
}

// live reports whether a decider was heard lately. Without a controller an
// aggregator publishes nothing, and its hosts hold, then decay, then open.
func (d *decider) live(now time.Time) bool { return now.Sub(d.heard) <= 25*law.T/10 }

// configurationFor returns the configuration message a host lacks, nil if it
// has all it asked for.
func (n *node) configurationFor(h *host) *grlv1.Configuration {
	if n.config.Revision == 0 || h.config != nil && !n.config.Newer(h.config.Epoch, h.config.Revision) {
		return nil
	}
	wanted := wire.Filter(n.config, h.hello)
	defer func() { h.config = wanted }()
	if h.config == nil {
		return wire.FromConfiguration(wanted)
	}
	return wire.Change(h.config, wanted)
}
