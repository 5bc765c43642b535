package controller

import (
	"math"
	"time"

	"grl/limiter"
	"grl/limiter/law"
	grlv1 "grl/proto/grl/v1"
	"grl/proto/uplink"
)

const (
	idleCell  = 10 * time.Minute // a cell that nobody reports is forgotten after
	keepBoots = 10 * time.Minute // counts of an aggregator that left are remembered for
	maxCells  = 1 << 20          // callers are what they say they are: there is an end to it
	forever   = time.Duration(math.MaxInt64)
)

// globalDecider names the decider of a controller without a parent. The one of
// a regional controller has the name of its region.
const globalDecider = "global"

// node is the controller's state: what the zones offer and what was decided.
// All of it moves only through the methods, each with the time as an argument,
// under the lock of Controller.
type node struct {
	began   time.Time
	epoch   uint64
	own     *voice           // what it decides itself
	voices  []*voice         // all that its children hear
	rival   uint64           // epoch of another controller that a child follows; 0: none
	heard   uint64           // highest epoch of its own decider that a child has heard
	warm    bool             // may publish
	missing map[string]bool  // zones of before the start that have not reported
	before  map[string]*zone // those of the day before the start, by name

	config     *limiter.Configuration
	buckets    map[string]*limiter.Bucket // full name → bucket of config
	endings    endings                    // of config
	configured configured                 // of config, once it was asked for

	cells   law.Cells
	states  []state // by cell
	flows   []flow  // by cell
	decider law.Decider
	dirty   uplink.Dirty // cells whose sum may have moved since the last decision
	version uint64       // counts publications that moved a cell

	zones    map[string]*zone
	order    []*zone    // all zones, to go through them fast
	sums     []law.Rate // by cell: room for the sums over all zones
	moving   []int      // room
	ticks    uint64
	children map[*child]bool
	received uint64 // counts reports of children
	boots    map[bootKey]boot
	recorder recorder
	sizes    sizes
	region   *region // nil: there is no parent
	stage    *stage  // nil: all zones hold config
	leads    bool    // of its group; else it only listens
}

// state is one cell of the controller: as much as fits into a line of the cache,
// since all are gone through at each T.
type state struct {
	bucket    *limiter.Bucket
	rate      law.Rate      // sum over the zones at the last decision
	published law.Published // told to the children last
	version   uint64        // of node.version when it was published; 0: never
	active    time.Duration // since node.began, when it was last offered anything; 0: never
}

// zone is what one zone offers, or one region with a controller of its own.
type zone struct {
	name, region string
	regional     bool
	sum          law.Zone
	live         int          // aggregators with a stream that sent sums
	kept         []*child     // lost ones whose last sums still count
	lost         time.Time    // the last one with a stream left; zero: there is one
	silence      *silence     // what was known when it fell silent; nil: it has not, or just now
	below        []silentZone // of a region: its silent zones, as it told of them last
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
	stream uint64 // its last one
	counts map[limiter.CellID]law.Counts
}

func newNode(now time.Time, zones []string) *node {
	n := &node{
		began:    now,
		missing:  make(map[string]bool),
		config:   &limiter.Configuration{},
		zones:    make(map[string]*zone),
		children: make(map[*child]bool),
		boots:    make(map[bootKey]boot),
		own:      &voice{name: globalDecider},
	}
	n.voices = []*voice{n.own}
	for _, name := range zones {
		n.missing[name] = true
	}
	return n
}

// cell returns the index of a cell that a child reports from a zone, false if
// the configuration has no such one there.
func (n *node) cell(id limiter.CellID, z *zone) (int, bool) {
	b := n.bucket(id.Bucket, z)
	if b == nil || !n.has(z, b, id) {
		return -1, false
	}
	return n.index(id)
}

// has reports whether a cell of b may be in a zone. In a region it may be that
// of any zone but those which report here themselves.
func (n *node) has(z *zone, b *limiter.Bucket, id limiter.CellID) bool {
	switch {
	case !z.regional:
		return b.HasCell(id, z.name, z.region)
	case b.Scope == limiter.Zone:
		return n.zones[id.Instance] == nil && b.Is(id)
	default:
		return b.HasCell(id, "", z.region)
	}
}

// index returns the index of a cell that some bucket has, false if there is no
// room for it.
func (n *node) index(id limiter.CellID) (int, bool) {
	if _, ok := n.cells.Find(id); !ok && n.cells.Count() >= maxCells {
		return -1, false
	}
	i := n.grow(id)
	if b := n.primary(id); n.states[i].bucket != b {
		n.use(i, b, id)
	}
	n.pair(i, id)
	return i, true
}

// grow returns the index of a cell, with room for it everywhere.
func (n *node) grow(id limiter.CellID) int {
	i := n.cells.Index(id)
	for len(n.states) < n.cells.Len() {
		n.states = append(n.states, state{})
		n.flows = append(n.flows, flow{})
	}
	if n.region != nil {
		n.region.grow(n.cells.Len())
	}
	return i
}

