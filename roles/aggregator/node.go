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
	autonomy     time.Duration

	config   *limiter.Configuration
	buckets  map[string]*limiter.Bucket // full name → bucket of config
	outbound map[string]bool            // services of config that the callers' side enforces
	zones    []*grlv1.ZoneSize          // aggregators of each zone

	cells    law.Cells
	services map[string][]int // name → its cells
	sum      law.Sum
	played   law.Playout // of what the hosts counted
	active   []time.Time // by cell: when it was last offered anything
	states   []cellState // by cell
	version  uint64      // counts changes of what hosts are told of cells
	deciders map[string]*decider
	scopes   [limiter.Zone + 1]*decider // who decides cells of each scope; nil: not known

	// While the node stands in for a decider.
	standing  bool
	stand     law.Decider
	moved     uplink.Dirty     // cells whose sum may have moved since the last decision
	parents   []*uplink.Parent // streams up that live
	hosts     map[*host]bool
	firstHost time.Time
	emptied   time.Time // when all hosts had to join anew; zero: never
	received  uint64    // counts reports of hosts
	arrived   uint64    // of them, until the last tick
	released  uint64    // of them, those whose counts are all in the sums sent
	boots     map[bootKey]boot
	// remembered is the number of cells in boots.
	remembered int
	heard      epochs
	hostsHeard epochs // by hosts
	roster     uint64 // counts changes of what the fleet's view shows
	refused    refusal
	kept       uint64 // counts changes of what save returns
	saved      saved
}

// refusal is a configuration that the node could not take.
type refusal struct {
	revision uint64
	reason   string
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
	stream uint64 // its last one
	counts map[limiter.CellID]law.Counts
	usual  map[limiter.CellID]float32
}

func newNode(zone, region string, autonomy time.Duration) *node {
	return &node{
		zone:       zone,
		region:     region,
		autonomy:   autonomy,
		config:     &limiter.Configuration{},
		services:   make(map[string][]int),
		deciders:   make(map[string]*decider),
		hosts:      make(map[*host]bool),
		boots:      make(map[bootKey]boot),
		heard:      make(epochs),
		hostsHeard: make(epochs),
	}
}

// cell returns the index of a cell, false if the configuration has no such one.
func (n *node) cell(id limiter.CellID) (int, bool) {
	b := n.buckets[id.Bucket]
	if b == nil || !b.HasCell(id, n.zone, n.region) {
		return -1, false
	}
	if i, ok := n.cells.Find(id); ok {
		return i, true
	}
	if n.cells.Count() >= maxCells {
		return -1, false
	}
	i := n.cells.Index(id)
	n.services[b.Service] = append(n.services[b.Service], i)
	n.sum.Grow(n.cells.Len())
	n.played.Grow(n.cells.Len())
	for len(n.states) < n.cells.Len() {
		n.states = append(n.states, cellState{})
		n.active = append(n.active, time.Time{})
	}
	if d := n.scopes[b.Scope]; d != nil && d.alone {
		n.adopt(d, i)
	}
	return i, true
}

// install takes a configuration and forgets the cells it does not have.
func (n *node) install(c *limiter.Configuration) {
	n.config = c
	n.buckets = c.ByName()
	n.outbound = outbound(c)
	n.heard.raise(globalDecider, c.Epoch)
	dead := make(map[int]limiter.CellID)
	n.cells.Each(func(i int, id limiter.CellID) {
		if b := n.buckets[id.Bucket]; b == nil || !b.HasCell(id, n.zone, n.region) {
			dead[i] = id
		} else if d := n.states[i].decider; d != nil && d.alone {
			n.stand.Use(i, b, id)
		}
	})
	n.forget(dead)
}

// resize takes in how many aggregators each zone has.
func (n *node) resize(zones []*grlv1.ZoneSize) {
	n.zones = zones
	n.kept++
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
	for _, p := range n.parents {
		p.Forget(dead)
	}
	for i := range dead {
		n.cells.Forget(i)
		n.sum.Forget(i)
		n.played.Forget(i)
		n.stand.Forget(i)
		n.states[i] = cellState{}
		n.active[i] = time.Time{}
		for h := range n.hosts {
			h.numbers.Forget(i)
			delete(h.held, i)
		}
	}
	clear(n.services)
	n.cells.Each(func(i int, id limiter.CellID) {
		name := n.buckets[id.Bucket].Service
		n.services[name] = append(n.services[name], i)
	})
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

// touch tells who follows the sums that those of a host's cells may have moved.
func (n *node) touch(h *host) {
	all := make([]uint32, h.child.Names())
	for number := range all {
		all[number] = uint32(number)
	}
	n.touchNumbers(h, all)
}

// touchNumbers is touch for some of the numbers of a host.
func (n *node) touchNumbers(h *host, numbers []uint32) {
	for _, p := range n.parents {
		for _, number := range numbers {
			if i := h.child.Cell(number); i >= 0 {
				p.Touch(i)
			}
		}
	}
	if !n.standing {
		return
	}
	for _, number := range numbers {
		if i := h.child.Cell(number); i >= 0 {
			n.moved.Touch(i)
		}
	}
}

// empty makes all hosts join anew.
func (n *node) empty(now time.Time) {
	n.emptied = now
	for h := range n.hosts {
		n.leave(now, h)
		wake(h.wake)
	}
}

// mayReport reports whether the sums are complete enough to be sent: a new
// aggregator waits until its hosts had time to find it.
func (n *node) mayReport(now time.Time) bool {
	return !n.firstHost.IsZero() && now.Sub(n.firstHost) >= law.Handover
}

// configurationFor returns the configuration message a host lacks, nil if it
// has all it asked for.
func (n *node) configurationFor(h *host) *grlv1.Configuration {
	if !n.config.Any() || h.config != nil && !n.config.Version().After(h.config.Version()) {
		return nil
	}
	wanted := wire.Filter(n.config, h.hello)
	defer func() { h.config = wanted }()
	if h.config == nil {
		return wire.FromConfiguration(wanted)
	}
	return wire.Change(h.config, wanted)
}
