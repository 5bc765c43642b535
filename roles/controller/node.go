package controller

import (
	"math"
	"slices"
	"time"

	"grl/limiter"
	"grl/limiter/law"
	grlv1 "grl/proto/grl/v1"
	"grl/proto/wire"
)

const (
	idleCell  = 10 * time.Minute // a cell that nobody reports is forgotten after
	keepBoots = 10 * time.Minute // counts of an aggregator that left are remembered for
	maxCells  = 1 << 20          // callers are what they say they are: there is an end to it
	forever   = time.Duration(math.MaxInt64)
)

// globalDecider names the decider of a controller without a parent.
const globalDecider = "global"

// node is the controller's state: what the zones offer and what was decided.
// All of it moves only through the methods, each with the time as an argument,
// under the lock of Controller.
type node struct {
	began    time.Time
	epoch    uint64
	sequence uint64          // of the last directive; 0: none yet
	trail    law.Trail       // of the directives
	rival    uint64          // epoch of another controller that an aggregator follows; 0: none
	warm     bool            // may publish
	missing  map[string]bool // zones of before the start that have not reported

	config  *limiter.Configuration
	buckets map[string]*limiter.Bucket // full name → bucket of config

	cells   law.Cells
	states  []state // by cell
	decider law.Decider
	dirty   []int  // cells whose sum may have moved since the last decision
	version uint64 // counts publications that moved a cell

	zones    map[string]*zone
	order    []*zone    // all zones, to go through them fast
	sums     []law.Rate // by cell: room for the sums over all zones
	children map[*child]bool
	boots    map[bootKey]boot
	recorder recorder
}

// state is one cell of the controller.
type state struct {
	bucket    *limiter.Bucket
	rate      law.Rate      // sum over the zones at the last decision
	published law.Published // told to the children last
	version   uint64        // of node.version when it was published; 0: never
	touched   bool          // in dirty
	active    time.Time
	flow      flow
}

// zone is what one zone offers.
type zone struct {
	name, region string
	sum          law.Zone
	live         int       // aggregators with a stream that sent sums
	kept         []*child  // lost ones whose last sums still count
	lost         time.Time // the last one with a stream left; zero: there is one
}

// bootKey names one start of an aggregator. A boot id alone would let one that
// draws, or says, the id of another one take its place.
type bootKey struct {
	node, zone string
	id         uint64
}

func keyOf(m *grlv1.Hello) bootKey { return bootKey{m.GetNode(), m.GetZone(), m.GetBootId()} }

// boot is what was counted of an aggregator that left, in case it comes back.
type boot struct {
	left   time.Time
	counts map[limiter.CellID]law.Counts
}

func newNode(now time.Time, epoch uint64, zones []string) *node {
	n := &node{
		began:    now,
		epoch:    epoch,
		missing:  make(map[string]bool),
		config:   &limiter.Configuration{},
		zones:    make(map[string]*zone),
		children: make(map[*child]bool),
		boots:    make(map[bootKey]boot),
	}
	for _, name := range zones {
		n.missing[name] = true
	}
	return n
}

// cell returns the index of a cell that a node of zone and region reports,
// false if the configuration has no such one.
func (n *node) cell(id limiter.CellID, zone, region string) (int, bool) {
	b := n.buckets[id.Bucket]
	if b == nil || !b.HasCell(id, zone, region) {
		return -1, false
	}
	if _, ok := n.cells.Find(id); !ok && n.cells.Count() >= maxCells {
		return -1, false
	}
	i := n.cells.Index(id)
	for len(n.states) < n.cells.Len() {
		n.states = append(n.states, state{})
	}
	if n.states[i].bucket != b {
		n.use(i, b, id)
	}
	return i, true
}

