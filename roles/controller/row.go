package controller

import (
	"time"

	"grl/limiter"
	"grl/limiter/law"
	grlv1 "grl/proto/grl/v1"
	"grl/proto/wire"
	"grl/web/page"
)

// row is what the controller sees of a cell now, or of a bucket that nobody
// calls.
type row struct {
	page.Cell
	bucket  *limiter.Bucket
	follows bool // another controller sends the directives
}

// owners returns the owners of services.
func (n *node) owners() map[string]string {
	owners := make(map[string]string, len(n.config.Services))
	for i := range n.config.Services {
		owners[n.config.Services[i].Name] = n.config.Services[i].Owner
	}
	return owners
}

// row returns what is seen of a cell of b, which may not be yet.
func (n *node) row(g glance, b *limiter.Bucket, id limiter.CellID, owner string) row {
	r := row{bucket: b, follows: !n.leads, Cell: still(b, owner)}
	ofCell(&r.Cell, b, id)
	r.SilentZones = offering(g.silent, b, id)
	if i, ok := n.cells.Find(id); ok {
		n.live(g, i, &r.Cell)
	}
	rampOut(&r.Cell, b, g.now)
	return r
}

// still returns what does not move of the rows of a bucket.
func still(b *limiter.Bucket, owner string) page.Cell {
	c := page.Cell{
		Service:      b.Service,
		Name:         b.Name,
		Owner:        owner,
		Match:        matchText(b),
		Selects:      b.Match,
		Scope:        b.Scope,
		Behavior:     b.Behavior,
		Block:        b.Block,
		CandidateRPS: b.CandidateRPS,
		DirectiveAge: -1,
	}
	if b.Cap != nil {
		c.Cap = b.Cap.ID
	}
	return c
}

// ofCell makes c the row of one cell of b, of which nothing is measured yet.
func ofCell(c *page.Cell, b *limiter.Bucket, id limiter.CellID) {
	c.Instance, c.Caller, c.Class = id.Instance, id.Caller, id.Class
	if b.Block {
		c.Ratio = 1
	} else {
		c.LimitRPS = b.Limit(id.Instance)
	}
}

// rampOut lets the ratio of a cap that has ended go.
func rampOut(c *page.Cell, b *limiter.Bucket, now time.Time) {
	if b.Cap != nil {
		c.Ratio = law.RampOut(c.Ratio, now.Sub(b.Cap.Ends))
	}
}

func matchText(b *limiter.Bucket) string {
	caller, procedure := string(b.Match.Caller), string(b.Match.Procedure)
	if caller == "" {
		caller = "*"
	}
	if b.PerCaller {
		caller = "each " + caller
	}
	if procedure == "" {
		procedure = "*"
	}
	return caller + " → " + procedure
}

// glance is what all rows of one moment have in common.
type glance struct {
	now    time.Time
	silent []silentZone             // of all cells
	ages   map[*voice]time.Duration // of the last directive of each
}

func (n *node) glance(now time.Time) glance {
	g := glance{now: now, silent: n.silent(now), ages: make(map[*voice]time.Duration, len(n.voices))}
	for _, v := range n.voices {
		if n.leads && v.stamp != (law.Stamp{}) {
			g.ages[v] = v.trail.Age(now, v.stamp)
		}
	}
	return g
}

// live fills in what is measured of a cell, and was decided of it.
func (n *node) live(g glance, i int, c *page.Cell) {
	s := &n.states[i]
	dropped, shadowDropped := n.flows[i].shares(n.ticks)
	c.OfferedRPS = s.rate.Offered.RPS()
	c.DroppedRPS, c.ShadowDroppedRPS = dropped*c.OfferedRPS, shadowDropped*c.OfferedRPS
	c.AdmittedRPS = c.OfferedRPS - c.DroppedRPS
	c.Hosts = int(s.rate.Hosts)
	c.Silent = len(g.silent) > 0 && s.rate.Offered > 0 && !n.heardOf(g.now, i)
	if !c.Block {
		c.Ratio = law.Ratio(n.admit(i))
	}
	if s.version > 0 {
		if age, said := g.ages[n.voice(i)]; said {
			c.DirectiveAge = age
		}
	}
	if s.bucket.CandidateRPS > 0 {
		if j := n.recorder.candidates[s.bucket.Gate(n.cells.ID(i))]; j != nil {
			c.CandidateDroppedRPS = j.last
		}
	}
}

// heardOf reports whether a zone that is not silent offers something to a cell.
func (n *node) heardOf(now time.Time, i int) bool {
	for _, z := range n.order {
		if z.live > 0 && z.sum.Rate(now, i).Offered > 0 {
			return true
		}
	}
	return false
}

// admit returns what was published of a cell. A controller that follows decides
// the same as the leader, and says nothing of it.
func (n *node) admit(i int) float64 {
	if !n.leads && n.decides(n.voice(i)) {
		return n.decider.Admit(i)
	}
	return n.states[i].published.Admit
}

// message returns the row as the API has it.
func (r *row) message() *grlv1.BucketView {
	m := &grlv1.BucketView{
		Bucket:           r.Service + "/" + r.Name,
		Owner:            r.Owner,
		Instance:         r.Instance,
		Caller:           r.Caller,
		Class:            r.Class,
		Scope:            wire.FromScope(r.Scope),
		Behavior:         wire.FromBehavior(r.Behavior),
		Block:            r.Block,
		LimitRps:         r.LimitRPS,
		OfferedRps:       r.OfferedRPS,
		AdmittedRps:      r.AdmittedRPS,
		DroppedRps:       r.DroppedRPS,
		ShadowDroppedRps: r.ShadowDroppedRPS,
		DropRatio:        r.Ratio,
		Hosts:            uint32(r.Hosts),

		CandidateDroppedRps: r.CandidateDroppedRPS,
		DirectiveAgeMs:      -1,
	}
	if r.DirectiveAge >= 0 {
		m.DirectiveAgeMs = r.DirectiveAge.Milliseconds()
	}
	if rps := r.CandidateRPS; rps > 0 {
		m.CandidateRps = &rps
	}
	m.CapId, m.SilentZones = r.Cap, r.SilentZones
	return m
}
