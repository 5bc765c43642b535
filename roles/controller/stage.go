package controller

import (
	"reflect"
	"slices"
	"time"

	"grl/limiter"
	"grl/limiter/law"
	"grl/proto/wire"
)

// stage is a revision on its way through the zones: those that it has not
// reached hold the one before, and their cells are decided by its limits. A cell
// of a bucket that both revisions have, and that differs, is decided twice: by
// the new limit under its own index, and by the old one under that of its twin,
// which is offered the same.
type stage struct {
	from    *limiter.Configuration
	buckets map[string]*limiter.Bucket // of from, by full name: those that the new revision has not, or has otherwise
	endings endings                    // of from
	added   map[string]bool            // full names of those that from has not
	reached map[string]bool            // zones
	twins   map[int]int                // cell → its twin
	of      map[int]int                // twin → cell
	watch   watch
}

// twinMark ends the bucket's name in the id of a twin, which no message carries.
const twinMark = "\x00before"

func twinID(id limiter.CellID) limiter.CellID {
	id.Bucket += twinMark
	return id
}

// newStage compares two configurations; no zone is reached yet.
func newStage(from, next *limiter.Configuration) *stage {
	g := &stage{
		from:    from,
		buckets: make(map[string]*limiter.Bucket),
		added:   make(map[string]bool),
		reached: make(map[string]bool),
		twins:   make(map[int]int),
		of:      make(map[int]int),
	}
	was := make(map[string]*limiter.Service, len(from.Services))
	for i := range from.Services {
		was[from.Services[i].Name] = &from.Services[i]
	}
	for i := range next.Services {
		s := &next.Services[i]
		if old := was[s.Name]; old != nil {
			g.compare(old, s)
		} else {
			g.compare(&limiter.Service{}, s)
		}
		delete(was, s.Name)
	}
	for _, old := range was {
		g.compare(old, &limiter.Service{})
	}
	return g
}

// compare takes in what a service was and is.
func (g *stage) compare(old, next *limiter.Service) {
	if wire.Equal(old, next) {
		return
	}
	was := make(map[string]*limiter.Bucket, len(old.Buckets))
	for i := range old.Buckets {
		was[old.Buckets[i].FullName()] = &old.Buckets[i]
	}
	for i := range next.Buckets {
		b := &next.Buckets[i]
		before, name := was[b.FullName()], b.FullName()
		switch {
		case before == nil:
			g.added[name] = true
		case !reflect.DeepEqual(before, b):
			g.buckets[name] = before
		}
		delete(was, name)
	}
	for name, before := range was {
		g.buckets[name] = before
	}
}

// configuration returns what a zone shall hold.
func (n *node) configuration(z *zone) *limiter.Configuration {
	if n.stage == nil || n.stage.reached[z.name] {
		return n.config
	}
	return n.stage.from
}

// bucket returns the bucket of that name in the configuration of a zone.
func (n *node) bucket(name string, z *zone) *limiter.Bucket {
	if n.stage == nil || n.stage.reached[z.name] {
		return n.buckets[name]
	}
	if old := n.stage.buckets[name]; old != nil {
		return old
	}
	if n.stage.added[name] {
		return nil
	}
	return n.buckets[name]
}

// primary returns the bucket by which a cell is decided under its own index: of
// two that have it, the newer one; nil if none has.
func (n *node) primary(id limiter.CellID) *limiter.Bucket {
	if b := n.buckets[id.Bucket]; b != nil && b.Is(id) {
		return b
	}
	if n.stage == nil {
		return nil
	}
	if old := n.stage.buckets[id.Bucket]; old != nil && old.Is(id) {
		return old
	}
	return nil
}

// pair gives a cell a twin if it needs one.
func (n *node) pair(i int, id limiter.CellID) {
	g := n.stage
	if g == nil {
		return
	}
	if t, ok := g.twins[i]; ok {
		n.repair(t, id)
		return
	}
	old := g.buckets[id.Bucket]
	if old == nil || !old.Is(id) || n.states[i].bucket == old {
		return
	}
	t := n.grow(twinID(id))
	g.twins[i], g.of[t] = t, i
	n.states[t].bucket = old
	n.states[t].active = n.states[i].active
	n.decider.Use(t, old, twinID(id))
	if was := n.states[i].published; was.Admit > 0 {
		n.decider.Resume(t, was.Admit) // it goes on as it was
	}
	n.dirty.Touch(i)
}