// install takes a configuration and forgets the cells it does not have.
func (n *node) install(c *limiter.Configuration) {
	n.config = c
	n.buckets = c.ByName()
	dead := make(map[int]bool)
	n.cells.Each(func(i int, id limiter.CellID) {
		b := n.buckets[id.Bucket]
		if b == nil || !b.Is(id) || n.states[i].bucket.Scope != b.Scope {
			dead[i] = true
			return
		}
		n.use(i, b, id)
		n.touch(i)
	})
	n.forget(dead)
}

// use makes b the bucket of the cell.
func (n *node) use(i int, b *limiter.Bucket, id limiter.CellID) {
	n.states[i].bucket = b
	n.decider.Use(i, b, id)
}

func (n *node) touch(i int) {
	if !n.states[i].touched {
		n.states[i].touched = true
		n.dirty = append(n.dirty, i)
	}
}

func (n *node) forget(dead map[int]bool) {
	if len(dead) == 0 {
		return
	}
	kept := n.dirty[:0]
	for _, i := range n.dirty {
		if !dead[i] {
			kept = append(kept, i)
		}
	}
	n.dirty = kept
	for _, z := range n.zones {
		for _, c := range z.kept {
			c.sums.Forget(func(cell int) bool { return dead[cell] })
		}
	}
	for c := range n.children {
		c.sums.Forget(func(cell int) bool { return dead[cell] })
		for i := range dead {
			c.numbers.Forget(i)
		}
	}
	for i := range dead {
		for _, z := range n.zones {
			z.sum.Forget(i)
		}
		n.cells.Forget(i)
		n.decider.Forget(i)
		n.states[i] = state{}
	}
}

// offered returns the sum of a cell over the zones.
func (n *node) offered(now time.Time, i int) law.Rate {
	var sum law.Rate
	for _, z := range n.order {
		r := z.sum.Rate(now, i)
		sum.Offered += r.Offered
		sum.Hosts += r.Hosts
	}
	return sum
}

// sumUp forms the sums of all cells over the zones: zone by zone, since memory
// is read fastest in its order.
func (n *node) sumUp(now time.Time) {
	n.sums = append(n.sums[:0], make([]law.Rate, n.cells.Len())...)
	for _, z := range n.order {
		z.sum.AddRates(now, n.sums)
	}
}

// offer takes in what a cell is offered now.
func (n *node) offer(now time.Time, i int, rate law.Rate) {
	s := &n.states[i]
	s.rate = rate
	if rate.Offered > 0 || s.active.IsZero() {
		s.active = now
	}
	n.decider.Offer(now, i, rate.Offered.RPS())
}

// decide decides the cells whose sums may have moved, and publishes at once
// what jumped. It reports whether there is a directive to send.
func (n *node) decide(now time.Time) bool {
	if len(n.dirty) > n.cells.Len()/8 {
		n.sumUp(now)
		for _, i := range n.dirty {
			n.offer(now, i, n.sums[i])
		}
	} else {
		for _, i := range n.dirty {
			n.offer(now, i, n.offered(now, i))
		}
	}
	n.decider.Settle(now, n.touch) // who shares a limit is decided with those that moved
	decided := n.look()
	if !n.mayPublish(now) || !slices.ContainsFunc(decided, func(i int) bool { return n.moved(i) == law.Jumps }) {
		return false
	}
	n.publish(now, decided, law.Jumps)
	return true
}

// look returns the cells touched since the last look.
func (n *node) look() []int {
	dirty := n.dirty
	for _, i := range dirty {
		n.states[i].touched = false
	}
	n.dirty = n.dirty[:0]
	return dirty
}

// moved says how far what was decided of a cell is from what was published.
func (n *node) moved(i int) law.Moved {
	return n.states[i].published.Moved(n.decider.Admit(i), n.decider.Hot(i))
}

// renew decides all cells and publishes what drifted, as at each T. It reports
// whether there is a directive to send.
func (n *node) renew(now time.Time) bool {
	n.age(now)
	n.sumUp(now)
	for i := range n.states {
		if s := &n.states[i]; s.bucket != nil {
			n.touch(i)
			n.offer(now, i, n.sums[i])
			s.flow.tick()
		}
	}
	n.decider.Settle(now, n.touch)
	decided := n.look()
	if !n.mayPublish(now) {
		return false
	}
	n.publish(now, decided, law.Drifts)
	return true
}