// install takes a configuration and forgets the cells it does not have. from, if
// not nil, is what zones hold that are not among reached.
func (n *node) install(c, from *limiter.Configuration, reached []string) {
	same := n.stage != nil && from != nil && from.Revision == n.stage.from.Revision && c.Revision == n.config.Revision
	if !same {
		n.unstage()
	}
	before := n.config
	n.config = c
	n.buckets = c.ByName()
	held := n.endings
	n.endings = newEndings(c, held)
	switch {
	case same:
		n.restage(from, c)
		n.reach(reached)
	case from != nil:
		n.stage = newStage(from, c)
		n.reach(reached)
		n.stage.watch = n.newWatch(before.Revision == from.Revision)
	}
	if n.stage != nil {
		n.stage.endings = newEndings(n.stage.from, held, n.endings, n.stage.endings)
	}
	dead := make(map[int]limiter.CellID)
	n.cells.Each(func(i int, id limiter.CellID) {
		if n.original(i) != i {
			return // a twin goes with its cell
		}
		b := n.primary(id)
		if b == nil || n.states[i].bucket.Scope != b.Scope {
			dead[i] = id
			if n.stage != nil {
				if t, ok := n.stage.twins[i]; ok {
					dead[t] = n.cells.ID(t)
				}
			}
			return
		}
		n.use(i, b, id)
		n.dirty.Touch(i)
	})
	n.forget(dead)
	n.rejudge()
	if n.stage != nil {
		n.cells.Each(func(i int, id limiter.CellID) {
			if n.original(i) == i {
				n.pair(i, id)
			}
		})
	}
}

// judge tells a series what the configuration of its zone says of its bucket,
// nil: nothing.
func (n *node) judge(s *series, b *limiter.Bucket, id limiter.CellID, z *zone) {
	s.judged = n.recorder.candidate(b, id)
	s.last = n.endingsOf(z).isLast(b)
}

// rejudge tells what is recorded of a new configuration.
func (n *node) rejudge() {
	for c := range n.children {
		for number, s := range c.series {
			if s != nil {
				id := c.ids[number]
				id.Class = ""
				n.judge(s, n.bucket(id.Bucket, c.zone), id, c.zone)
			}
		}
	}
}

// use makes b the bucket of the cell.
func (n *node) use(i int, b *limiter.Bucket, id limiter.CellID) {
	n.states[i].bucket = b
	n.decider.Use(i, b, id)
	if n.region != nil && n.region.alone && n.voice(i) == n.region.global {
		n.takePart(i)
	}
}

func (n *node) forget(dead map[int]limiter.CellID) {
	if len(dead) == 0 {
		return
	}
	gone := func(cell int) bool { return dead[cell] != limiter.CellID{} }
	for _, z := range n.zones {
		for _, c := range z.kept {
			c.sums.Forget(gone)
		}
	}
	for c := range n.children {
		c.sums.Forget(gone)
		for i := range dead {
			c.forget(i)
		}
	}
	for i := range dead {
		for _, z := range n.zones {
			z.sum.Forget(i)
		}
		n.cells.Forget(i)
		n.decider.Forget(i)
		n.states[i], n.flows[i] = state{}, flow{}
	}
	if n.region != nil {
		n.region.forget(dead)
	}
	if n.stage != nil {
		n.stage.unpair(dead)
	}
}

// raise begins a higher epoch: all is told anew under it.
func (n *node) raise(epoch uint64) {
	n.epoch = epoch
	if n.region != nil {
		return // the configuration has its epoch from above
	}
	c := *n.config
	c.Epoch = epoch
	n.config = &c
	if n.stage != nil {
		from := *n.stage.from
		from.Epoch = epoch
		n.stage.from = &from
	}
}

// lead makes the node the one of its group that decides, under an epoch of its
// own: all is told anew.
func (n *node) lead(epoch uint64) {
	n.raise(epoch)
	n.leads = true
	n.own.stamp = law.Stamp{}
	for i := range n.states {
		n.states[i].published, n.states[i].version = law.Published{}, 0
	}
	for c := range n.children {
		c.config = nil
		clear(c.told)
	}
}

// listen makes the node one that only takes in what is reported, so that it can
// lead at once when it must.
func (n *node) listen() { n.leads = false }

// forgetZone is how long a zone without an aggregator is shown as silent.
const forgetZone = 24 * time.Hour

// mayPublish reports whether the node leads, and the sums are complete enough to
// decide on.
func (n *node) mayPublish(now time.Time) bool { return n.leads && n.complete(now) }

// complete reports whether the sums are complete enough to decide on.
func (n *node) complete(now time.Time) bool {
	if !n.warm {
		n.warm = law.WarmedUp(now.Sub(n.began), len(n.missing))
	}
	return n.warm
}

// age takes zones out of the sums that were silent for too long, and forgets
// old boots.
func (n *node) age(now time.Time) {
	for _, z := range n.zones {
		kept := z.kept[:0]
		for _, c := range z.kept {
			if now.Sub(c.lost) < law.ZoneKept {
				kept = append(kept, c)
				continue
			}
			z.sum.Leave(&c.sums)
			n.rosterChanged()
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
}