// repair gives a twin the bucket that zones which are not reached hold now. It
// stays a twin where that has come to be the same: they know the cell by it.
func (n *node) repair(t int, id limiter.CellID) {
	old := n.stage.buckets[id.Bucket]
	if old == nil {
		old = n.buckets[id.Bucket]
	}
	if n.states[t].bucket != old {
		n.states[t].bucket = old
		n.decider.Use(t, old, twinID(id))
	}
}

// restage takes in both configurations of a stage as they hold now: with other
// caps, or the limits of another hour. What is watched is counted anew if the
// hour changed what differs between them, since it moves what is dropped.
func (n *node) restage(from, next *limiter.Configuration) {
	g, fresh := n.stage, newStage(from, next)
	same := reflect.DeepEqual(fresh.buckets, g.buckets)
	g.from, g.buckets, g.added = from, fresh.buckets, fresh.added
	if !same {
		g.watch = n.newWatch(false)
	}
}

// tells reports whether a child hears what was decided of a cell under this
// index, and by which name it knows the cell.
func (n *node) tells(c *child, i int, id limiter.CellID) (limiter.CellID, bool) {
	g := n.stage
	if g == nil {
		return id, true
	}
	if o, ok := g.of[i]; ok {
		return n.cells.ID(o), !g.reached[c.zone.name]
	}
	if _, twin := g.twins[i]; twin && !g.reached[c.zone.name] {
		return id, false
	}
	b := n.bucket(id.Bucket, c.zone)
	return id, b != nil && b.Is(id)
}

// withTwins adds the twins of cells to them.
func (n *node) withTwins(cells []int) []int {
	if n.stage == nil {
		return cells
	}
	all := slices.Clone(cells)
	for _, i := range cells {
		if t, ok := n.stage.twins[i]; ok {
			all = append(all, t)
		}
	}
	return all
}

// original returns the cell whose load one is offered: itself, unless it is a
// twin.
func (n *node) original(i int) int {
	if n.stage != nil {
		if o, ok := n.stage.of[i]; ok {
			return o
		}
	}
	return i
}

// unstage ends the stage: all cells are decided once.
func (n *node) unstage() {
	if n.stage == nil {
		return
	}
	twins := make(map[int]limiter.CellID)
	for t := range n.stage.of {
		twins[t] = n.cells.ID(t)
	}
	n.forget(twins)
	n.stage = nil
}

// reach takes in which zones the revision has reached; those that are new to it
// are told all cells anew.
func (n *node) reach(zones []string) {
	for _, name := range zones {
		if n.stage.reached[name] {
			continue
		}
		n.stage.reached[name] = true
		n.stage.watch.since = time.Time{} // count anew
		for c := range n.children {
			if c.zone.name == name {
				clear(c.told)
				n.withdraw(c)
			}
		}
	}
}

// withdraw takes the rates of cells out of the sums that a child's zone has no
// more: it will not say so itself.
func (n *node) withdraw(c *child) {
	gone := make(map[int]bool)
	for number, id := range c.ids {
		i := c.sums.Cell(uint32(number))
		if b := n.bucket(id.Bucket, c.zone); i < 0 || b != nil && n.has(c.zone, b, id) {
			continue
		}
		c.zone.sum.FoldRate(&c.sums, uint32(number), law.Rate{})
		gone[i] = true
		n.touch(i)
	}
	c.sums.Forget(func(cell int) bool { return gone[cell] })
}

// unpair forgets that cells were twins of each other, or had one.
func (g *stage) unpair(dead map[int]limiter.CellID) {
	for i := range dead {
		if t, ok := g.twins[i]; ok {
			delete(g.of, t)
			delete(g.twins, i)
		}
		if o, ok := g.of[i]; ok {
			delete(g.twins, o)
			delete(g.of, i)
		}
	}
}