// publish makes a directive of those cells that moved at least so far.
func (n *node) publish(now time.Time, cells []int, least law.Moved) {
	n.sequence++
	n.trail.Note(now, law.Stamp{Epoch: n.epoch, Sequence: n.sequence})
	n.version++
	for _, i := range cells {
		if n.moved(i) >= least {
			s := &n.states[i]
			s.published, s.version = law.Publish(n.decider.Admit(i), n.decider.Hot(i)), n.version
		}
	}
	for c := range n.children {
		c.contained = c.sequence
	}
}

// raise begins a higher epoch: all is told anew under it.
func (n *node) raise(epoch uint64) {
	n.epoch = epoch
	c := *n.config
	c.Epoch = epoch
	n.config = &c
}

// forgetZone is how long a zone without an aggregator is shown as silent.
const forgetZone = 24 * time.Hour

// silentZones returns the zones from which nothing comes any more.
func (n *node) silentZones(now time.Time) []string {
	var out []string
	for _, z := range n.zones {
		if z.live == 0 && !z.lost.IsZero() && now.Sub(z.lost) < forgetZone {
			out = append(out, z.name)
		}
	}
	slices.Sort(out)
	return out
}

// mayPublish reports whether the sums are complete enough to decide on.
func (n *node) mayPublish(now time.Time) bool {
	if !n.warm {
		n.warm = law.WarmedUp(now.Sub(n.began), len(n.missing))
	}
	return n.warm
}

// age takes zones out of the sums that were silent for too long, and forgets
// idle cells and old boots.
func (n *node) age(now time.Time) {
	for _, z := range n.zones {
		kept := z.kept[:0]
		for _, c := range z.kept {
			if now.Sub(c.lost) < law.ZoneKept {
				kept = append(kept, c)
				continue
			}
			z.sum.Leave(&c.sums)
		}
		z.kept = kept
	}
	n.forgetZones(now)
	for c := range n.children {
		if now.Sub(c.heard) >= law.ZoneKept {
			c.zone.sum.Leave(&c.sums) // its stream lives, but it hangs
		}
	}
	for id, b := range n.boots {
		if now.Sub(b.left) > keepBoots {
			delete(n.boots, id)
		}
	}
	dead := make(map[int]bool)
	for i := range n.states {
		if s := &n.states[i]; !s.active.IsZero() && now.Sub(s.active) > idleCell {
			dead[i] = true
		}
	}
	n.forget(dead)
}

// directives returns what a child has not been told yet.
func (n *node) directives(c *child) []*grlv1.Directive {
	if n.sequence == 0 || c.told == n.sequence {
		return nil
	}
	c.told = n.sequence
	m := &grlv1.Directive{
		Decider:        globalDecider,
		Epoch:          n.epoch,
		Sequence:       n.sequence,
		ReportSequence: c.contained,
	}
	if c.version != n.version {
		n.cells.Each(func(i int, id limiter.CellID) {
			s := &n.states[i]
			if s.version <= c.version || id.Instance != s.bucket.Instance(c.hello.GetZone(), c.hello.GetRegion()) {
				return
			}
			number := c.numbers.Number(i, id, &m.Names)
			m.Cell = append(m.Cell, number)
			m.Admit = append(m.Admit, float32(s.published.Admit))
			if s.published.Hot {
				m.Hot = append(m.Hot, number)
			}
			m.OfferedMicroRps = append(m.OfferedMicroRps, uint64(s.rate.Offered))
			m.Hosts = append(m.Hosts, s.rate.Hosts)
			m.Share = append(m.Share, c.share(i, s.rate))
		})
		c.version = n.version
	}
	return wire.SplitDirective(m)
}
